"""The care of a bank: compaction, pruning, sweeps, its status, and mem0's store."""

from collections import Counter
from contextlib import suppress

from ..errors import BankError
from ..memory.records import Compaction, RuledMove, memory_id
from ..memory.requests import check_agent_id, check_whole
from ..memory.tiers import Temperature
from ..storage.reembedding import discard_new_vectors
from ..storage.store_sync import Progress
from .engine import Engine
from .groups import is_board
from .long_names import forget_unused
from .status import Status, look


class _DryRun(Exception):
    """Leaves the transaction of a dry run, which undoes its changes."""


def agents(bank: Engine) -> list[str]:
    """The ids of all agents that ever stored a memory, in alphabetical order."""
    with bank.using():
        return [owner for owner in _owners(bank) if not is_board(owner)]


def _owners(bank: Engine) -> list[str]:
    """The ids of all agents and boards that ever stored a memory, in alphabetical order."""
    blocks = bank.state.blocks
    # An agent that only trusts or distrusts has a block, and no memory yet.
    return sorted(
        [name for name, following in blocks.following() if following > 1 or blocks[name].notes]
    )


def _chosen(bank: Engine, agent_id: str | None) -> list[str]:
    return _owners(bank) if agent_id is None else [check_agent_id(agent_id)]


# Movement


def compact(bank: Engine, agent_id: str | None, *, dry_run: bool) -> Compaction:
    """:meth:`MemoryBank.compact`."""
    moves: list[RuledMove] = []
    counts: Counter[Temperature] = Counter()
    pruned = 0
    with suppress(_DryRun), bank.changing():
        for agent in _chosen(bank, agent_id):
            own: list[RuledMove] = []
            if dry_run:
                own = bank.movement.would_move(agent)
                moves += own
            else:
                counts += bank.movement.compact(agent)
            if bank.settings.temperature.auto_prune:
                pruned += len(bank.movement.prune(agent, dry_run=dry_run, after=own))
        counts.update(move.to for move in moves)
        if dry_run:
            raise _DryRun
    hot, warm, cold = (counts[each] for each in Temperature)
    return Compaction(hot, warm, cold, pruned, tuple(moves))


def prune(bank: Engine, agent_id: str | None, *, dry_run: bool) -> list[str]:
    """:meth:`MemoryBank.prune`."""
    found: list[str] = []
    with suppress(_DryRun), bank.changing():
        for agent in _chosen(bank, agent_id):
            prefix = bank.state.block(agent).prefix
            pruned = bank.movement.prune(agent, dry_run=dry_run)
            found += [memory_id(prefix, sequence) for sequence in pruned]
        if dry_run:
            raise _DryRun
    return found


def sweep(bank: Engine, every: int) -> None:
    """:meth:`MemoryBank.sweep`."""
    check_whole("every", every, least=1)
    with bank.changing():
        bank.movement.sweep(every)


# Looking


def status(bank: Engine, agent_id: str | None) -> Status:
    """:meth:`MemoryBank.status`."""
    agent = None if agent_id is None else check_agent_id(agent_id)
    with bank.using():
        return look(bank, agent)


def metrics(bank: Engine) -> dict[str, float]:
    """:meth:`MemoryBank.metrics`."""
    with bank.using():
        return bank.metrics.values(bank.ledger.totals, bank.movement.utilization())


# The files


def vacuum(bank: Engine, progress: Progress | None) -> list[str]:
    """:meth:`MemoryBank.vacuum`."""
    with bank.using():
        _check_outside(bank, "a bank can't be vacuumed")
        forget_unused(bank)
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
