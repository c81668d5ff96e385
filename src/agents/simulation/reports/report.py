"""The report of a run or a sweep: one HTML file that needs no network and no scripts.

The same results give the same bytes. All text in the results is data: the page escapes it, shows
characters that could reorder or hide text, and has a policy that forbids scripts and requests.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...memory.tiers import TIER_NAMES
from ..statistics import Interval, differences, interval_of
from . import html as page
from . import plots
from .plots import number

__all__ = ["RemarkableMemory", "RunResults", "SweepResults", "render_run", "render_sweep"]

_TIERS = tuple(TIER_NAMES.values())
_FIRST_FACTS = ("world", "policy", "agents", "seed", "ticks")
_MOST_MEMORIES = 20
_MOST_CHARTS = 24
_MOST_CELLS = 1_000


class RemarkableMemory(NamedTuple):
    """A memory, and the number that makes it remarkable."""

    agent_id: str
    content: str
    tier: str
    created_tick: int
    number: int
    """How often the memory was retrieved, or for how many ticks it was pinned."""


@dataclass(frozen=True, slots=True)
class RunResults:
    """The contents of a run's report."""

    name: str
    scenario: Mapping[str, Any]
    """The resolved settings. The report shows all of them: leave out secrets."""
    summary: Mapping[str, Any]
    """Facts for the top of the page. ``metrics`` and ``state_hash`` default to the last tick's."""
    records: Sequence[Mapping[str, Any]]
    """The loop's record of each tick, from tick 0 on."""
    most_retrieved: Sequence[RemarkableMemory] = ()
    pinned_longest: Sequence[RemarkableMemory] = ()
    by_agent: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Numbers for each agent, for example ``{"loss": {"alice": 3.0}}``."""


@dataclass(frozen=True, slots=True)
class SweepResults:
    """The contents of a sweep's report."""

    name: str
    question: str
    variants: Sequence[str]
    """The report compares every other variant with the first."""
    grid: Sequence[str]
    """The names of the settings that the grid varies."""
    seeds: Sequence[int]
    rows: Sequence[Mapping[str, Any]]
    """A row for each cell: ``variant``, ``seed``, a value for each of ``grid``, and the metrics."""
    statistics: Sequence[Mapping[str, Any]]
    """The rows of :func:`~tiermem.simulation.statistics.summarise`, by ``variant`` and ``grid``."""
    metrics: Sequence[str]
    """The metrics to show, in order."""


def render_run(results: RunResults) -> str:
    """The report of a run, as a whole HTML document."""
    records = results.records
    last: Mapping[str, Any] = records[-1] if records else {}
    body = [
        page.headline("TierMem run", results.name),
        f'<p class="lead">{_story(results, last)}</p>',
        _facts(results),
        _final(results, last),
    ]
    if records:
        body += [_metric_section(records), _tier_section(records), _activity_section(records)]
    body += [
        "<h2>Memories that mattered most</h2>",
        _memories("Retrieved most", "times", results.most_retrieved, "No memory was retrieved."),
        _memories("Pinned longest", "ticks", results.pinned_longest, "No memory was pinned."),
        _agent_section(results.by_agent),
        "<h2>Settings</h2>",
        page.details("All settings of this run", page.settings(results.scenario)),
    ]
    return page.document(results.name, body)


