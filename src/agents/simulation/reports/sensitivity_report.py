"""The report of a sweep over ranges: which settings each metric depends on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...memory.words import counted, number
from ..statistics import Interval
from . import html as page
from . import plots


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What the runs of a sweep over ranges say."""

    name: str
    question: str
    variants: Sequence[str]
    ranges: Mapping[str, tuple[float, float]]
    runs: int
    missing: int
    seeds: int
    rows: Sequence[Mapping[str, Any]]
    """For each metric, variant and setting the indices ``first`` and ``total`` with the ends of
    their intervals; ``chance``, the share that seeds alone make; or ``why`` there are none."""

    @property
    def groups(self) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
        """The rows of each metric and variant."""
        found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for row in self.rows:
            found.setdefault((row["metric"], row["variant"]), []).append(row)
        return found


def render_sensitivity(found: Sensitivity) -> str:
    """The report, as a whole HTML document."""
    drawn = charts(found)
    facts = {
        "variants": ", ".join(found.variants),
        "settings": len(found.ranges),
        "seeds": found.seeds,
        "runs": found.runs,
        "missing runs": found.missing or None,
    }
    ranges = [
        [page.escape(name), f"{number(low)} to {number(high)}"]
        for name, (low, high) in found.ranges.items()
    ]
    body = [
        page.headline("TierMem sweep", found.name),
        f'<p class="lead">{page.escape(found.question)}</p>',
        page.definitions({name: value for name, value in facts.items() if value is not None}),
        "<h2>Ranges</h2>",
        page.table(["Setting", "Range"], ranges, numbers=1),
        "<h2>What each metric depends on</h2>",
        page.charts(
            page.figure(title(found, place), drawn[f"indices-{at}"], _CAPTION)
            for at, place in enumerate(found.groups, 1)
            if f"indices-{at}" in drawn
        ),
        f'<p class="note">{_METHOD}</p>',
        *(_table(found, place, rows) for place, rows in found.groups.items()),
    ]
    return page.document(found.name, body)


_CAPTION = "Sobol's indices with intervals of 95 %: the setting alone, and with its interactions."
_METHOD = (
    "The first-order index is the share of the variance that goes when this setting alone is "
    "known; the total index is the share that stays if all others are known. What the total has "
    "above the first comes by interactions. Intervals are of a percentile bootstrap; an index may "
    "be estimated a little below 0. Chance is the share that seeds alone make: it is in the total "
    "indices, as if it were an interaction. One seed does not tell how much that is."
)


def title(found: Sensitivity, place: tuple[str, str]) -> str:
    """A metric, and the variant if there are several."""
    return place[0] if len(found.variants) == 1 else f"{place[0]}, {place[1]}"


def charts(found: Sensitivity) -> dict[str, str]:
    """The pictures, by the names of their files."""
    drawn = {}
    for at, rows in enumerate(found.groups.values(), 1):
        if rows[0]["why"] is None:
            drawn[f"indices-{at}"] = plots.intervals(
                {
                    words: [
                        Interval(found.runs, row[kind], row[f"{kind}_low"], row[f"{kind}_high"])
                        for row in rows
                    ]
                    for kind, words in (("first", "alone"), ("total", "with interactions"))
                },
                [row["setting"].rpartition(".")[2] for row in rows],
                connected=False,
            )
    return drawn


def _table(found: Sensitivity, place: tuple[str, str], rows: Sequence[Mapping[str, Any]]) -> str:
    head = f"<h3>{page.escape(title(found, place))}</h3>"
    if rows[0]["why"] is not None:
        return f"{head}<p>{page.escape(rows[0]['why'])}</p>"
    cells = [
        [page.escape(row["setting"]), *(_with_ends(row, kind) for kind in ("first", "total"))]
        for row in rows
    ]
    chance = rows[0]["chance"]
    said = "" if chance is None else f"<p>chance from seed to seed: {number(100 * chance, 2)} %</p>"
    return head + page.table(["Setting", "Alone", "With interactions"], cells, numbers=2) + said


def _with_ends(row: Mapping[str, Any], kind: str) -> str:
    ends = f"{row[f'{kind}_low']:.2f} to {row[f'{kind}_high']:.2f}".replace("-", "−")
    share = f"{row[kind]:.2f}".replace("-", "−")
    return f'{share}<span class="range"> {ends}</span>'


def lines(found: Sensitivity) -> Iterator[str]:
    """What a command says beside the table of indices."""
    for place, rows in found.groups.items():
        if rows[0]["why"] is not None:
            yield f"{title(found, place)}: {rows[0]['why']}"
        elif rows[0]["chance"] is not None:
            chance = number(100 * rows[0]["chance"], 2)
            yield f"{title(found, place)}: chance from seed to seed is {chance} %"
    if found.seeds == 1:
        yield "one seed does not tell how much is chance: it counts as an interaction"
    if found.missing:
        yield f"{counted(found.missing, 'run')} missing"
