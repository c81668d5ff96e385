"""How full a bank is, and what is worth doing about it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..config.settings import ClockSettings, thawed
from ..memory.context import TokenCounter, approximate_tokens, cost
from ..memory.records import memory_id, session_of
from ..memory.requests import check_agent_id, is_of_agent
from ..memory.tiers import (
    RETENTION_NAMES,
    TEMPERATURE_NAMES,
    TIER_NAMES,
    Retention,
    Temperature,
    Tier,
)
from ..rules.temperature import ANY_NUMBER, HotFact, HotLimits, choose_spill
from ..storage.columns.agent_columns import AgentColumns
from ..storage.record import ColdFact
from ..storage.shelf import Group
from .engine import Engine
from .move import hot_facts
from .upkeep import beyond_limit

_MOST_COLD = 10_000
"""How many cold memories are read in all: 20 ms. An agent with more than the rest is skipped."""
_MOST_AGENTS = 10
"""How many agents are listed by how full their hot is."""
_LEAST_RECALLS = 2
_ORDER = ("sync", "spill", "prune", "recall")
MOST_IDS = 10
"""A suggestion names at most this many memories; its reason says how many there are."""

Rows = NDArray[np.intp]
What = Literal["sync", "spill", "prune", "recall"]


class Suggestion(NamedTuple):
    """Something that is worth doing."""

    what: What
    agent_id: str
    """Empty for ``sync``, which is about the whole bank."""
    reason: str
    """A sentence with the numbers behind it, and what to do."""
    ids: tuple[str, ...]
    """The memories that the suggestion is about, at most ten."""


class Amount(NamedTuple):
    """A number of memories, and the tokens that they take."""

    items: int
    tokens: int


class TierAmount(NamedTuple):
    """The active memories in a tier."""

    items: int
    cap: int | None
    """How many memories one agent may have in the tier; None without a cap."""
    most: int
    """How many memories the agent with the most has in the tier."""


class AgentStatus(NamedTuple):
    """How full one agent's hot is."""

    agent_id: str
    items: int
    tokens: int
    token_utilization: float
    """The used share of ``temperature.hot_max_tokens``; above 1 is over the limit."""
    fact_utilization: float

    @property
    def utilization(self) -> float:
        """The larger of both shares."""
        return max(self.token_utilization, self.fact_utilization)


class StoreStatus(NamedTuple):
    """How far mem0's store is in step with the journal."""

    provider: str
    """``none`` for a bank without a store."""
    behind: int
    """How many commits the store lacks."""
    problem: str | None
    """Why the last write to it failed, in this process; None if it did not."""


class Status(NamedTuple):
    """How full a bank is, or one agent's part of it, or a session of an agent."""

    agent_id: str | None
    """None for all agents together."""
    tick: int
    clock: ClockSettings
    embedder: str
    """The name of the embedder that the bank's vectors come from."""
    store: StoreStatus | None
    """None in one agent's part: it would tell how much other agents do."""
    agents: int
    temperatures: dict[str, Amount]
    """Active memories. Hot counts the tokens of context lines, warm and cold those of texts."""
    hot_max_tokens: int
    """The limit of each agent, or of the session; so is ``hot_max_facts``."""
    hot_max_facts: int | None
    """None for any number."""
    utilization: float
    """The used share of the limits of hot, of the agent with the largest; above 1 is over them."""
    fullest: tuple[AgentStatus, ...]
    """The agents whose hot is fullest, up to ten."""
    over_limits: int
    """The number of agents whose hot is over its limits."""
    auto_spill: bool
    """Whether the setting ``temperature.auto_spill`` keeps hot within its limits."""
    tiers: dict[str, TierAmount]
    retention: dict[str, int]
    """The number of active, archived and deleted memories."""
    suggestions: tuple[Suggestion, ...]
    groups: int = 0
    """How many groups there are; in one agent's part, of how many it is a member. What is on their
    boards is not counted with the memories of agents."""
    session: str | None = None
    """The session that it is about; None for all memories."""

    def to_dict(self) -> dict[str, Any]:
        """The status as JSON values; an agent's part has no ``store``."""
        fields = self._asdict()
        store, session = fields.pop("store"), fields.pop("session")
        return {
            **fields,
            **({} if store is None else {"store": store._asdict()}),
            **({} if session is None else {"session": session}),
            "clock": thawed(self.clock),
            "temperatures": {name: each._asdict() for name, each in self.temperatures.items()},
            "fullest": [each._asdict() for each in self.fullest],
            "tiers": {name: each._asdict() for name, each in self.tiers.items()},
            "suggestions": [{**s._asdict(), "ids": list(s.ids)} for s in self.suggestions],
        }


