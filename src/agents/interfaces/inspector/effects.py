"""The experiments with a run that lie beside it."""

from pathlib import Path
from typing import Any

from ...memory.words import signed
from ...simulation.runs.found_effects import effects_of
from ...simulation.statistics import in_words, interval_of
from .inspected import Inspected
from .parameters import CantTell, NotThere, Parameters

_MOST = 100
_MOST_ROWS = 60


def effects(run: Inspected, given: Parameters) -> dict[str, Any]:
    """What was changed in copies of a run, at which tick, and what it did."""
    found = effects_of(run.folder) if run.is_run else []
    return {
        "total": len(found),
        "effects": [
            {
                "name": each.name,
                "at": each.at,
                "until": each.until,
                "changed": each.changed,
                "statistics": [
                    {**row, "interval": in_words(interval_of(row), signed) or "–"}
                    for row in each.statistics[:_MOST_ROWS]
                ],
                "reached": each.reached[:_MOST_ROWS],
                "has_runs": each.arms is not None,
            }
            for each in found[:_MOST]
        ],
    }


def arms_of(run: Inspected, name: str) -> tuple[Path, Path]:
    """The runs without and with the change of an experiment."""
    found = next((each for each in effects_of(run.folder) if each.name == name), None)
    if found is None:
        raise NotThere(
            f"{run.name} has no experiment {name!r:.80}",
            hint="the view Compare lists them (api/effects)",
        )
    if found.arms is None:
        raise CantTell(f"{name} kept no runs", hint="a ranking compares memories, not two runs")
    return found.arms
