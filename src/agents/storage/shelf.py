"""The memories that are not resident: in the journal's table, or waiting for the next commit.

A row of the table is one version of a memory: how the memory was from one commit to another. Going
back to a commit finds the version of that time. Versions that ended before the last snapshot are
deleted, because nothing can go back to them.
"""

import json
import sqlite3
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import repeat
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from ..errors import BankDamaged
from ..memory.context import TokenCounter, approximate_tokens
from ..memory.records import SESSION, session_of
from ..memory.requests import KeptMetadata
from ..memory.tiers import Retention, Temperature
from .record import ColdFact, Record, RecordRow, SessionFact, digests_of, traits_of

SHELF_SCHEMA = """
CREATE TABLE shelf (
    agent TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    since INTEGER NOT NULL,    -- the commit that put it there
    until INTEGER,             -- the commit that took it away or changed it
    seal INTEGER NOT NULL,     -- over since, until and digest
    digest BLOB NOT NULL,      -- over all that follows, without tokens
    tokens INTEGER NOT NULL,
    tier INTEGER NOT NULL,
    temperature INTEGER NOT NULL,
    retention INTEGER NOT NULL,
    retained_tick INTEGER NOT NULL,
    created_tick INTEGER NOT NULL,
    tier_tick INTEGER NOT NULL,
    expires_tick INTEGER NOT NULL,
    access_count INTEGER NOT NULL,
    last_access_tick INTEGER NOT NULL,
    relevance REAL NOT NULL,   -- the record of its uses
    recalls TEXT,
    traits TEXT,
    metadata TEXT,
    content TEXT NOT NULL,
    vector BLOB NOT NULL
);
CREATE UNIQUE INDEX shelf_versions ON shelf (agent, sequence, since);
-- For counting: small, and a count needs no more.
CREATE INDEX shelf_now ON shelf (agent, retention, temperature, tier, tokens) WHERE until IS NULL;
CREATE INDEX shelf_critical ON shelf (agent) WHERE tier = 1;
-- Each of these indexes is there twice: a tick asks for all agents, a compaction for one agent.
CREATE INDEX shelf_expiring ON shelf (expires_tick)
    WHERE until IS NULL AND retention = 0 AND expires_tick < 4611686018427387904;
CREATE INDEX shelf_expiring_of ON shelf (agent, expires_tick)
    WHERE until IS NULL AND retention = 0 AND expires_tick < 4611686018427387904;
CREATE INDEX shelf_deleted ON shelf (retained_tick) WHERE until IS NULL AND retention = 2;
CREATE INDEX shelf_deleted_of ON shelf (agent, retained_tick)
    WHERE until IS NULL AND retention = 2;
CREATE INDEX shelf_ended ON shelf (until) WHERE until IS NOT NULL;
"""

_BEFORE = "since < :commit AND (until IS NULL OR until >= :commit)"
"""The versions that were there before a commit."""
_ACTIVE = "until IS NULL AND retention = 0"
"""The memories that are cold and active now."""
_NOTHING: Mapping[int, RecordRow | None] = {}
_COLD = [int(Retention.ACTIVE), int(Temperature.COLD)]
_MODULUS = 1 << 256
_by_sequence = attrgetter("sequence")
_Made = TypeVar("_Made")

Key = tuple[str, int]
"""Agent and sequence number."""
Group = tuple[str, int, int, int]
"""Agent, retention, temperature and tier."""


class Changes(NamedTuple):
    """What a commit does to the shelf."""

    ended: Mapping[Key, bytes]
    """The digests of the versions that end."""
    now: Mapping[str, Mapping[int, RecordRow | None]]
    """The memories it puts there, by agent and sequence number; None for one it takes away."""
    tokens: Sequence[int]
    """The tokens of each memory that it puts there."""


