"""What an experiment found, and its files: tables, a plot and a report."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import InvalidInput, RunError
from ...memory.views import Table, View
from ...memory.words import number, signed
from ...storage.files import replace_file
from ..reports import html as page
from ..reports import plots
from ..runs.found_effects import AS_IT_WAS, CHANGED, placebos_in_words
from ..runs.outputs import table
from ..statistics import in_words, interval_of
from .chance import NOT_TOLD_APART, Placebo, placebo_told, verdicts
from .stories import Parted, Reached, Step

_MOST_CHARTS = 12
_MOST_REACHED = 100


@dataclass(frozen=True)
class Effect:
    """What a change did."""

    run: str
    at: int
    """The last tick that both arms share."""
    until: int
    """The tick in which they are compared."""
    words: Sequence[str]
    """What was changed."""
    over: str
    """What the pairs differ in: ``seed`` or ``future``."""
    pairs: Sequence[Mapping[str, Any]]
    """A row for each pair and metric: as it was, changed, and the difference."""
    statistics: Sequence[Mapping[str, Any]]
    """For each metric the mean difference of the pairs, its interval, p and p_holm.

    Where a language model decides, also the least and the most by which its placebos differ, and
    the verdict whether the change is told apart from the model's own chance.
    """
    parted: Parted | None
    """The first decision that differs in the run itself; None if none does."""
    reached: Sequence[Reached]
    """How the change went from agent to agent in the run itself."""
    steps: Sequence[Step]
    """Who perceived, was given, did or remembers something else, tick by tick."""
    ticks: Sequence[int] = ()
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
    """Each metric over the ticks, as it was and changed, in the run itself."""
    by_agent: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By how much the world's numbers of each agent differ; equal ones are left out."""
    missing: Sequence[str] = ()
    """Seeds or futures that say nothing, and why."""
    notes: Sequence[str] = ()
    """What a reader should know of the figures."""
    placebo: Placebo | None = None
    """The run itself with its language model asked anew and nothing changed; None without it."""

    def difference(self, metric: str) -> Mapping[str, Any]:
        """The statistics of one metric."""
        for row in self.statistics:
            if row["metric"] == metric:
                return row
        known = ", ".join(str(row["metric"]) for row in self.statistics)
        raise InvalidInput(f"there is no metric {metric!r:.60}", hint=f"there is {known}")

    def __repr__(self) -> str:
        return _view(self).text()

    def _repr_html_(self) -> str:
        return _view(self).html()

    def to_dict(self) -> dict[str, Any]:
        """The effect as JSON values, without the ticks."""
        return {
            "run": self.run,
            "at": self.at,
            "until": self.until,
            "changed": list(self.words),
            "over": self.over,
            "statistics": [dict(row) for row in self.statistics],
            "pairs": [dict(row) for row in self.pairs],
            "first_decision": self.parted and self.parted._asdict(),
            "reached": [each._asdict() for each in self.reached],
            "by_agent": {name: dict(each) for name, each in self.by_agent.items()},
            "missing": list(self.missing),
            "notes": list(self.notes),
            "placebo": self.placebo and self.placebo._asdict(),
        }


class Candidate(NamedTuple):
    """A memory, and how often it took part in a decision."""

    agent: str
    memory_id: str
    text: str
    born: int
    decisions: int
    """For how many decisions it was given, or found by a question."""
    weight: float
    """The same, where a memory that was given in second place counts as a half, and so on."""


class Tested(NamedTuple):
    """A memory that was removed, and by how much the metric changed."""

    candidate: Candidate
    at: int
    """It was forgotten after this tick."""
    difference: float
    """In the run itself; with futures, the mean."""
    low: float | None
    high: float | None
    p_holm: float | None
    """Corrected for all memories that were tested; None without an interval."""
    n: int


@dataclass(frozen=True)
class Ranked:
    """The memories that were tested, the largest effect first, and what was not tested."""

    metric: str
    tested: Sequence[Tested]
    candidates: int
    """How many memories took part in decisions."""
    untested: Sequence[Candidate]
    """The candidates beyond the budget, by how often they took part."""
    failed: Sequence[str]
    """Candidates whose removal could not be tried, and why."""
    asks: bool = False
    """Whether a language model decides: then chance is in each difference."""
    placebo: float | None = None
    """By how much the metric changes if nothing is removed and the model is asked anew."""

    def to_dict(self) -> dict[str, Any]:
        """The ranking as JSON values."""
        return {
            "metric": self.metric,
            "candidates": self.candidates,
            "tested": [{**each.candidate._asdict(), **each._asdict(),
                        "candidate": each.candidate.memory_id} for each in self.tested],
            "untested": [each._asdict() for each in self.untested],
            "failed": list(self.failed),
            "placebo": self.placebo,
        }  # fmt: skip


