"""Moves of an agent's memories: hot and its limits, tier, temperature, recall, retention, expiry.

:mod:`tiermem.rules` decides; here the decision is applied to an agent's memories. Where a function
does not begin a transaction itself, its caller holds one.
"""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput, MemoryNotFound
from ..memory.context import cost, cost_of
from ..memory.filters import Filter
from ..memory.records import NEVER, Hit, Memory, Recall, Spill, memory_id, session_of
from ..memory.requests import check_query, check_whole
from ..memory.tiers import RETENTION_NAMES, TEMPERATURE_NAMES, Retention, Temperature, Tier
from ..rules.ranking import is_promoted, promotion, relevance_rank
from ..rules.temperature import (
    HotFact,
    HotLimits,
    choose_spill,
    destination,
    least_relevant,
    to_free,
)
from ..rules.tiers import Transition, demotion, permitted
from ..search.request import SearchRequest
from ..storage.columns.agent_columns import AgentColumns
from ..storage.note import note_of
from ..storage.state.links import heir, live_version
from ..storage.state.state import Accesses
from .engine import Engine

# Expiry


def expire(bank: Engine, agent_id: str, *, everywhere: bool = False) -> None:
    """Delete an agent's expired memories that take a place in hot or in a capped tier.

    With ``everywhere``, the expired cold memories go as well.
    """
    ledger, state, tick = bank.ledger, bank.state, bank.tick
    if everywhere:
        for expired, _ in state.shelf.due(tick, -1, agent_id).values():
            ledger.retain(agent_id, expired, Retention.DELETED, "expire")
    block = state.blocks.get(agent_id)
    if block is None or (block.next_expiry > tick and not block.has_extras):
        return
    elsewhere = [
        sequence for sequence, memory in block.critical_elsewhere.items() if memory.is_expired(tick)
    ]
    ledger.retain(agent_id, sorted(elsewhere), Retention.DELETED, "expire")
    if block.next_expiry > tick:
        return
    expires = np.where(block.tiers == Tier.PINNED, NEVER, block.column("expires"))
    rows = np.flatnonzero(expires <= tick).tolist()
    expired = [block.sequence(row) for row in rows]
    ledger.retain(agent_id, expired, Retention.DELETED, "expire")
    block.next_expiry = int(expires[expires > tick].min(initial=NEVER))


# Hot and its limits


class Left(NamedTuple):
    """The memories that left hot: new temperatures by sequence number, and notes for the caller."""

    moved: dict[int, Temperature]
    notes: list[str]


class Front(NamedTuple):
    """What is hot of an agent, or of a session, and how much may be."""

    session: str | None
    hot: list[HotFact]
    limits: HotLimits
    room: HotLimits
    """The part of the limits that the pinned memories leave."""

    @classmethod
    def of(cls, bank: Engine, block: AgentColumns, session: str | None = None) -> Self:
        """What an agent has in front of itself now, or a session."""
        hot, limits = hot_facts(bank, block, session), bank.limits_in(session)
        return cls(session, hot, limits, limits.beside(fact for fact in hot if fact.pinned))


def spill_over_limits(bank: Engine, agent_id: str, newcomers: Collection[int]) -> Left:
    """With ``auto_spill``, move the least relevant memories out until hot fits its limits.

    First each session comes within its own limits, then the agent.
    """
    left = Left({}, [])
    if not bank.settings.temperature.auto_spill:
        return left
    block = bank.state.block(agent_id)
    if not block.has_hot:  # pinned memories never leave
        return left
    if bank.session_limits is not None:
        for session in _sessions_over(bank, block, bank.session_limits):
            _relieve(bank, block, Front.of(bank, block, session), newcomers, left)
        rows, costs = _front_costs(bank, block)
        if bank.hot_limits.hold(int(costs.sum()), len(rows)):
            return left
    _relieve(bank, block, Front.of(bank, block), newcomers, left)
    return left


