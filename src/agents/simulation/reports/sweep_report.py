"""The report of a sweep: means, differences with their evidence, and links to the runs.

It is a page like that of a run: one HTML file that needs no network and no scripts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

from ...memory.words import counted, number, signed
from ..statistics import FEWEST_SEEDS, WIDER, Band, Interval, in_words, interval_of
from . import html as page
from . import plots

_MOST_CELLS = 1_000
_CLEAR = 0.05


@dataclass(frozen=True, slots=True)
class Look:
    """Which look at a sweep's results this is, and what was registered before its first run."""

    number: int = 1
    looks: int | None = 1
    """How many were registered; without a number there may always be more."""
    alpha: float = 0.05
    """The part of the 5 % that this look spends; nothing, if the registered looks are over."""
    alpha_next: float = 0.05
    primary: str | None = None
    seeds: Sequence[int] = ()
    """How many seeds each look saw."""
    hash: str = ""
    is_registered: bool = False
    deviations: Sequence[str] = ()

    @property
    def verdict(self) -> str:
        """Whether the sweep is what was registered, in words."""
        if self.deviations:
            return counted(len(self.deviations), "deviation")
        return "as registered" if self.is_registered else "not registered"

    @property
    def spent(self) -> str:
        """What this look spends, in words."""
        of = f" of {self.looks}" if self.looks is not None else ""
        if not self.alpha:
            return f"look {self.number}{of}: the 5 % are spent"
        return f"look {self.number}{of} spends {number(100 * self.alpha, 2)} % of the 5 %"


@dataclass(frozen=True, slots=True)
class SweepResults:
    """The contents of a sweep's report."""

    name: str
    question: str
    variants: Sequence[str]
    grid: Sequence[str]
    """The names of the settings that the grid varies."""
    seeds: Sequence[int]
    rows: Sequence[Mapping[str, Any]]
    """A row for each run: ``variant``, ``seed``, a value for each of ``grid``, and the metrics."""
    statistics: Sequence[Mapping[str, Any]]
    """The rows of :func:`~tiermem.simulation.statistics.summarise`, by ``variant`` and ``grid``."""
    metrics: Sequence[str]
    """The metrics to show, in order."""
    baseline: Mapping[str, Any] = field(default_factory=dict)
    """What the others are compared with: columns of ``rows``, and their values."""
    compared: Sequence[Mapping[str, Any]] = ()
    """The rows of :func:`~tiermem.simulation.statistics.differences`."""
    reports: Mapping[str, str] = field(default_factory=dict)
    """Where the report of a run is, by the run's ``cell``."""
    inspectors: Mapping[str, str] = field(default_factory=dict)
    """Where the exported inspector of a run is, by the run's ``cell``."""
    curves: Sequence[tuple[str, str, Mapping[str, Band]]] = ()
    """Metrics over ticks: a metric, a point of the grid in words, and each variant's band."""
    look: Look = field(default_factory=Look)
    has_runs: bool = False
    """Whether the sweep's folder keeps runs that can be looked into."""


def render_sweep(results: SweepResults) -> str:
    """The report of a sweep, as a whole HTML document."""
    points = list(dict.fromkeys(_point(row, results.grid) for row in results.statistics))
    means = _by_place(results.statistics, results.grid)
    apart = _by_place(results.compared, results.grid)
    facts = {
        "variants": ", ".join(results.variants),
        "varied": ", ".join(results.grid) or None,
        "baseline": arm_of(results.baseline, results.baseline) or None,
        "seeds": len(results.seeds),
        "runs": len(results.rows),
        "registration": results.look.verdict,
    }
    body = [
        page.headline("TierMem sweep", results.name),
        f'<p class="lead">{page.escape(results.question)}</p>',
        page.definitions({name: value for name, value in facts.items() if value is not None}),
        _answers(results),
        _registration(results),
        "<h2>Means</h2>",
        page.charts(_interval_chart(results, metric, points, means) for metric in results.metrics),
        f'<p class="note">{_method(results)}</p>',
    ]
    if results.curves:
        body += ["<h2>Over time</h2>", page.charts(map(_curve, results.curves))]
    for metric in results.metrics:
        body.append(f"<h3>{page.escape(metric)}</h3>")
        body.append(_interval_table(results, metric, points, means, apart))
    body += ["<h2>Runs</h2>", _cells(results)]
    return page.document(results.name, body)


def arm_of(row: Mapping[str, Any], baseline: Mapping[str, Any]) -> str:
    """What a row is on its side of a comparison: a variant's name, or a point of the grid."""
    if list(baseline) == ["variant"]:
        return str(row["variant"])
    return ", ".join(f"{key}={page.shown(row[key])}" for key in baseline)


