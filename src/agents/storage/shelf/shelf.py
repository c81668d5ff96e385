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
        self._packed: dict[str, dict[int, Pack]] = {}
        """By agent and sequence number, what else it leaves there; none of it is in the table, and
        whatever happens to one of these makes it one of the pending."""

    # Reading

    def get(self, key: Key) -> Stored | None:
        """One memory, if it is here."""
        agent, sequence = key
        pending = self._pending_of(agent)
        if sequence in pending:
            return pending[sequence]
        return self._in_pack(key) or self.table.get(key, self.commit)

    def _pending_of(self, agent: str) -> Mapping[int, Stored | None]:
        return self._pending.get(agent, _NOTHING)

    def _in_pack(self, key: Key) -> Stored | None:
        pack = self._packed.get(key[0], {}).get(key[1])
        place = None if pack is None else pack.place_of(key[1])
        return None if pack is None or place is None else pack.stored(place)

    def many(self, agent: str, sequences: Collection[int]) -> list[Stored]:
        """Those of these memories that are here, oldest first."""
        if self.commit == 0:
            return []
        packed, pending = self._packed.get(agent, {}), self._pending_of(agent)
        near = [pending.get(each) or self._in_pack((agent, each)) for each in sequences]
        other = [each for each in sequences if each not in pending and each not in packed]
        found = [each for each in near if each is not None]
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
        for stored in self._pending_of(agent).values():
            if stored is None or stored.record.retention != retention:
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
        pending, make, total = self._pending.setdefault(agent, {}), tuple.__new__, 0
        for record in records:
            digest = of_shelved(agent, record)
            pending[record[0]] = make(Stored, (record, digest))
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
        pending = self._pending_of(agent)
        return [each for each in sequences if each in pending]

    def take(self, agent: str, sequence: int) -> Stored | None:
        """A memory leaves, if it is here."""
        key = (agent, sequence)
        stored = self.get(key)
        if stored is None:
            return None
        was_packed = self._packed.get(agent, {}).pop(sequence, None)
        pending = self._pending.setdefault(agent, {})
        if sequence not in pending and was_packed is None:
            self._ended[key] = stored.digest
        pending[sequence] = None
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
        gone = {*self._packed, *self._pending}
        gone = gone if agents is None else gone.intersection(agents)
        pending = {agent: own for agent, own in self._pending.items() if agent not in gone}
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