def status(bank: Engine, agent_id: str | None, session: str | None = None) -> Status:
    """:meth:`MemoryBank.status`: of all agents, of one, or of a session of one.

    Suggestions cost a bounded time. Up to 10,000 cold memories are read to see which were recalled
    and which would be pruned; an agent's cold memories are read together or not at all. The counts
    are always exact.
    """
    agent = None if agent_id is None else check_agent_id(agent_id)
    with bank.using():
        return _Look(bank, agent, session).status()


class _Look:
    """One look at the memories of some agents, or of a session of one agent."""

    def __init__(self, bank: Engine, agent_id: str | None, session: str | None) -> None:
        self._state = state = bank.state
        self._session, self._limits = session, bank.limits_in(session)
        self._bank, self._settings, self._caps = bank, bank.settings, bank.caps
        self._count, self._agent_id = bank.count_tokens, agent_id
        self._embedder = bank.embedder.embedder.name
        self._store = None
        if agent_id is None:
            provider, behind = bank.settings.store.provider, bank.store.commits_behind
            self._store = StoreStatus(provider, behind, bank.store.problem)
        if agent_id is None:
            agents = sorted(filter(is_of_agent, state.blocks))
            self._blocks = [state.blocks.peek(name) for name in agents]
        else:
            self._blocks = [state.block(agent_id)]
        self._rows = list(map(self._rows_of, self._blocks))
        self._shelf = self._shelf_of(agent_id)
        tiers = [block.tiers[rows] for block, rows in self._in_each()]
        self._owners = np.repeat(np.arange(len(tiers)), list(map(len, tiers)))
        self._tier_of = np.concatenate([np.empty(0, np.int8), *tiers]).astype(np.int64)
        self._expired = [
            memory
            for memory in state.expired(agent_id)
            if is_of_agent(memory.agent_id) and session in (None, session_of(memory.metadata))
        ]
        self._over = {(memory.agent_id, memory.sequence) for memory in self._expired}
        alive = [~block.expired(state.tick)[rows] for block, rows in self._in_each()]
        self._alive = np.concatenate([np.empty(0, bool), *alive])
        self._hot = self._hot_rows()
        self._use = [
            self._used(block, rows) for block, rows in zip(self._blocks, self._hot, strict=True)
        ]

    def _rows_of(self, block: AgentColumns) -> Rows | slice:
        """The rows of an agent's memories that are looked at, of those that are resident."""
        if self._session is None:
            return slice(None)
        return np.flatnonzero(block.sessions().members(self._session))

    def _in_each(self) -> Iterable[tuple[AgentColumns, Rows | slice]]:
        """The columns of each agent, with the rows that are looked at."""
        return zip(self._blocks, self._rows, strict=True)

    def _shelf_of(self, agent_id: str | None) -> dict[Group, tuple[int, int]]:
        """The number of memories that are not resident, and of their tokens, by group."""
        shelf = self._state.shelf
        if self._session is None or agent_id is None:
            return {
                key: counts for key, counts in shelf.counts(agent_id).items() if is_of_agent(key[0])
            }
        counts: dict[Group, tuple[int, int]] = {}
        for fact in shelf.in_sessions(agent_id, self._session):
            key = agent_id, fact.retention, fact.temperature, fact.tier
            number, tokens = counts.get(key, (0, 0))
            counts[key] = number + 1, tokens + fact.tokens
        return counts

    def status(self) -> Status:
        limits, use = self._limits, self._use
        fullest = sorted(use, key=lambda each: (-each.utilization, each.agent_id))
        return Status(
            self._agent_id,
            self._state.tick,
            self._settings.clock,
            self._embedder,
            self._store,
            len(self._blocks),
            self._temperatures(),
            limits.tokens,
            None if limits.facts == ANY_NUMBER else limits.facts,
            fullest[0].utilization if fullest else 0.0,
            tuple(each for each in fullest[:_MOST_AGENTS] if each.items),
            sum(each.items > limits.facts or each.tokens > limits.tokens for each in use),
            self._settings.temperature.auto_spill,
            self._tiers(),
            self._retention(),
            tuple(self._suggestions()),
            session=self._session,
        )

    def _hot_rows(self) -> list[list[int]]:
        """The rows of each agent's hot memories; pinned memories are hot, expired ones are not."""
        columns = [block.temperatures[rows] for block, rows in self._in_each()]
        heats, owners = np.concatenate([np.empty(0, np.int8), *columns]), self._owners
        is_hot = (heats == int(Temperature.HOT)) | (self._tier_of == 0)
        hot = np.flatnonzero(is_hot & self._alive)
        first = np.searchsorted(owners, owners[hot])
        rows: list[list[int]] = [[] for _ in self._blocks]
        for owner, row in zip(owners[hot].tolist(), (hot - first).tolist(), strict=True):
            among = self._rows[owner]
            rows[owner].append(row if isinstance(among, slice) else int(among[row]))
        return rows

    def _used(self, block: AgentColumns, rows: Sequence[int]) -> AgentStatus:
        limits, count = self._limits, self._count
        if not rows:  # with many agents, most have no hot memory
            return AgentStatus(block.agent_id, 0, 0, 0.0, 0.0)
        tokens = sum([cost(memory, count) for memory in block.memories(rows)])
        of_tokens, of_facts = share(tokens, limits.tokens), share(len(rows), limits.facts)
        return AgentStatus(block.agent_id, len(rows), tokens, of_tokens, of_facts)

    def _temperatures(self) -> dict[str, Amount]:
        hot = Amount(sum(each.items for each in self._use), sum(each.tokens for each in self._use))
        over, over_cold = self._expired_texts()
        warm_items = len(self._owners) - hot.items - len(over)
        warm = Amount(warm_items, self._warm_tokens() - _tokens(over, len(over), self._count))
        stored = [
            amount for key, amount in self._shelf.items() if key[1] == Retention.ACTIVE
        ]  # an active memory that is not resident is cold
        cold = Amount(
            sum(number for number, _ in stored) - len(over_cold),
            sum(tokens for _, tokens in stored) - sum(map(self._count, over_cold)),
        )
        return dict(zip(TEMPERATURE_NAMES.values(), (hot, warm, cold), strict=True))

    def _expired_texts(self) -> tuple[list[str], list[str]]:
        """The texts of expired memories that are resident, and of those that are cold."""
        texts: tuple[list[str], list[str]] = ([], [])
        for memory in self._expired:
            texts[memory.temperature is Temperature.COLD].append(memory.content)
        return texts

    def _warm_tokens(self) -> int:
        """The tokens of all texts less the tokens of the hot texts, which are few."""
        texts = [block.contents(rows) for block, rows in self._in_each()]
        hot = [
            text
            for block, rows in zip(self._blocks, self._hot, strict=True)
            if rows
            for text in block.contents(rows)
        ]
        everything = chain.from_iterable(texts)
        number = len(self._owners)
        return _tokens(everything, number, self._count) - _tokens(hot, len(hot), self._count)

    def _tiers(self) -> dict[str, TierAmount]:
        number = len(self._blocks)
        counts = np.bincount(self._owners * 5 + self._tier_of, minlength=number * 5)
        table = counts.reshape(number, 5)
        places = {block.agent_id: place for place, block in enumerate(self._blocks)}
        for (agent, retention, _, tier), (items, _) in self._shelf.items():
            if retention == Retention.ACTIVE and agent in places:
                table[places[agent], tier] += items
        for memory in self._expired:
            table[places[memory.agent_id], memory.tier] -= 1
        totals, most = table.sum(axis=0).tolist(), table.max(axis=0, initial=0).tolist()
        return {
            TIER_NAMES[tier]: TierAmount(totals[tier], self._caps.of(tier), most[tier])
            for tier in Tier
        }

    def _retention(self) -> dict[str, int]:
        counts = dict.fromkeys(RETENTION_NAMES.values(), 0)
        counts["active"] = len(self._owners) - len(self._expired)
        for (_, retention, _, _), (items, _) in self._shelf.items():
            counts[RETENTION_NAMES[Retention(retention)]] += items
        return counts

    # Suggestions

    def _suggestions(self) -> list[Suggestion]:
        found = [
            *self._syncs(),
            *self._spills(),
            *self._colds(),
        ]
        return sorted(found, key=lambda each: _ORDER.index(each.what))  # stable: by agent

    def _syncs(self) -> Iterator[Suggestion]:
        if self._store is not None and self._store.problem is not None:
            yield Suggestion("sync", "", f"mem0's store lacks memories: {self._store.problem}", ())

    def _spills(self) -> Iterator[Suggestion]:
        limits, above = self._limits, self._settings.status.spill_above
        for block, used in zip(self._blocks, self._use, strict=True):
            if used.utilization > above:
                facts = hot_facts(self._bank, block, self._session)
                hot = [fact for fact in facts if (block.agent_id, fact.sequence) not in self._over]
                leaving = spill_sequences(hot, limits, above)
                ids, auto_spill = _ids(block, leaving), self._settings.temperature.auto_spill
                yield spill(block.agent_id, hot, limits, len(leaving), ids, auto_spill=auto_spill)

    def _colds(self) -> Iterator[Suggestion]:
        cold: dict[str, int] = defaultdict(int)
        kept: dict[str, int] = defaultdict(int)
        for (agent, retention, _, tier), (items, _) in self._shelf.items():
            if retention == Retention.ACTIVE:
                cold[agent] += items
                kept[agent] += items if tier <= Tier.CRITICAL else 0
        for memory in self._expired:
            if memory.temperature is Temperature.COLD:
                cold[memory.agent_id] -= 1
                kept[memory.agent_id] -= memory.tier <= Tier.CRITICAL
        most, left = self._settings.temperature.max_cold_items, _MOST_COLD
        for agent in sorted(cold):
            block, number = self._state.block(agent), cold[agent]
            facts = self._cold_of(agent) if number <= left else []
            left -= len(facts)
            facts = [memory for memory in facts if (agent, memory.sequence) not in self._over]
            if number > most:
                excess = min(number - most, number - kept[agent])
                ids = _ids(block, beyond_limit(facts, most))
                yield prune(agent, number, most, excess, ids)
            asked = [memory for memory in facts if memory.recalls >= _LEAST_RECALLS]
            if asked:
                asked.sort(key=lambda fact: (-fact.recalls, fact.sequence))
                ids = _ids(block, [memory.sequence for memory in asked])
                yield recall(agent, [memory.recalls for memory in asked], ids)

    def _cold_of(self, agent: str) -> list[ColdFact]:
        """What rules look at of an agent's cold memories."""
        shelf = self._state.shelf
        facts = shelf.cold(agent)
        if self._session is None:
            return facts
        members = {fact.sequence for fact in shelf.in_sessions(agent, self._session)}
        return [fact for fact in facts if fact.sequence in members]


