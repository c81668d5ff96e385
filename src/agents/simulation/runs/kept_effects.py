"""The experiments that were kept in a run's own folder, as a section of its report."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..reports import html as page
from ..reports.plots import number

__all__ = ["EFFECTS", "effects_section"]

EFFECTS = "effects"
"""The folder in a run's folder: ``tiermem effect RUN --out RUN/effects/NAME``."""
_MOST_METRICS = 4


def effects_section(folder: Path) -> str:
    """What the experiments came to, each with a link to its own report; empty without any."""
    rows = list(_rows(folder))
    if not rows:
        return ""
    heads = ["Experiment", "What was changed", "Pairs", "What it did"]
    return "<h2>Effects</h2>" + page.table(heads, rows, 0)


def _rows(folder: Path) -> Iterator[list[str]]:
    for path in sorted((folder / EFFECTS).glob("*/effect.json")):
        name = path.parent.name
        try:
            told = json.loads(path.read_text())
            row = _ranking(told) if "tested" in told else _effect(told)
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            row = ["", "", f"can't be read: {page.escape(f'{error!r:.80}')}"]
        yield [page.link(f"{EFFECTS}/{name}/report.html", name), *row]


def _effect(told: Mapping[str, Any]) -> list[str]:
    found = sorted(told["statistics"], key=lambda row: row["mean"] == 0)  # what changed comes first
    lines = [_figure(row) for row in found[:_MOST_METRICS]]
    if len(found) > _MOST_METRICS:
        lines.append(f"and {page.count(len(found) - _MOST_METRICS, 'more metric')}")
    changed = [page.escape(str(words)) for words in told["changed"]]
    return ["<br>".join(changed), number(found[0]["n"]) if found else "0", "<br>".join(lines)]


def _figure(row: Mapping[str, Any]) -> str:
    ends = ""
    if row["low"] is not None and row["high"] is not None:
        ends = f" ({number(row['low'])} to {number(row['high'])})"
    return f"{page.escape(str(row['metric']))}: {number(row['mean'])}{ends}"


def _ranking(told: Mapping[str, Any]) -> list[str]:
    tested, metric = told["tested"], page.escape(str(told["metric"]))
    best = "nothing was tested"
    if tested:
        most = f"{number(tested[0]['difference'])} without"
        best = f"{metric}: {most} “{page.clipped(str(tested[0]['text']))}”"
    return [f"which memories mattered for {metric}", page.count(len(tested), "memory", "memories"),
            best]  # fmt: skip