def _sessions_over(bank: Engine, block: AgentColumns, limits: HotLimits) -> list[str]:
    """The sessions of which more is hot than the limits allow. Their numbers are columns."""
    if bank.state.table.all_plain:  # no memory has a session
        return []
    rows, costs = _front_costs(bank, block)
    sessions = block.sessions()
    numbers = sessions.numbers[rows] + 1  # 0 stands for no session
    over = np.bincount(numbers, costs) > limits.tokens
    over |= np.bincount(numbers) > limits.facts
    names = sessions.names if over[1:].any() else ()
    return [names[number] for number in over[1:].nonzero()[0].tolist()]


def _front_costs(bank: Engine, block: AgentColumns) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """The rows of an agent's hot memories, and what each takes in a context."""
    rows, count = block.front_rows(), bank.count_tokens
    return rows, block.costs(rows, lambda text, tier, kind: cost_of(text, tier, kind, count))


def _relieve(
    bank: Engine, block: AgentColumns, front: Front, newcomers: Collection[int], left: Left
) -> None:
    """Bring a front within its limits, and note in ``left`` what leaves it."""
    giants = [
        fact.sequence
        for fact in front.hot
        if fact.sequence in newcomers and not fact.pinned and not front.room.hold(fact.tokens)
    ]
    _move_out(bank, block, front, giants, left)
    rest = [fact for fact in front.hot if fact.sequence not in left.moved]
    leaving = choose_spill(rest, front.limits, newcomers)
    _move_out(bank, block, front, leaving, left, newcomers)


def spill_all_over_limits(bank: Engine) -> None:
    """:func:`spill_over_limits` for every agent."""
    state, table = bank.state, bank.state.table
    # Pinned memories never leave.
    is_hot = (table.temperatures == int(Temperature.HOT)) & (table.tiers != int(Tier.PINNED))
    for agent_id in state.with_more(is_hot, 0):
        spill_over_limits(bank, agent_id, ())


def hot_facts(bank: Engine, block: AgentColumns, session: str | None = None) -> list[HotFact]:
    """The hot memories of an agent, or of a session, pinned memories first."""
    return _facts_of(bank, block, block.front(session))


def _facts_of(bank: Engine, block: AgentColumns, rows: Sequence[int]) -> list[HotFact]:
    records = block.use_records[rows].tolist()
    return [
        HotFact(
            memory.sequence,
            cost(memory, bank.count_tokens),
            relevance_rank(record, memory.access_count),
            memory.created_tick,
            memory.access_count,
            memory.tier is Tier.PINNED,
            is_promoted(record),
        )
        for memory, record in zip(block.memories(rows), records, strict=True)
    ]


def hot_tokens(bank: Engine, block: AgentColumns) -> int:
    """The tokens of the hot memories: with the pinned ones, without the expired ones."""
    count = bank.count_tokens
    if block.hot_tokens is None:
        rows = [*block.pinned, *block.hot]
        block.hot_tokens = sum([cost_of(*label, count) for label in block.labels(rows)])
    if block.next_expiry > bank.tick:
        return block.hot_tokens
    over = block.expired(bank.tick)
    expired = block.labels([row for row in block.hot if over[row]])
    return block.hot_tokens - sum([cost_of(*label, count) for label in expired])


def hot_utilization(bank: Engine) -> float:
    """The used share of the tokens of hot, of the agent with the largest."""
    fullest = max([hot_tokens(bank, block) for block in bank.state.with_hot()], default=0)
    return round(fullest / bank.hot_limits.tokens, 6) if bank.hot_limits.tokens else 0.0


def _too_large_for_hot(bank: Engine, memory: Memory) -> str | None:
    """Why hot can't hold a memory beside the pinned memories; None if it can."""
    if not bank.settings.temperature.auto_spill:
        return None
    block, tokens = bank.state.block(memory.agent_id), cost(memory, bank.count_tokens)
    own = None if bank.session_limits is None else session_of(memory.metadata)
    for session in dict.fromkeys((own, None)):
        pinned = _facts_of(bank, block, block.pinned_in(session))
        room = bank.limits_in(session).beside(pinned)
        if not room.hold(tokens):
            return _note_of_giant(bank, memory.id, tokens, room, session)
    return None


