"""Hot and its limits: which memories fit into hot, and which leave it."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, final

from ..config.settings import TemperatureSettings
from ..memory.context import TokenCounter, cost, cost_of
from ..memory.records import Memory, memory_id
from ..memory.tiers import Temperature, Tier
from ..rules.relevance import is_promoted, promotion, rank
from ..rules.spill import HotFact, HotLimits, choose_spill, destination, least_relevant, to_free
from ..storage.columns.agent_columns import AgentColumns
from ..storage.state.ledger import Ledger


class Left(NamedTuple):
    """The memories that left hot: new temperatures by sequence number, and notes for the caller."""

    moved: dict[int, Temperature]
    notes: list[str]


@final
class Hot:
    """The hot memories of each agent of a bank. The caller holds the transaction."""

    def __init__(
        self, ledger: Ledger, settings: TemperatureSettings, count_tokens: TokenCounter
    ) -> None:
        self.limits = HotLimits.of(settings.hot_max_tokens, settings.hot_max_facts)
        self._ledger = ledger
        self._own = settings
        self._count = count_tokens

    def relieve(self, agent_id: str, newcomers: Collection[int]) -> Left:
        """With ``auto_spill``, move the least relevant memories out until hot fits its limits."""
        left = Left({}, [])
        if not self._own.auto_spill:
            return left
        block = self._ledger.state.block(agent_id)
        if not block.hot:  # pinned memories never leave
            return left
        hot = self.facts(block)
        room = self._room(hot)
        giants = [
            fact.sequence
            for fact in hot
            if fact.sequence in newcomers and not fact.pinned and not _fits(fact.tokens, room)
        ]
        self._spill(block, hot, giants, left)
        hot = [fact for fact in hot if fact.sequence not in left.moved]
        leaving = choose_spill(hot, self.limits, newcomers)
        return self._spill(block, hot, leaving, left, newcomers)

    def relieve_all(self) -> None:
        """:meth:`relieve` every agent."""
        resident, table = self._ledger.state, self._ledger.state.table
        # Pinned memories never leave.
        is_hot = (table.temperatures == int(Temperature.HOT)) & (table.tiers != int(Tier.PINNED))
        for agent in resident.with_more(is_hot, 0):
            self.relieve(agent, ())

    def spill(
        self,
        agent_id: str,
        count: int | None = None,
        chosen: Sequence[int] | None = None,
        tokens: int | None = None,
    ) -> Left:
        """Move out the ``count`` least relevant memories, the chosen ones, or ``tokens`` of tokens.

        With neither, what is over the limits leaves, and one memory at least.
        """
        block = self._ledger.state.block(agent_id)
        hot = self.facts(block)
        if chosen is not None:
            present = {fact.sequence for fact in hot}
            leaving = [sequence for sequence in dict.fromkeys(chosen) if sequence in present]
        elif tokens is not None:
            leaving = to_free(hot, tokens)
        elif count is not None:
            leaving = least_relevant(hot, count)
        else:
            leaving = choose_spill(hot, self.limits) or least_relevant(hot, 1)
        return self._spill(block, hot, leaving, Left({}, []))

    def promotion(self, memory: Memory) -> float:
        """The score of a use that makes a memory the most relevant of its agent's hot ones."""
        resident = self._ledger.state
        hot = self.facts(resident.block(memory.agent_id))
        others = [
            each.relevance for each in hot if not each.pinned and each.sequence != memory.sequence
        ]
        record = resident.use_record(memory.agent_id, memory.sequence)
        return promotion(record, memory.access_count, max(others, default=(0, -1.0)))

    def too_large_for(self, memory: Memory) -> str | None:
        """Why hot can't hold a memory beside the pinned memories; None if it can."""
        if not self._own.auto_spill:
            return None
        room = self._room(self.facts(self._ledger.state.block(memory.agent_id)))
        tokens = cost(memory, self._count)
        return None if _fits(tokens, room) else self._too_large(memory.id, tokens, room)

    def _too_large(self, identifier: str, tokens: int, room: HotLimits) -> str:
        """The note for a memory that hot can't hold."""
        most = "null" if self._own.hot_max_facts is None else self._own.hot_max_facts
        memories = "" if most == "null" else f" and {max(0, room.facts)} memories"
        return (
            f"memory {identifier} takes {tokens} tokens, and beside what is pinned hot has room "
            f"for {max(0, room.tokens)} tokens{memories} (temperature.hot_max_tokens is "
            f"{self.limits.tokens}, hot_max_facts {most}); it is warm"
        )

    def _room(self, hot: Sequence[HotFact]) -> HotLimits:
        """The part of hot's limits that the pinned memories leave."""
        pinned = [fact.tokens for fact in hot if fact.pinned]
        return HotLimits(self.limits.tokens - sum(pinned), self.limits.facts - len(pinned))

    def _spill(
        self,
        block: AgentColumns,
        hot: Sequence[HotFact],
        leaving: Sequence[int],
        left: Left,
        newcomers: Collection[int] = (),
    ) -> Left:
        facts, room = {fact.sequence: fact for fact in hot}, self._room(hot)
        for sequence in leaving:
            fact = facts[sequence]
            to = destination(fact.access_count, self._own.warm_access_threshold)
            if sequence in newcomers:  # hot has no room for it, which is no reason to be cold
                to = Temperature.WARM
            if not _fits(fact.tokens, room):  # too large for hot is no reason to be cold
                to = Temperature.WARM
                identifier = memory_id(block.prefix, sequence)
                left.notes.append(self._too_large(identifier, fact.tokens, room))
            left.moved[sequence] = to
        for to in (Temperature.WARM, Temperature.COLD):
            going = [sequence for sequence in leaving if left.moved[sequence] is to]
            self._ledger.move(block.agent_id, going, to, "spill")
        return left

    def facts(self, block: AgentColumns) -> list[HotFact]:
        """The hot memories of an agent, pinned memories first."""
        pinned = block.pinned
        rows = [*pinned, *block.hot]
        records = block.use_records[rows].tolist()
        return [
            HotFact(
                memory.sequence,
                cost(memory, self._count),
                rank(record, memory.access_count),
                memory.created_tick,
                memory.access_count,
                index < len(pinned),
                is_promoted(record),
            )
            for index, (memory, record) in enumerate(
                zip(block.memories(rows), records, strict=True)
            )
        ]

    def tokens(self, block: AgentColumns) -> int:
        """The tokens of the hot memories: with the pinned ones, without the expired ones."""
        if block.hot_tokens is None:
            rows = [*block.pinned, *block.hot]
            block.hot_tokens = sum([cost_of(*each, self._count) for each in block.labels(rows)])
        tick = self._ledger.state.tick
        if block.next_expiry > tick:
            return block.hot_tokens
        over = block.expired(tick)
        expired = block.labels([row for row in block.hot if over[row]])
        return block.hot_tokens - sum([cost_of(*each, self._count) for each in expired])

    def utilization(self) -> float:
        """The used share of the tokens of hot, of the agent with the largest."""
        fullest = max(map(self.tokens, self._ledger.state.with_hot()), default=0)
        return round(fullest / self.limits.tokens, 6) if self.limits.tokens else 0.0


def _fits(tokens: int, room: HotLimits) -> bool:
    return tokens <= room.tokens and room.facts > 0
