"""The report of a run: one HTML file that needs no network and no scripts.

The same results give the same bytes. All text in the results is data: the page escapes it, shows
characters that could reorder or hide text, and has a policy that forbids scripts and requests.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote

from ...memory.tiers import TIER_NAMES
from ...memory.words import counted, number
from . import html as page
from . import plots

_TIERS = tuple(TIER_NAMES.values())
_TEMPERATURES = ("hot", "warm", "cold")
_FIRST_FACTS = ("world", "policy", "agents", "seed", "ticks")
_MOST_MEMORIES = 20
_MOST_CHARTS = 24
_WHY_NOT = {
    "refusals": "What was refused, and why",
    "no_answers": "Why decisions had no answer",
}
_MATTERED = (
    "A memory matters that agents were given often before they decided, or that stayed pinned, so "
    "that it was in front of its agent in each tick: neither says that it was right."
)


class RemarkableMemory(NamedTuple):
    """A memory, and the number that makes it remarkable."""

    agent_id: str
    content: str
    tier: str
    created_tick: int | None
    number: int
    """How often the memory was retrieved, or for how many ticks it was pinned."""
    state: str = ""
    """What has become of the memory, unless it is active: archived, deleted, expired or gone."""
    id: str = ""
    alike: int = 0
    """How many other memories with the same text are counted in ``number``."""
    others: int = 0
    """How many other agents have them."""


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
    sections: Sequence[str] = ()
    """More parts of the page, as HTML."""
    inspector: str = ""
    """The name of the file beside the report that ``tiermem inspect --export`` wrote; or empty."""


def render_run(results: RunResults) -> str:
    """The report of a run, as a whole HTML document."""
    records = results.records
    last: Mapping[str, Any] = records[-1] if records else {}
    body = [
        page.headline("TierMem run", results.name),
        f'<p class="lead">{_story(results, last)}</p>',
        _facts(results),
        _final(results, last),
        _looking(results),
    ]
    if records:
        body += [_metric_section(records), _tier_section(records), _temperature_section(records)]
        body += [_activity_section(records), _refused_section(results.summary)]
    body += [
        "<h2>Memories that mattered most</h2>",
        f'<p class="note">{_MATTERED}</p>',
        _memories(
            "Retrieved most", "times", results, results.most_retrieved, "No memory was retrieved."
        ),
        _memories(
            "Pinned longest, of those pinned at the end",
            "ticks",
            results,
            results.pinned_longest,
            "No memory is pinned at the end.",
        ),
        _agent_section(results.by_agent),
        *results.sections,
        "<h2>Settings</h2>",
        page.details("All settings of this run", page.settings(results.scenario)),
    ]
    return page.document(results.name, body)


def _story(results: RunResults, last: Mapping[str, Any]) -> str:
    if not last:
        return "No tick has been recorded yet."
    world, agents = results.summary.get("world"), results.summary.get("agents")
    who = f"{counted(agents, 'agent')} lived" if isinstance(agents, int) else "The run lasted"
    where = f" in <b>{page.escape(world)}</b>" if isinstance(world, str) else ""
    held = sum(last.get(tier, 0) for tier in _TIERS)
    return (
        f"{who} through {counted(last['tick'], 'tick')}{where}. At the end there were "
        f"{counted(held, 'memory', 'memories')}, {number(last.get('pinned', 0))} of them pinned."
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


def _looking(results: RunResults) -> str:
    """Where the run can be looked at, tick by tick."""
    if not results.inspector:
        return ""
    words = "Look at any tick, agent and memory of this run"
    return f"<p>{page.link(results.inspector, words, '/overview')}</p>"


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


def _temperature_section(records: Sequence[Mapping[str, Any]]) -> str:
    """Hot, warm and cold memories; nothing for a run in which all stayed warm."""
    series = {name: [record.get(name, 0) for record in records] for name in _TEMPERATURES}
    moves = _happened(records, "promoted", "cooled", "spilled", "recalled")
    if not any(series["hot"]) and not any(series["cold"]) and not moves:
        return ""
    x = _ticks(records)
    ends = ", ".join(f"{number(values[-1])} {name}" for name, values in series.items())
    figures = [page.figure("All temperatures", plots.stacked(series, x), f"At the end: {ends}.")]
    if moves:
        so_far = {name: list(itertools.accumulate(values)) for name, values in moves.items()}
        caption = f"In all: {_sums(moves)}."
        figures.append(page.figure("Moved and recalled", plots.curves(so_far, x), caption))
    return f"<h2>Hot, warm and cold</h2>{page.charts(figures)}"


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


def _refused_section(summary: Mapping[str, Any]) -> str:
    """Why actions were refused and decisions had no answer, with numbers; or nothing."""
    tables = [
        f"<h2>{title}</h2>"
        + page.table(
            ["Reason", "Times"],
            [[page.clipped(reason), number(count)] for reason, count in summary[name].items()],
            numbers=1,
        )
        for name, title in _WHY_NOT.items()
        if summary.get(name)
    ]
    return "".join(tables)


def _happened(records: Sequence[Mapping[str, Any]], *names: str) -> dict[str, list[int]]:
    series = {name: [record.get(name, 0) for record in records] for name in names}
    return {name: values for name, values in series.items() if any(values)}


def _sums(series: Mapping[str, Sequence[int]]) -> str:
    return ", ".join(f"{number(sum(values))} {name}" for name, values in series.items())


def _memories(
    title: str,
    unit: str,
    results: RunResults,
    memories: Sequence[RemarkableMemory],
    nothing: str,
) -> str:
    if not memories:
        return f'<h3>{title}</h3><p class="note">{nothing}</p>'
    rows = []
    for memory in memories[:_MOST_MEMORIES]:
        tier = memory.tier if memory.tier in _TIERS else ""
        parts = [
            _agent(results, memory),
            f'<span class="tier {tier}">{page.escape(memory.tier)}</span>' if memory.tier else "",
            "" if memory.created_tick is None else f"from tick {number(memory.created_tick)}",
            page.escape(memory.state),
            _life(results, memory),
            _alike(memory),
        ]
        about = f'<span class="about">{" · ".join(filter(None, parts))}</span>'
        rows.append([page.clipped(memory.content) + about, number(memory.number)])
    return f"<h3>{title}</h3>" + page.table(["Memory", unit.capitalize()], rows, numbers=1)


def _alike(memory: RemarkableMemory) -> str:
    if not memory.alike:
        return ""
    whose = f" of {counted(memory.others, 'other agent')}" if memory.others else ""
    return f"and {counted(memory.alike, 'memory', 'memories')} with the same text{whose}"


def _agent(results: RunResults, memory: RemarkableMemory) -> str:
    """The agent's name; with an inspector, it leads to the agent when the memory was born."""
    if not results.inspector:
        return page.escape(memory.agent_id)
    at = "" if memory.created_tick is None else f"?t={memory.created_tick}"
    view = f"/agent/{quote(memory.agent_id, safe='', errors='replace')}{at}"
    return page.link(results.inspector, memory.agent_id, view)


def _life(results: RunResults, memory: RemarkableMemory) -> str:
    if not results.inspector or not memory.id:
        return ""
    return page.link(results.inspector, "its life", f"/memory/{quote(memory.id)}")


def _agent_section(by_agent: Mapping[str, Mapping[str, float]]) -> str:
    figures = []
    for name, values in by_agent.items():
        known = [value for value in values.values() if value is not None and math.isfinite(value)]
        if any(known):
            mean = number(math.fsum(known) / len(known))
            caption = f"Over {counted(len(known), 'agent')}: mean {mean}, {_range(known)}."
            figures.append(page.figure(name, plots.bars(values), caption))
        elif known:
            figures.append(f"<p><b>{page.escape(name)}</b>: none for any agent.</p>")
    return f"<h2>By agent</h2>{page.charts(figures)}" if figures else ""


# Numbers over time


def _ticks(records: Sequence[Mapping[str, Any]]) -> list[int]:
    return [record["tick"] for record in records]


def _span(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return f"Last {number(known[-1])}, {_range(known)}." if known else "No values."


def _range(known: Sequence[float]) -> str:
    return f"lowest {number(min(known))}, highest {number(max(known))}"
