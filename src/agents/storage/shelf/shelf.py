"""Where memories are that are not resident: in the journal, and what is pending before it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from string import ascii_lowercase, ascii_uppercase

from ...memory.context import TokenCounter, approximate_tokens
from ...memory.retention import Retention
from ...memory.temperature import Temperature
from ..digests import of_shelved
from ..full_record import ColdFact, Shelved, Stored
from .pack import Pack
from .rows import Changes, Group, Key, ShelfTable

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
        self._packed: dict[str, dict[int, Pack]] = {}
        """By agent and sequence number, what else it leaves there; none of it is in the table, and
        whatever happens to one of these makes it one of the pending."""

    # Reading

    def get(self, key: Key) -> Stored | None:
        """One memory, if it is here."""
        if key in self._pending:
            return self._pending[key]
        return self._in_pack(key) or self.table.get(key, self.commit)

    def _in_pack(self, key: Key) -> Stored | None:
        pack = self._packed.get(key[0], {}).get(key[1])
        place = None if pack is None else pack.place_of(key[1])
        return None if pack is None or place is None else pack.stored(place)

    def many(self, agent: str, sequences: Collection[int]) -> list[Stored]:
        """Those of these memories that are here, oldest first."""
        if self.commit == 0:
            return []
        packed = self._packed.get(agent, {})
        keys = [(agent, each) for each in sequences]
        pending = [self._pending.get(key) or self._in_pack(key) for key in keys]
        other = [
            each for each in sequences if (agent, each) not in self._pending and each not in packed
        ]
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

    def counts(self, agent: str | None = None) -> dict[Group, tuple[int, int]]:
        """How many there are and how many tokens, by agent, retention, temperature and tier."""
        totals = self.table.counts(agent)
        for key, stored in self._pending.items():
            if agent is not None and key[0] != agent:
                continue
            if key in self._ended and (old := self.table.get(key, self.commit)) is not None:
                self._count(totals, key[0], old.record, -1)
            if stored is not None:
                self._count(totals, key[0], stored.record, 1)
        for owner in self._packed if agent is None else [agent]:
            for record in self._records_in_packs(owner):
                self._count(totals, owner, record, 1)
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
        for (owner, _), stored in self._pending.items():
            if owner != agent or stored is None or stored.record.retention != retention:
                continue
            if temperature is None or stored.record.temperature == temperature:
                records.append(stored.record)
        if retention == Retention.ACTIVE and temperature in (None, Temperature.COLD):
            records += self._records_in_packs(agent)
        return sorted(records, key=lambda record: record.sequence)

    def _records_in_packs(self, agent: str) -> Iterator[Shelved]:
        for sequence in self._packed.get(agent, ()):
            if stored := self._in_pack((agent, sequence)):
                yield stored.record

    # Changing

    def put(self, agent: str, records: Iterable[Shelved]) -> int:
        """Memories come here; the sum of the hashes over them."""
        pending, make, total = self._pending, tuple.__new__, 0
        for record in records:
            digest = of_shelved(agent, record)
            pending[agent, record[0]] = make(Stored, (record, digest))
            total += int.from_bytes(digest, "big")
        return total

    def put_packs(self, packs: Iterable[Pack]) -> int:
        """Memories come here that are not :meth:`touched`; the sum of the hashes over them."""
        total = 0
        for pack in packs:
            self._packed.setdefault(pack.agent, {}).update(dict.fromkeys(pack.sequences, pack))
            total += pack.total()
        return total

    def touched(self, agent: str, sequences: Iterable[int]) -> list[int]:
        """Those of these memories that came or left one by one in this commit."""
        return [each for each in sequences if (agent, each) in self._pending]

    def take(self, agent: str, sequence: int) -> Stored | None:
        """A memory leaves, if it is here."""
        key = (agent, sequence)
        stored = self.get(key)
        if stored is None:
            return None
        was_packed = self._packed.get(agent, {}).pop(sequence, None)
        if key not in self._pending and was_packed is None:
            self._ended[key] = stored.digest
        self._pending[key] = None
        return stored

    # Commits

    def changes(self) -> Changes:
        """What the commit does, to be written with it."""
        packs = [pack for own in self._packed.values() for pack in _what_is_left(own)]
        return Changes(self._ended, self._pending, packs, self.count_tokens)

    def committed(self, next_commit: int) -> None:
        """What was pending is in the table now."""
        self._pending.clear()
        self._ended.clear()
        self._packed.clear()
        self.commit = next_commit

    @contextmanager
    def replaying(self, agents: Collection[str] | None) -> Iterator[None]:
        """Inside, commits are replayed: of all agents or of some, whose pending changes go."""
        gone = {*self._packed, *(agent for agent, _ in self._pending)}
        gone = gone if agents is None else gone.intersection(agents)
        pending = {key: own for key, own in self._pending.items() if key[0] not in gone}
        ended = {key: own for key, own in self._ended.items() if key[0] not in gone}
        packed = {agent: own for agent, own in self._packed.items() if agent not in gone}
        commit = self.commit
        self._pending, self._ended, self._packed = {}, {}, {}
        try:
            yield
        finally:
            self._pending, self._ended, self._packed = pending, ended, packed
            self.commit = commit


def _what_is_left(members: Mapping[int, Pack]) -> Iterator[Pack]:
    """The packs of these memories, without those that left them."""
    packs = list(dict.fromkeys(members.values()))
    if sum(map(len, packs)) == len(members):
        yield from packs
        return
    for pack in packs:
        places = [place for place, each in enumerate(pack.sequences) if members.get(each) is pack]
        yield pack if len(places) == len(pack) else pack.only(places)
