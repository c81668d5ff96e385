"""The rules of a bank move memories, and what is cold beyond a limit goes to the archive."""

from collections import Counter
from collections.abc import Sequence
from typing import final

import numpy as np

from ..config.settings import TemperatureSettings
from ..memory.context import TokenCounter, cost
from ..memory.records import Memory
from ..memory.results import RuledMove
from ..memory.retention import Retention
from ..memory.temperature import Temperature
from ..rules.compaction import Move, Rule, plan
from ..rules.prune import choose_prune
from ..rules.spill import HotLimits
from ..storage.full_record import ColdFact
from ..storage.state.ledger import Ledger
from .facts import facts_of
from .lifetime import expire

__all__ = ["Compactor"]


@final
class Compactor:
    """Applies the rules of a bank to the memories of an agent. Transactions are the caller's."""

    def __init__(
        self,
        ledger: Ledger,
        settings: TemperatureSettings,
        rules: Sequence[Rule],
        count_tokens: TokenCounter,
    ) -> None:
        self._ledger = ledger
        self._rules = rules
        self._limits = HotLimits(settings.hot_max_tokens, settings.hot_max_facts)
        self._most_cold = settings.max_cold_items
        self._count = count_tokens

    def compact(self, agent_id: str) -> Counter[Temperature]:
        """Apply the rules to one agent's memories; how many moved to which temperature."""
        expire(self._ledger, agent_id, everywhere=True)
        moves, sequences = self._plan(agent_id)
        going: dict[Temperature, list[int]] = {to: [] for to in reversed(Temperature)}
        for row, to, _ in moves:
            going[to].append(sequences[row])
        for to, chosen in going.items():  # cold first
            self._ledger.move(agent_id, chosen, to, "compact")
        return Counter({to: len(chosen) for to, chosen in going.items() if chosen})

    def would_move(self, agent_id: str) -> list[RuledMove]:
        """What :meth:`compact` would do; what expired is deleted, so undo it afterwards."""
        expire(self._ledger, agent_id, everywhere=True)
        moves, sequences = self._plan(agent_id)
        going = [sequences[move.row] for move in moves]
        memories = self._ledger.resident.memories(agent_id, going)
        return [
            RuledMove(memory, move.to, move.rule)
            for memory, move in zip(memories, moves, strict=True)
        ]

    def _plan(self, agent_id: str) -> tuple[list[Move], list[int]]:
        """The moves by row, and the sequence number of each row."""
        resident = self._ledger.resident
        cold = resident.shelf.cold(agent_id) if any(map(_lifts, self._rules)) else []
        facts, sequences = facts_of(resident.block(agent_id), cold, resident.tick)

        def tokens(row: int) -> int:
            (memory,) = resident.memories(agent_id, [sequences[row]])
            return cost(memory, self._count)

        return plan(facts, self._rules, self._limits, tokens), sequences

    def prune(
        self, agent_id: str, *, dry_run: bool = False, after: Sequence[RuledMove] = ()
    ) -> list[int]:
        """Archive what is cold beyond ``temperature.max_cold_items``; the sequence numbers.

        A dry run may ask what it would be ``after`` moves that were not made. What expired is
        deleted, so undo that afterwards.
        """
        expire(self._ledger, agent_id, everywhere=True)
        gone = {move.memory.sequence for move in after}
        facts = self._ledger.resident.shelf.cold(agent_id)
        cold: list[ColdFact | Memory] = [each for each in facts if each.sequence not in gone]
        cold += [move.memory for move in after if move.to is Temperature.COLD]
        cold.sort(key=lambda each: each.sequence)
        chosen = choose_prune(
            np.array([each.sequence for each in cold], np.int64),
            np.array([each.tier for each in cold], np.int8),
            np.array([each.relevance for each in cold], np.float64),
            np.array([each.access_count for each in cold], np.int64),
            self._most_cold,
        )
        if not dry_run:
            self._ledger.retain(agent_id, chosen, Retention.ARCHIVED, "prune")
        return chosen


def _lifts(rule: Rule) -> bool:
    """Whether a rule may warm up what is cold."""
    at = rule.when.temperatures
    return rule.to != Temperature.COLD and (at is None or Temperature.COLD in at)
