"""Runs the cells of a sweep, in processes or as tasks of Ray."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...config.load import load_settings
from ...storage.files import lock_folder
from ..runs.placement import LOCAL, Placement, check_engine
from ..runs.run import Run
from ..workers.ray_carrier import Cluster
from .folder import LOCK, finished, prepare
from .kept import check_kept
from .sweep import Cell, Sweep
from .worker import KILLED, in_processes


def engine_for(
    sweep: Sweep, kind: str | None = None, workers: int | None = None, address: str | None = None
) -> Placement:
    """What runs the cells: the engine that a caller names, or the one of the scenario.

    A cell is a run in one process on every engine; ``local`` stands for processes here.
    """
    own = sweep.settings().simulation
    kind = kind or own.engine
    check_engine(kind, address)
    return Placement(kind, workers or own.workers or os.cpu_count() or 1, address)


def run_cells(
    sweep: Sweep, folder: Path, engine: Placement, *, force: bool, keep_runs: bool = False
) -> Iterator[tuple[Cell, dict[str, Any] | str]]:
    """Run the unfinished cells; give each cell with its summary or its error message.

    Finished cells come first; :class:`RunError` if the sweep would run one of them otherwise now.
    An interrupted cell starts again. A cell whose process is killed is run once more. A lock keeps
    other processes from running the same sweep. With ``keep_runs``, each cell gets a report and the
    scenario's checkpoints; a cell without a report runs again.
    """
    prepare(sweep, folder, force)
    lock = lock_folder(folder, LOCK)
    try:
        yield from _run_waiting(sweep, folder, engine, keep_runs)
    finally:
        lock.release()


def _run_waiting(
    sweep: Sweep, folder: Path, engine: Placement, keep_runs: bool
) -> Iterator[tuple[Cell, dict[str, Any] | str]]:
    found = [
        (cell, place, finished(place, keep_runs))
        for cell in sweep.cells()
        for place in (folder / "cells" / cell.name,)
    ]
    check_kept(sweep, ((cell, place) for cell, place, done in found if done is not None))
    yield from ((cell, done) for cell, _, done in found if done is not None)
    waiting = [cell for cell, _, done in found if done is None]
    if not waiting:
        return
    there = replace(sweep, scenario=sweep.scenario.absolute())  # for processes in other folders
    cells = folder.absolute() / "cells"
    calls = [(there, cell, cells / cell.name, keep_runs) for cell in waiting]
    with ExitStack() as ended:
        if engine.kind == "ray":
            cluster = Cluster(engine.address, engine.workers)
            ended.callback(cluster.close)
            results = cluster.results(_run_cell, calls, engine.workers)
        else:
            results = in_processes(_run_cell, calls, engine.workers)
        for place, result in results:
            yield waiting[place], KILLED if result is None else result


def _run_cell(sweep: Sweep, cell: Cell, folder: Path, keep_runs: bool) -> dict[str, Any] | str:
    """Run one cell in a process of its own."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
        settings = sweep.settings(cell)
        ticks = settings.simulation.ticks
        if not keep_runs:  # one checkpoint, at the end: an interrupted cell starts again
            last = {"checkpoint": {"every": ticks, "keep": 1}}
            settings = load_settings(settings, overrides=last)
        with Run.create(folder, settings, scenario=sweep.scenario.parent, engine=LOCAL) as run:
            for _ in run.advance(ticks):
                pass
            return run.finish(report=keep_runs)
    except Exception as error:  # noqa: BLE001 - the other runs must go on
        return f"{type(error).__name__}: {error}"
