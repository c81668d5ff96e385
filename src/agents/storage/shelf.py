"""Where memories are that are not resident: in the journal, and what is pending before it."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from string import ascii_lowercase, ascii_uppercase

from agents.memory.context import TokenCounter, approximate_tokens
from agents.memory.retention import Retention
from agents.memory.temperature import Temperature
from agents.storage.fingerprints import of_shelved
from agents.storage.shelf_table import Changes, ColdFact, Key, ShelfTable, Stored
from agents.storage.shelved import Shelved

__all__ = ["ColdFact", "Shelf"]


# As SQLite's LIKE compares.
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


class Shelf:
    """The memories that are not resident, as of the commit that is being made or replayed."""

    def __init__(self, table: ShelfTable, commit: int) -> None:
        self.table = table
        self.commit = commit
        """The commit to which changes belong; what is in the table is what it found."""
        self.count_tokens: TokenCounter = approximate_tokens
        self._pending: dict[Key, Stored | None] = {}
        """What the commit leaves there; None for what it takes away."""
        self._ended: dict[Key, bytes] = {}
        """The digests of the versions in the table that it ends."""

    # Reading

    def get(self, key: Key) -> Stored | None:
        """One memory, if it is here."""
        if key in self._pending:
            return self._pending[key]
        return self.table.get(key, self.commit)

    def many(self, agent: str, sequences: Collection[int]) -> list[Stored]:
        """Those of these memories that are here, oldest first."""
        if self.commit == 0:
            return []
        pending = [self._pending.get((agent, each)) for each in sequences]
        other = [each for each in sequences if (agent, each) not in self._pending]
        found = [each for each in pending if each is not None]
        found += self.table.many(agent, other, self.commit)
        return sorted(found, key=lambda each: each.record.sequence)

    def of_agent(
        self, agent: str, retention: Retention, temperature: Temperature | None = None
    ) -> list[Shelved]:
        """An agent's memories with this retention and temperature, oldest first."""
        stored = [
            each.record
            for each in self.table.of_agent(agent, retention, temperature)
            if (agent, each.record.sequence) not in self._pending
        ]
        return self._with_pending(stored, agent, retention, temperature)

    def cold(self, agent: str) -> list[ColdFact]:
        """An agent's cold memories, oldest first, as far as rules look at them."""
        facts = [
            fact for fact in self.table.cold(agent) if (agent, fact.sequence) not in self._pending
        ]
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
        found = [
            sequence
            for sequence in self.table.with_words(agent, words, most)
            if (agent, sequence) not in self._pending
        ]
        folded = [word.translate(_LOWER) for word in words]
        for record in self._with_pending([], agent, Retention.ACTIVE, Temperature.COLD):
            text = record.content.translate(_LOWER)
            if any(word in text for word in folded):
                found.append(record.sequence)
        return sorted(found, reverse=True)[:most]

    def unsynced(self, agent: str, commit: int) -> list[Shelved]:
        """An agent's cold memories that came after a commit."""
        stored = [
            each.record
            for each in self.table.newer(agent, commit)
            if (agent, each.record.sequence) not in self._pending
        ]
        return self._with_pending(stored, agent, Retention.ACTIVE, Temperature.COLD)

    def due(self, tick: int, deleted_before: int) -> dict[str, tuple[list[int], list[int]]]:
        """By agent, what expired by ``tick``, and what was deleted so long ago."""
        found = [
            (agent, sequence, retention)
            for agent, sequence, retention in self.table.due(tick, deleted_before)
            if (agent, sequence) not in self._pending
        ]
        for (agent, sequence), stored in self._pending.items():
            if stored is None:
                continue
            record = stored.record
            is_over = record.retention == Retention.DELETED
            if (is_over and record.retained_tick <= deleted_before) or (
                record.retention == Retention.ACTIVE and record.expires_tick <= tick
            ):
                found.append((agent, sequence, record.retention))
        due: dict[str, tuple[list[int], list[int]]] = {}
        for agent, sequence, retention in sorted(found):
            expired, over = due.setdefault(agent, ([], []))
            (expired if retention == Retention.ACTIVE else over).append(sequence)
        return due

    def counts(self, agent: str | None = None) -> dict[tuple[str, int, int, int], tuple[int, int]]:
        """How many there are and how many tokens, by agent, retention, temperature and tier."""
        totals = {row[:4]: (row[4], row[5]) for row in self.table.counts(agent)}
        for key, stored in self._pending.items():
            if agent is not None and key[0] != agent:
                continue
            if key in self._ended and (old := self.table.get(key, self.commit)) is not None:
                self._count(totals, key[0], old.record, -1)
            if stored is not None:
                self._count(totals, key[0], stored.record, 1)
        return {group: number for group, number in totals.items() if number[0]}

    def _count(
        self,
        totals: dict[tuple[str, int, int, int], tuple[int, int]],
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
        for (owner, _), stored in self._pending.items():
            if owner != agent or stored is None or stored.record.retention != retention:
                continue
            if temperature is None or stored.record.temperature == temperature:
                records.append(stored.record)
        return sorted(records, key=lambda record: record.sequence)

    # Changing

    def put(self, agent: str, records: Iterable[Shelved]) -> int:
        """Memories come here; the sum of the hashes over them."""
        pending, make, total = self._pending, tuple.__new__, 0
        for record in records:
            digest = of_shelved(agent, record)
            pending[agent, record[0]] = make(Stored, (record, digest))
            total += int.from_bytes(digest, "big")
        return total

    def take(self, agent: str, sequence: int) -> Stored | None:
        """A memory leaves, if it is here."""
        key = (agent, sequence)
        stored = self.get(key)
        if stored is None:
            return None
        if key not in self._pending:
            self._ended[key] = stored.digest
        self._pending[key] = None
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
        kept = [
            {} if agents is None else {k: v for k, v in part.items() if k[0] not in agents}
            for part in (self._pending, self._ended)
        ]
        commit = self.commit
        self._pending, self._ended = {}, {}
        try:
            yield
        finally:
            self._pending, self._ended = kept  # type: ignore[assignment]
            self.commit = commit
