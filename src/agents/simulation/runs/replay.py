"""Replay: a run repeated and compared with its records."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from io import BytesIO
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from ...bank.memory_bank import MemoryBank
from ...errors import BankError, CheckpointError, Diverged, RunError
from ...storage import checkpoint
from ...storage.interrupts import first
from ...storage.journal.journal import Journal
from ...storage.trust import checked_embedder
from ..kept_ticks import ticks_of
from ..policies.cassette import Cassette
from ..policies.costs import calls_of
from ..tick.branch_rules import BranchRules
from ..tick.decision_log import plain
from ..tick.loop import Loop
from ..worlds.outside import check_inside
from . import outputs
from .compare import Difference, differences, shown
from .folder import as_run_error, checkpoints, places_of_code, read_folder
from .personas import personas_of
from .record import RunRecord
from .run import is_of_run
from .scenario import first_memories, make_policy, make_world
from .trust import check_run

_MOST_CHANGES = 5


class Divergence(NamedTuple):
    """The first tick in which a replay differs from the record, and the difference."""

    tick: int
    difference: Difference | str

    def __str__(self) -> str:
        if isinstance(self.difference, str):
            return f"tick {self.tick}: {self.difference}"
        where = ", ".join(p for p in (self.difference.agent, self.difference.memory) if p)
        text = str(self.difference._replace(agent=None, memory=None))
        return f"tick {self.tick}{f', {where}' if where else ''}: recorded {text} in the replay"


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
        with RunRecord.read(folder) as run:
            self._recorded = {record["tick"]: (record, seen) for record, seen in run.records()}
            self._decided = {tick: _hash(data) for tick, data in run.logs()}
            self._hash = run.hash()
            self.last = max(self._recorded, default=run.last)
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
            self._bank = self._empty_bank()
        else:
            with as_run_error(f"{folder} can't be replayed from tick {start}"):
                self._bank = MemoryBank.at(folder / "bank", start, self._settings)
        agents, rules = self._settings.simulation.agent_ids(), BranchRules(about.get("rules", ()))
        personas = personas_of(self._settings, *places)
        self._loop = Loop(self._bank, self._world, policy, agents, rules, personas)

    def _empty_bank(self) -> MemoryBank:
        """A bank before its first memory, with the vectors that the run's bank keeps.

        So an embedder that is not reproducible is not asked again, and need not be here.
        """
        journal = Journal(None, seen=self._folder / "bank" / "journal.db")
        try:
            kept, vectors = journal.get("bank")["embedder"], journal.embeddings()
        finally:
            journal.leave()
        embedder = checked_embedder(self._settings, None, kept["dims"])
        bank = MemoryBank.ephemeral(self._settings, embedder=embedder)
        bank.engine.journal.save_embeddings(vectors)
        return bank

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
            divergence = self._compare(tick)
            yield divergence
            if divergence:
                return
        if ticks_of(self._bank).hash() != self._hash:
            yield Divergence(self.last, self._changed_since())

    def close(self) -> None:
        """Close the copy of the bank."""
        self._bank.close()

    def _compare(self, tick: int) -> Divergence | None:
        recorded, seen = self._recorded[tick]
        again, seen_again = first(ticks_of(self._bank).records(tick - 1)) or ({}, b"")
        if recorded == again and seen == seen_again:
            return self._compare_decisions(tick)
        return Divergence(tick, self._detail(tick, recorded, again))

    def _changed_since(self) -> str:
        """What was changed in the run's bank after its last tick, though every tick is equal."""
        with MemoryBank.at(self._folder / "bank") as bank:
            changes = list(differences(self._bank, bank))
            ticks = bank.tick - self.last
        if not changes and not ticks:
            return (
                "the journal's hash differs, though every tick is equal, and so is every memory "
                "that is not deleted"
            )
        said = [f"{ticks} ticks were added"] if ticks else []
        said += [_change(each) for each in changes[:_MOST_CHANGES]]
        more = len(changes) - _MOST_CHANGES
        said += [f"and {more} more"] if more > 0 else []
        return f"equal up to here, but its bank was changed since: {'; '.join(said)}"

    def _compare_decisions(self, tick: int) -> Divergence | None:
        """Compare the log of decisions; ticks before a restored checkpoint have none."""
        recorded = self._decided.get(tick)
        again = ticks_of(self._bank).log(tick)
        if recorded is None or (again is not None and recorded == _hash(again)):
            return None
        return Divergence(tick, "other decisions were recorded, though the same came of them")

    def _detail(
        self, tick: int, recorded: Mapping[str, Any], again: Mapping[str, Any]
    ) -> Difference | str:
        if recorded["state_hash"] != again["state_hash"]:
            try:
                with MemoryBank.at(self._folder / "bank", tick) as bank:
                    difference = first(differences(bank, self._bank))
            except BankError as error:
                return f"the memories differ, and the recorded ones can't be seen: {error}"
            return difference or (
                "the memories' vectors, or what was deleted, differ: another embedder, or another "
                "version"
            )
        for name in dict.fromkeys([*recorded["metrics"], *again["metrics"]]):
            values = recorded["metrics"].get(name), again["metrics"].get(name)
            if values[0] != values[1]:
                return Difference(None, None, f"metric {name}", *values)
        for name in recorded:
            if recorded[name] != again.get(name):
                return Difference(None, None, name, recorded[name], again.get(name))
        return "other memories were retrieved"


def _change(difference: Difference) -> str:
    """What became of a memory or a note after the last tick."""
    where = ", ".join(part for part in (difference.agent, difference.memory) if part)
    if difference.field == "memory":
        gone = difference.second is None
        content = difference.first if gone else difference.second
        return f"{where}: {'gone' if gone else 'new'}: {str(content)[:80]}"
    first, second = (
        str(each)[:80] if difference.field in ("content", "tier", "note") else shown(each)
        for each in (difference.first, difference.second)
    )
    return f"{where}: {difference.field} was {first} and is {second}"


def _hash(decisions: bytes) -> bytes:
    try:
        return hashlib.sha256(plain(decisions)).digest()
    except ValueError as error:
        raise RunError(f"the recorded decisions can't be read: {error}") from None


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