def is_clear(row: Mapping[str, Any]) -> bool:
    """Whether a comparison shows a difference, however many comparisons there are."""
    return row["p_holm"] is not None and bool(row["p_holm"] <= _CLEAR)


def is_skewed(row: Mapping[str, Any]) -> bool:
    """Whether Student's interval of the mean can't be trusted."""
    return bool(row.get("skewed"))


def judges_median(row: Mapping[str, Any]) -> bool:
    """Whether a difference is one of medians, and nothing is said of means."""
    return row.get("judged") == "median"


def missing(row: Mapping[str, Any], look: Look | None = None) -> str:
    """What more seeds would show, if a comparison is not clear."""
    if is_clear(row):
        return ""
    if row["n"] < FEWEST_SEEDS:
        return f"{counted(FEWEST_SEEDS - row['n'], 'more seed')} at least, for an interval"
    if _is_alike(row):
        return in_words(interval_of(row))
    needed = row["seeds_needed"]
    if row["mean"] == 0 and needed is None:
        return "equal on average"
    if look is not None and not look.alpha_next:
        return "no look is left: a sweep of other seeds would tell"
    if needed is None:
        return "more seeds than can be run"
    if needed <= row["n"]:
        return "on the edge: more seeds would tell"
    return f"about {counted(needed - row['n'], 'more seed')} would show it"


def _method(results: SweepResults) -> str:
    look, comparisons = results.look, len(results.compared)
    level = number(100 * (1 - (look.alpha or _CLEAR)), 4)
    over = f" ({level} % at this look)" if level != "95" else ""
    means = (
        f"Bars and ranges are 95 % intervals over the seeds{over}, by Student's method. Equal "
        "values have none: after n of them, up to 1 − 0.05^(1/n) of other seeds may differ."
    )
    if any(map(is_skewed, [*results.statistics, *results.compared])):
        means += (
            " Where values are skewed, or one side varies three times as much as the other, "
            f"Student's interval is wrong too often. A difference is then one if its mean lies "
            f"{WIDER} times as far from zero as Student's test asks, or else by its median (sign "
            "test); what is bold is what differs."
        )
    if not comparisons:
        return means
    family = "all " if look.primary is None else "the primary metric's, and the others', of the "
    return (
        f"{means} Differences compare runs of the same seed (paired t test). The p value is "
        f"corrected for {family}{counted(comparisons, 'comparison')} of this page by Holm's "
        f"method, and for the looks ({look.spent}); where it is at most 0.05, the difference is "
        "bold. Missing seeds: with so many more, four of five sweeps would show a difference of "
        "this size. The size is an estimate, too."
    )


def _registration(results: SweepResults) -> str:
    """What was registered before the first run, and what is otherwise."""
    look = results.look
    if not look.hash:
        return ""
    said = {
        "as registered": "The sweep is as registered before its first run.",
        "not registered": "No primary metric and no number of looks were registered.",
    }.get(look.verdict, "The sweep is not as registered before its first run:")
    listed = "".join(f"<li>{page.escape(each)}</li>" for each in look.deviations)
    seen = ", ".join(map(str, look.seeds))
    facts = {
        "primary metric": look.primary,
        "looks registered": "any number, each with half of what is left of the 5 %"
        if look.looks is None
        else str(look.looks),
        "looks until now": f"{len(look.seeds)}, at {seen} seeds" if look.seeds else None,
        "this look": look.spent,
        "hash": look.hash,
    }
    known = {name: value for name, value in facts.items() if value is not None}
    return (
        f"<h2>Registration</h2><p>{said}</p>"
        + (f"<ul>{listed}</ul>" if listed else "")
        + page.definitions(known, code=True)
    )


_Point = tuple[str, ...]
_Places = Mapping[tuple[str, str, _Point], Mapping[str, Any]]


def _point(row: Mapping[str, Any], grid: Sequence[str]) -> _Point:
    return tuple(page.shown(row[key]) for key in grid)


def _by_place(rows: Sequence[Mapping[str, Any]], grid: Sequence[str]) -> _Places:
    return {(row["metric"], row["variant"], _point(row, grid)): row for row in rows}