def _note_of_giant(
    bank: Engine, identifier: str, tokens: int, room: HotLimits, session: str | None
) -> str:
    """The note for a memory that hot can't hold, of the agent or of a session."""
    settings, name, whose = bank.settings.temperature, "hot", ""
    if session is not None and bank.session_limits is not None:
        name, whose = "session", f" of the session {session!r:.80}"
    limits = (getattr(settings, f"{name}_max_{what}") for what in ("tokens", "facts"))
    tokens_most, facts_most = ("null" if limit is None else limit for limit in limits)
    memories = "" if facts_most == "null" else f" and {max(0, room.facts)} memories"
    return (
        f"memory {identifier} takes {tokens} tokens, and beside what is pinned hot{whose} has room "
        f"for {max(0, room.tokens)} tokens{memories} (temperature.{name}_max_tokens is "
        f"{tokens_most}, {name}_max_facts {facts_most}); it is warm"
    )


def _move_out(
    bank: Engine,
    block: AgentColumns,
    front: Front,
    leaving: Sequence[int],
    left: Left,
    newcomers: Collection[int] = (),
) -> Left:
    """Move memories out of hot, to warm or to cold, and note them in ``left``."""
    facts, room = {fact.sequence: fact for fact in front.hot}, front.room
    for sequence in leaving:
        fact = facts[sequence]
        to = destination(fact.access_count, bank.settings.temperature.warm_access_threshold)
        if sequence in newcomers:  # hot has no room for it, which is no reason to be cold
            to = Temperature.WARM
        if not room.hold(fact.tokens):  # too large for hot is no reason to be cold
            to = Temperature.WARM
            identifier = memory_id(block.prefix, sequence)
            left.notes.append(_note_of_giant(bank, identifier, fact.tokens, room, front.session))
        left.moved[sequence] = to
    for to in (Temperature.WARM, Temperature.COLD):
        going = [sequence for sequence in leaving if left.moved[sequence] is to]
        bank.ledger.move(block.agent_id, going, to, "spill")
    return left


# Tiers


def set_tier(bank: Engine, agent_id: str, memory: Memory, tier: Tier) -> Memory:
    """Move a memory to a tier. The caller holds the transaction."""
    if memory.tier is tier:
        return memory
    ledger = bank.ledger
    expire(bank, agent_id)
    if tier is Tier.PINNED:
        _check_key(bank, memory)
    if tier is Tier.PINNED or memory.retention is Retention.ACTIVE:  # an archived one takes no room
        ledger.make_room(agent_id, tier, bank.caps, memory.sequence)
    ledger.change_tier(agent_id, memory.sequence, tier, demoted=False)
    # A context line shows the tier, so a hot memory may need more tokens now.
    spill_over_limits(bank, agent_id, [memory.sequence])
    return ledger.state.memory(agent_id, memory.sequence) or memory


def check_may_be_pinned(temperature: Temperature | None, retention: Retention | None) -> None:
    """Refuse a temperature or a retention that no pinned memory has."""
    if temperature not in (None, Temperature.HOT):
        name, got = "temperature", TEMPERATURE_NAMES[temperature]
    elif retention not in (None, Retention.ACTIVE):
        name, got = "retention", RETENTION_NAMES[retention]
    else:
        return
    raise InvalidInput(
        f"a pinned memory is active and hot; got {name} {got}",
        hint=f"leave the {name} out, or use another tier",
    )


# Temperature


def promote(bank: Engine, agent_id: str, memory: Memory) -> bool:
    """Make a memory hot, and the most relevant of what is hot; whether it became hot."""
    permitted(Transition.PROMOTE, memory)
    if memory.tier is Tier.PINNED or _too_large_for_hot(bank, memory):
        return False
    with bank.changing():
        ledger = bank.ledger
        use = Accesses.of([([memory.sequence], [_promotion_above_hot(bank, memory)])])
        ledger.used([agent_id], [use])
        if memory.temperature is Temperature.HOT:
            return False
        ledger.move(agent_id, [memory.sequence], Temperature.HOT, "promote")
        left = spill_over_limits(bank, agent_id, [memory.sequence])
    return memory.sequence not in left.moved