def render_sweep(results: SweepResults) -> str:
    """The report of a sweep, as a whole HTML document."""
    points = list(dict.fromkeys(_point(row, results.grid) for row in results.statistics))
    means = _by_place(results.statistics, results.grid)
    compared = (
        differences(results.rows, results.grid, results.metrics, baseline=results.variants[0])
        if results.variants
        else []
    )
    apart = _by_place(compared, results.grid)
    facts = {
        "variants": ", ".join(results.variants),
        "varied": ", ".join(results.grid) or None,
        "seeds": len(results.seeds),
        "runs": len(results.rows),
    }
    body = [
        page.headline("TierMem sweep", results.name),
        f'<p class="lead">{page.escape(results.question)}</p>',
        page.definitions({name: value for name, value in facts.items() if value is not None}),
        _answers(results, points, apart),
        "<h2>Means</h2>",
        page.charts(_interval_chart(results, metric, points, means) for metric in results.metrics),
        '<p class="note">Bars and brackets are 95 % bootstrap intervals over the seeds. '
        "Differences compare runs of the same seed; bold ones have an interval without zero. "
        "Of many such comparisons, expect one in twenty to look clear by chance.</p>",
    ]
    for metric in results.metrics:
        body.append(f"<h3>{page.escape(metric)}</h3>")
        body.append(_interval_table(results, metric, points, means, apart))
    body += ["<h2>Runs</h2>", _cells(results)]
    return page.document(results.name, body)


# The parts of a run's report


def _story(results: RunResults, last: Mapping[str, Any]) -> str:
    if not last:
        return "No tick has been recorded yet."
    world, agents = results.summary.get("world"), results.summary.get("agents")
    who = f"{page.count(agents, 'agent')} lived" if isinstance(agents, int) else "The run lasted"
    where = f" in <b>{page.escape(world)}</b>" if isinstance(world, str) else ""
    held = sum(last.get(tier, 0) for tier in _TIERS)
    return (
        f"{who} through {page.count(last['tick'], 'tick')}{where}. At the end there were "
        f"{page.count(held, 'memory', 'memories')}, {number(last.get('pinned', 0))} of them pinned."
    )


def _facts(results: RunResults) -> str:
    facts = {**dict.fromkeys(_FIRST_FACTS), **results.summary}
    return page.definitions(
        {
            name: value
            for name, value in facts.items()
            if isinstance(value, str | int | float) and not name.endswith("_hash")
        }
    )


def _final(results: RunResults, last: Mapping[str, Any]) -> str:
    metrics = results.summary.get("metrics", last.get("metrics", {}))
    begun = results.records[0].get("metrics", {}) if len(results.records) > 1 else {}
    cards = "".join(
        f"<div><dt>{page.escape(name)}</dt><dd>{number(value)}"
        + (f"<small>from {number(begun[name])}</small>" if begun.get(name) is not None else "")
        + "</dd></div>"
        for name, value in metrics.items()
    )
    numbers = f'<dl class="numbers">{cards}</dl>' if cards else ""
    hashes = {"state_hash": last.get("state_hash", "–")} | {
        name: value for name, value in results.summary.items() if name.endswith("_hash")
    }
    return f"<h2>In the end</h2>{numbers}{page.definitions(hashes, code=True)}"


def _metric_section(records: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for record in records for name in record.get("metrics", {})))
    if not names:
        return ""
    figures = []
    for name in names[:_MOST_CHARTS]:
        values = [record.get("metrics", {}).get(name) for record in records]
        figures.append(
            page.figure(name, plots.curves({name: values}, _ticks(records)), _span(values))
        )
    more = len(names) - len(figures)
    note = f'<p class="note">{more} more are in the run\'s tables.</p>' if more > 0 else ""
    return f"<h2>Metrics</h2>{page.charts(figures)}{note}"


def _tier_section(records: Sequence[Mapping[str, Any]]) -> str:
    series = {tier: [record.get(tier, 0) for record in records] for tier in _TIERS}
    above = {tier: series[tier] for tier in _TIERS[:3]}
    ends = ", ".join(f"{number(values[-1])} {tier}" for tier, values in series.items())
    x = _ticks(records)
    # Most memories are normal ones, so the upper tiers get a second chart.
    return "<h2>Memories by tier</h2>" + page.charts(
        [
            page.figure("All tiers", plots.stacked(series, x), f"At the end: {ends}."),
            page.figure(
                "The three upper tiers",
                plots.stacked(above, x),
                "The same, without normal and low.",
            ),
        ]
    )


