"""The memories that are not resident: in the journal's table, or pending for the next commit."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from heapq import merge
from itertools import repeat
from operator import attrgetter

from ...errors import BankDamaged
from ...memory.context import TokenCounter, approximate_tokens
from ...memory.tiers import Retention, Temperature
from ..digests import of_all_shelved
from ..full_record import ColdFact, Shelved, Stored
from .rows import Changes, Group, Key, ShelfTable

__all__ = ["ColdFact", "Shelf"]


_NOTHING: Mapping[int, Stored | None] = {}
_by_sequence = attrgetter("sequence")


class Shelf:
    """The memories that are not resident, as of the commit that is being made or replayed."""

    def __init__(self, table: ShelfTable, commit: int) -> None:
        self.table = table
        self.commit = commit
        """The commit that the pending changes belong to; the table is read as it was before it."""
        self.count_tokens: TokenCounter = approximate_tokens
        self.pending: dict[str, dict[int, Stored | None]] = {}
        """By agent and sequence number, the memories that the commit puts here; None for a memory
        that it takes away."""
        self._ended: dict[Key, bytes] = {}
        """The digests of the versions in the table that the commit ends."""
        self._checked: set[str] = set()

    # Reading

    def check(self, agent: str, total: int) -> None:
        """Raise :class:`BankDamaged` if the table lacks memories of an agent; once for each agent.

        ``total`` is the sum of the hashes over the agent's memories, pending ones among them.
        """
        if agent in self._checked:
            return
        pending = self._pending_of(agent).values()
        total -= sum(int.from_bytes(each.digest, "big") for each in pending if each is not None)
        total += sum(
            int.from_bytes(digest, "big")
            for (owner, _), digest in self._ended.items()
            if owner == agent
        )
        found = self.table.sum_of(agent)
        if found is None or (found - total) % (1 << 256):
            raise BankDamaged(
                f"the journal has lost memories of {agent} that are not resident; "
                "nothing was changed"
            )
        self._checked.add(agent)

    def get(self, key: Key) -> Stored | None:
        """One memory, if it is here."""
        agent, sequence = key
        pending = self._pending_of(agent)
        if sequence in pending:
            return pending[sequence]
        return self.table.get(key, self.commit)

    def _pending_of(self, agent: str) -> Mapping[int, Stored | None]:
        return self.pending.get(agent, _NOTHING)

    def many(self, agent: str, sequences: Collection[int]) -> list[Stored]:
        """The memories with these sequence numbers that are here, oldest first."""
        if self.commit == 0:
            return []
        pending = self._pending_of(agent)
        found = [stored for each in sequences if (stored := pending.get(each)) is not None]
        other = [each for each in sequences if each not in pending]
        found += self.table.many(agent, other, self.commit)
        return sorted(found, key=lambda each: each.record.sequence)

    def of_agent(
        self,
        agent: str,
        retention: Retention,
        temperature: Temperature | None = None,
        after: int = 0,
    ) -> list[Shelved]:
        """An agent's memories with this retention and temperature, oldest first.

        ``after`` leaves out the memories that were here after that commit already.
        """
        pending = self._pending_of(agent)
        found = [
            each.record
            for each in self.table.of_agent(agent, retention, temperature, after)
            if each.record.sequence not in pending
        ]
        found += self._waiting(agent, retention, temperature)
        return sorted(found, key=_by_sequence)

    def unsynced(self, agent: str, commit: int) -> list[Shelved]:
        """An agent's cold memories that came after a commit."""
        return self.of_agent(agent, Retention.ACTIVE, Temperature.COLD, commit)

    def _waiting(
        self, agent: str, retention: Retention, temperature: Temperature | None
    ) -> list[Shelved]:
        """An agent's pending memories with this retention and temperature."""
        return [
            stored.record
            for stored in self._pending_of(agent).values()
            if stored is not None
            and stored.record.retention == retention
            and temperature in (None, stored.record.temperature)
        ]

    def cold(self, agent: str) -> list[ColdFact]:
        """What rules look at of an agent's cold memories, oldest first."""
        pending = self._pending_of(agent)
        facts = [fact for fact in self.table.cold(agent) if fact.sequence not in pending]
        for each in self._waiting(agent, Retention.ACTIVE, Temperature.COLD):
            used = each.access_count, each.last_access_tick, each.use_record
            own = each.sequence, each.tier, each.created_tick
            facts.append(ColdFact(*own, *used, len(each.recalls), each.traits))
        return sorted(facts, key=_by_sequence)

    @contextmanager
    def with_roots(
        self, agent: str, roots: Sequence[str], before: int
    ) -> Iterator[Iterator[tuple[int, str]]]:
        """Numbers and texts of cold memories that may have the root of a term, newest first.

        All numbers are less than ``before``.
        """
        pending = self._pending_of(agent)
        waiting = [
            (each.sequence, each.content)
            for each in self._waiting(agent, Retention.ACTIVE, Temperature.COLD)
            if each.sequence < before
        ]
        with closing(self.table.with_roots(agent, roots, before)) as stored:
            saved = (each for each in stored if each[0] not in pending)
            yield merge(sorted(waiting, reverse=True), saved, reverse=True)

    def with_value(self, agent: str, name: str, value: str) -> list[Shelved]:
        """An agent's memories, whatever their retention, whose metadata has this value."""
        # Inside a text, quotation marks are escaped: only a name and its value can match.
        own = json.dumps({name: value}, ensure_ascii=False, separators=(",", ":"))[1:-1]
        pending = self._pending_of(agent)
        stored = [each for each in self.table.with_metadata(agent, own) if each not in pending]
        found = [each.record for each in self.many(agent, stored)]
        found += [
            each.record
            for each in pending.values()
            if each is not None
            and each.record.metadata is not None
            and each.record.metadata.get(name) == value
        ]
        return sorted(found, key=_by_sequence)

    def texts(self, agent: str) -> dict[int, str]:
        """The texts of an agent's cold and active memories, by sequence number, oldest first."""
        pending = self._pending_of(agent)
        found = [each for each in self.table.texts(agent) if each[0] not in pending]
        cold = self._waiting(agent, Retention.ACTIVE, Temperature.COLD)
        return dict(sorted([*found, *((each.sequence, each.content) for each in cold)]))

    def due(
        self, tick: int, deleted_before: int, agent: str | None = None
    ) -> dict[str, tuple[list[int], list[int]]]:
        """By agent, what expired by ``tick``, and what was deleted by ``deleted_before``.

        ``agent`` None stands for all agents.
        """
        found = [
            (owner, sequence, retention)
            for owner, sequence, retention in self.table.due(tick, deleted_before, agent)
            if sequence not in self._pending_of(owner)
        ]
        for owner in self.pending if agent is None else [agent]:
            active = self._waiting(owner, Retention.ACTIVE, None)
            deleted = self._waiting(owner, Retention.DELETED, None)
            over = [each for each in active if each.expires_tick <= tick]
            over += [each for each in deleted if each.retained_tick <= deleted_before]
            found += [(owner, each.sequence, each.retention) for each in over]
        due: dict[str, tuple[list[int], list[int]]] = {}
        for owner, sequence, retention in sorted(found):
            expired, gone = due.setdefault(owner, ([], []))
            (expired if retention == Retention.ACTIVE else gone).append(sequence)
        return due

    def counts(self, agent: str | None = None) -> dict[Group, tuple[int, int]]:
        """The number of memories and of their tokens, by agent, retention, temperature and tier."""
        totals = self.table.counts(agent)

        def count(owner: str, stored: Stored | None, sign: int) -> None:
            if stored is not None:
                record = stored.record
                group = (owner, record.retention, record.temperature, record.tier)
                number, tokens = totals.get(group, (0, 0))
                own = self.count_tokens(record.content)
                totals[group] = (number + sign, tokens + sign * own)

        for owner in self.pending if agent is None else [agent]:
            for sequence, stored in self._pending_of(owner).items():
                if (owner, sequence) in self._ended:
                    count(owner, self.table.get((owner, sequence), self.commit), -1)
                count(owner, stored, 1)
        return {group: number for group, number in totals.items() if number[0]}

    # Changing

    def put(self, agent: str, records: Sequence[Shelved]) -> int:
        """Memories come here; the sum of the hashes over them."""
        digests = of_all_shelved(agent, records)
        stored = map(tuple.__new__, repeat(Stored), zip(records, digests, strict=True))
        sequences = [record[0] for record in records]
        self.pending.setdefault(agent, {}).update(zip(sequences, stored, strict=True))
        return sum([int.from_bytes(digest, "big") for digest in digests])

    def take(self, agent: str, sequence: int) -> Stored | None:
        """A memory leaves, if it is here."""
        key = (agent, sequence)
        stored = self.get(key)
        if stored is None:
            return None
        pending = self.pending.setdefault(agent, {})
        if sequence not in pending:
            self._ended[key] = stored.digest
        pending[sequence] = None
        return stored

    # Commits

    def changes(self) -> Changes:
        """What the commit does to the table. A user's function counts the tokens, now."""
        tokens = [
            self.count_tokens(stored.record.content)
            for own in self.pending.values()
            for stored in own.values()
            if stored is not None
        ]
        return Changes(self._ended, self.pending, tokens)

    def clear(self) -> None:
        """Forget the pending changes: they are in the table."""
        self.pending.clear()
        self._ended.clear()

    @contextmanager
    def replaying(self, agents: Collection[str] | None) -> Iterator[None]:
        """Inside, commits of all agents or of some are replayed; their pending changes go."""
        gone = set(self.pending if agents is None else agents)
        pending = {agent: own for agent, own in self.pending.items() if agent not in gone}
        ended = {key: own for key, own in self._ended.items() if key[0] not in gone}
        commit = self.commit
        self.pending, self._ended = {}, {}
        try:
            yield
        finally:
            self.pending, self._ended = pending, ended
            self.commit = commit