def _promotion_above_hot(bank: Engine, memory: Memory) -> float:
    """The score of a use that makes a memory the most relevant of its agent's hot ones."""
    hot = hot_facts(bank, bank.state.block(memory.agent_id))
    others = [
        fact.relevance for fact in hot if not fact.pinned and fact.sequence != memory.sequence
    ]
    record = bank.state.use_record(memory.agent_id, memory.sequence)
    return promotion(record, memory.access_count, max(others, default=(0, -1.0)))


def demote(bank: Engine, agent_id: str, memory: Memory, to: Temperature) -> bool:
    """Make a memory warm or cold; whether that changed it."""
    return _move(bank, agent_id, memory, demotion(to), to)


def warm(bank: Engine, agent_id: str, memory: Memory) -> bool:
    """Make a cold memory warm; whether that changed it."""
    return _move(bank, agent_id, memory, Transition.WARM, Temperature.WARM)


def set_temperature(bank: Engine, agent_id: str, memory: Memory, to: Temperature) -> bool:
    """Make a memory hot, warm or cold; whether that changed it."""
    if to is Temperature.HOT:
        return promote(bank, agent_id, memory)
    if memory.temperature > to:  # cold, and to be warm
        return warm(bank, agent_id, memory)
    return demote(bank, agent_id, memory, to)


def _move(bank: Engine, agent_id: str, memory: Memory, move: Transition, to: Temperature) -> bool:
    """Make a legal move to this temperature; whether that changed the memory."""
    axes = permitted(move, memory)
    if axes is None or axes.temperature is memory.temperature:
        return False
    with bank.changing():
        bank.ledger.move(agent_id, [memory.sequence], to, "set")
    return True


def spill(
    bank: Engine,
    agent_id: str,
    count: int | None,
    memories: list[Memory] | None,
    tokens: int | None,
    session: str | None = None,
) -> Spill:
    """Move out the ``count`` least relevant memories, the given ones, or ``tokens`` of tokens.

    With none of these, what is over the limits leaves, and one memory at least. With a session,
    only its memories leave, and its limits count.
    """
    if sum(each is not None for each in (count, memories, tokens)) > 1:
        raise InvalidInput(
            "a spill takes a count, ids or tokens, and only one of them", hint="leave the rest out"
        )
    for name, number in (("count", count), ("tokens", tokens)):
        if number is not None:
            check_whole(name, number)
    for memory in memories or ():
        permitted(Transition.SPILL_TO_WARM, memory)
        if session is not None and session_of(memory.metadata) != session:
            raise InvalidInput(
                f"memory {memory.id} is not part of the session {session!r:.80}",
                hint="leave the session out",
            )
    with bank.changing():
        expire(bank, agent_id)
        block = bank.state.block(agent_id)
        front = Front.of(bank, block, session)
        if memories is not None:
            present = {fact.sequence for fact in front.hot}
            chosen = dict.fromkeys(memory.sequence for memory in memories)
            leaving = [sequence for sequence in chosen if sequence in present]
        elif tokens is not None:
            leaving = to_free(front.hot, tokens)
        elif count is not None:
            leaving = least_relevant(front.hot, count)
        else:
            leaving = choose_spill(front.hot, front.limits) or least_relevant(front.hot, 1)
        left = _move_out(bank, block, front, leaving, Left({}, []))
    moved = {memory_id(block.prefix, sequence): to for sequence, to in left.moved.items()}
    return Spill(moved, tuple(left.notes))


