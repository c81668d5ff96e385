"""The report of a fit: the posterior of each setting, and whether it can be trusted."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ...memory.words import counted, number
from ..statistics import Band, Interval
from . import html as page
from . import plots

_ACCEPTED = "accepted runs"


@dataclass(frozen=True, slots=True)
class FitResults:
    """What the runs of a fit say of the data."""

    name: str
    question: str
    runs: int
    """How many could be compared with the data."""
    lost: int
    """How many failed, or lack a number that the data have."""
    posterior: Sequence[Mapping[str, Any]]
    """For each setting its range, its median and interval of 90 %, and the check of that."""
    compared: Sequence[Mapping[str, Any]]
    """For each statistic what was seen, and what all runs and the accepted ones have."""
    predictions: Sequence[Mapping[str, Any]]
    """For each metric and tick of the data what was seen, and what the accepted runs have."""
    samples: Mapping[str, Sequence[float]]
    """By setting, its values in the accepted runs, nearest first."""
    at_end: bool = False
    """Whether the data are those of the end of a run."""

    @property
    def outside(self) -> list[str]:
        """The statistics in which no run is as far out as the data."""
        return [
            row["statistic"]
            for row in self.compared
            if not row["least"] <= row["seen"] <= row["most"]
        ]

    @property
    def idle(self) -> list[str]:
        """The statistics that do not count, because they are the same in all runs."""
        return [row["statistic"] for row in self.compared if not row["counts"]]

    @property
    def held_out(self) -> str:
        """How the held-out part of the data was predicted, in words."""
        held = [row for row in self.predictions if row["held_out"]]
        if not held:
            return "nothing was held out"
        inside = sum(row["inside"] for row in held)
        what = counted(len(held), "held-out value")
        return f"{inside} of {what} lie in the 90 % that accepted runs have there"

    @property
    def warnings(self) -> list[str]:
        """What a reader must know before the numbers."""
        said = []
        if self.outside:
            said.append(
                f"no run reaches the data in {', '.join(self.outside)}: the world, with any of "
                "these settings, is not what made them"
            )
        if self.idle:
            said.append(f"nothing varies in {', '.join(self.idle)}, which therefore do not count")
        if self.lost:
            said.append(f"{counted(self.lost, 'run')} failed, or lack a number that the data have")
        said += [
            f"{row['setting']}: by the check, the interval is wrong: {row['check']}"
            + ("; accept a smaller share, of more runs" if row["check"] == "too wide" else "")
            for row in self.posterior
            if row["check"] != "covers"
        ]
        return said


def render_fit(results: FitResults) -> str:
    """The report of a fit, as a whole HTML document."""
    drawn = charts(results)
    facts = {
        "settings": len(results.posterior),
        "runs": results.runs,
        "accepted": results.posterior[0]["n"],
        "held out": results.held_out,
    }
    figures = [
        page.figure(row["setting"], drawn[f"posterior-{at}"], _POSTERIOR)
        for at, row in enumerate(results.posterior, 1)
    ]
    courses = [
        page.figure(metric, drawn[f"prediction-{at}"], _COURSE, alt=f"{metric} over ticks")
        for at, metric in enumerate(_by_metric(results), 1)
        if f"prediction-{at}" in drawn
    ]
    body = [
        page.headline("TierMem fit", results.name),
        f'<p class="lead">{page.escape(results.question)}</p>',
        page.definitions(facts),
        "".join(f"<p><b>{page.escape(each)}.</b></p>" for each in results.warnings),
        "<h2>Settings</h2>",
        _settings(results),
        page.charts(figures),
        f'<p class="note">{_METHOD}</p>',
        "<h2>Check</h2>",
        _check(results),
        "<h2>What was compared</h2>",
        _compared(results),
        "<h2>Data and accepted runs</h2>",
        page.charts(courses) if courses else "",
        _predicted(results),
    ]
    return page.document(results.name, body)


_POSTERIOR = "Accepted runs by their setting; above them the median and the middle 90 %."
_COURSE = (
    "The band has, in each tick, the middle 90 % of the accepted runs, around their median. What "
    "comes after the dotted line was held out."
)
_METHOD = (
    "The settings of the runs are drawn from their ranges, as a Latin hypercube; each run has a "
    "seed of its own. Accepted are the runs whose statistics are nearest to the data; the distance "
    "counts each statistic in units of its usual spread. Their settings are a sample of the "
    "posterior, if before the data all values of a range were as probable. Low and high enclose 90 "
    "% of it."
)


def charts(results: FitResults) -> dict[str, str]:
    """The pictures, by the names of their files."""
    drawn = {}
    for at, row in enumerate(results.posterior, 1):
        drawn[f"posterior-{at}"] = plots.histogram(
            results.samples[row["setting"]],
            row["from"],
            row["to"],
            whole=row["whole"],
            marked=Interval(row["n"], row["median"], row["low"], row["high"]),
            words=_ACCEPTED,
        )
    for at, rows in enumerate(_by_metric(results).values(), 1):
        if len(rows) > 1:
            drawn[f"prediction-{at}"] = _course(rows)
    return drawn


def _course(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    ticks, count = columns["tick"], len(rows)
    series = {
        _ACCEPTED: Band(count, ticks, columns["median"], columns["low"], columns["high"]),
        "data": Band(count, ticks, columns["seen"], columns["seen"], columns["seen"]),
    }
    held = [row["tick"] for row in rows if row["held_out"]]
    is_part = 0 < len(held) < count
    return plots.bands(series, (held[0], "held out") if is_part else None)


def _by_metric(results: FitResults) -> dict[str, list[Mapping[str, Any]]]:
    return {
        name: list(rows) for name, rows in groupby(results.predictions, lambda row: row["metric"])
    }


def _settings(results: FitResults) -> str:
    rows = [
        [
            page.escape(row["setting"]),
            f"{number(row['from'])} to {number(row['to'])}",
            f"{number(row['median'])}",
            f"{number(row['low'])} to {number(row['high'])}",
        ]
        for row in results.posterior
    ]
    return page.table(["Setting", "Range", "Median", "90 %"], rows, numbers=3)


def _check(results: FitResults) -> str:
    rows = [
        [
            page.escape(row["setting"]),
            page.escape(row["check"]),
            f"{row['check_inside']} of {row['check_tried']}",
            number(row["check_p_inside"], 2),
            number(row["check_p_uniform"], 2),
            f"{number(100 * row['check_width'], 2)} %",
        ]
        for row in results.posterior
    ]
    heads = ["Setting", "90 % intervals", "Have the truth", "p", "Ranks even, p", "Usual width"]
    note = (
        '<p class="note">Each of these runs took the place of the data, and the others gave its '
        "interval: 90 of 100 should have the settings with which it ran. Where a setting takes few "
        "values, the truth's rank is drawn among equal ones. An interval as wide as 90 % of the "
        "range tells nothing that was not known.</p>"
    )
    return page.table(heads, rows, numbers=4) + note


def _compared(results: FitResults) -> str:
    rows = [
        [
            page.escape(row["statistic"]),
            number(row["seen"]),
            f"{number(row['least'])} to {number(row['most'])}",
            f"{number(row['low'])} to {number(row['high'])}",
        ]
        for row in results.compared
    ]
    return page.table(["Statistic", "Data", "All runs", "90 % of accepted runs"], rows, numbers=3)


def _predicted(results: FitResults) -> str:
    rows = [_prediction(row) for row in results.predictions]
    heads = ["Metric", "Tick", "", "Data", "90 % of accepted runs", "90 % of all runs"]
    note = (
        '<p class="note">Values of one course hang together: many that lie outside may be one '
        "event.</p>"
    )
    return page.details("All values", page.table(heads, rows, numbers=3)) + note


def _prediction(row: Mapping[str, Any]) -> list[str]:
    what = ("held out" if row["held_out"] else "") + ("" if row["inside"] else " outside")
    ends = (f"{number(row[f'{at}low'])} to {number(row[f'{at}high'])}" for at in ("", "before_"))
    return [page.escape(row["metric"]), str(row["tick"]), what.strip(), number(row["seen"]), *ends]


def lines(results: FitResults) -> Iterator[str]:
    """What a command says beside the table of settings."""
    yield from results.warnings
    yield f"held out: {results.held_out}"
