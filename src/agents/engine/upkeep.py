"""The care of a bank: compaction, pruning, sweeps, and its files."""

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from ..errors import BankError
from ..memory.context import cost
from ..memory.events import BY_RULE
from ..memory.records import NEVER, PLAIN, Compaction, Memory, RuledMove, memory_id
from ..memory.requests import check_agent_id, check_whole, is_of_agent
from ..memory.tiers import Retention, Temperature, Tier
from ..rules.compaction import Facts, Move, Rule, Sessions, plan, resting_places
from ..rules.ranking import relevance
from ..rules.temperature import SLOWEST, choose_prune, slownesses
from ..rules.tiers import cooler
from ..storage.columns.agent_columns import AgentColumns
from ..storage.note import is_of_note, note_of
from ..storage.record import ColdFact
from ..storage.reembedding import discard_new_vectors
from ..storage.store_sync import Progress
from .engine import Engine
from .move import expire, forget, hot_utilization

DIRECTORY = "@@names"
"""The agent whose memories are the texts of long names, each under its name as a key."""
LONG_NAME = re.compile(r"@@[0-9a-f]{64}")
"""A long name: adapters make one of a text that is longer than an agent id, or than a key.

``@@`` and the text's SHA-256 are the id of an agent, or the end of a memory's key.
"""
_LENGTH_OF_NAME = 66


class _DryRun(Exception):
    """Leaves the transaction of a dry run, which undoes its changes."""


def agents(bank: Engine) -> list[str]:
    """The ids of all agents that ever stored a memory, in alphabetical order."""
    with bank.using():
        return list(filter(is_of_agent, _owners(bank)))


def _owners(bank: Engine) -> list[str]:
    """The ids under which memories were ever stored, in alphabetical order: agents and others."""
    blocks = bank.state.blocks
    # An agent that only trusts or distrusts has a block, and no memory yet.
    return sorted(
        [name for name, following in blocks.following() if following > 1 or blocks[name].notes]
    )


def _chosen(bank: Engine, agent_id: str | None) -> list[str]:
    return _owners(bank) if agent_id is None else [check_agent_id(agent_id)]


# Compaction by the bank's rules


def compact(
    bank: Engine, agent_id: str | None, *, dry_run: bool, session: str | None = None
) -> Compaction:
    """:meth:`MemoryBank.compact`; of a session of one agent, which prunes nothing."""
    moves: list[RuledMove] = []
    counts: Counter[Temperature] = Counter()
    pruned = 0
    with suppress(_DryRun), bank.changing():
        for agent in _chosen(bank, agent_id):
            supposed: list[RuledMove] = []
            if dry_run:
                supposed = _would_move(bank, agent, session)
                moves += supposed
            else:
                counts += _compact(bank, agent, session)
            if bank.settings.temperature.auto_prune and session is None:
                pruned += len(_prune(bank, agent, dry_run=dry_run, after=supposed))
        counts.update(move.to for move in moves)
        if dry_run:
            raise _DryRun
    hot, warm, cold = (counts[each] for each in Temperature)
    return Compaction(hot, warm, cold, pruned, tuple(moves))


def _compact(bank: Engine, agent_id: str, session: str | None) -> Counter[Temperature]:
    """Apply the rules to one agent's memories; the number of moves to each temperature."""
    moves, sequences = _plan(bank, agent_id, session)
    going = defaultdict[tuple[Temperature, str], list[int]](list)
    for row, to, rule in moves:
        going[to, rule].append(sequences[row])
    for to, rule in sorted(going, key=lambda each: -each[0]):  # cold first
        bank.ledger.move(agent_id, going[to, rule], to, BY_RULE + rule)
    return Counter(to for _, to, _ in moves)


def _would_move(bank: Engine, agent_id: str, session: str | None) -> list[RuledMove]:
    """The moves of :func:`_compact`. It deletes expired memories: the caller undoes that."""
    moves, sequences = _plan(bank, agent_id, session)
    memories = bank.state.memories(agent_id, [sequences[move.row] for move in moves])
    return [
        RuledMove(memory, move.to, move.rule) for memory, move in zip(memories, moves, strict=True)
    ]


