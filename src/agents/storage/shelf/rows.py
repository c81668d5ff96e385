"""The journal's table of memories that are not resident.

A row is one version of a memory: how the memory was from one commit to another. Going back to a
commit finds the version of that time. Versions that ended before the last snapshot are deleted,
because nothing can go back to them.
"""

import json
import sqlite3
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeVar

from ...errors import BankDamaged
from ...memory.metadata import KeptMetadata
from ..digests import of_shelved
from ..full_record import ColdFact, Shelved, Stored, traits_of

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
_MOST_LIKES = 8
"""How many patterns SQLite compares; each takes a fifth of the time that reading a text takes."""

_Made = TypeVar("_Made")

Key = tuple[str, int]
"""Agent and sequence number."""
Group = tuple[str, int, int, int]
"""Agent, retention, temperature and tier."""


class Changes(NamedTuple):
    """What a commit does to the shelf."""

    ended: Mapping[Key, bytes]
    """The digests of the versions that end."""
    now: Mapping[str, Mapping[int, Stored | None]]
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

    def get(self, key: Key, commit: int) -> Stored | None:
        """One memory, if it was there."""
        where = f"agent = :agent AND sequence = :sequence AND {_BEFORE}"
        found = self._select(where, agent=key[0], sequence=key[1], commit=commit)
        return next((stored for _, stored in found), None)

    def many(self, agent: str, sequences: Sequence[int], commit: int) -> Iterator[Stored]:
        """The memories with these sequence numbers that were there."""
        for start in range(0, len(sequences), 500):
            part = ",".join([str(int(each)) for each in sequences[start : start + 500]])
            where = f"agent = :agent AND sequence IN ({part}) AND {_BEFORE}"
            for _, stored in self._select(where, agent=agent, commit=commit):
                yield stored

    def critical(self, agent: str | None, commit: int) -> Iterator[tuple[str, Stored]]:
        """The active critical memories, of all agents or of one: they count for the cap."""
        which = "" if agent is None else "agent = :agent AND "
        return self._select(
            f"{which}tier = 1 AND retention = 0 AND {_BEFORE}", agent=agent, commit=commit
        )

    # Reading how the shelf is now

    def of_agent(
        self, agent: str, retention: int, temperature: int | None, after: int
    ) -> Iterator[Stored]:
        """An agent's memories of this retention and temperature that came after a commit."""
        # Indexes name a retention. With a parameter here, SQLite would plan every call anew.
        where = f"agent = :agent AND until IS NULL AND retention = {int(retention)}"
        where += " AND since > :after"
        if temperature is not None:
            where += " AND temperature = :temperature"
        for _, stored in self._select(where, agent=agent, temperature=temperature, after=after):
            yield stored

    def active(self) -> Iterator[tuple[str, Stored]]:
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

    def with_roots(
        self, agent: str, roots: Sequence[str], before: int
    ) -> Generator[tuple[int, str], None, None]:
        """Cold memories of an agent, newest first, whose text may have the root of a term.

        SQLite compares texts of ASCII without apostrophes; any other has to be looked at, and all
        texts if there are many roots.
        """
        likes = [f"%{_literal(each)}%" for each in roots] if len(roots) <= _MOST_LIKES else []
        may_have = " OR ".join(["content LIKE ? ESCAPE '\\'"] * len(likes)) or "TRUE"
        return self._read(
            f"SELECT sequence, content FROM shelf WHERE agent = ? AND sequence < ? AND {_ACTIVE} "  # noqa: S608
            f"AND temperature = 2 AND ({may_have} OR instr(content, char(39)) "
            "OR length(content) < length(CAST(content AS BLOB))) ORDER BY sequence DESC",
            _text,
            (agent, before, *likes),
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

    def texts(self, agent: str) -> Iterator[tuple[int, str]]:
        """Sequence number and text of an agent's cold and active memories."""
        query = f"SELECT sequence, content FROM shelf WHERE agent = ? AND {_ACTIVE}"  # noqa: S608
        return self._read(query, _text, (agent,))

    def _select(self, where: str, **values: object) -> Iterator[tuple[str, Stored]]:
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


def stored_in(row: Sequence[Any]) -> Stored:
    """The memory in a row, checked."""
    agent, sequence, since, until, seal, digest, _tokens, *numbers = row[:17]
    recalls, kinds, metadata, content, vector = row[17:]
    try:
        record = Shelved._make(
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
        is_whole = digest == of_shelved(agent, record) and seal == seal_of(since, until, digest)
    except (ValueError, TypeError, AttributeError, struct.error):  # a value of another type
        is_whole = False
    if not is_whole:
        raise BankDamaged(
            f"what the journal keeps of memory {sequence} of {agent} is not what was written; "
            "nothing was changed",
        )
    return Stored(record, digest)


def checked_row(row: Sequence[Any]) -> tuple[Any, ...]:
    """The row; :class:`BankDamaged` if it is not what was written."""
    stored_in(row)
    return tuple(row)


def _cold_fact(row: Sequence[Any]) -> ColdFact:
    _check_types(row[:6], int, int, int, int, int, float)
    recalls, kinds = row[6:]
    recalled = len(json.loads(recalls)) if recalls else 0
    return ColdFact._make((*row[:6], recalled, traits_of(kinds) if kinds else None))


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


def _literal(text: str) -> str:
    """The text, with the signs escaped that have a meaning for LIKE."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
