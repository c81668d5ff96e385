"""Moves of an agent's own memories: tier, temperature, recall, retention."""

from collections.abc import Sequence
from typing import Final

from ..errors import InvalidInput, MemoryNotFound
from ..memory.filters import Filter
from ..memory.records import Hit, Memory, Recall, Spill, memory_id
from ..memory.requests import check_query, check_whole
from ..memory.tiers import RETENTION_NAMES, TEMPERATURE_NAMES, Retention, Temperature, Tier
from ..movement.hot import Left
from ..rules.transitions import Transition, demotion, permitted
from ..search.request import SearchRequest
from ..storage.note import note_of
from ..storage.state.links import heir, live_version
from ..storage.state.state import Accesses
from .engine import Engine

# Tiers


def set_tier(bank: Engine, agent_id: str, memory: Memory, tier: Tier) -> Memory:
    """Move a memory to a tier. The caller holds the transaction."""
    if memory.tier is tier:
        return memory
    ledger = bank.ledger
    bank.movement.expire(agent_id)
    if tier is Tier.PINNED:
        _check_key(bank, memory)
    if tier is Tier.PINNED or memory.retention is Retention.ACTIVE:  # an archived one takes no room
        ledger.make_room(agent_id, tier, bank.caps, memory.sequence)
    ledger.change_tier(agent_id, memory.sequence, tier, demoted=False)
    # A context line shows the tier, so a hot memory may need more tokens now.
    bank.movement.relieve_hot(agent_id, [memory.sequence])
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
    if memory.tier is Tier.PINNED or bank.movement.too_large_for_hot(memory):
        return False
    with bank.changing():
        ledger = bank.ledger
        use = Accesses.of([([memory.sequence], [bank.movement.promotion(memory)])])
        ledger.used([agent_id], [use])
        if memory.temperature is Temperature.HOT:
            return False
        ledger.move(agent_id, [memory.sequence], Temperature.HOT, "promote")
        left = bank.movement.relieve_hot(agent_id, [memory.sequence])
    return memory.sequence not in left.moved


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
    found = permitted(move, memory)
    if found is None or found.temperature is memory.temperature:
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
) -> Spill:
    """Move memories out of hot."""
    if sum(each is not None for each in (count, memories, tokens)) > 1:
        raise InvalidInput(
            "a spill takes a count, ids or tokens, and only one of them", hint="leave the rest out"
        )
    for name, number in (("count", count), ("tokens", tokens)):
        if number is not None:
            check_whole(name, number)
    for memory in memories or ():
        permitted(Transition.SPILL_TO_WARM, memory)
    chosen = None if memories is None else [memory.sequence for memory in memories]
    with bank.changing():
        bank.movement.expire(agent_id)
        left = bank.movement.spill(agent_id, count, chosen, tokens)
    prefix = bank.state.block(agent_id).prefix
    moved = {memory_id(prefix, sequence): to for sequence, to in left.moved.items()}
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
        worthy, notes = recalled(bank, agent_id, query, hits, auto_promote=auto_promote)
        if note:
            notes.insert(0, note)
        resident = bank.state
        items = [resident.memory(agent_id, hit.memory.sequence) or hit.memory for hit in hits]
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
    )


def recalled(
    bank: Engine,
    agent_id: str,
    query: str,
    hits: Sequence[Hit],
    *,
    auto_promote: bool | None = None,
) -> tuple[list[Memory], list[str]]:
    """Count what a recall gave as recalled; promote what is needed again, which is returned.

    With it come notes about memories that are too large for hot.
    """
    temperature = bank.settings.temperature
    counted = [hit for hit in hits if hit.score >= temperature.min_score]
    bank.metrics.searches += 1
    if counted:
        bank.metrics.answered += 1
        use = [hit.memory.sequence for hit in counted], [hit.score for hit in counted]
        bank.ledger.used([agent_id], [Accesses.of([use])], "recall")
    if auto_promote is None:
        auto_promote = temperature.auto_promote
    worthy = _worthy(bank, agent_id, query, hits) if auto_promote else []
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
    found = [hit for hit in hits if hit.memory.tier is not Tier.PINNED or hit.score >= least]
    found.sort(key=_by_match)
    return found[:limit], hits.note


def _by_match(hit: Hit) -> tuple[float, float, int]:
    boosted = hit.score if hit.memory.tier is Tier.PINNED else hit.boosted_score
    return -boosted, -hit.score, -hit.memory.sequence


def _promote_all(bank: Engine, agent_id: str, memories: Sequence[Memory]) -> list[str]:
    """Make memories hot. A memory that is too large for hot becomes warm; the notes say so."""
    ledger, movement = bank.ledger, bank.movement
    notes = {each.sequence: movement.too_large_for_hot(each) for each in memories}
    fitting = [sequence for sequence, note in notes.items() if note is None]
    cold = [m.sequence for m in memories if m.temperature is Temperature.COLD]
    unfit = [sequence for sequence in cold if sequence not in fitting]
    ledger.move(agent_id, unfit, Temperature.WARM, "promote")
    ledger.move(agent_id, fitting, Temperature.HOT, "promote")
    left = movement.relieve_hot(agent_id, fitting) if fitting else Left({}, [])
    return [note for note in notes.values() if note is not None] + left.notes


def _worthy(bank: Engine, agent_id: str, query: str, hits: Sequence[Hit]) -> list[Memory]:
    """The found memories that a recall makes hot: like the query, or recalled often of late."""
    own, since = bank.settings.temperature, bank.tick - bank.movement.window
    cooler = [hit for hit in hits if hit.memory.temperature is not Temperature.HOT]
    alike = bank.search.likenesses(query, [hit.memory for hit in cooler])
    found = []
    for hit, likeness in zip(cooler, alike, strict=True):
        recalls = bank.state.recalls(agent_id, hit.memory.sequence)
        often = sum(tick >= since for tick in recalls) >= own.promote_accesses
        if likeness >= own.promote_threshold or (often and hit.score >= own.min_score):
            found.append(hit.memory)
    return found


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
            bank.movement.expire(agent_id)
            bank.ledger.make_room(agent_id, memory.tier, bank.caps, memory.sequence)
        bank.ledger.retain(agent_id, [memory.sequence], retention, "restore" if back else "set")
        if back:  # it may be hot, or a hot memory may have a longer tier name now
            bank.movement.relieve_hot(agent_id, [memory.sequence])
        found = bank.state.memory(agent_id, memory.sequence)
    return memory if found is None else found


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
    if deleted is not None and bank.tick - deleted >= bank.movement.grace:
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
        bank.ledger.purge([memory])
        if bank.folder is not None:
            bank.forgotten.append(memory)