def _answers(results: SweepResults) -> str:
    """Each side compared with the baseline, in words."""
    sides: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in results.compared:
        sides.setdefault((row["metric"], arm_of(row, results.baseline)), []).append(row)
    rows = [
        [
            page.escape(metric),
            f"<b>{page.escape(arm)}</b>",
            _compared(sides[metric, arm], results.look),
        ]
        for metric, arm in sorted(sides, key=lambda side: results.metrics.index(side[0]))
    ]
    base = page.escape(arm_of(results.baseline, results.baseline))
    table = page.table(["Metric", "", f"Compared with {base}"], rows, numbers=0)
    return f"<h2>In short</h2>{table}" if rows else ""


def _compared(compared: Sequence[Mapping[str, Any]], look: Look) -> str:
    clear = [row for row in compared if is_clear(row)]
    said = []
    for median in (False, True):
        gaps = [
            row["median" if median else "mean"] for row in clear if judges_median(row) is median
        ]
        for word, sizes in (
            ("lower", [-gap for gap in gaps if gap < 0]),
            ("higher", [gap for gap in gaps if gap > 0]),
        ):
            if sizes:
                ends = dict.fromkeys((number(min(sizes), 3), number(max(sizes), 3)))
                what = " in the median" if median else ""
                where = _at(len(sizes), len(compared))
                said.append(f"{word}{what} by {' to '.join(ends)}{where}")
    alike = [row for row in compared if _is_alike(row)]
    unclear = [row for row in compared if not is_clear(row) and not _is_alike(row)]
    for word, rows in ((_same(alike), alike), ("not clearly different", unclear)):
        if rows:
            hints = dict.fromkeys(missing(row, look) for row in rows)
            why = f": {next(iter(hints))}" if len(hints) == 1 else ""
            said.append(f"{word}{_at(len(rows), len(compared))}{why}")
    return "; ".join(said)


def _is_alike(row: Mapping[str, Any]) -> bool:
    """Whether all differences of a comparison are equal, so that they have no interval."""
    return row["low"] is None and row["n"] >= FEWEST_SEEDS


def _same(alike: Sequence[Mapping[str, Any]]) -> str:
    means = {signed(row["mean"]) for row in alike}
    return f"{means.pop()} in every seed" if len(means) == 1 else "the same in every seed"


def _at(some: int, all_: int) -> str:
    if all_ == 1:
        return ""
    return f" at all {all_} grid points" if some == all_ else f" at {some} of {all_} grid points"


def _curve(curve: tuple[str, str, Mapping[str, Band]]) -> str:
    metric, point, series = curve
    caption = (
        "Mean over the seeds. A band has the whole true line of a variant, in all ticks together, "
        "at the level of this page."
    )
    title = f"{metric}, {point}" if point else metric
    return page.figure(title, plots.bands(series), caption, alt=f"{title} over ticks")


def _seeds_of(results: SweepResults, metric: str, variant: str, point: _Point) -> list[float]:
    return [
        row[metric]
        for row in results.rows
        if (row["variant"], _point(row, results.grid)) == (variant, point)
        and row.get(metric) is not None
        and math.isfinite(row[metric])
    ]


def _interval_chart(
    results: SweepResults, metric: str, points: Sequence[_Point], means: _Places
) -> str:
    series = {
        variant: [
            interval_of(means[place]) if (place := (metric, variant, point)) in means else None
            for point in points
        ]
        for variant in results.variants
    }
    dots = {
        variant: [_seeds_of(results, metric, variant, point) for point in points]
        for variant in results.variants
    }
    labels = [", ".join(point) for point in points]
    scale = len(results.grid) == 1 and all(
        isinstance(row[results.grid[0]], int | float) for row in results.rows
    )
    png = plots.intervals(
        series, labels, x_label=", ".join(results.grid), connected=scale, dots=dots
    )
    return page.figure(
        metric, png, f"A dot is a seed; mean over {counted(len(results.seeds), 'seed')}."
    )


def _interval_table(
    results: SweepResults, metric: str, points: Sequence[_Point], means: _Places, apart: _Places
) -> str:
    everything = [*means.values(), *apart.values()]
    widths = _widths([interval_of(row) for row in everything if row["metric"] == metric])
    rows = []
    for point in points:
        for variant in results.variants:
            place = (metric, variant, point)
            if place in means:
                mean = interval_of(means[place])
                said = _between(mean, widths) + _median(means[place], widths)
                texts = [said, *_gap(apart.get(place), widths, results.look)]
                runs = _reports(results, variant, point) or number(mean.n)
                rows.append([*map(page.escape, (*point, variant)), *texts, runs])
    base = page.escape(arm_of(results.baseline, results.baseline))
    heads = [*map(page.escape, results.grid), "Variant", "Mean"]
    heads += [f"Against {base}", "p (Holm)", "Missing"]
    heads.append("Runs by seed" if results.reports or results.inspectors else "Runs")
    return page.table(heads, rows, numbers=5)