def _plan(bank: Engine, agent_id: str, session: str | None) -> tuple[list[Move], list[int]]:
    """The moves by row number, and the sequence number of each row; what expired is deleted."""
    expire(bank, agent_id, everywhere=True)
    state = bank.state
    cold = _cold(bank, agent_id) if any(map(_lifts, bank.rules)) else []
    facts, sequences = _facts_of(state.block(agent_id), cold, state.tick)

    def tokens(row: int) -> int:
        (memory,) = state.memories(agent_id, [sequences[row]])
        return cost(memory, bank.count_tokens)

    sessions = None
    if session is not None or bank.session_limits is not None:
        sessions = _sessions_of(bank, agent_id, sequences, session)
    return plan(facts, bank.rules, bank.hot_limits, tokens, sessions), sequences


def _sessions_of(
    bank: Engine, agent_id: str, sequences: Sequence[int], only: str | None
) -> Sessions:
    """Which session the memories with these numbers are part of, cold ones among them."""
    block = bank.state.block(agent_id)
    own = block.sessions()
    names = {name: number for number, name in enumerate(own.names)}
    numbers = np.full(len(sequences), -1, np.intp)
    numbers[np.searchsorted(sequences, block.column("sequence"))] = own.numbers
    if len(sequences) > block.size:
        known = dict(zip(sequences, range(len(sequences)), strict=True))
        for fact in bank.state.shelf.in_sessions(agent_id):
            if fact.sequence in known:  # it is cold
                numbers[known[fact.sequence]] = names.setdefault(fact.session, len(names))
    chosen = None if only is None else names.get(only, len(names))
    return Sessions(numbers, bank.session_limits or bank.hot_limits, chosen)


def _cold(bank: Engine, agent_id: str) -> list[ColdFact]:
    bank.state.check_shelf(agent_id)
    return bank.state.shelf.cold(agent_id)


def _lifts(rule: Rule) -> bool:
    """Whether a rule may make a cold memory warmer."""
    at = rule.when.temperatures
    return rule.to != Temperature.COLD and (at is None or Temperature.COLD in at)


def _facts_of(block: AgentColumns, cold: Sequence[ColdFact], tick: int) -> tuple[Facts, list[int]]:
    """The facts of the resident memories and of these cold ones, and their sequence numbers."""
    sequences: list[int] = block.column("sequence").tolist()
    created, last = block.column("created"), block.column("last")
    accesses, kinds = block.column("accesses"), block.traits()
    tiers, temperatures = block.tiers, block.temperatures
    if cold:
        sequences += [fact.sequence for fact in cold]
        order = np.argsort(sequences, kind="stable")
        sequences = [sequences[place] for place in order.tolist()]
        created = np.append(created, [fact.created_tick for fact in cold])[order]
        last = np.append(last, [fact.last_access_tick for fact in cold])[order]
        accesses = np.append(accesses, [fact.access_count for fact in cold])[order]
        kinds = [*kinds, *(fact.traits for fact in cold)]
        kinds = [kinds[place] for place in order.tolist()]
        tiers = np.append(tiers, np.array([fact.tier for fact in cold], np.int8))[order]
        more = np.full(len(cold), Temperature.COLD, np.int8)
        temperatures = np.append(temperatures, more)[order]
    facts = Facts(
        tiers,
        temperatures,
        tick - created,
        tick - np.maximum(last, created),
        accesses,
        [kind or PLAIN for kind in kinds],
    )
    return facts, sequences


# Pruning


def prune(bank: Engine, agent_id: str | None, *, dry_run: bool) -> list[str]:
    """:meth:`MemoryBank.prune`."""
    ids: list[str] = []
    with suppress(_DryRun), bank.changing():
        for agent in _chosen(bank, agent_id):
            prefix = bank.state.block(agent).prefix
            ids += [memory_id(prefix, number) for number in _prune(bank, agent, dry_run=dry_run)]
        if dry_run:
            raise _DryRun
    return ids