def write_effect(effect: Effect, folder: Path) -> None:
    """Write what an experiment found into its folder."""
    _write(
        folder,
        {
            "effect.json": json.dumps(effect.to_dict(), indent=2) + "\n",
            "pairs.parquet": table(effect.pairs),
            "statistics.parquet": table(effect.statistics),
            "spread.parquet": table([step._asdict() for step in effect.steps]),
            "effect.svg": plots.alone(effect_plot(effect)),
            "report.html": page.document(
                f"Effect in {Path(effect.run).name}",
                [page.headline("TierMem effect", Path(effect.run).name), effect_section(effect)],
            ),
        },
    )


def write_ranking(ranked: Ranked, folder: Path, run: str, until: int) -> None:
    """Write which memories mattered into the experiment's folder."""
    ranking = {"run": run, "until": until, **ranked.to_dict()}
    kept = [
        {"place": place, **each.candidate._asdict(), **dict(list(each._asdict().items())[1:])}
        for place, each in enumerate(ranked.tested, start=1)
    ]
    name = Path(run).name
    _write(
        folder,
        {
            "effect.json": json.dumps(ranking, indent=2) + "\n",
            "ranking.parquet": table(kept),
            "report.html": page.document(
                f"Memories of {name}",
                [page.headline("TierMem effect", name), ranking_section(ranked)],
            ),
        },
    )


def _write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    try:
        for name, data in files.items():
            replace_file(folder / name, data)
    except OSError as error:
        raise RunError(
            f"what came out can't be written to {folder}: {error}",
            hint="make room and let your user write there",
        ) from error


def effect_plot(effect: Effect) -> str:
    """Each metric as it was and changed, over the ticks of the run itself."""
    was = {name: values[0] for name, values in effect.series.items()}
    now = {name: values[1] for name, values in effect.series.items()}
    return plots.side_by_side(
        was,
        now,
        left_x=effect.ticks,
        right_x=effect.ticks,
        names=("as it was", "changed"),
        diverged=effect.parted.tick if effect.parted else None,
    )


def effect_section(effect: Effect) -> str:
    """What a change did, as a section of a report."""
    body = [
        "<h2>What was changed</h2>",
        "".join(f"<p>{page.escape(words)}.</p>" for words in effect.words),
        "<h2>What it did</h2>",
        _differences(effect),
        "".join(f'<p class="note">{page.escape(note)}.</p>' for note in _told(effect)),
        _charts(effect),
        "<h2>How it went around</h2>",
        _parted(effect),
        _reached(effect),
    ]
    if effect.missing:
        lines = "".join(f"<p>{page.escape(line)}</p>" for line in effect.missing)
        body.append(page.details(f"{len(effect.missing)} without the change", lines))
    return "".join(body)


def _told(effect: Effect) -> list[str]:
    """What the placebo did, what is told apart from chance, and the notes."""
    placebo = [placebo_told(effect.placebo)] if effect.placebo else []
    return [*verdicts(effect.statistics), *placebo, *effect.notes]


def _view(effect: Effect) -> View:
    """What a change did, for a notebook."""
    of_one = {each["metric"]: each for each in effect.pairs}
    if any(row["n"] > 1 for row in effect.statistics):
        heads = ["metric", "pairs", "mean difference", "95 % interval", "p, by Holm"]
        rows = [
            [row["metric"], row["n"], signed(row["mean"]), interval(row), row["p_holm"]]
            for row in effect.statistics
        ]
    else:
        heads = ["metric", "as it was", "changed", "difference"]
        rows = [
            [name, each[AS_IT_WAS], each[CHANGED], signed(each["difference"])]
            for name, each in of_one.items()
        ]
    parts: list[Table | str] = [*effect.words, Table(heads, rows), *_told(effect)]
    if (first := effect.parted) is None:
        parts.append("no decision differs")
    else:
        was, now = ("; ".join(texts) or "nothing" for texts in (first.was, first.changed))
        parts.append(f"first decision that differs: {first.agent} in tick {number(first.tick)}")
        parts.append(Table(["", ""], [["as it was", was], ["changed", now]]))
    if effect.reached:
        around = [
            [each.agent, each.tick, ", ".join(each.through), each.decided]
            for each in effect.reached
        ]
        parts.append(Table(["reached", "in tick", "through", "decided otherwise in tick"], around))
    return View(
        f"after tick {number(effect.at)}, compared in tick {number(effect.until)}",
        [*parts, *(f"left out: {line}" for line in effect.missing)],
    )


