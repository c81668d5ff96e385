"""Compaction moves memories by the bank's rules; pruning archives cold memories over a limit."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import final

import numpy as np

from ..config.settings import TemperatureSettings
from ..memory.context import TokenCounter, cost
from ..memory.events import BY_RULE
from ..memory.records import Memory, RuledMove
from ..memory.tiers import Retention, Temperature
from ..rules.compaction import Move, Rule, plan
from ..rules.prune import choose_prune
from ..rules.relevance import relevance
from ..rules.spill import HotLimits
from ..storage.record import ColdFact
from ..storage.state.ledger import Ledger
from .facts import facts_of
from .lifetime import expire


@final
class Compactor:
    """Compacts and prunes the memories of one agent. The caller holds the transaction."""

    def __init__(
        self,
        ledger: Ledger,
        settings: TemperatureSettings,
        rules: Sequence[Rule],
        count_tokens: TokenCounter,
    ) -> None:
        self._ledger = ledger
        self._rules = rules
        self._limits = HotLimits.of(settings.hot_max_tokens, settings.hot_max_facts)
        self._most_cold = settings.max_cold_items
        self._count = count_tokens

    def compact(self, agent_id: str) -> Counter[Temperature]:
        """Apply the rules to one agent's memories; the number of moves to each temperature."""
        expire(self._ledger, agent_id, everywhere=True)
        moves, sequences = self._plan(agent_id)
        going = defaultdict[tuple[Temperature, str], list[int]](list)
        for row, to, rule in moves:
            going[to, rule].append(sequences[row])
        for to, rule in sorted(going, key=lambda each: -each[0]):  # cold first
            self._ledger.move(agent_id, going[to, rule], to, BY_RULE + rule)
        return Counter(to for _, to, _ in moves)

    def would_move(self, agent_id: str) -> list[RuledMove]:
        """The moves of :meth:`compact`. It deletes expired memories: the caller undoes that."""
        expire(self._ledger, agent_id, everywhere=True)
        moves, sequences = self._plan(agent_id)
        going = [sequences[move.row] for move in moves]
        memories = self._ledger.state.memories(agent_id, going)
        return [
            RuledMove(memory, move.to, move.rule)
            for memory, move in zip(memories, moves, strict=True)
        ]

    def _plan(self, agent_id: str) -> tuple[list[Move], list[int]]:
        """The moves by row number, and the sequence number of each row."""
        resident = self._ledger.state
        cold = self._cold(agent_id) if any(map(_lifts, self._rules)) else []
        facts, sequences = facts_of(resident.block(agent_id), cold, resident.tick)

        def tokens(row: int) -> int:
            (memory,) = resident.memories(agent_id, [sequences[row]])
            return cost(memory, self._count)

        return plan(facts, self._rules, self._limits, tokens), sequences

    def _cold(self, agent_id: str) -> list[ColdFact]:
        resident = self._ledger.state
        resident.check_shelf(agent_id)
        return resident.shelf.cold(agent_id)

    def prune(
        self, agent_id: str, *, dry_run: bool = False, after: Sequence[RuledMove] = ()
    ) -> list[int]:
        """Archive cold memories beyond ``temperature.max_cold_items``; their sequence numbers.

        A dry run archives nothing, and may suppose that the moves ``after`` were made. It deletes
        expired memories: the caller undoes that.
        """
        expire(self._ledger, agent_id, everywhere=True)
        gone = {move.memory.sequence for move in after}
        facts = self._cold(agent_id)
        cold: list[ColdFact | Memory] = [each for each in facts if each.sequence not in gone]
        cold += [move.memory for move in after if move.to is Temperature.COLD]
        cold.sort(key=lambda each: each.sequence)
        chosen = beyond_limit(cold, self._most_cold)
        if not dry_run:
            self._ledger.retain(agent_id, chosen, Retention.ARCHIVED, "prune")
        return chosen


def beyond_limit(cold: Sequence[ColdFact | Memory], most: int) -> list[int]:
    """The sequence numbers of the cold memories that a prune to ``most`` memories archives."""
    return choose_prune(
        np.array([each.sequence for each in cold], np.int64),
        np.array([each.tier for each in cold], np.int8),
        np.array([_relevance(each) for each in cold], np.float64),
        np.array([each.access_count for each in cold], np.int64),
        most,
    )


def _relevance(cold: ColdFact | Memory) -> float:
    if isinstance(cold, Memory):
        return cold.relevance
    return relevance(cold.use_record, cold.access_count)


def _lifts(rule: Rule) -> bool:
    """Whether a rule may make a cold memory warmer."""
    at = rule.when.temperatures
    return rule.to != Temperature.COLD and (at is None or Temperature.COLD in at)
