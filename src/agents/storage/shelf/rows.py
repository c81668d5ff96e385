"""The journal's table of memories that are not resident.

A row is one memory as it was from one commit to another. So going back to a commit brings its
state back, and a memory that returns to the columns is found as it was when it left. Versions that
ended before the last snapshot are deleted: nothing needs them any more.
"""

import json
import sqlite3
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...errors import BankDamaged
from ...memory.context import TokenCounter
from ...memory.metadata import KeptMetadata
from ..digests import of_shelved
from ..full_record import ColdFact, Shelved, Stored, traits_of

__all__ = ["SHELF_SCHEMA", "Changes", "ColdFact", "Group", "Key", "ShelfTable", "Stored"]

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
    relevance REAL NOT NULL,
    recalls TEXT,
    traits TEXT,
    metadata TEXT,
    content TEXT NOT NULL,
    vector BLOB NOT NULL
);
CREATE UNIQUE INDEX shelf_versions ON shelf (agent, sequence, since);
-- For counting: small, and all that is needed.
CREATE INDEX shelf_now ON shelf (agent, retention, temperature, tier, tokens) WHERE until IS NULL;
CREATE INDEX shelf_critical ON shelf (agent) WHERE tier = 1;
-- Each twice: a tick asks for all agents, a count or a compaction for one.
CREATE INDEX shelf_expiring ON shelf (expires_tick)
    WHERE until IS NULL AND retention = 0 AND expires_tick < 4611686018427387904;
CREATE INDEX shelf_expiring_of ON shelf (agent, expires_tick)
    WHERE until IS NULL AND retention = 0 AND expires_tick < 4611686018427387904;
CREATE INDEX shelf_deleted ON shelf (retained_tick) WHERE until IS NULL AND retention = 2;
CREATE INDEX shelf_deleted_of ON shelf (agent, retained_tick)
    WHERE until IS NULL AND retention = 2;