class ShelfTable:
    """Reads and writes the table; the journal opens and ends the transactions.

    ``reading`` names the damaged file in the error of a read that fails.
    """

    def __init__(
        self,
        database: sqlite3.Connection,
        reading: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._db = database
        self.reading = reading

    # Reading how the shelf was before ``commit``

    def get(self, key: Key, commit: int) -> RecordRow | None:
        """One memory, if it was there."""
        where = f"agent = :agent AND sequence = :sequence AND {_BEFORE}"
        found = self._select(where, agent=key[0], sequence=key[1], commit=commit)
        return next((stored for _, stored in found), None)

    def many(self, agent: str, sequences: Sequence[int], commit: int) -> Iterator[RecordRow]:
        """The memories with these sequence numbers that were there."""
        for start in range(0, len(sequences), 500):
            part = ",".join([str(int(each)) for each in sequences[start : start + 500]])
            where = f"agent = :agent AND sequence IN ({part}) AND {_BEFORE}"
            for _, stored in self._select(where, agent=agent, commit=commit):
                yield stored

    def critical(self, agent: str | None, commit: int) -> Iterator[tuple[str, RecordRow]]:
        """The active critical memories, of all agents or of one: they count for the cap."""
        which = "" if agent is None else "agent = :agent AND "
        return self._select(
            f"{which}tier = 1 AND retention = 0 AND {_BEFORE}", agent=agent, commit=commit
        )

    # Reading how the shelf is now

    def of_agent(
        self, agent: str, retention: int, temperature: int | None, after: int
    ) -> Iterator[RecordRow]:
        """An agent's memories of this retention and temperature that came after a commit."""
        # Indexes name a retention. With a parameter here, SQLite would plan every call anew.
        where = f"agent = :agent AND until IS NULL AND retention = {int(retention)}"
        where += " AND since > :after"
        if temperature is not None:
            where += " AND temperature = :temperature"
        for _, stored in self._select(where, agent=agent, temperature=temperature, after=after):
            yield stored

    def active(self) -> Iterator[tuple[str, RecordRow]]:
        """Every agent and memory that is cold and active, by agent, oldest first."""
        return self._select(f"{_ACTIVE} ORDER BY agent, sequence")

    def all_now(self) -> Iterator[tuple[Any, ...]]:
        """Every row, checked, by agent, oldest first; :meth:`adopt` takes these rows."""
        return self._read(
            "SELECT * FROM shelf WHERE until IS NULL ORDER BY agent, sequence", checked_row
        )

    def due(
        self, tick: int, deleted_before: int, agent: str | None = None
    ) -> Iterator[tuple[str, int, int]]:
        """Agent, sequence number and retention of memories of all agents, or of one.

        They expired by ``tick``, or were deleted by ``deleted_before``.
        """
        which = "" if agent is None else " AND agent = :agent"
        for what in (
            "retention = 0 AND expires_tick < 4611686018427387904 AND expires_tick <= :tick",
            "retention = 2 AND retained_tick <= :deleted_before",
        ):
            yield from self._read(
                "SELECT agent, sequence, retention FROM shelf "  # noqa: S608
                f"WHERE until IS NULL AND {what}{which}",
                _due,
                {"tick": tick, "deleted_before": deleted_before, "agent": agent},
            )

    def counts(self, agent: str | None = None) -> dict[Group, tuple[int, int]]:
        """The number of memories and of their tokens, by group."""
        which = "" if agent is None else "AND agent = :agent "
        return dict(
            self._read(
                "SELECT agent, retention, temperature, tier, count(*), sum(tokens) FROM shelf "  # noqa: S608
                f"WHERE until IS NULL {which}GROUP BY agent, retention, temperature, tier",
                _count,
                {"agent": agent},
            )
        )

    def sum_of(self, agent: str) -> int | None:
        """The sum of the hashes over an agent's memories; None if the indexes do not agree."""

        def read(columns: str, index: str, make: Callable[[Sequence[Any]], _Made]) -> list[_Made]:
            query = f"SELECT {columns} FROM shelf INDEXED BY {index} "  # noqa: S608
            return list(self._read(query + "WHERE agent = ? AND until IS NULL", make, (agent,)))

        # The index has these columns itself, and finds memories by them.
        groups = "retention, temperature, tier, tokens"
        by_group, by_version = (
            Counter(read(groups, index, tuple)) for index in ("shelf_now", "shelf_versions")
        )
        total, again = (
            sum(read("digest", index, _digest)) for index in ("shelf_now", "shelf_versions")
        )
        return total if total == again and by_group == by_version else None

    def cold(self, agent: str) -> Iterator[ColdFact]:
        """What rules look at of an agent's cold and active memories: no texts, no vectors."""
        return self._read(
            "SELECT sequence, tier, created_tick, access_count, last_access_tick, relevance, "  # noqa: S608
            f"recalls, traits FROM shelf WHERE agent = ? AND {_ACTIVE}",
            _cold_fact,
            (agent,),
        )

    def digests(self, agent: str) -> Iterator[tuple[int, bytes, int, int]]:
        """Sequence number, hash, retention and temperature of an agent's memories."""
        return self._read(
            "SELECT sequence, digest, retention, temperature FROM shelf "
            "WHERE agent = ? AND until IS NULL",
            _listed,
            (agent,),
        )

    def with_metadata(self, agent: str, text: str) -> list[int]:
        """The memories of an agent, whatever their retention, whose metadata has this JSON text."""
        return list(
            self._read(
                "SELECT sequence FROM shelf WHERE agent = ? AND until IS NULL "
                "AND instr(metadata, ?)",
                _sequence,
                (agent, text),
            )
        )

    def in_sessions(self, agent: str, session: str | None) -> Iterator[SessionFact]:
        """An agent's memories that may be part of a session; of any, if it is None."""
        where, values = "instr(metadata, ?) AND NOT instr(metadata, ?)", [agent, _entry(SESSION)]
        values.append(_entry(SESSION) + "null")
        if session is not None:  # a text is the name itself; a number is compared later
            where += " AND (instr(metadata, ?) OR NOT instr(metadata, ?))"
            values += [_entry(SESSION, session), _entry(SESSION) + '"']
        return self._read(
            "SELECT sequence, retention, temperature, tier, tokens, metadata FROM shelf "  # noqa: S608
            f"WHERE agent = ? AND until IS NULL AND {where}",
            _session_fact,
            values,
        )

    def texts(self, agent: str) -> Iterator[tuple[int, str]]:
        """Sequence number and text of an agent's cold and active memories."""
        query = f"SELECT sequence, content FROM shelf WHERE agent = ? AND {_ACTIVE}"  # noqa: S608
        return self._read(query, _text, (agent,))

    def _select(self, where: str, **values: object) -> Iterator[tuple[str, RecordRow]]:
        query = f"SELECT * FROM shelf WHERE {where}"  # noqa: S608
        return self._read(query, lambda row: (row[0], stored_in(row)), values)

    def _read(
        self,
        query: str,
        make: Callable[[Sequence[Any]], _Made],
        values: Mapping[str, object] | Sequence[object] = (),
    ) -> Generator[_Made, None, None]:
        """What ``make`` makes of each row. Every read of the table comes through here."""
        with self.reading():
            yield from map(make, self._db.execute(query, values))

    # Writing

    def write(self, commit: int, changes: Changes) -> None:
        """Write what a commit changes."""
        for (agent, sequence), digest in changes.ended.items():
            where = "agent = ? AND sequence = ? AND until IS NULL"
            query = f"SELECT rowid, since FROM shelf WHERE {where}"  # noqa: S608
            row = next(self._read(query, _begun, (agent, sequence)), None)
            if row is None:
                raise BankDamaged(f"the journal has lost memory {sequence} of {agent}")
            self._db.execute(
                "UPDATE shelf SET until = ?, seal = ? WHERE rowid = ?",
                (commit, seal_of(row[1], commit, digest), row[0]),
            )
        self.adopt(_rows(commit, changes))

    def adopt(self, rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows, each a tuple of all columns."""
        marks = ",".join("?" * 22)
        self._db.executemany(f"INSERT INTO shelf VALUES ({marks})", rows)  # noqa: S608

    def rewind(self, commit: int) -> None:
        """Bring the table back to how it was after a commit."""
        self._db.execute("DELETE FROM shelf WHERE since > ?", (commit,))
        query = "SELECT rowid, since, digest FROM shelf WHERE until > ?"
        reopened = self._read(query, lambda row: (seal_of(row[1], None, row[2]), row[0]), (commit,))
        for each in list(reopened):
            self._db.execute("UPDATE shelf SET until = NULL, seal = ? WHERE rowid = ?", each)

    def forget_versions(self, commit: int) -> None:
        """Delete the versions that ended by a commit."""
        self._db.execute("DELETE FROM shelf WHERE until <= ?", (commit,))

    def purge(self, agent: str, sequences: Collection[int]) -> None:
        """Delete every version of these memories."""
        self._db.executemany(
            "DELETE FROM shelf WHERE agent = ? AND sequence = ?",
            [(agent, sequence) for sequence in sequences],
        )

    def clear(self) -> None:
        """Delete every row."""
        self._db.execute("DELETE FROM shelf")


def _rows(commit: int, changes: Changes) -> Iterator[tuple[Any, ...]]:
    """The rows of the memories that a commit puts there."""
    tokens = iter(changes.tokens)
    for agent, own in changes.now.items():
        for stored in own.values():
            if stored is None:
                continue
            record, digest = stored
            recalls, kinds, metadata, content, vector = record[11:]
            yield (
                agent, record[0], commit, None, seal_of(commit, None, digest), digest,
                next(tokens), *record[1:11],
                json.dumps(recalls) if recalls else None,
                kinds.json if kinds else None,
                metadata.json if metadata else None,
                content, vector,
            )  # fmt: skip


def stored_in(row: Sequence[Any]) -> RecordRow:
    """The memory in a row, checked."""
    agent, sequence, since, until, seal, digest, _tokens, *numbers = row[:17]
    recalls, kinds, metadata, content, vector = row[17:]
    try:
        record = Record._make(
            (
                sequence,
                *numbers,
                tuple(json.loads(recalls)) if recalls else (),
                traits_of(kinds) if kinds else None,
                KeptMetadata(json.loads(metadata)) if metadata else None,
                content,
                vector,
            )
        )
        is_whole = digest == digests_of(agent, [record])[0] and seal == seal_of(
            since, until, digest
        )
    except (ValueError, TypeError, AttributeError, struct.error):  # a value of another type
        is_whole = False
    if not is_whole:
        raise BankDamaged(
            f"what the journal keeps of memory {sequence} of {agent} is not what was written; "
            "nothing was changed",
        )
    return RecordRow(record, digest)


def checked_row(row: Sequence[Any]) -> tuple[Any, ...]:
    """The row; :class:`BankDamaged` if it is not what was written."""
    stored_in(row)
    return tuple(row)


def _cold_fact(row: Sequence[Any]) -> ColdFact:
    _check_types(row[:6], int, int, int, int, int, float)
    recalls, kinds = row[6:]
    recalled = len(json.loads(recalls)) if recalls else 0
    return ColdFact._make((*row[:6], recalled, traits_of(kinds) if kinds else None))


def _session_fact(row: Sequence[Any]) -> SessionFact:
    _check_types(row, int, int, int, int, int, str)
    return SessionFact._make((*row[:5], str(session_of(json.loads(row[5])))))


def _entry(name: str, *value: str) -> str:
    """How the JSON of metadata begins an entry with this name; with a text, all of the entry.

    Inside a text, quotation marks are escaped: only a name and its value can match.
    """
    text = json.dumps({name: "".join(value)}, ensure_ascii=False, separators=(",", ":"))[1:-1]
    return text if value else text[:-2]


def _due(row: Sequence[Any]) -> tuple[str, int, int]:
    _check_types(row, str, int, int)
    return row[0], row[1], row[2]


def _count(row: Sequence[Any]) -> tuple[Group, tuple[int, int]]:
    _check_types(row, str, int, int, int, int, int)
    agent, retention, temperature, tier, number, tokens = row
    if not (0 <= retention <= 2 and 0 <= temperature <= 2 and 0 <= tier <= 4):
        raise ValueError(f"no memory is like {row!r:.100}")
    return (agent, retention, temperature, tier), (number, tokens)


def _sequence(row: Sequence[Any]) -> int:
    _check_types(row, int)
    return int(row[0])


def _text(row: Sequence[Any]) -> tuple[int, str]:
    _check_types(row, int, str)
    return row[0], row[1]


def _listed(row: Sequence[Any]) -> tuple[int, bytes, int, int]:
    _check_types(row, int, bytes, int, int)
    return row[0], row[1], row[2], row[3]


def _digest(row: Sequence[Any]) -> int:
    _check_types(row, bytes)
    return int.from_bytes(row[0], "big")


def _begun(row: Sequence[Any]) -> tuple[int, int]:
    _check_types(row, int, int)
    return row[0], row[1]


def _check_types(row: Sequence[Any], *types: type) -> None:
    """Raise TypeError for other types: a flipped bit can turn a number into a text."""
    if tuple(map(type, row)) != types:
        raise TypeError(f"a row of the shelf has values of other types: {row!r:.100}")


def seal_of(since: int, until: int | None, digest: bytes) -> int:
    """A checksum against flipped bits; it is none against a forger."""
    return zlib.crc32(b"%d %d" % (since, until or 0), zlib.crc32(digest))


class Listing:
    """The hashes over the memories of one agent that are not resident."""

    __slots__ = ("changed", "cold", "others", "total")

    def __init__(self) -> None:
        self.cold: dict[int, bytes] = {}
        """The hash over each cold memory, by sequence number."""
        self.others: dict[int, bytes] = {}
        """The hash over each memory that is archived or deleted."""
        self.total = 0
        """The sum of all hashes."""
        self.changed: set[int] | None = set()
        """The memories that came, changed or left since somebody looked; None: all may have."""

    def put(self, stored: RecordRow) -> None:
        """A memory comes, or another version of it."""
        record = stored.record
        self.leave(record.sequence)
        is_cold = [record.retention, record.temperature] == _COLD
        self.take_in(record.sequence, stored.digest, is_cold=is_cold)

    def take_in(self, sequence: int, digest: bytes, *, is_cold: bool) -> None:
        """A memory comes that was not here."""
        (self.cold if is_cold else self.others)[sequence] = digest
        self._count(sequence, int.from_bytes(digest, "big"))

    def leave(self, sequence: int) -> None:
        """A memory leaves, if it is here."""
        digest = self.cold.pop(sequence, None) or self.others.pop(sequence, None)
        if digest is not None:
            self._count(sequence, -int.from_bytes(digest, "big"))

    def _count(self, sequence: int, change: int) -> None:
        self.total = (self.total + change) % _MODULUS
        if self.changed is not None:
            self.changed.add(sequence)


class Shelf:
    """The memories that are not resident, as of the commit that is being made or replayed."""

    def __init__(self, table: ShelfTable, commit: int) -> None:
        self.table = table
        self.commit = commit
        """The commit that the pending changes belong to; the table is read as it was before it."""
        self.count_tokens: TokenCounter = approximate_tokens
        self.pending: dict[str, dict[int, RecordRow | None]] = {}
        """By agent and sequence number, the memories that the commit puts here; None for a memory
        that it takes away."""
        self._ended: dict[Key, bytes] = {}
        """The digests of the versions in the table that the commit ends."""
        self._checked: set[str] = set()
        self._listings: dict[str, Listing] = {}
        """Of the agents that somebody looks at."""

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
        if found is None or (found - total) % _MODULUS:
            raise BankDamaged(
                f"the journal has lost memories of {agent} that are not resident; "
                "nothing was changed"
            )
        self._checked.add(agent)

    def get(self, key: Key) -> RecordRow | None:
        """One memory, if it is here."""
        agent, sequence = key
        pending = self._pending_of(agent)
        if sequence in pending:
            return pending[sequence]
        return self.table.get(key, self.commit)

    def _pending_of(self, agent: str) -> Mapping[int, RecordRow | None]:
        return self.pending.get(agent, _NOTHING)

    def many(self, agent: str, sequences: Collection[int]) -> list[RecordRow]:
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
    ) -> list[Record]:
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

    def unsynced(self, agent: str, commit: int) -> list[Record]:
        """An agent's cold memories that came after a commit."""
        return self.of_agent(agent, Retention.ACTIVE, Temperature.COLD, commit)

    def _waiting(
        self, agent: str, retention: Retention, temperature: Temperature | None
    ) -> list[Record]:
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

    def listing(self, agent: str, total: int) -> "Listing":
        """The hashes over an agent's memories, kept up to date until :meth:`forget_listing`.

        ``total`` is the sum of the hashes. A listing that does not sum to it, as after a rollback,
        is made anew.
        """
        known = self._listings.get(agent)
        if known is not None and known.total == total % _MODULUS:
            return known
        listing, pending = Listing(), self._pending_of(agent)
        for each, digest, *axes in self.table.digests(agent):
            if each not in pending:
                listing.take_in(each, digest, is_cold=axes == _COLD)
        for stored in pending.values():
            if stored is not None:
                listing.put(stored)
        listing.changed = None
        self._listings[agent] = listing
        return listing

    def forget_listing(self, agent: str) -> None:
        """Nobody looks at the listing of this agent any more."""
        self._listings.pop(agent, None)

    def with_value(self, agent: str, name: str, value: str) -> list[Record]:
        """An agent's memories, whatever their retention, whose metadata has this value."""
        pending = self._pending_of(agent)
        numbers = self.table.with_metadata(agent, _entry(name, value))
        stored = [each for each in numbers if each not in pending]
        found = [each.record for each in self.many(agent, stored)]
        found += [
            each.record
            for each in pending.values()
            if each is not None
            and each.record.metadata is not None
            and each.record.metadata.get(name) == value
        ]
        return sorted(found, key=_by_sequence)

    def in_sessions(self, agent: str, session: str | None = None) -> list[SessionFact]:
        """An agent's memories of a session, or of any, whatever their retention, oldest first."""
        pending = self._pending_of(agent)
        facts = [
            fact for fact in self.table.in_sessions(agent, session) if fact.sequence not in pending
        ]
        for stored in pending.values():
            if stored is not None and (name := session_of(stored.record.metadata)) is not None:
                each, tokens = stored.record, self.count_tokens(stored.record.content)
                kept = each.sequence, each.retention, each.temperature, each.tier
                facts.append(SessionFact(*kept, tokens, name))
        return sorted([fact for fact in facts if session in (None, fact.session)], key=_by_sequence)

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

        def count(owner: str, stored: RecordRow | None, sign: int) -> None:
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

    def put(self, agent: str, records: Sequence[Record]) -> int:
        """Memories come here; the sum of the hashes over them."""
        digests = digests_of(agent, records)
        stored = map(tuple.__new__, repeat(RecordRow), zip(records, digests, strict=True))
        sequences = [record[0] for record in records]
        rows = dict(zip(sequences, stored, strict=True))
        self.pending.setdefault(agent, {}).update(rows)
        if (listing := self._listings.get(agent)) is not None:
            for row in rows.values():
                listing.put(row)
        return sum([int.from_bytes(digest, "big") for digest in digests])

    def take(self, agent: str, sequence: int) -> RecordRow | None:
        """A memory leaves, if it is here."""
        key = (agent, sequence)
        stored = self.get(key)
        if stored is None:
            return None
        pending = self.pending.setdefault(agent, {})
        if sequence not in pending:
            self._ended[key] = stored.digest
        pending[sequence] = None
        if (listing := self._listings.get(agent)) is not None:
            listing.leave(sequence)
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
