"""What is recorded of a run's ticks, and where a run that is done again differs from it."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

from ...bank.memory_bank import MemoryBank
from ...config.settings import Settings
from ...errors import BankError, RunError
from ...storage.interrupts import first
from ...storage.journal.journal import Journal
from ...storage.trust import checked_embedder
from ..kept_ticks import ticks_of
from ..tick.decision_log import plain
from .compare import Difference, differences, shown
from .record import RunRecord

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


@final
class Recorded:
    """What the folder of a run has of its ticks; it is read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        journal = Journal(None, seen=folder / "bank" / "journal.db")
        try:
            self._embedder, self._vectors = journal.get("bank")["embedder"], journal.embeddings()
        finally:
            journal.leave()
        with RunRecord.read(folder) as run:
            self._ticks = {record["tick"]: (record, seen) for record, seen in run.records()}
            self._decided = {tick: _hash(data) for tick, data in run.logs()}
            self._hash = run.hash()
            self.last = max(self._ticks, default=run.last)
            """The last tick."""

    def __contains__(self, tick: int) -> bool:
        return tick in self._ticks

    def first_bank(self, settings: Settings) -> MemoryBank:
        """A bank before its first memory, with the vectors that the run's bank keeps.

        So an embedder that is not reproducible is not asked again, and need not be here.
        """
        embedder = checked_embedder(settings, None, self._embedder["dims"])
        bank = MemoryBank.ephemeral(settings, embedder=embedder)
        self.give_vectors(bank)
        return bank

    def give_vectors(self, bank: MemoryBank) -> None:
        """Give a bank the vectors that the run's bank keeps."""
        bank.engine.journal.save_embeddings(self._vectors)

    def differs(self, bank: MemoryBank, tick: int) -> Divergence | None:
        """Where the tick that a bank did again differs from its record."""
        recorded, seen = self._ticks[tick]
        again, seen_again = first(ticks_of(bank).records(tick - 1)) or ({}, b"")
        if recorded != again or seen != seen_again:
            return Divergence(tick, self._detail(bank, tick, recorded, again))
        log, log_again = self._decided.get(tick), ticks_of(bank).log(tick)
        if log is None or (log_again is not None and log == _hash(log_again)):
            return None  # ticks before a restored checkpoint have no log
        return Divergence(tick, "other decisions were recorded, though the same came of them")

    def has_changed(self, bank: MemoryBank) -> Divergence | None:
        """What was changed after the last tick in the run's bank, whose ticks are those of this
        one.
        """
        if ticks_of(bank).hash() == self._hash:
            return None
        with MemoryBank.at(self._folder / "bank") as recorded:
            changes = list(differences(bank, recorded))
            ticks = recorded.tick - self.last
        if not changes and not ticks:
            return Divergence(
                self.last,
                "the journal's hash differs, though every tick is equal, and so is every memory "
                "that is not deleted",
            )
        said = [f"{ticks} ticks were added"] if ticks else []
        said += [_change(each) for each in changes[:_MOST_CHANGES]]
        more = len(changes) - _MOST_CHANGES
        said += [f"and {more} more"] if more > 0 else []
        return Divergence(
            self.last, f"equal up to here, but its bank was changed since: {'; '.join(said)}"
        )

    def _detail(
        self,
        again_in: MemoryBank,
        tick: int,
        recorded: Mapping[str, Any],
        again: Mapping[str, Any],
    ) -> Difference | str:
        if recorded["state_hash"] != again["state_hash"]:
            try:
                with MemoryBank.at(self._folder / "bank", tick) as bank:
                    difference = first(differences(bank, again_in))
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