def recall(
    bank: Engine,
    agent_id: str,
    query: str,
    limit: int,
    only: Filter,
    auto_promote: bool,
    include_cold: bool,
) -> Recall:
    """Search memories of every temperature, and promote the memories that are needed again."""
    with bank.using(), bank.metrics.timed_recall():
        check_whole("limit", limit)
        if not check_query(query).strip():
            return Recall((), (), (), ())
        hits, note = _recalled(bank, agent_id, query, limit, only, include_cold)
        alike = bank.search.likenesses(query, [hit.memory for hit in hits])
        worthy, notes = recalled(bank, agent_id, query, hits, alike, auto_promote=auto_promote)
        if note:
            notes.insert(0, note)
        state = bank.state
        items = [state.memory(agent_id, hit.memory.sequence) or hit.memory for hit in hits]
    came = {memory.sequence for memory in worthy}
    return Recall(
        tuple(items),
        tuple(hit.score for hit in hits),
        tuple(
            item.id
            for item in items
            if item.sequence in came and item.temperature is Temperature.HOT
        ),
        tuple(notes),
        tuple(hit.match for hit in hits),
        tuple(alike),
        tuple(hit.relevance_probability for hit in hits),
    )


def recalled(
    bank: Engine,
    agent_id: str,
    query: str,
    hits: Sequence[Hit],
    alike: Sequence[float] | None = None,
    *,
    auto_promote: bool | None = None,
) -> tuple[list[Memory], list[str]]:
    """Count what a recall gave as recalled; promote what is needed again, which is returned.

    ``alike`` says how alike the query and each hit are, if that is known. With what is promoted
    come notes about memories that are too large for hot.
    """
    temperature = bank.settings.temperature
    counted = [hit for hit in hits if bank.measured(hit) >= temperature.min_score]
    bank.metrics.searches += 1
    if counted:
        bank.metrics.answered += 1
        use = [hit.memory.sequence for hit in counted], list(map(bank.measured, counted))
        bank.ledger.used([agent_id], [Accesses.of([use])], "recall")
    if auto_promote is None:
        auto_promote = temperature.auto_promote
    worthy: list[Memory] = []
    if auto_promote:
        if alike is None:
            alike = bank.search.likenesses(query, [hit.memory for hit in hits])
        worthy = _worthy(bank, agent_id, hits, alike)
    notes: list[str] = []
    if worthy:
        with bank.changing():
            notes = _promote_all(bank, agent_id, worthy)
    bank.ledger.save_searches()
    return worthy, notes


def _recalled(
    bank: Engine, agent_id: str, query: str, limit: int, only: Filter, include_cold: bool
) -> tuple[list[Hit], str]:
    """The best matches, and what the search could not do.

    A pinned memory is in front of the agent already. Here it has no boost, and is given only if it
    matches.
    """
    pinned = len(bank.state.block(agent_id).pinned)
    request = SearchRequest(
        [agent_id],
        [query],
        limit + pinned if limit else 0,
        only=only,
        with_cold=include_cold,
        pinned_first=False,
    )
    (hits,) = bank.search.run(bank.search.read(request), may_sync=bank.may_sync()).hits
    least = bank.settings.temperature.min_score
    kept = [h for h in hits if h.memory.tier is not Tier.PINNED or bank.measured(h) >= least]
    kept.sort(key=_by_match)
    return kept[:limit], hits.note


def _by_match(hit: Hit) -> tuple[float, float, int]:
    boosted = hit.score if hit.memory.tier is Tier.PINNED else hit.boosted_score
    return -boosted, -hit.score, -hit.memory.sequence


def _promote_all(bank: Engine, agent_id: str, memories: Sequence[Memory]) -> list[str]:
    """Make memories hot. A memory that is too large for hot becomes warm; the notes say so."""
    ledger = bank.ledger
    notes = {memory.sequence: _too_large_for_hot(bank, memory) for memory in memories}
    fitting = [sequence for sequence, note in notes.items() if note is None]
    cold = [m.sequence for m in memories if m.temperature is Temperature.COLD]
    unfit = [sequence for sequence in cold if sequence not in fitting]
    ledger.move(agent_id, unfit, Temperature.WARM, "promote")
    ledger.move(agent_id, fitting, Temperature.HOT, "promote")
    left = spill_over_limits(bank, agent_id, fitting) if fitting else Left({}, [])
    return [note for note in notes.values() if note is not None] + left.notes