def _reports(results: SweepResults, variant: str, point: _Point) -> str:
    """Links to the reports of a place's runs, or to their inspectors, each by its seed."""
    paths = {**results.inspectors, **results.reports}
    return " ".join(
        page.link(paths[row["cell"]], page.shown(row["seed"]))
        for row in results.rows
        if row.get("cell") in paths
        and (row["variant"], _point(row, results.grid)) == (variant, point)
    )


def _widths(intervals: Sequence[Interval]) -> list[float]:
    """The widths that say something: not those of rounding alone, and not infinite ones."""
    widths = ((high - low, mean) for _, mean, low, high in intervals)
    return [width for width, mean in widths if 1e-9 * abs(mean) < width < math.inf]


def _median(
    row: Mapping[str, Any], widths: Sequence[float], *, sign: bool = False, bold: bool = False
) -> str:
    """The median in place of a mean that can't be trusted, or nothing."""
    if not is_skewed(row):
        return ""
    low, high = row["median_low"], row["median_high"]
    ends = (-math.inf, math.inf) if low is None else (low, high)
    median = _between(Interval(row["n"], row["median"], *ends), widths, sign=sign, bold=bold)
    p = row.get("p_permutation")
    told = f"; permutation p {_p(p)}" if p is not None else ""
    return (
        f'<br><span class="range">skewed; median</span> {median}<span class="range">{told}</span>'
    )


def _p(p: float | None) -> str:
    return "–" if p is None else "&lt;0.001" if p < 0.001 else f"{p:.3f}"


def _gap(row: Mapping[str, Any] | None, widths: Sequence[float], look: Look) -> list[str]:
    """The cells of a comparison: the difference, its p value, and what more seeds would show."""
    if row is None:
        return ["", "", ""]
    is_bold = is_clear(row)
    said = _between(interval_of(row), widths, sign=True, bold=is_bold and not judges_median(row))
    said += _median(row, widths, sign=True, bold=is_bold and judges_median(row))
    return [said, _p(row["p_holm"]), missing(row, look)]


def _between(
    interval: Interval, widths: Sequence[float], *, sign: bool = False, bold: bool = False
) -> str:
    """A mean and its interval, with as many decimals as the narrowest interval justifies."""
    _, mean, low, high = interval
    known = [mean] if math.isinf(low) else [mean, low, high]
    places = None
    if widths and max(map(abs, known)) < 1e15:
        places = min(max(0, 1 - math.floor(math.log10(min(widths)))), 6)

    def write(value: float) -> str:
        return number(value) if places is None else f"{value:,.{places}f}".replace("-", "−")

    said = f"+{write(mean)}" if sign and mean > 0 else write(mean)
    if bold:
        said = f'<b class="clear">{said}</b>'
    ends = in_words(interval, write)
    if math.isinf(low):
        ends = "no interval: all are equal" if ends else "no interval"
    return f'{said}<span class="range"> {ends}</span>'


def _cells(results: SweepResults) -> str:
    where = [*results.grid, "variant", "seed"]
    cells = []
    for row in results.rows[:_MOST_CELLS]:
        places, numbers = (
            [page.escape(page.shown(row.get(name))) for name in names]
            for names in (where, results.metrics)
        )
        cells.append([*places, _ways_into(results, row.get("cell", "")), *numbers])
    left = len(results.rows) - len(cells)
    note = f'<p class="note">{number(left)} more are in the sweep\'s table.</p>' if left else ""
    if results.has_runs:  # without its path: the same sweep has the same report in any folder
        command = page.escape(f"tiermem inspect {quote(results.name)}")
        note += (
            f'<p class="note">Look into the runs with <code>{command}</code>, from the folder '
            "that holds the sweep's.</p>"
        )
    if not results.reports:
        note += '<p class="note">With --keep-runs, each run has a report of its own.</p>'
    heads = [*map(page.escape, where), "Run", *map(page.escape, results.metrics)]
    table = page.table(heads, cells, len(results.metrics))
    return page.details(f"All {counted(len(results.rows), 'run')}", table + note)


def _ways_into(results: SweepResults, cell: str) -> str:
    """Links to what a run has, or the name of the run for ``tiermem inspect``."""
    paths = {"report": results.reports.get(cell), "inspector": results.inspectors.get(cell)}
    links = [page.link(path, name) for name, path in paths.items() if path]
    name = page.escape(cell) if results.has_runs else "–"
    return " ".join(links) or name or "–"
