"""Where memories are that are not resident: in the journal, and what is pending before it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from string import ascii_lowercase, ascii_uppercase

from ...memory.context import TokenCounter, approximate_tokens
from ...memory.retention import Retention
from ...memory.temperature import Temperature
from ..digests import of_all_shelved
from ..full_record import ColdFact, Shelved, Stored
from .rows import Changes, Group, Key, ShelfTable

__all__ = ["ColdFact", "Shelf"]


_NOTHING: Mapping[int, Stored | None] = {}
# As SQLite's LIKE compares.
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


class Shelf:
    """The memories that are not resident, as of the commit that is being made or replayed."""

    def __init__(self, table: ShelfTable, commit: int) -> None:
        self.table = table
        self.commit = commit
        """The commit to which changes belong; what is in the table is what it found."""
        self.count_tokens: TokenCounter = approximate_tokens
        self._pending: dict[str, dict[int, Stored | None]] = {}
        """By agent and sequence number, what the commit leaves there; None for what it takes
        away."""
        self._ended: dict[Key, bytes] = {}
        """The digests of the versions in the table that it ends."""

    # Reading

    def get(self, key: Key) -> Stored | None:
        """One memory, if it is here."""
        agent, sequence = key
        pending = self._pending_of(agent)
        if sequence in pending:
            return pending[sequence]
        return self.table.get(key, self.commit)

    def _pending_of(self, agent: str) -> Mapping[int, Stored | None]:
        return self._pending.get(agent, _NOTHING)

    def many(self, agent: str, sequences: Collection[int]) -> list[Stored]:
        """Those of these memories that are here, oldest first."""
        if self.commit == 0:
            return []
        pending = self._pending_of(agent)
        near = [pending.get(each) for each in sequences]
        found = [each for each in near if each is not None]
        other = [each for each in sequences if each not in pending]
        found += self.table.many(agent, other, self.commit)
        return sorted(found, key=lambda each: each.record.sequence)

    def of_agent(
        self, agent: str, retention: Retention, temperature: Temperature | None = None
    ) -> list[Shelved]:
        """An agent's memories with this retention and temperature, oldest first."""
        pending = self._pending_of(agent)
        stored = [
            each.record
            for each in self.table.of_agent(agent, retention, temperature)
            if each.record.sequence not in pending
        ]
        return self._with_pending(stored, agent, retention, temperature)

    def cold(self, agent: str) -> list[ColdFact]:
        """An agent's cold memories, oldest first, as far as rules look at them."""
        pending = self._pending_of(agent)
        facts = [fact for fact in self.table.cold(agent) if fact.sequence not in pending]
        facts += [
            ColdFact(
                each.sequence,
                each.tier,
                each.created_tick,
                each.access_count,
                each.last_access_tick,
                each.relevance,
                len(each.recalls),
                each.traits,
            )
            for each in self._with_pending([], agent, Retention.ACTIVE, Temperature.COLD)
        ]
        return sorted(facts, key=lambda fact: fact.sequence)

    def with_words(self, agent: str, words: Sequence[str], most: int) -> list[int]:
        """The newest of an agent's cold memories whose text has one of these words."""
        pending = self._pending_of(agent)
        found = [
            sequence
            for sequence in self.table.with_words(agent, words, most)
            if sequence not in pending
        ]
        folded = [word.translate(_LOWER) for word in words]
        for record in self._with_pending([], agent, Retention.ACTIVE, Temperature.COLD):
            text = record.content.translate(_LOWER)
            if any(word in text for word in folded):
                found.append(record.sequence)
        return sorted(found, reverse=True)[:most]

    def unsynced(self, agent: str, commit: int) -> list[Shelved]:
        """An agent's cold memories that came after a commit."""
        pending = self._pending_of(agent)
        stored = [
            each.record
            for each in self.table.newer(agent, commit)
            if each.record.sequence not in pending
        ]
        return self._with_pending(stored, agent, Retention.ACTIVE, Temperature.COLD)

    def due(
        self, tick: int, deleted_before: int, agent: str | None = None
    ) -> dict[str, tuple[list[int], list[int]]]:
        """By agent, what expired by ``tick``, and what was deleted by ``deleted_before``.

        Of all agents, or of one.
        """
        found = [
            (owner, sequence, retention)
            for owner, sequence, retention in self.table.due(tick, deleted_before, agent)
            if sequence not in self._pending_of(owner)
        ]
        for owner in self._pending if agent is None else [agent]:
            for sequence, stored in self._pending_of(owner).items():
                if stored is None:
                    continue
                record = stored.record
                is_over = record.retention == Retention.DELETED
                if (is_over and record.retained_tick <= deleted_before) or (
                    record.retention == Retention.ACTIVE and record.expires_tick <= tick
                ):
                    found.append((owner, sequence, record.retention))
        due: dict[str, tuple[list[int], list[int]]] = {}
        for owner, sequence, retention in sorted(found):
            expired, over = due.setdefault(owner, ([], []))
            (expired if retention == Retention.ACTIVE else over).append(sequence)
        return due

    def counts(self, agent: str | None = None) -> dict[Group, tuple[int, int]]:
        """How many there are and how many tokens, by agent, retention, temperature and tier."""
        totals = self.table.counts(agent)
        for owner in self._pending if agent is None else [agent]:
            for sequence, stored in self._pending_of(owner).items():
                key = (owner, sequence)
                if key in self._ended and (old := self.table.get(key, self.commit)) is not None:
                    self._count(totals, owner, old.record, -1)
                if stored is not None:
                    self._count(totals, owner, stored.record, 1)
        return {group: number for group, number in totals.items() if number[0]}

    def _count(
        self,
        totals: dict[Group, tuple[int, int]],
        agent: str,
        record: Shelved,
        sign: int,
    ) -> None:
        group = (agent, record.retention, record.temperature, record.tier)
        count, tokens = totals.get(group, (0, 0))
        totals[group] = (count + sign, tokens + sign * self.count_tokens(record.content))

    def _with_pending(
        self,
        records: list[Shelved],
        agent: str,
        retention: Retention,
        temperature: Temperature | None,
    ) -> list[Shelved]:
        for stored in self._pending_of(agent).values():
            if stored is None or stored.record.retention != retention:
                continue
            if temperature is None or stored.record.temperature == temperature:
                records.append(stored.record)
        return sorted(records, key=lambda record: record.sequence)

    # Changing

    def put(self, agent: str, records: Sequence[Shelved]) -> int:
        """Memories come here; the sum of the hashes over them."""
        digests = of_all_shelved(agent, records)
        stored = map(tuple.__new__, repeat(Stored), zip(records, digests, strict=True))
        sequences = [record[0] for record in records]
        self._pending.setdefault(agent, {}).update(zip(sequences, stored, strict=True))
        return sum([int.from_bytes(digest, "big") for digest in digests])

    def take(self, agent: str, sequence: int) -> Stored | None:
        """A memory leaves, if it is here."""
        key = (agent, sequence)
        stored = self.get(key)
        if stored is None:
            return None
        pending = self._pending.setdefault(agent, {})
        if sequence not in pending:
            self._ended[key] = stored.digest
        pending[sequence] = None
        return stored

    # Commits

    def changes(self) -> Changes:
        """What the commit does, to be written with it."""
        return Changes(self._ended, self._pending, self.count_tokens)

    def committed(self, next_commit: int) -> None:
        """What was pending is in the table now."""
        self._pending.clear()
        self._ended.clear()
        self.commit = next_commit

    @contextmanager
    def replaying(self, agents: Collection[str] | None) -> Iterator[None]:
        """Inside, commits are replayed: of all agents or of some, whose pending changes go."""
        gone = set(self._pending if agents is None else agents)
        pending = {agent: own for agent, own in self._pending.items() if agent not in gone}
        ended = {key: own for key, own in self._ended.items() if key[0] not in gone}
        commit = self.commit
        self._pending, self._ended = {}, {}
        try:
            yield
        finally:
            self._pending, self._ended = pending, ended
            self.commit = commit