def _activity_section(records: Sequence[Mapping[str, Any]]) -> str:
    x, figures = _ticks(records), []
    flow = _happened(records, "added", "retrieved")
    if flow:
        most = max(record.get("retrieved_most", 0) for record in records)
        caption = f"In all: {_sums(flow)}; at most {number(most)} for one agent in a tick."
        figures.append(page.figure("Each tick", plots.curves(flow, x), caption))
    # These changes are rare in a tick, so the chart shows their sums.
    rare = _happened(records, "demoted", "moved", "deleted", "errors")
    if rare:
        so_far = {name: list(itertools.accumulate(values)) for name, values in rare.items()}
        caption = f"In all: {_sums(rare)}."
        figures.append(page.figure("Up to each tick", plots.curves(so_far, x), caption))
    return f"<h2>What happened to memories</h2>{page.charts(figures)}" if figures else ""


def _happened(records: Sequence[Mapping[str, Any]], *names: str) -> dict[str, list[int]]:
    series = {name: [record.get(name, 0) for record in records] for name in names}
    return {name: values for name, values in series.items() if any(values)}


def _sums(series: Mapping[str, Sequence[int]]) -> str:
    return ", ".join(f"{number(sum(values))} {name}" for name, values in series.items())


def _memories(title: str, unit: str, memories: Sequence[RemarkableMemory], nothing: str) -> str:
    if not memories:
        return f'<h3>{title}</h3><p class="note">{nothing}</p>'
    rows = []
    for memory in memories[:_MOST_MEMORIES]:
        tier = memory.tier if memory.tier in _TIERS else ""
        about = (
            f'<span class="about">{page.escape(memory.agent_id)} · '
            f'<span class="tier {tier}">{page.escape(memory.tier)}</span> · '
            f"from tick {number(memory.created_tick)}</span>"
        )
        rows.append([page.clipped(memory.content) + about, number(memory.number)])
    return f"<h3>{title}</h3>" + page.table(["Memory", unit.capitalize()], rows, numbers=1)


def _agent_section(by_agent: Mapping[str, Mapping[str, float]]) -> str:
    figures = []
    for name, values in by_agent.items():
        known = [value for value in values.values() if value is not None and math.isfinite(value)]
        if any(known):
            mean = number(math.fsum(known) / len(known))
            caption = f"Over {page.count(len(known), 'agent')}: mean {mean}, {_range(known)}."
            figures.append(page.figure(name, plots.bars(values), caption))
        elif known:
            figures.append(f"<p><b>{page.escape(name)}</b>: none for any agent.</p>")
    return f"<h2>By agent</h2>{page.charts(figures)}" if figures else ""


# The parts of a sweep's report


_Point = tuple[str, ...]
_Places = Mapping[tuple[str, str, _Point], Interval]


def _point(row: Mapping[str, Any], grid: Sequence[str]) -> _Point:
    return tuple(page.shown(row[key]) for key in grid)


def _by_place(rows: Sequence[Mapping[str, Any]], grid: Sequence[str]) -> _Places:
    return {(row["metric"], row["variant"], _point(row, grid)): interval_of(row) for row in rows}


def _answers(results: SweepResults, points: Sequence[_Point], apart: _Places) -> str:
    """Every other variant compared with the first, in words."""
    rows = []
    for metric in results.metrics:
        for variant in results.variants[1:]:
            places = ((metric, variant, point) for point in points)
            found = [apart[place] for place in places if place in apart]
            if found:
                words = _compared(found)
                rows.append([page.escape(metric), f"<b>{page.escape(variant)}</b>", words])
    first = page.escape("".join(results.variants[:1]))
    table = page.table(["Metric", "Variant", f"Compared with {first}"], rows, numbers=0)
    return f"<h2>In short</h2>{table}" if rows else ""