def _prune(
    bank: Engine, agent_id: str, *, dry_run: bool = False, after: Sequence[RuledMove] = ()
) -> list[int]:
    """Archive cold memories beyond ``temperature.max_cold_items``; their sequence numbers.

    A dry run archives nothing, and may suppose that the moves ``after`` were made. It deletes
    expired memories: the caller undoes that.
    """
    expire(bank, agent_id, everywhere=True)
    gone = {move.memory.sequence for move in after}
    cold: list[ColdFact | Memory] = [
        fact for fact in _cold(bank, agent_id) if fact.sequence not in gone
    ]
    cold += [move.memory for move in after if move.to is Temperature.COLD]
    cold.sort(key=lambda memory: memory.sequence)
    chosen = beyond_limit(cold, bank.settings.temperature.max_cold_items)
    if not dry_run:
        bank.ledger.retain(agent_id, chosen, Retention.ARCHIVED, "prune")
    return chosen


def beyond_limit(cold: Sequence[ColdFact | Memory], most: int) -> list[int]:
    """The sequence numbers of the cold memories that a prune to ``most`` memories archives."""
    return choose_prune(
        np.array([fact.sequence for fact in cold], np.int64),
        np.array([fact.tier for fact in cold], np.int8),
        np.array([_relevance(fact) for fact in cold], np.float64),
        np.array([fact.access_count for fact in cold], np.int64),
        most,
    )


def _relevance(cold: ColdFact | Memory) -> float:
    if isinstance(cold, Memory):
        return cold.relevance
    return relevance(cold.use_record, cold.access_count)


# The passing of time


def sweep(bank: Engine, every: int) -> None:
    """:meth:`MemoryBank.sweep`."""
    check_whole("every", every, least=1)
    with bank.changing():
        sweep_tick(bank, every)


def sweep_tick(bank: Engine, every: int = 1, since: int | None = None) -> None:
    """Delete expired memories, purge long deleted ones, and cool faded ones.

    The memories of one agent fade in one of ``every`` ticks: now, if the agent's turn is in
    this tick, or in a tick after ``since``, the tick of the last sweep.
    """
    state, tick, idle_limits = bank.state, bank.tick, bank.idle_limits
    since = tick - 1 if since is None else since
    # Sorted, because events must not depend on the order in which agents came.
    blocks = state.blocks
    agents = blocks if idle_limits is not None else blocks.with_expiry(tick)
    for agent_id in sorted(agents):
        block = blocks[agent_id]
        expire(bank, agent_id)
        if idle_limits is None or block.next_decay > tick:
            continue
        shift = zlib.crc32(agent_id.encode())
        if (tick + shift) // every > (since + shift) // every:  # it had its turn
            _fade(bank, block, idle_limits)
    for agent_id, (expired, _) in state.shelf.due(tick, -1).items():
        bank.ledger.retain(agent_id, expired, Retention.DELETED, "expire")
    _purge(bank, tick - bank.grace)


def _purge(bank: Engine, deleted_before: int) -> None:
    """Purge the memories that were deleted before a tick."""
    state, gone = bank.state, dict[str, list[Memory]]()
    for agent_id, (_, over) in state.shelf.due(state.tick, deleted_before).items():
        expired = [state.memory(agent_id, sequence) for sequence in over]
        # A chunk that is still in its note stays deleted: after a purge, it would be indexed
        # again.
        notes = state.block(agent_id).notes
        gone[agent_id] = [memory for memory in expired if memory and not note_of(memory, notes)]
    # The journal keeps the texts of notes, and earlier states need their memories.
    chunks = [memory for memories in gone.values() for memory in memories if is_of_note(memory)]
    kept = bank.ledger.kept_chunks(chunks)
    for agent_id, memories in gone.items():
        bank.search.forget(agent_id)
        is_kept = [
            is_of_note(memory) and (agent_id, memory.sequence) in kept for memory in memories
        ]
        bank.ledger.purge([memory for memory, it in zip(memories, is_kept, strict=True) if not it])
        bank.ledger.purge(list(compress(memories, is_kept)), redacted=False)


