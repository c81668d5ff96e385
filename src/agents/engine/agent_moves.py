"""What an agent does with its memories besides storing and searching: recall, promote, archive."""

from collections.abc import Sequence
from contextlib import ExitStack

from ..errors import InvalidInput, MemoryNotFound, MemoryPinned
from ..memory.checks import check_query, check_whole
from ..memory.context import fit
from ..memory.filters import Filter
from ..memory.ids import memory_id
from ..memory.records import Hit, Hits, Memory
from ..memory.results import Recall, Spill
from ..memory.retention import RETENTION_NAMES, Retention
from ..memory.temperature import Temperature
from ..memory.tiers import Tier
from ..movement.hot import Left
from ..storage.note import note_of
from .open_bank import Engine

__all__ = ["Moves"]


class Moves:
    """The operations behind :class:`AgentMemory` that change temperature or retention."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # Temperature

    def promote(self, agent_id: str, memory: Memory) -> bool:
        """Make a memory hot."""
        _check_active(memory)
        movement = self._engine._movement
        if memory.temperature is Temperature.HOT or movement.too_large_for_hot(memory):
            return False
        with self._engine._changing():
            ledger = self._engine._ledger
            ledger.accessed(agent_id, [memory.sequence], [memory.relevance])
            ledger.move(agent_id, [memory.sequence], Temperature.HOT, "promote")
            left = self._engine._movement.relieve_hot(agent_id, [memory.sequence])
        return memory.sequence not in left.moved

    def demote(self, agent_id: str, memory: Memory, to: Temperature) -> bool:
        """Make a memory warm or cold."""
        if to is Temperature.HOT:
            raise InvalidInput(
                "to demote a memory makes it warm or cold", hint="promote it to make it hot"
            )
        _check_active(memory)
        if memory.tier is Tier.PINNED:
            raise _pinned(memory, "be demoted")
        if memory.temperature >= to:
            return False
        with self._engine._changing():
            self._engine._ledger.move(agent_id, [memory.sequence], to, "set")
        return True

    def warm(self, agent_id: str, memory: Memory) -> bool:
        """Make a cold memory warm."""
        _check_active(memory)
        if memory.temperature is not Temperature.COLD:
            return False
        with self._engine._changing():
            self._engine._ledger.move(agent_id, [memory.sequence], Temperature.WARM, "set")
        return True

    def spill(self, agent_id: str, count: int | None, memories: list[Memory] | None) -> Spill:
        """Let memories leave hot."""
        if count is not None and memories is not None:
            raise InvalidInput("a spill takes a count or ids, not both", hint="leave one out")
        if count is not None:
            check_whole("count", count)
        for memory in memories or ():
            if memory.tier is Tier.PINNED:
                raise _pinned(memory, "be spilled")
        chosen = None if memories is None else [memory.sequence for memory in memories]
        with self._engine._changing():
            left = self._engine._movement.spill(agent_id, count, chosen)
        return self._spilled(agent_id, left)

    def recall(
        self, agent_id: str, query: str, limit: int, only: Filter, auto_promote: bool
    ) -> Recall:
        """Search warm and cold, and promote what deserves it."""
        engine = self._engine
        with engine._using(), engine._metrics.timed_recall():
            check_whole("limit", limit)
            if not check_query(query).strip():
                return Recall((), (), (), ())
            hits, note = self._found(agent_id, query, limit, only)
            least = engine.settings.temperature.min_score
            given = [hit for hit in hits if hit.score >= least]
            worthy: list[Memory] = []
            notes = [note] if note else []
            with ExitStack() as changing:
                if given:
                    sequences = [hit.memory.sequence for hit in given]
                    scores = [hit.score for hit in given]
                    engine._ledger.accessed(agent_id, sequences, scores, recalled=True)
                if auto_promote:
                    worthy = [hit.memory for hit in hits if self._deserves(agent_id, hit)]
                if worthy:
                    changing.enter_context(engine._changing())
                    notes += self._promote_all(agent_id, worthy)
            resident = engine._ledger.resident
            items = [resident.memory(agent_id, hit.memory.sequence) or hit.memory for hit in hits]
        return Recall(
            tuple(items),
            tuple(hit.score for hit in hits),
            tuple(item.id for item in items if item.temperature is Temperature.HOT),
            tuple(notes),
        )

    def _promote_all(self, agent_id: str, memories: Sequence[Memory]) -> list[str]:
        """Make memories hot; one that is too large for that is warm, and a note says so."""
        ledger, movement = self._engine._ledger, self._engine._movement
        notes = {each.sequence: movement.too_large_for_hot(each) for each in memories}
        fitting = [sequence for sequence, note in notes.items() if note is None]
        cold = [m.sequence for m in memories if m.temperature is Temperature.COLD]
        unfit = [sequence for sequence in cold if sequence not in fitting]
        ledger.move(agent_id, unfit, Temperature.WARM, "promote")
        ledger.move(agent_id, fitting, Temperature.HOT, "promote")
        left = movement.relieve_hot(agent_id, fitting) if fitting else Left({}, [])
        return [note for note in notes.values() if note is not None] + left.notes

    def search_all(
        self, agent_id: str, query: str, limit: int | None, tokens: int | None, only: Filter
    ) -> Hits:
        """A search in which cold memories take part."""
        engine = self._engine
        with engine._using():
            most, budget = engine._limits(limit, tokens)
            found, note = self._found(agent_id, check_query(query), most, only)
            pinned = [hit for hit in found if hit.memory.tier is Tier.PINNED]
            fitted = fit(pinned, found[len(pinned) :], budget, engine._retrieval.count_tokens)
            hits = Hits(fitted.kept)
            hits.pinned_left_out = fitted.pinned_left_out
            hits.note = note
            if query.strip():
                engine._count_accesses([agent_id], [hits])
            return hits

    def _found(self, agent_id: str, query: str, limit: int, only: Filter) -> tuple[list[Hit], str]:
        """The hits, and what could not be done."""
        engine = self._engine
        block = engine._ledger.resident.block(agent_id)
        asked = engine._queries.read([block], [query], engine.tick) if query.strip() else None
        front, rest = engine._cold.search(block, asked, limit, only, may_sync=engine._may_sync())
        return front + rest, "" if asked is None else asked.notes.get(0, "")

    def _deserves(self, agent_id: str, hit: Hit) -> bool:
        own = self._engine.settings.temperature
        if hit.score >= own.promote_threshold:
            return True
        since = self._engine.tick - self._engine._movement.window
        recalls = self._engine._ledger.resident.recalls(agent_id, hit.memory.sequence)
        return sum(tick >= since for tick in recalls) >= own.promote_accesses

    def _spilled(self, agent_id: str, left: Left) -> Spill:
        prefix = self._engine._ledger.resident.block(agent_id).prefix
        moved = {memory_id(prefix, sequence): to for sequence, to in left.moved.items()}
        return Spill(moved, tuple(left.notes))

    # Retention

    def retain(self, agent_id: str, memory: Memory, retention: Retention) -> Memory:
        """Archive, delete or restore a memory; one that is so already stays as it is."""
        if memory.is_expired(self._engine.tick) and memory.retention is Retention.ACTIVE:
            with self._engine._changing():
                self._engine._ledger.retain(
                    agent_id, [memory.sequence], Retention.DELETED, "expire"
                )
            memory = memory._replace(retention=Retention.DELETED)
        if memory.retention is retention:
            return memory
        if memory.tier is Tier.PINNED:
            raise _pinned(memory, f"become {RETENTION_NAMES[retention]}")
        engine = self._engine
        with engine._changing():
            back = retention is Retention.ACTIVE
            if back:
                self._check_grace(agent_id, memory)
                engine._movement.expire(agent_id)
                engine._ledger.make_room(agent_id, memory.tier, engine._caps, memory.sequence)
            engine._ledger.retain(
                agent_id, [memory.sequence], retention, "restore" if back else "set"
            )
            if back:  # it may be hot, or have made a hot one move to a tier with a longer label
                engine._movement.relieve_hot(agent_id, [memory.sequence])
            found = engine._ledger.resident.memory(agent_id, memory.sequence)
        return memory if found is None else found

    def _check_grace(self, agent_id: str, memory: Memory) -> None:
        deleted = self._engine._ledger.resident.deleted_tick(agent_id, memory.sequence)
        if deleted is not None and self._engine.tick - deleted >= self._engine._movement.grace:
            raise MemoryNotFound(
                f"{agent_id}'s memory {memory.id} was deleted in tick {deleted} and can no longer "
                "be restored (retention.grace)",
                hint="add it anew",
            )

    def forget(self, agent_id: str, memory: Memory) -> None:
        """Purge a memory."""
        if memory.tier is Tier.PINNED:
            raise _pinned(memory, "be forgotten")
        engine = self._engine
        path = note_of(memory, engine._ledger.resident.block(agent_id).notes)
        if path is not None:
            raise InvalidInput(
                f"memory {memory.id} can't be forgotten: it is a part of the note {path}, which "
                "still has its text",
                hint="edit the note first, then forget it",
            )
        with engine._changing():
            engine._embedder.forget(memory.content)
            engine._ledger.purge([memory])
            if engine._folder is not None:
                engine._forgotten.append(memory)


def _check_active(memory: Memory) -> None:
    if memory.retention is not Retention.ACTIVE:
        raise InvalidInput(
            f"memory {memory.id} is {RETENTION_NAMES[memory.retention]}",
            hint="restore it first, which makes it active again",
        )


def _pinned(memory: Memory, what: str) -> MemoryPinned:
    return MemoryPinned(f"memory {memory.id} is pinned and can't {what}", hint="unpin it first")