def _compared(found: Sequence[Interval]) -> str:
    higher = [interval.mean for interval in found if interval.low > 0]
    lower = [-interval.mean for interval in found if interval.high < 0]
    unclear = len(found) - len(higher) - len(lower)
    said = []
    for word, sizes in (("lower", lower), ("higher", higher)):
        if sizes:
            ends = dict.fromkeys((number(min(sizes), 3), number(max(sizes), 3)))
            said.append(f"{word} by {' to '.join(ends)}{_at(len(sizes), len(found))}")
    if unclear:
        said.append(f"not clearly different{_at(unclear, len(found))}")
    return "; ".join(said)


def _at(some: int, all_: int) -> str:
    if all_ == 1:
        return ""
    return f" at all {all_} grid points" if some == all_ else f" at {some} of {all_} grid points"


def _interval_chart(
    results: SweepResults, metric: str, points: Sequence[_Point], means: _Places
) -> str:
    series = {
        variant: [means.get((metric, variant, point)) for point in points]
        for variant in results.variants
    }
    labels = [", ".join(point) for point in points]
    scale = len(results.grid) == 1 and all(
        isinstance(row[results.grid[0]], int | float) for row in results.rows
    )
    png = plots.intervals(series, labels, x_label=", ".join(results.grid), connected=scale)
    return page.figure(metric, png, f"Mean over {page.count(len(results.seeds), 'seed')}.")


def _interval_table(
    results: SweepResults, metric: str, points: Sequence[_Point], means: _Places, apart: _Places
) -> str:
    everything = [*means.items(), *apart.items()]
    of_metric = [interval for (name, _, _), interval in everything if name == metric]
    # A width that comes from rounding alone is left out.
    widths = [high - low for _, mean, low, high in of_metric if high - low > 1e-9 * abs(mean)]
    rows = []
    for point in points:
        for variant in results.variants:
            mean = means.get((metric, variant, point))
            gap = apart.get((metric, variant, point))
            if mean is not None:
                texts = [_between(mean, widths), _between(gap, widths, sign=True) if gap else ""]
                where = map(page.escape, (*point, variant))
                rows.append([*where, *texts, number(mean.n)])
    first = page.escape("".join(results.variants[:1]))
    heads = [*map(page.escape, results.grid), "Variant", "Mean", f"Against {first}", "Runs"]
    return page.table(heads, rows, numbers=3)


def _between(interval: Interval, widths: Sequence[float], *, sign: bool = False) -> str:
    """A mean and its interval, with as many decimals as the narrowest interval justifies."""
    _, mean, low, high = interval
    texts = [number(value) for value in (mean, low, high)]
    if widths and max(map(abs, (mean, low, high))) < 1e15:
        places = min(max(0, 1 - math.floor(math.log10(min(widths)))), 6)
        texts = [f"{value:,.{places}f}".replace("-", "−") for value in (mean, low, high)]
    said = f"+{texts[0]}" if sign and mean > 0 else texts[0]
    if sign and (low > 0 or high < 0):
        said = f'<b class="clear">{said}</b>'
    return f'{said} <span class="range">[{texts[1]}, {texts[2]}]</span>'


def _cells(results: SweepResults) -> str:
    names = [*results.grid, "variant", "seed", *results.metrics]
    cells = [
        [page.escape(page.shown(row.get(name))) for name in names]
        for row in results.rows[:_MOST_CELLS]
    ]  # fmt: skip
    left = len(results.rows) - len(cells)
    note = f'<p class="note">{number(left)} more are in the sweep\'s table.</p>' if left else ""
    table = page.table([page.escape(name) for name in names], cells, len(results.metrics))
    return page.details(f"All {page.count(len(results.rows), 'run')}", table + note)


# Numbers over time


def _ticks(records: Sequence[Mapping[str, Any]]) -> list[int]:
    return [record["tick"] for record in records]


def _span(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return f"Last {number(known[-1])}, {_range(known)}." if known else "No values."


def _range(known: Sequence[float]) -> str:
    return f"lowest {number(min(known))}, highest {number(max(known))}"
