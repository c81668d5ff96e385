"""Plots of a study, and its section in a run's report."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ...memory.words import counted, cut, number
from ..reports import html as page
from ..reports import plots
from .spread import by_text

if TYPE_CHECKING:
    import pyarrow as pa

    from .study import Study

_MOST_CURVES = 5
_MOST_ROWS = 10
_MOST_TREE = 60
# The columns of the tables that the report shows, and their heads.
_TELLS = {"teller": "Teller", "listener": "Listener", "times": "Times", "new": "New"}
_CENTRALITY = {
    "agent": "Agent", "told": "Told", "heard": "Heard", "pagerank": "PageRank",
    "betweenness": "Betweenness",
}  # fmt: skip
_OVERLAP = {
    "agent": "Agent", "other": "Other", "shared": "Shared", "exact": "Exact", "near": "Near",
}  # fmt: skip
_NEEDED = {
    "text": "Memory", "agent": "Agent", "query": "Query", "gone": "Gone", "times": "Times",
    "score": "Score",
}  # fmt: skip


def figures(study: "Study") -> dict[str, tuple[str, str, str]]:
    """By name, each plot that there is something to draw for: title, chart, caption."""
    found = {}
    top = by_text(study.spreads())[:_MOST_CURVES]
    if top:
        curves = {
            f"{at}. {cut(row['text'] or '(forgotten)', 60)}": _holders(study, row)
            for at, row in enumerate(top, 1)
        }
        caption = f"The {len(top)} memories that most agents had."
        chart = plots.curves(curves, range(study.tick + 1))
        found["spread"] = ("Agents that had a memory at some time", chart, caption)
    for subject, own in _by(study.truth(), "subject").items():
        if any(row["false"] for row in own):
            curves = {side: [row[side] for row in own] for side in ("true", "false")}
            chart = plots.curves(curves, [row["tick"] for row in own])
            caption = "Agents that believe what is true, and what is false."
            found[f"truth-{subject}"] = (f"Truth and rumour: {subject}", chart, caption)
    lasting = _survival(study.survival())
    if lasting:
        ages, shares = lasting
        caption = "The share of memories that lasted longer than an age, by Kaplan and Meier."
        found["survival"] = ("How long memories lasted", plots.curves(shares, ages), caption)
    return found


def section(study: "Study") -> str:
    """HTML: what was told, what became of it, what was needed, when truth overtook; or nothing."""
    if not len(study.columns.told.row) and not study.facts:
        return ""
    drawn = [page.figure(*figure) for figure in figures(study).values()]
    return "".join(
        [
            "<h2>What went round</h2>",
            _overtaking(study.overtaking().to_pylist()),
            page.charts(drawn) if drawn else "",
            _spreads(study),
            _table("Who informs whom", study.tells(), _TELLS, numbers=2),
            _table("Who is central", study.centrality(), _CENTRALITY, numbers=4)
            if study.has_centrality
            else "",
            _table("Beliefs in common", study.overlap(), _OVERLAP, numbers=3),
            _table("Forgotten and then needed", study.needed(), _NEEDED, numbers=3)
            if study.has_decisions
            else "",
        ]
    )


def _overtaking(rows: Sequence[Mapping[str, Any]]) -> str:
    said = []
    for row in rows:
        now = f"{number(row['true'])} believe what is true, {number(row['false'])} what is false"
        when = "the lie was never ahead" if row["most_false"] else "no lie was believed"
        if row["overtook"] is not None:
            when = f"truth overtook the lie in tick {number(row['overtook'])}"
        elif row["false"] >= row["true"] and row["false"]:
            when = "truth did not overtake the lie"
        said.append([page.escape(row["subject"]), page.escape(when), page.escape(now)])
    if not said:
        return ""
    return "<h3>Truth and rumour</h3>" + page.table(
        ["Subject", "What happened", "At the end"], said, numbers=0
    )


def _spreads(study: "Study") -> str:
    rows = by_text(study.spreads())[:_MOST_ROWS]
    if not rows:
        return ""
    cells = [
        [page.clipped(row["text"] or "(forgotten)") + _begun_again(row["alike"])]
        + [number(row[name]) for name in ("holders", "tells", "r", "depth", "half_life")]
        for row in rows
    ]
    heads = ["Memory", "Agents", "Tells", "R", "Hands", "Half-life"]
    tree = page.details("The tree of the first one", _tree(study, rows[0]["origin"]))
    return "<h3>What spread most</h3>" + page.table(heads, cells, numbers=5) + tree


def _begun_again(times: int) -> str:
    if not times:
        return ""
    return f'<span class="about">and {counted(times, "chain")} with the same text</span>'


def _tree(study: "Study", origin: str) -> str:
    lines = study.spread(origin).lines()
    shown = "".join(f"{page.escape(line)}\n" for line in lines[:_MOST_TREE])
    more = len(lines) - _MOST_TREE
    return f"<pre>{shown}{f'… {number(more)} more' if more > 0 else ''}</pre>"


def _table(title: str, rows: "pa.Table", heads: Mapping[str, str], numbers: int) -> str:
    if not rows.num_rows:
        return ""
    cells = [
        [
            page.clipped(row[name]) if isinstance(row[name], str) else number(row[name])
            for name in heads
        ]
        for row in rows.slice(0, _MOST_ROWS).to_pylist()
    ]
    return f"<h3>{title}</h3>" + page.table(list(heads.values()), cells, numbers)


def _holders(study: "Study", row: Mapping[str, Any]) -> list[int]:
    """How many agents had a memory at some time, up to each tick."""
    new = [0] * (study.tick + 1)
    for tick in study.spread(row["origin"]).table["tick"].to_pylist():
        new[tick] += 1
    return list(accumulate(new))


def _survival(table: "pa.Table") -> tuple[list[int], dict[str, list[float]]] | None:
    rows = [row for row in table.to_pylist() if row["by"] != "all"]
    if not rows:
        return None
    ages = sorted({0, *(row["age"] for row in rows)})
    curves = {}
    for group, own in _by_rows(rows, "group").items():
        at, share = {row["age"]: row["survived"] for row in own}, 1.0
        curves[group] = [share := at.get(age, share) for age in ages]
    return ages, curves


def _by(table: "pa.Table", name: str) -> dict[str, list[dict[str, Any]]]:
    return _by_rows(table.to_pylist(), name)


def _by_rows(rows: Sequence[dict[str, Any]], name: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row[name], []).append(row)
    return found