def _differences(effect: Effect) -> str:
    heads = ["Metric", "Pairs", "Difference", "95 % interval", "p, by Holm"]
    heads += ["Placebo"] if effect.placebo else []
    rows = [
        [
            page.escape(row["metric"]),
            number(row["n"]),
            signed(row["mean"]),
            interval(row),
            number(row["p_holm"]),
            placebos_in_words(row),
        ][: len(heads)]
        for row in effect.statistics
    ]
    return page.table(heads, rows, len(heads) - 1)


def interval(row: Mapping[str, Any]) -> str:
    """The ends of a difference's interval, in words, or what the values say without one."""
    # A row of a ranking has its mean elsewhere, and the ends are told without it.
    return in_words(interval_of({"mean": 0.0, **row}), signed) or "–"


def _charts(effect: Effect) -> str:
    figures = []
    for name, (was, now) in list(effect.series.items())[:_MOST_CHARTS]:
        lines = {"as it was": was, "changed": now}
        figures.append(page.figure(name, plots.curves(lines, effect.ticks), "In the run itself."))
    touched = dict.fromkeys(effect.ticks, 0)
    for each in effect.reached:
        for tick in touched:
            touched[tick] += tick >= each.tick
    if effect.reached:
        curve = plots.curves({"agents": list(touched.values())}, effect.ticks)
        figures.append(page.figure("Agents that it reached", curve, "In the run itself."))
    if any(row["low"] is not None for row in effect.statistics):
        points = {row["metric"]: [interval_of(row)] for row in effect.statistics}
        drawn = plots.intervals(points, ["difference"], connected=False)
        figures.append(page.figure("Mean difference", drawn, "With its 95 % interval."))
    return page.charts(figures)


def _parted(effect: Effect) -> str:
    first = effect.parted
    if first is None:
        return "<p>No decision differs.</p>"
    lines = [
        f"<p>The first decision that differs: <b>{page.escape(first.agent)}</b> in tick "
        f"{number(first.tick)}.</p>",
        _listed("As it was", first.was),
        _listed("Changed", first.changed),
        _listed("No longer given", first.missed),
        _listed("Given in its place", first.more),
    ]
    return "".join(lines)


def _listed(title: str, texts: Sequence[str]) -> str:
    return f"<p>{title}: {'; '.join(map(page.clipped, texts))}</p>" if texts else ""


def _reached(effect: Effect) -> str:
    rows = [
        [
            page.escape(each.agent),
            page.escape(", ".join(each.through) or "–"),
            number(each.tick),
            number(each.decided),
        ]
        for each in effect.reached[:_MOST_REACHED]
    ]
    heads = ["Agent", "Through", "Reached in tick", "Decided otherwise in tick"]
    more = len(effect.reached) - len(rows)
    note = f'<p class="note">{more} more are in spread.parquet.</p>' if more > 0 else ""
    return page.table(heads, rows, 2) + note if rows else "<p>It reached nobody.</p>"


def ranking_section(ranked: Ranked) -> str:
    """Which memories mattered, as a section of a report."""
    rows = [
        [
            page.clipped(each.candidate.text)
            + f'<span class="about">{page.escape(each.candidate.agent)} · from tick '
            f"{number(each.candidate.born)}</span>",
            number(each.candidate.decisions),
            signed(each.difference),
            interval(each._asdict()),
        ]
        for each in ranked.tested
    ]
    heads = ["Memory", "Decisions", f"{ranked.metric}, if it is forgotten", "95 % interval"]
    return (
        "<h2>Which memories mattered</h2>"
        + page.table([page.escape(head) for head in heads], rows, 3)
        + f'<p class="note">{len(ranked.untested)} of {ranked.candidates} candidates were not '
        "tested; a memory that took part in no decision is not a candidate.</p>"
        + (f'<p class="note">{page.escape(chance_told(ranked))}.</p>' if ranked.asks else "")
        + "".join(f"<p>{page.escape(line)}</p>" for line in ranked.failed)
    )


def chance_told(ranked: Ranked) -> str:
    """What a language model's own chance does to a ranking, in words."""
    alone = "" if ranked.placebo is None else (
        f"; asked anew with nothing removed, {ranked.metric} changes by {signed(ranked.placebo)}"
    )  # fmt: skip
    return f"without an interval, a difference is {NOT_TOLD_APART}{alone}"