def _fade(bank: Engine, block: AgentColumns, idle_limits: NDArray[np.int64]) -> None:
    """Cool the memories of an agent that lay idle for too long."""
    tick = bank.tick
    last = np.maximum(block.column("last"), block.column("created"))
    # The place of each memory's limit in the flattened table.
    groups = block.tiers.astype(np.int64) * len(Temperature) + block.temperatures
    slowness = slownesses(block.column("accesses"))
    places = groups * (SLOWEST + 1) + slowness
    due = last + np.minimum(idle_limits.ravel().take(places), NEVER - last)
    rows = (due <= tick).nonzero()[0]
    any_due = len(rows) > 0
    if any_due and block.hot:  # a memory that a rule keeps hot does not fade
        facts, _ = _facts_of(block, (), tick)
        faded = np.full_like(facts.temperatures, Temperature.WARM)
        back = resting_places(facts._replace(temperatures=faded), bank.rules)
        stays = (block.temperatures == Temperature.HOT) & (back == Temperature.HOT)
        rows = rows[~stays[rows]]
    fading = {
        cooler(now): [block.sequence(row) for row in rows[block.temperatures[rows] == now].tolist()]
        for now in (Temperature.HOT, Temperature.WARM)
    }
    # A memory that is added later fades after the shortest limit, or later.
    later = due[due > tick].min(initial=tick + int(idle_limits.min()))
    for to, sequences in fading.items():
        bank.ledger.move(block.agent_id, sequences, to, "decay")
    block.next_decay = tick if any_due else int(later)  # a faded memory may fade again


def metrics(bank: Engine) -> dict[str, float]:
    """:meth:`MemoryBank.metrics`."""
    with bank.using():
        return bank.metrics.values(bank.ledger.totals, hot_utilization(bank))


# The files


def vacuum(bank: Engine, progress: Progress | None) -> list[str]:
    """:meth:`MemoryBank.vacuum`."""
    with bank.using():
        _check_outside(bank, "a bank can't be vacuumed")
        forget_unused_names(bank)
        bank.ledger.commit()
        left: list[str] = []
        if bank.folder is not None and bank.journal.last_purge() is not None:
            # The vectors of purged texts are among them.
            left += [f"{path}: it can't be deleted" for path in discard_new_vectors(bank.folder)]
        return left + bank.store.vacuum(progress)


def sync(bank: Engine, progress: Progress | None) -> int:
    """:meth:`MemoryBank.sync`."""
    with bank.using():
        _check_outside(bank, "mem0's store can't be synced")
        bank.store.check_record()
        return bank.store.push(progress)


def repair_store(bank: Engine, progress: Progress | None) -> list[str]:
    """:meth:`MemoryBank.repair_store`."""
    with bank.using():
        _check_outside(bank, "mem0's store can't be rebuilt")
        return bank.store.rebuild(progress)


def _check_outside(bank: Engine, refused: str) -> None:
    if bank.ledger.in_transaction:
        raise BankError(f"{refused} inside a transaction", hint="leave it first")


def forget_unused_names(bank: Engine) -> None:
    """Purge the texts whose names nothing has: no agent with a memory or a note, and no key."""
    kept = [memory for memory in _memories(bank, DIRECTORY) if memory.tier is not Tier.PINNED]
    unused = {memory.key for memory in kept if LONG_NAME.fullmatch(memory.key or "")}
    blocks = bank.state.blocks
    for owner in [agent for agent in blocks if agent != DIRECTORY]:
        if not unused:
            return
        memories = _memories(bank, owner)
        unused -= {memory.key[-_LENGTH_OF_NAME:] for memory in memories if memory.key is not None}
        block = blocks[owner]
        if memories or (block.has_extras and block.notes):
            unused.discard(owner)
    if unused:
        with bank.changing():
            for memory in kept:
                if memory.key in unused:
                    forget(bank, DIRECTORY, memory)


def _memories(bank: Engine, agent_id: str) -> list[Memory]:
    """All memories of an agent or a board that were not purged, whatever became of them."""
    state = bank.state
    state.check_shelf(agent_id)
    block = state.block(agent_id)
    shelved = [
        record for retention in Retention for record in state.shelf.of_agent(agent_id, retention)
    ]
    memories = block.memories(range(block.size))
    return memories + [record.memory(agent_id, block.prefix) for record in shelved]
