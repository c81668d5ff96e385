"""Replay: a run repeated and compared with its records."""

import json
from collections.abc import Iterator, Mapping
from io import BytesIO
from operator import itemgetter
from pathlib import Path
from typing import Any

from ...bank.memory_bank import MemoryBank
from ...errors import CheckpointError, Diverged, RunError
from ...storage import checkpoint
from ..policies.cassette import Cassette
from ..policies.costs import calls_of
from ..worlds.outside import check_inside
from . import outputs
from .folder import as_run_error, checkpoints, places_of_code, read_folder
from .programs import loop_of
from .record import RunRecord
from .recorded import Divergence, Recorded
from .run import is_of_run
from .scenario import first_memories, make_policy, make_world
from .trust import check_run


class Replay:
    """A run that is repeated in memory, from its start or a later tick.

    The replay only reads the run's folder. LLM replies come from the run's cassette, and vectors of
    an embedder that may give others from its bank.
    """

    def __init__(self, folder: Path, from_tick: int | None = None) -> None:
        self._folder = folder
        self._settings, about = read_folder(folder)
        check_inside(self._settings)
        check_run(folder, self._settings, replay=True)
        parent = about.get("parent")
        start = from_tick if from_tick is not None else (parent["tick"] if parent else None)
        self._recorded = Recorded(folder)
        self.last = self._recorded.last
        if parent and start is not None and start < parent["tick"]:
            raise RunError(
                f"{folder} branched from {parent['run']} at tick {parent['tick']}",
                hint="what was before is that run's, and replayed there",
            )
        if start is not None and start not in self._recorded:
            raise RunError(
                f"{folder} has ticks 0 to {self.last}, and no tick {start}",
                hint=f"name a tick from 0 to {self.last}",
            )
        self.first = 0 if start is None else start
        places = places_of_code(folder, about)
        self._world = make_world(self._settings, *places)
        cassette = Cassette(folder / "cassette.jsonl", replay=True)
        policy = make_policy(self._settings, self._world, cassette, *places)
        if start is None:
            self._bank = self._recorded.first_bank(self._settings)
        else:
            with as_run_error(f"{folder} can't be replayed from tick {start}"):
                self._bank = MemoryBank.at(folder / "bank", start, self._settings)
        self._loop = loop_of(self._bank, self._world, policy, self._settings, about, folder, places)

    def ticks(self) -> Iterator[Divergence | None]:
        """None for each tick that equals its record; the first difference ends the replay."""
        self._loop.begin(first_memories(self._settings))
        for tick in range(self.first, self.last + 1):
            try:
                if tick > self.first:
                    self._loop.tick()
            except Diverged as error:
                yield Divergence(tick, str(error))
                return
            divergence = self._recorded.differs(self._bank, tick)
            yield divergence
            if divergence:
                return
        if divergence := self._recorded.has_changed(self._bank):
            yield divergence

    def close(self) -> None:
        """Close the copy of the bank."""
        self._bank.close()


def verify_files(folder: Path) -> Iterator[str]:
    """The faults in a run's own files: checkpoints, tables, summary."""
    settings, about = read_folder(folder)
    with RunRecord.read(folder) as run:
        records = sorted((each for each, _ in run.records()), key=itemgetter("tick"))
        for path in checkpoints(folder):
            try:
                kept = checkpoint.read(path)
            except CheckpointError as error:
                yield str(error)
                continue
            here = run.hash(kept.head[0])
            is_head = here in (None, kept.head[2])
            if not is_head or not is_of_run(kept, path, settings, about):
                yield f"{path} is not of this run, or of another tick than its name says"
        expected = {
            "metrics.parquet": outputs.metric_rows(records),
            "ticks.parquet": outputs.tick_rows(records),
            "decisions.parquet": outputs.rows_of(BytesIO(outputs.decision_table(run))),
        }
        if exchanges := list(Cassette(folder / "cassette.jsonl", replay=True)):
            expected["calls.parquet"] = outputs.call_rows(calls_of(exchanges, settings.llm))
        for name, rows in expected.items():
            path = folder / name
            if not path.is_file():
                yield f"{path} is missing"
            elif outputs.rows_of(path) != rows:
                yield f"{path} is not what the journal says"
        yield from _verify_summary(folder / "summary.json", records[-1], run)


def _verify_summary(path: Path, last: Mapping[str, Any], run: RunRecord) -> Iterator[str]:
    try:
        summary = json.loads(path.read_text())
        said = [summary[name] for name in ("ticks", "state_hash", "journal_hash", "metrics")]
    except (OSError, ValueError, LookupError, TypeError) as error:
        yield f"{path} can't be read: {error!r:.200}"
        return
    if said != [run.last, last["state_hash"], run.hash(), last["metrics"]]:
        yield f"{path} is not what the journal says"
