"""What a simulation keeps of each tick, in the same commit as the tick's memories."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

from ..engine.open_bank import OpenBank
from ..errors import InvalidInput
from ..memory.changes import Changes
from ..memory.records import Hits
from ..memory.temperature import TEMPERATURE_NAMES
from ..memory.tiers import Tier
from ..storage.journal.ticks import TickNote, TickRow

__all__ = ["TickLog"]


@final
class TickLog:
    """The ticks of a bank. Made by :attr:`MemoryBank.ticks`."""

    __slots__ = ("_bank",)

    def __init__(self, bank: OpenBank) -> None:
        self._bank = bank

    def record(self, record: Mapping[str, Any], state: Any, retrieved: bytes = b"") -> None:
        """Keep JSON values with the open transaction, which ends a tick.

        ``record`` says what happened, ``state`` what a simulation needs to go on from here, and
        ``retrieved`` which memories were found, in whatever form the caller likes.
        """
        note = TickNote(_json(record), retrieved, _json(state))
        with self._bank.using():
            if not self._bank.ledger.in_transaction:
                raise InvalidInput(
                    "a tick is recorded inside a transaction", hint="use bank.transaction()"
                )
            self._bank.ledger.note(note)

    def pending(self) -> Changes:
        """What the open transaction has changed so far."""
        with self._bank.using():
            return self._bank.ledger.pending()

    def tier_counts(self) -> dict[Tier, int]:
        """How many memories all agents have in each tier."""
        with self._bank.using():
            return self._bank.ledger.resident.tier_counts()

    def temperatures(self, found: Sequence[Hits]) -> dict[str, float]:
        """How many memories are hot, warm and cold, and how well what was found served.

        ``hot_utilization`` is how full hot is, at most, of all agents: the share of its tokens.
        ``hit_rate`` is the share of searches that gave a memory that counts as accessed.
        """
        bank = self._bank
        with bank.using():
            resident = bank.ledger.resident
            least = bank.settings.temperature.min_score
            hits = 0
            for own in found:
                for hit in own:
                    if hit[1] >= least:
                        hits += 1
                        break
            counts = resident.temperature_counts()
            return {
                **{TEMPERATURE_NAMES[each]: number for each, number in counts.items()},
                "hot_utilization": bank.movement.utilization(),
                "hit_rate": round(hits / len(found), 6) if found else 0.0,
            }

    def records(self, after: int = -1) -> Iterator[tuple[dict[str, Any], bytes]]:
        """What was recorded of each tick after this one: the record, and what was retrieved."""
        with self._bank.using():
            for row in self._bank.ledger.journal.tick_rows(after):
                yield json.loads(row.record), row.retrieved

    def row(self, tick: int) -> TickRow | None:
        """All that is kept of one tick."""
        with self._bank.using():
            row = next(self._bank.ledger.journal.tick_rows(tick - 1), None)
            return row if row is not None and row.tick == tick else None

    def state(self) -> Any:
        """The state after the last tick; None before the first."""
        with self._bank.using():
            journal = self._bank.ledger.journal
            with journal.reading():
                row: TickRow | None = journal.last_tick()
                return None if row is None else row.state()

    def journal_hash(self, commit: int | None = None) -> str | None:
        """The hash over every commit up to this one, or to the last; None if it is not here."""
        with self._bank.using():
            journal = self._bank.ledger.journal
            found = journal.hash if commit is None else journal.hash_of(commit)
            return None if found is None else found.hex()


def _json(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode()  # half a character is text for Python, but for nobody else
        return text
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"what is kept of a tick must be JSON: {error}") from None
