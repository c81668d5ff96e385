"""Charts of runs: metrics over ticks, of one run or of several beside each other."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import InvalidInput
from ...memory.words import first_of
from ..reports.chart import Chart
from ..reports.plots import Lines, panels
from .record import RunRecord

if TYPE_CHECKING:
    from .run import Run


def chart_of(runs: "Sequence[tuple[str, Run]]", wanted: Sequence[str]) -> Chart:
    """The wanted metrics of runs with their names, by default all; a panel for each."""
    found = [_lines(name, run) for name, run in runs]
    known = list(dict.fromkeys(metric for each in found for metric in each.metrics))
    for metric in wanted:
        if metric not in known:
            raise InvalidInput(
                f"there is no metric {metric!r:.60}", hint=f"there is {', '.join(known)}"
            )
    chosen = list(wanted or known)
    lines = [
        each._replace(metrics={name: each.metrics[name] for name in chosen if name in each.metrics})
        for each in _named_apart(found)
    ]
    of = first_of(chosen) + (f" of {first_of([each.name for each in lines])}" if lines[1:] else "")
    return Chart(panels(lines, _parting([run for _, run in runs])), of)


def _lines(name: str, run: "Run") -> Lines:
    records = [record for record, _ in RunRecord.of(run.bank, run.settings).records()]
    names = list(dict.fromkeys(each for record in records for each in record["metrics"]))
    metrics = {each: [record["metrics"].get(each) for record in records] for each in names}
    return Lines(name, [record["tick"] for record in records], metrics)


def _named_apart(lines: Sequence[Lines]) -> list[Lines]:
    """Runs of one name have a number behind it."""
    seen = Counter[str]()
    apart = []
    for each in lines:
        seen[each.name] += 1
        number = f" ({seen[each.name]})" if seen[each.name] > 1 else ""
        apart.append(each._replace(name=each.name + number))
    return apart


def _parting(runs: "Sequence[Run]") -> tuple[int, str] | None:
    """The tick in which branches parted from a run that is shown beside them, if it is one."""
    shown = {run.folder.absolute() for run in runs}
    parents = [run.about["parent"] for run in runs if run.about.get("parent")]
    ticks = {each["tick"] for each in parents if Path(each["run"]) in shown}
    return (*ticks, "branched") if len(ticks) == 1 else None
