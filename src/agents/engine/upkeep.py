"""What a bank needs now and then: moving memories, looking at how it is, and mem0's store."""

from collections import Counter
from contextlib import suppress
from typing import Any

from ..errors import BankError
from ..memory.checks import check_agent_id, check_whole
from ..memory.ids import memory_id
from ..memory.results import Compaction, RuledMove
from ..memory.temperature import Temperature
from ..storage.store_sync import Progress
from .open_bank import Engine
from .status import Status, look

__all__ = ["Upkeep"]


class _DryRun(Exception):
    """Undoes what a dry run did to find out."""


class Upkeep(Engine):
    """The part of :class:`MemoryBank` that keeps it in order."""

    def agents(self) -> list[str]:
        """The ids of all agents that ever stored a memory, in order."""
        with self._using():
            return sorted(self._ledger.resident.blocks)

    # Movement

    def compact(self, agent_id: str | None = None, *, dry_run: bool = False) -> Compaction:
        """Apply ``temperature.rules`` to the memories of all agents, or of one, in one commit.

        A second time moves nothing. With ``dry_run``, it says what would move, and by which rule.
        """
        moves: list[RuledMove] = []
        counts: Counter[Temperature] = Counter()
        pruned = 0
        with suppress(_DryRun), self._changing():
            agents = self.agents() if agent_id is None else [check_agent_id(agent_id)]
            for agent in agents:
                own: list[RuledMove] = []
                if dry_run:
                    own = self._movement.would_move(agent)
                    moves += own
                else:
                    counts += self._movement.compact(agent)
                if self.settings.temperature.auto_prune:
                    pruned += len(self._movement.prune(agent, dry_run=dry_run, after=own))
            counts.update(move.to for move in moves)
            if dry_run:
                raise _DryRun
        hot, warm, cold = (counts[each] for each in Temperature)
        return Compaction(hot, warm, cold, pruned, tuple(moves))

    def prune(self, agent_id: str | None = None, *, dry_run: bool = False) -> list[str]:
        """Archive what agents have cold beyond ``temperature.max_cold_items``; the ids."""
        found: list[str] = []
        with suppress(_DryRun), self._changing():
            for agent in self.agents() if agent_id is None else [check_agent_id(agent_id)]:
                prefix = self._ledger.resident.block(agent).prefix
                pruned = self._movement.prune(agent, dry_run=dry_run)
                found += [memory_id(prefix, sequence) for sequence in pruned]
            if dry_run:
                raise _DryRun
        return found

    def sweep(self, *, every: int = 1) -> None:
        """Let time do its work: what expired is deleted, what was deleted long ago is purged, and
        with ``decay.enabled``, what nobody used moves to a lower temperature.

        A simulation does it in each tick, and lets the memories of each agent fade once in
        ``every`` ticks, the setting ``decay.every``. Where time passes otherwise, call it now and
        then.
        """
        check_whole("every", every, least=1)
        with self._changing():
            self._movement.sweep(every)

    def vacuum(self, progress: Progress | None = None) -> None:
        """Write the journal anew, and mem0's store where it is local.

        What was purged is gone from them before; after this, it is gone from the free space in
        their files as well. The store is built in a process of its own: Chroma writes to unused
        parts of its files whatever lay in the memory of the process.
        """
        with self._using():
            if self._ledger.in_transaction:
                raise BankError(
                    "a bank can't be vacuumed inside a transaction", hint="leave it first"
                )
            self._ledger.commit()
            self._ledger.journal.vacuum()
            if self._store.exists:
                self._store.rebuild_elsewhere(self.settings.seed, progress)

    # Looking

    def status(self, agent_id: str | None = None) -> Status:
        """How full the bank is, or one agent's part of it, and what is worth doing about it."""
        agent = None if agent_id is None else check_agent_id(agent_id)
        with self._using():
            ledger, count = self._ledger, self._retrieval.count_tokens
            return look(ledger.resident, self._movement, self.settings, self._caps, count, agent)

    def metrics(self) -> dict[str, float]:
        """What happened since the bank was opened, as far as it is committed, by its name."""
        with self._using():
            return self._metrics.values(self._ledger.totals, self._movement.utilization())

    # mem0's store

    def sync(self, progress: Progress | None = None) -> int:
        """Write to mem0's store what it lacks; the number of memories written or deleted."""
        with self._using():
            if self._ledger.in_transaction:
                raise BankError(
                    "mem0's store can't be synced inside a transaction", hint="leave it first"
                )
            return self._store.push(progress)

    def repair_store(self, progress: Progress | None = None) -> list[str]:
        """Rebuild mem0's store from the journal; says what was done, line by line."""
        with self._using():
            if self._ledger.in_transaction:
                raise BankError(
                    "mem0's store can't be rebuilt inside a transaction", hint="leave it first"
                )
            return self._store.rebuild(progress)

    def mem0_config(self) -> dict[str, Any]:
        """The ``vector_store`` config for a plain ``mem0.Memory`` on this bank's store."""
        return self._store.config()