CREATE INDEX shelf_ended ON shelf (until) WHERE until IS NOT NULL;
"""

_FIELDS = (
    "agent, sequence, since, until, seal, digest, tier, temperature, retention, retained_tick, "
    "created_tick, tier_tick, expires_tick, access_count, last_access_tick, relevance, recalls, "
    "traits, metadata, content, vector"
)
_BEFORE = "since < :commit AND (until IS NULL OR until >= :commit)"
"""The versions that a commit finds."""

Key = tuple[str, int]
"""Agent and sequence number."""
Group = tuple[str, int, int, int]
"""Agent, retention, temperature and tier."""


class Changes(NamedTuple):
    """What a commit does to the shelf."""

    ended: Mapping[Key, bytes]
    """The digests of the versions that end."""
    now: Mapping[str, Mapping[int, Stored | None]]
    """What it leaves there, by agent and sequence number; None for what it takes away."""
    count_tokens: TokenCounter

    def __bool__(self) -> bool:
        return bool(self.now)


class ShelfTable:
    """Reads and writes the table; transactions are the journal's."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._db = database

    # Reading. ``commit`` says when: what that commit found.

    def get(self, key: Key, commit: int) -> Stored | None:
        """One memory."""
        found = self._select(
            f"agent = :agent AND sequence = :sequence AND {_BEFORE}",
            agent=key[0], sequence=key[1], commit=commit,
        )  # fmt: skip
        return next((stored for _, stored in found), None)

    def many(self, agent: str, sequences: Sequence[int], commit: int) -> Iterator[Stored]:
        """Those of these memories that are on the shelf."""
        for start in range(0, len(sequences), 500):
            part = [int(each) for each in sequences[start : start + 500]]
            for _, stored in self._select(
                f"agent = :agent AND sequence IN ({','.join(map(str, part))}) AND {_BEFORE}",
                agent=agent, commit=commit,
            ):  # fmt: skip
                yield stored

    def critical(self, agent: str | None, commit: int) -> Iterator[tuple[str, Stored]]:
        """The active critical ones, of all agents or of one: they count for the cap."""
        which = "" if agent is None else "agent = :agent AND "
        return self._select(
            f"{which}tier = 1 AND retention = 0 AND {_BEFORE}", agent=agent, commit=commit
        )

    # Reading what is there now.

    def of_agent(self, agent: str, retention: int, temperature: int | None) -> Iterator[Stored]:
        """An agent's memories with this retention and temperature, oldest first."""
        which = "" if temperature is None else " AND temperature = :temperature"
        for _, stored in self._select(
            f"agent = :agent AND until IS NULL AND retention = :retention{which}",
            "ORDER BY sequence",
            agent=agent, retention=retention, temperature=temperature,
        ):  # fmt: skip
            yield stored

    def active(self) -> Iterator[tuple[str, Stored]]:
        """All that is cold and active, by agent, oldest first."""
        return self._select("until IS NULL AND retention = 0", "ORDER BY agent, sequence")

    def all_now(self) -> Iterator[tuple[Any, ...]]:
        """All that is there, by agent, oldest first, as rows that :meth:`adopt` takes; checked."""
        columns = _FIELDS.replace("tier,", "tokens, tier,", 1)
        for row in self._db.execute(
            f"SELECT {columns} FROM shelf WHERE until IS NULL ORDER BY agent, sequence"  # noqa: S608
        ):
            _stored(row[:6] + row[7:])
            yield row

    def newer(self, agent: str, commit: int) -> Iterator[Stored]:
        """An agent's cold and active memories that came after a commit."""
        for _, stored in self._select(
            "agent = :agent AND until IS NULL AND retention = 0 AND since > :commit",
            agent=agent, commit=commit,
        ):  # fmt: skip
            yield stored

    def due(
        self, tick: int, deleted_before: int, agent: str | None = None
    ) -> Iterator[tuple[str, int, int]]:
        """Agent, sequence and retention of what expired by ``tick``, or was deleted so long ago.

        Of all agents, or of one.
        """
        which = "" if agent is None else " AND agent = :agent"
        for what in (
            "retention = 0 AND expires_tick < 4611686018427387904 AND expires_tick <= :tick",
            "retention = 2 AND retained_tick <= :deleted_before",
        ):
            yield from self._db.execute(
                "SELECT agent, sequence, retention FROM shelf "  # noqa: S608
                f"WHERE until IS NULL AND {what}{which}",
                {"tick": tick, "deleted_before": deleted_before, "agent": agent},
            )

    def counts(self, agent: str | None = None) -> dict[Group, tuple[int, int]]:
        """How many there are and how many tokens, by agent, retention, temperature and tier."""
        which = "" if agent is None else "AND agent = :agent "
        rows = self._db.execute(
            "SELECT agent, retention, temperature, tier, count(*), sum(tokens) FROM shelf "  # noqa: S608
            f"WHERE until IS NULL {which}GROUP BY agent, retention, temperature, tier",
            {"agent": agent},
        )
        return {row[:4]: row[4:] for row in rows}

    def cold(self, agent: str) -> Iterator[ColdFact]:
        """All that is cold and active, without texts and vectors, so of many at once."""
        for sequence, tier, created, count, last, relevance, recalls, kinds in self._db.execute(
            "SELECT sequence, tier, created_tick, access_count, last_access_tick, relevance, "
            "recalls, traits FROM shelf WHERE agent = ? AND until IS NULL AND retention = 0",
            (agent,),
        ):
            recalled = len(json.loads(recalls)) if recalls else 0
            own = traits_of(kinds) if kinds else None
            yield ColdFact(sequence, tier, created, count, last, relevance, recalled, own)

    def with_words(self, agent: str, words: Sequence[str], most: int) -> list[int]:
        """The newest of an agent's cold and active memories whose text has one of these words."""
        patterns = [f"%{_literal(word)}%" for word in words]
        found = " OR ".join(["content LIKE ? ESCAPE '\\'"] * len(patterns))
        rows = self._db.execute(
            "SELECT sequence FROM shelf WHERE agent = ? AND until IS NULL AND retention = 0 "  # noqa: S608
            f"AND temperature = 2 AND ({found}) ORDER BY sequence DESC LIMIT ?",
            (agent, *patterns, most),
        )
        return [sequence for (sequence,) in rows]

    def _select(
        self, where: str, order: str = "", **values: object
    ) -> Iterator[tuple[str, Stored]]:
        for row in self._db.execute(f"SELECT {_FIELDS} FROM shelf WHERE {where} {order}", values):  # noqa: S608
            yield row[0], _stored(row)

    # Writing

    def write(self, commit: int, changes: Changes) -> None:
        """What a commit changes."""
        for (agent, sequence), digest in changes.ended.items():
            row = self._db.execute(
                "SELECT rowid, since FROM shelf WHERE agent = ? AND sequence = ? AND until IS NULL",
                (agent, sequence),
            ).fetchone()
            if row is None:
                raise BankDamaged(f"the journal has lost memory {sequence} of {agent}")
            self._db.execute(
                "UPDATE shelf SET until = ?, seal = ? WHERE rowid = ?",
                (commit, _seal(row[1], commit, digest), row[0]),
            )
        self.adopt(_rows(commit, changes))

    def adopt(self, rows: Iterable[Sequence[Any]]) -> None:
        """Take over rows, each a tuple of all columns."""
        marks = ",".join("?" * 22)
        self._db.executemany(f"INSERT INTO shelf VALUES ({marks})", rows)  # noqa: S608

    def rewind(self, commit: int) -> None:
        """Forget what came after a commit."""
        self._db.execute("DELETE FROM shelf WHERE since > ?", (commit,))
        for number, since, digest in self._db.execute(
            "SELECT rowid, since, digest FROM shelf WHERE until > ?", (commit,)
        ).fetchall():
            self._db.execute(
                "UPDATE shelf SET until = NULL, seal = ? WHERE rowid = ?",
                (_seal(since, None, digest), number),
            )

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
        """Delete all."""
        self._db.execute("DELETE FROM shelf")


