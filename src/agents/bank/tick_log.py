"""What a simulation records of each tick, in the same commit as the tick's memories."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

from ..engine.engine import Engine
from ..engine.move import hot_utilization
from ..errors import ConfigError, InvalidInput
from ..memory.events import Changes, Event, decode
from ..memory.records import Hits
from ..memory.tiers import TEMPERATURE_NAMES, Tier
from ..storage.interrupts import first
from ..storage.journal.ticks import TickNote, TickRow
from ..telling import groups


@final
class TickLog:
    """The recorded ticks of a bank. Made by :attr:`MemoryBank.ticks`."""

    __slots__ = ("_bank",)

    def __init__(self, bank: Engine) -> None:
        self._bank = bank

    def record(
        self,
        record: Mapping[str, Any],
        state: Any,
        retrieved: bytes = b"",
        decisions: bytes = b"",
    ) -> None:
        """Record the current tick as part of the open transaction.

        ``record`` tells what happened and ``state`` what the simulation needs to go on from here,
        both as JSON values. ``retrieved`` tells which memories were found, ``decisions`` what came
        of them, both in the caller's format. The journal's hash does not cover ``decisions``.
        """
        note = TickNote(_json(record), retrieved, _json(state), decisions)
        with self._bank.using():
            if not self._bank.ledger.in_transaction:
                raise InvalidInput(
                    "a tick is recorded inside a transaction", hint="use bank.transaction()"
                )
            if self._bank.settings.clock.mode == "wall":
                raise ConfigError(
                    "clock.mode: wall is not for simulations, which move the tick themselves",
                    hint="leave clock.mode out, or set it to ticks",
                )
            self._bank.ledger.note(note)

    def pending(self) -> Changes:
        """The changes of the open transaction so far; what is on boards of groups is left out."""
        bank = self._bank
        with bank.using():
            return bank.ledger.pending(groups.is_board if groups.groups(bank) else None)

    def tier_counts(self) -> dict[Tier, int]:
        """The number of memories of all agents in each tier, as ``AgentMemory.count`` counts."""
        with self._bank.using():
            boards, _ = groups.on_boards(self._bank)
            counts = self._bank.state.tier_counts()
            return {tier: number - boards[tier] for tier, number in counts.items()}

    def temperatures(self, found: Sequence[Hits]) -> dict[str, float]:
        """The number of hot, warm and cold memories of all agents, and two rates.

        ``hot_utilization`` is the used share of the tokens of hot, of the agent with the largest.
        ``hit_rate`` is the share of the searches ``found`` that returned a memory with a score of
        at least ``temperature.min_score``.
        """
        bank = self._bank
        with bank.using():
            resident = bank.state
            least = bank.settings.temperature.min_score
            hits = sum(any(hit.score >= least for hit in own) for own in found)
            _, boards = groups.on_boards(bank)
            counts = resident.temperature_counts()
            return {
                **{TEMPERATURE_NAMES[each]: n - boards[each] for each, n in counts.items()},
                "hot_utilization": hot_utilization(bank),
                "hit_rate": round(hits / len(found), 6) if found else 0.0,
            }

    def records(self, after: int = -1) -> Iterator[tuple[dict[str, Any], bytes]]:
        """The record and the retrieved memories of each tick after ``after``, in order."""
        with self._bank.using():
            for row in self._bank.journal.tick_rows(after):
                yield json.loads(row.record), row.retrieved

    def decisions(self, after: int = -1) -> Iterator[tuple[int, bytes]]:
        """The recorded decisions of each tick after ``after`` that has some: tick and bytes."""
        with self._bank.using():
            yield from self._bank.journal.decisions(after)

    def decisions_of(self, tick: int) -> bytes | None:
        """The recorded decisions of one tick; None if none are kept."""
        found = first(self.decisions(tick - 1))
        return found[1] if found is not None and found[0] == tick else None

    def events(self, after: int = -1) -> Iterator[tuple[int, list[Event]]]:
        """The events of each commit that left the bank at a tick after ``after``, in order.

        A journal that was made from a checkpoint has none from before it.
        """
        with self._bank.using():
            journal = self._bank.journal
            before = journal.base
            if after >= journal.base_tick:
                before = journal.commit_of(after)
            for commit in journal.commits(before):
                yield commit.tick, decode(commit.events)

    @property
    def begins_after(self) -> int:
        """The tick of the checkpoint that the journal was made from, or 0."""
        with self._bank.using():
            return self._bank.journal.base_tick

    def row(self, tick: int) -> TickRow | None:
        """All that is recorded of one tick; None if nothing is."""
        with self._bank.using():
            row = first(self._bank.journal.tick_rows(tick - 1))
            return row if row is not None and row.tick == tick else None

    def state(self) -> Any:
        """The recorded state of the last tick; None before the first tick."""
        with self._bank.using():
            journal = self._bank.journal
            with journal.reading():
                row: TickRow | None = journal.last_tick()
                return None if row is None else row.state()

    def journal_hash(self, commit: int | None = None) -> str | None:
        """The hash over all commits up to ``commit`` or the last; None for an unknown commit."""
        with self._bank.using():
            journal = self._bank.journal
            found = journal.hash if commit is None else journal.hash_of(commit)
            return None if found is None else found.hex()


def _json(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode()  # a lone surrogate has no UTF-8
        return text
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"what is kept of a tick must be JSON: {error}") from None