def _tokens(texts: Iterable[str], number: int, count: TokenCounter) -> int:
    if count is approximate_tokens:  # the same counts in one step
        lengths = np.fromiter(map(len, texts), np.int64, number)
        return int((-(-lengths // 4)).sum())
    return sum(map(count, texts))


def _ids(block: AgentColumns, sequences: Sequence[int]) -> list[str]:
    return [memory_id(block.prefix, sequence) for sequence in sequences[:MOST_IDS]]


# What suggestions say


def share(part: float, whole: int) -> float:
    """How much of a limit is used; 1 if anything is there and the limit is 0."""
    return round(part / whole, 6) if whole else float(part > 0)


def spill_sequences(hot: Sequence[HotFact], limits: HotLimits, above: float) -> list[int]:
    """The memories that leave until at most the share ``above`` of each limit is used."""
    least = HotLimits(int(limits.tokens * above), int(limits.facts * above))
    return choose_spill(hot, least)


def spill(
    agent_id: str,
    hot: Sequence[HotFact],
    limits: HotLimits,
    leaving: int,
    ids: Sequence[str],
    *,
    auto_spill: bool,
) -> Suggestion:
    """Hot is nearly full, or more than full: ``leaving`` memories could go."""
    tokens = sum(fact.tokens for fact in hot)
    most = "" if limits.facts == ANY_NUMBER else f" of {limits.facts:,}"
    used = f"hot holds {tokens:,} of {limits.tokens:,} tokens and {len(hot):,}{most} memories"
    if tokens > limits.tokens or len(hot) > limits.facts:
        used += ", more than its limits"
        if not auto_spill:
            used += "; temperature.auto_spill is off, so nothing leaves by itself"
    if leaving:
        advice = f"spill {leaving:,}, and the least relevant go"
    else:
        advice = "all of it is pinned, so unpin some or raise temperature.hot_max_tokens"
    return Suggestion("spill", agent_id, f"{used}: {advice}", tuple(ids))


def prune(agent_id: str, cold: int, most: int, excess: int, ids: Sequence[str]) -> Suggestion:
    """There are more cold memories than there may be, and ``excess`` of them can be archived."""
    advice = f"to prune would archive the {excess:,} that were used least"
    if not excess:
        advice = "all are critical, which pruning leaves alone; raise temperature.max_cold_items"
    reason = f"{cold:,} cold memories, {cold - most:,} more than temperature.max_cold_items"
    return Suggestion("prune", agent_id, f"{reason} ({most:,}): {advice}", tuple(ids[:MOST_IDS]))


def recall(agent_id: str, recalls: Sequence[int], ids: Sequence[str]) -> Suggestion:
    """Cold memories were recalled repeatedly; ``recalls`` says how often, most often first."""
    reason = (
        f"{_memories(len(recalls), 'cold')} recalled repeatedly, up to {max(recalls)} times: "
        f"promote {'it' if len(recalls) == 1 else 'them'}, and the agent has "
        f"{'it' if len(recalls) == 1 else 'them'} in front of it"
    )
    return Suggestion("recall", agent_id, reason, tuple(ids[:MOST_IDS]))


def _memories(number: int, which: str) -> str:
    noun = "memory was" if number == 1 else "memories were"
    return f"{number:,} {which} {noun}"