def _rows(commit: int, changes: Changes) -> Iterator[tuple[Any, ...]]:
    """The rows of what a commit puts there."""
    count_tokens, crc32, period = changes.count_tokens, zlib.crc32, _period(commit, None)
    for agent, own in changes.now.items():
        for stored in own.values():
            if stored is None:
                continue
            record, digest = stored
            recalls, kinds, metadata, content, vector = record[11:]
            yield (
                agent, record[0], commit, None, crc32(period, crc32(digest)), digest,
                count_tokens(content), *record[1:11],
                json.dumps(recalls) if recalls else None,
                kinds.json if kinds else None,
                metadata.json if metadata else None,
                content, vector,
            )  # fmt: skip


def _stored(row: Sequence[Any]) -> Stored:
    """The memory in a row that was selected as ``_FIELDS``, checked."""
    agent, sequence, since, until, seal, digest, *numbers = row[:16]
    recalls, kinds, metadata, content, vector = row[16:]
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
        is_whole = digest == of_shelved(agent, record) and seal == _seal(since, until, digest)
    except (ValueError, TypeError, AttributeError, struct.error):  # a value of another type
        is_whole = False
    if not is_whole:
        raise BankDamaged(
            f"what the journal keeps of memory {sequence} of {agent} is not what was written; "
            "nothing was changed",
            hint="restore the bank from a backup",
        )
    return Stored(record, digest)


def _seal(since: int, until: int | None, digest: bytes) -> int:
    """Against flipped bits alone: who forges a row forges this too."""
    return zlib.crc32(_period(since, until), zlib.crc32(digest))


def _period(since: int, until: int | None) -> bytes:
    return b"%d %d" % (since, until or 0)


def _literal(word: str) -> str:
    """A word in which LIKE finds no sign of its own."""
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
