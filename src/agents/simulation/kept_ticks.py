"""What the bank of a run keeps of each tick, attached to the tick's commit.

The record of a tick is JSON, and so is the state from which the run goes on. Beside them are the
numbers of the memories that the agents were given, and the log of their decisions
(``tick/decision_log.py``). The journal keeps all four, and can't read them.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, final

from ..bank.memory_bank import MemoryBank
from ..errors import ConfigError, InvalidInput
from ..memory.events import Event
from ..storage.interrupts import first
from ..storage.journal.attachments import Attachment, AttachmentRow
from ..storage.journal.journal import Journal, decode


def keep_tick(
    bank: MemoryBank,
    record: Mapping[str, Any],
    state: Any,
    retrieved: bytes = b"",
    decisions: bytes = b"",
) -> None:
    """Keep the current tick, as part of the open transaction.

    ``record`` tells what happened and ``state`` what the simulation needs to go on from here,
    both as JSON values. ``retrieved`` tells which memories were found, ``decisions`` what came
    of them. The journal's hash does not cover ``decisions``.
    """
    kept = attachment(record, state, retrieved, decisions)
    engine = bank.engine
    with engine.using():
        if not engine.ledger.in_transaction:
            raise InvalidInput(
                "a tick is recorded inside a transaction", hint="use bank.transaction()"
            )
        if engine.settings.clock.mode == "wall":
            raise ConfigError(
                "clock.mode: wall is not for simulations, which move the tick themselves",
                hint="leave clock.mode out, or set it to ticks",
            )
        engine.ledger.attach(kept)


def attachment(
    record: Mapping[str, Any], state: Any, retrieved: bytes = b"", decisions: bytes = b""
) -> Attachment:
    """What is kept of a tick, as the journal takes it."""
    return Attachment(_json(record), retrieved, _json(state), decisions)


@final
class KeptTick:
    """What is kept of a tick, without its decisions."""

    __slots__ = ("_row", "record", "retrieved", "tick")

    def __init__(self, row: AttachmentRow) -> None:
        self._row = row
        self.tick = row.tick
        self.record = row.record
        """JSON: counts, metrics, state hash."""
        self.retrieved = row.data
        """uint32: how many memories each agent got, then which."""

    @property
    def has_state(self) -> bool:
        """False for the older ticks of a journal that was made from a checkpoint."""
        return self._row.packed_state is not None

    def state(self) -> Any:
        """The simulation's state after the tick; ValueError if it is not what was written."""
        return json.loads(self._row.state())


class KeptTicks:
    """What a journal keeps of the ticks of a run; each is checked."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @property
    def begins_after(self) -> int:
        """The tick of the checkpoint that the journal was made from, or 0."""
        return self._journal.base_tick

    def hash(self, commit: int | None = None) -> str | None:
        """The hash over all commits up to ``commit`` or the last; None for an unknown commit."""
        found = self._journal.hash if commit is None else self._journal.hash_of(commit)
        return None if found is None else found.hex()

    def ticks(self, after: int = -1) -> Iterator[KeptTick]:
        """The ticks after ``after``, in order."""
        return map(KeptTick, self._journal.attachments.rows(after))

    def tick(self, tick: int) -> KeptTick | None:
        """One tick; None if nothing is kept of it."""
        row = first(self._journal.attachments.rows(tick - 1))
        return KeptTick(row) if row is not None and row.tick == tick else None

    def last_tick(self) -> KeptTick | None:
        """The last tick of which something is kept."""
        row = self._journal.attachments.last()
        return None if row is None else KeptTick(row)

    def state(self) -> Any:
        """The state after the last tick; None before the first tick."""
        with self._journal.reading():
            last = self.last_tick()
            return None if last is None else last.state()

    def records(self, after: int = -1) -> Iterator[tuple[dict[str, Any], bytes]]:
        """The record of each tick after ``after``, in order, and which memories were retrieved."""
        for kept in self.ticks(after):
            yield json.loads(kept.record), kept.retrieved

    def logs(self, after: int = -1) -> Iterator[tuple[int, bytes]]:
        """The log of decisions of each tick after ``after`` that has one: tick and bytes."""
        return self._journal.attachments.logs(after)

    def log(self, tick: int) -> bytes | None:
        """The log of decisions of one tick; None if none is kept."""
        found = first(self.logs(tick - 1))
        return found[1] if found is not None and found[0] == tick else None

    def events(self, after: int = -1) -> Iterator[tuple[int, list[Event]]]:
        """The events of each commit that left the bank at a tick after ``after``, in order.

        A journal that was made from a checkpoint has none from before it.
        """
        journal = self._journal
        before = journal.base if after < journal.base_tick else journal.commit_of(after)
        for commit in journal.commits(before):
            yield commit.tick, decode(commit.events)


def ticks_of(bank: MemoryBank) -> KeptTicks:
    """The ticks that an open bank keeps."""
    with bank.engine.using():
        return KeptTicks(bank.engine.journal)


def _json(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode()  # a lone surrogate has no UTF-8
        return text
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"what is kept of a tick must be JSON: {error}") from None
