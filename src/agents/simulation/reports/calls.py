"""The part of a run's report on its language model: what it cost, and which replies were of use."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...memory.words import counted, number
from . import html as page
from . import plots

_HEADS = ("Calls", "Tokens read", "Cached", "Written", "Median seconds", "Cost")


def calls_section(summary: Mapping[str, Any] | None, ticks: Mapping[str, Sequence[float]]) -> str:
    """HTML; nothing for a run that asked no model. ``ticks`` has tokens by tick."""
    if not summary:
        return ""
    x = [int(tick) for tick in ticks["tick"]]
    series = {name: list(values) for name, values in ticks.items() if name != "tick"}
    parts = [
        "<h2>The language model</h2>",
        f'<p class="note">{page.escape(_story(summary))}</p>',
        page.charts([page.figure("Tokens by tick", plots.stacked(series, x), _sums(summary))]),
        *(_table(summary, name) for name in ("kind", "model", "agent")),
        _problems(summary),
    ]
    return "".join(parts)


def _story(summary: Mapping[str, Any]) -> str:
    cost = summary["cost"]
    costs = "no price is known for it" if cost is None else f"they cost {number(cost)}"
    how = " (estimated: the model counts none)" if summary["estimated"] else ""
    return (
        f"{counted(summary['calls'], 'call')}, {number(summary['read'] + summary['written'])} "
        f"tokens{how}; {costs}. {number(summary['usable'])} replies were usable, "
        f"{number(summary['unusable'])} were not."
    )


def _sums(summary: Mapping[str, Any]) -> str:
    return (
        f"In all: {number(summary['read'])} read, {number(summary['cached'])} of them cached, "
        f"{number(summary['written'])} written."
    )


def _table(summary: Mapping[str, Any], name: str) -> str:
    rows = [
        [
            page.escape(key),
            number(own["calls"]),
            number(own["read"]),
            number(own["cached"]),
            number(own["written"]),
            number(own["median_seconds"]),
            "–" if own["cost"] is None else number(own["cost"]),
        ]
        for key, own in summary[f"by_{name}"].items()
    ]
    table = page.table([name.capitalize(), *_HEADS], rows, numbers=len(_HEADS))
    return page.details(f"By {name}", table) if rows else ""


def _problems(summary: Mapping[str, Any]) -> str:
    if not summary["problems"]:
        return ""
    rows = [[page.clipped(why), number(times)] for why, times in summary["problems"].items()]
    table = page.table(["Why replies were not usable", "Times"], rows, numbers=1)
    example = summary["example"]
    if example is None:
        return table
    where = f"{example['agent']} in tick {number(example['tick'])}"
    return f"{table}<p>For example, {page.escape(where)}: {page.clipped(example['reply'])}</p>"