def _worthy(
    bank: Engine, agent_id: str, hits: Sequence[Hit], alike: Sequence[float]
) -> list[Memory]:
    """The found memories that a recall makes hot: like the query, or recalled often of late."""
    temperature = bank.settings.temperature
    since = bank.tick - bank.settings.clock.ticks(temperature.promote_window)
    worthy = []
    for hit, likeness in zip(hits, alike, strict=True):
        if hit.memory.temperature is Temperature.HOT:
            continue
        recalls = bank.state.recalls(agent_id, hit.memory.sequence)
        often = sum(tick >= since for tick in recalls) >= temperature.promote_accesses
        match = bank.measured(hit)
        alike_enough = likeness if temperature.measure == "score" else match
        if alike_enough >= temperature.promote_threshold or (
            often and match >= temperature.min_score
        ):
            worthy.append(hit.memory)
    return worthy


# Retention

_RETAINED: Final = {
    Retention.ACTIVE: Transition.RESTORE,
    Retention.ARCHIVED: Transition.ARCHIVE,
    Retention.DELETED: Transition.DELETE,
}


def retain(bank: Engine, agent_id: str, memory: Memory, retention: Retention) -> Memory:
    """Archive, delete or restore a memory. A memory with this retention stays as it is."""
    if memory.is_expired(bank.tick) and memory.retention is Retention.ACTIVE:
        with bank.changing():
            bank.ledger.retain(agent_id, [memory.sequence], Retention.DELETED, "expire")
        memory = memory._replace(retention=Retention.DELETED)
    if memory.retention is retention:
        return memory
    permitted(_RETAINED[retention], memory)
    with bank.changing():
        back = retention is Retention.ACTIVE
        if back:
            _check_grace(bank, agent_id, memory)
            _check_key(bank, memory)
            expire(bank, agent_id)
            bank.ledger.make_room(agent_id, memory.tier, bank.caps, memory.sequence)
        bank.ledger.retain(agent_id, [memory.sequence], retention, "restore" if back else "set")
        if back:  # it may be hot, or a hot memory may have a longer tier name now
            spill_over_limits(bank, agent_id, [memory.sequence])
        now = bank.state.memory(agent_id, memory.sequence)
    return memory if now is None else now


def _check_key(bank: Engine, memory: Memory) -> None:
    """Raise :class:`InvalidInput` if another memory is active under the key of this one."""
    now, state = None, bank.state
    if memory.retention is not Retention.ACTIVE:
        now = live_version(state, memory.agent_id, memory.key or memory.id) or heir(state, memory)
    if now is not None and now.retention is Retention.ACTIVE:
        raise InvalidInput(
            f"memory {memory.id} can't be active again: it was superseded, and {now.id} is "
            f"stored under its key {now.key or now.id!r:.80} now",
            hint=f"update {now.id} with its text, or archive that one first",
        )


def _check_grace(bank: Engine, agent_id: str, memory: Memory) -> None:
    deleted = bank.state.deleted_tick(agent_id, memory.sequence)
    if deleted is not None and bank.tick - deleted >= bank.grace:
        raise MemoryNotFound(
            f"{agent_id}'s memory {memory.id} was deleted in tick {deleted} and can no longer "
            "be restored (retention.grace)",
            hint="add it anew",
        )


def forget(bank: Engine, agent_id: str, memory: Memory) -> None:
    """Purge a memory."""
    permitted(Transition.FORGET, memory)
    path = note_of(memory, bank.state.block(agent_id).notes)
    if path is not None:
        raise InvalidInput(
            f"memory {memory.id} can't be forgotten: it is a part of the note {path}, which "
            "still has its text",
            hint="edit the note first, then forget it",
        )
    with bank.changing():
        bank.embedder.forget(memory.content)
        bank.search.forget(agent_id)
        bank.ledger.purge([memory])
        if bank.folder is not None:
            bank.forgotten.append(memory)
