"""The journal's tables of memories that became cold together: packs.

A pack holds versions of many memories that all began with one commit. It does not change; what
leaves it is noted beside it, with the commit that took it away, and is a row of the shelf from
then on, if it is on the shelf at all. So a small row per pack says what is there now, and the large
one with the memories is read only by who wants one of them.
"""

import hashlib
import heapq
import sqlite3
import struct
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import BankDamaged
from ...memory.context import TokenCounter
from ...memory.retention import Retention
from ...memory.temperature import Temperature
from ..digests import of_shelved
from ..full_record import ColdFact, Stored
from ..sqlite import is_of_the_system
from .pack import WIDEST, Pack

__all__ = ["PACKS_SCHEMA", "Group", "Member", "ShelfPacks"]

Group = tuple[str, int, int, int]
"""Agent, retention, temperature and tier."""

PACKS_SCHEMA = """
CREATE TABLE shelf_packs (
    id INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    first INTEGER NOT NULL,    -- the lowest sequence number
    last INTEGER NOT NULL,     -- the highest
    since INTEGER NOT NULL,    -- the commit that put all of them there
    ended INTEGER NOT NULL,    -- the last commit that took one away, or 0
    amounts BLOB NOT NULL,     -- int64: tier, how many there are now, their tokens
    gone BLOB NOT NULL,        -- int64: sequence number and commit of each that was taken away
    body BLOB NOT NULL,        -- the hash over the other table's row, but for the vectors
    seal BLOB NOT NULL         -- the hash over all of these
);
CREATE INDEX shelf_packs_places ON shelf_packs (agent, first, last);
CREATE TABLE shelf_bodies (
    id INTEGER PRIMARY KEY,    -- of the pack
    tokens BLOB NOT NULL,      -- int64
    numbers BLOB NOT NULL,     -- int64: 10 numbers, the relevance, and the length of the text
    digests BLOB NOT NULL,     -- the hash over each memory
    labels BLOB NOT NULL,      -- JSON: kinds and tags, metadata
    texts BLOB NOT NULL,
    vectors BLOB NOT NULL      -- int8, last for who can do without
);
"""

_KEPT = 8
"""Packs that are kept in memory: who reads one memory often reads its neighbours."""
_GONE = struct.Struct("<qq")
_AMOUNT = struct.Struct("<qqq")
_HEADER = (int, str, int, int, int, int, bytes, bytes, bytes, bytes)
_BODY = (bytes,) * 6
"""One bit can make a text of bytes, which have the same hash."""


class _Header(NamedTuple):
    id: int
    agent: str
    first: int
    last: int
    since: int
    ended: int
    amounts: bytes
    gone: bytes
    body: bytes
    seal: bytes

    def when_gone(self) -> dict[int, int]:
        """By sequence number, the commit that took a memory away."""
        return dict(_GONE.iter_unpack(self.gone)) if self.gone else {}


class _Body(NamedTuple):
    pack: Pack
    tokens: NDArray[np.int64]


class Member(NamedTuple):
    """A memory in a pack."""

    agent: str
    since: int
    tokens: int
    stored: Stored


class ShelfPacks:
    """Reads and writes packs; transactions are the journal's.

    All that is in them is cold and active.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._db = database
        self._known: OrderedDict[tuple[int, bytes], _Body] = OrderedDict()
        """By number and hash: a number may be given again."""

    # Reading. ``commit`` says when: what that commit found.

    def get(self, agent: str, sequence: int, commit: int) -> Stored | None:
        """One memory."""
        for header in self._around(agent, sequence):
            if header.since >= commit:
                continue
            pack = self._whole(header).pack
            place = pack.place_of(sequence)
            if place is not None and header.when_gone().get(sequence, commit) >= commit:
                return _checked(pack, place)
        return None

    # Reading what is there now.

    def now(self, agent: str | None = None, after: int = -1) -> Iterator[Member]:
        """All of all agents or of one that came after a commit, by agent, oldest first."""
        heap: list[tuple[str, int, int, Member, Iterator[Member]]] = []

        def advance(number: int, members: Iterator[Member]) -> None:
            for member in members:
                sequence = member.stored.record.sequence
                heapq.heappush(heap, (member.agent, sequence, number, member, members))
                return

        # Packs may overlap: each is opened when its first memory is the next at the earliest.
        for header in self._headers(agent, "since > :after ORDER BY agent, first", after=after):
            while heap and heap[0][:2] < (header.agent, header.first):
                _, _, number, member, members = heapq.heappop(heap)
                yield member
                advance(number, members)
            advance(header.id, self._members(header))
        while heap:
            _, _, number, member, members = heapq.heappop(heap)
            yield member
            advance(number, members)

    def _members(self, header: _Header) -> Iterator[Member]:
        pack, tokens = self._body(header)
        gone = header.when_gone()
        for place, sequence in enumerate(pack.sequences):
            if sequence not in gone:
                stored = _checked(pack, place)
                yield Member(header.agent, header.since, tokens.item(place), stored)

    def counts(self, agent: str | None) -> Iterator[tuple[Group, tuple[int, int]]]:
        """How many there are and how many tokens; a group may come more than once."""
        for header in self._headers(agent):
            for tier, items, tokens in _AMOUNT.iter_unpack(header.amounts):
                yield (header.agent, Retention.ACTIVE, Temperature.COLD, tier), (items, tokens)

    def cold(self, agent: str) -> Iterator[ColdFact]:
        """What rules look at."""
        for header in self._headers(agent):
            yield from self._body(header, vectors=False).pack.facts(header.when_gone())

    def with_words(self, agent: str, words: Sequence[str], most: int) -> list[int]:
        """The newest whose text has one of these words, as SQLite's LIKE compares."""
        wanted = [word.encode().lower() for word in words]  # of bytes, ASCII alone
        found: list[int] = []
        for header in sorted(self._headers(agent), key=lambda each: -each.last):
            if len(found) >= most and (not most or found[most - 1] > header.last):
                break
            pack, gone = self._body(header, vectors=False).pack, header.when_gone()
            found += [
                sequence
                for sequence, text in zip(pack.sequences, map(bytes.lower, pack.texts), strict=True)
                if sequence not in gone and any(word in text for word in wanted)
            ]
            found.sort(reverse=True)
        return found[:most]

    # Writing

    def write(self, commit: int, packs: Iterable[Pack], count_tokens: TokenCounter) -> None:
        """Packs that a commit puts there."""
        (last,) = self._db.execute("SELECT coalesce(max(id), 0) FROM shelf_packs").fetchone()
        for number, pack in enumerate(packs, last + 1):
            tokens = [count_tokens(text.decode()) for text in pack.texts]
            body = _Body(pack, np.array(tokens, "<i8"))
            self._save(number, commit, body, {}, self._save_body(number, body))

    def end(self, commit: int, agent: str, sequences: Collection[int]) -> None:
        """A commit takes memories away, which are in packs."""
        waiting = set(sequences)
        for sequence in sorted(sequences):
            if sequence not in waiting:
                continue  # it left together with one before
            for header in self._around(agent, sequence):
                gone, body = header.when_gone(), self._whole(header)
                leaving = waiting.intersection(body.pack.sequences).difference(gone)
                if leaving:
                    gone |= dict.fromkeys(leaving, commit)
                    self._save(header.id, header.since, body, gone, header.body)
                    waiting -= leaving
            if sequence in waiting:
                raise BankDamaged(f"the journal has lost memory {sequence} of {agent}")

    def rewind(self, commit: int) -> None:
        """Forget what came after a commit."""
        for header in self._headers(None, "since > :commit", commit=commit):
            self._delete(header.id)
        for header in self._headers(None, "ended > :commit", commit=commit):
            gone = {key: when for key, when in header.when_gone().items() if when <= commit}
            self._save(header.id, header.since, self._whole(header), gone, header.body)

    def forget_versions(self, commit: int) -> None:
        """Delete what ended by a commit, where that is at least half of a pack."""
        for header in self._headers(None, "ended > 0"):
            gone = header.when_gone()
            over = {key for key, when in gone.items() if when <= commit}
            left = sum(items for _, items, _ in _AMOUNT.iter_unpack(header.amounts))
            if over and 2 * len(over) >= left + len(gone):
                self._rewrite(header, over)

    def purge(self, agent: str, sequences: Iterable[int]) -> None:
        """Delete every version of these memories."""
        packs: dict[int, tuple[_Header, set[int]]] = {}
        for sequence in sequences:
            for header in self._around(agent, sequence):
                if self._whole(header).pack.place_of(sequence) is not None:
                    packs.setdefault(header.id, (header, set()))[1].add(sequence)
        for header, over in packs.values():
            self._rewrite(header, over)

    def clear(self) -> None:
        """Delete all."""
        self._db.execute("DELETE FROM shelf_packs")
        self._db.execute("DELETE FROM shelf_bodies")

    # Inside

    def _headers(self, agent: str | None, where: str = "1", **values: object) -> list[_Header]:
        """The packs of all agents or of one, without their bodies, checked."""
        which = "" if agent is None else "agent = :agent AND "
        rows = self._read(
            f"SELECT * FROM shelf_packs WHERE {which}{where}",  # noqa: S608
            {"agent": agent, **values},
        )
        headers = [_Header(*row) for row in rows]
        for header in headers:
            if tuple(map(type, header)) != _HEADER or _seal(header) != header.seal:
                raise _damaged(header.agent)
        return headers

    def _around(self, agent: str, sequence: int) -> list[_Header]:
        """The packs in which a memory may be, those where it was before as well."""
        where = "first BETWEEN :least AND :sequence AND last >= :sequence"
        least = sequence - WIDEST
        return self._headers(agent, where, sequence=sequence, least=least)

    def _whole(self, header: _Header) -> _Body:
        """What is in a pack, kept for the next who asks."""
        key = (header.id, header.body)
        body = self._known.pop(key, None) or self._body(header)
        self._known[key] = body
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return body

    def _body(self, header: _Header, *, vectors: bool = True) -> _Body:
        what = "vectors" if vectors else "x''"
        rows = self._read(
            f"SELECT tokens, numbers, digests, labels, texts, {what} FROM shelf_bodies "  # noqa: S608
            "WHERE id = :id",
            {"id": header.id},
        )
        row = rows[0] if rows else ()
        if tuple(map(type, row)) != _BODY or _hash(row[:5]) != header.body:
            raise _damaged(header.agent)
        return _Body(Pack.read(header.agent, *row[1:]), np.frombuffer(row[0], "<i8"))

    def _read(self, statement: str, values: Mapping[str, object]) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            if is_of_the_system(error):
                raise
            raise _damaged("an agent") from error  # bytes that a flipped bit made a text

    def _save(
        self, number: int, since: int, body: _Body, gone: Mapping[int, int], digest: bytes
    ) -> None:
        """Write what is said of a pack."""
        pack = body.pack
        here = ~np.isin(pack.sequences, list(gone)) if gone else np.ones(len(pack), bool)
        tiers, tokens = pack.tiers[here], body.tokens[here]
        amounts = [
            _AMOUNT.pack(tier, (tiers == tier).sum(), tokens[tiers == tier].sum())
            for tier in np.unique(tiers).tolist()
        ]
        header = _Header(
            number,
            pack.agent,
            pack.sequences[0],
            pack.sequences[-1],
            since,
            max(gone.values(), default=0),
            b"".join(amounts),
            b"".join([_GONE.pack(*each) for each in sorted(gone.items())]),
            digest,
            b"",
        )
        self._db.execute(
            "REPLACE INTO shelf_packs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            header._replace(seal=_seal(header)),
        )

    def _save_body(self, number: int, body: _Body) -> bytes:
        """Write what is in a pack; the hash over it."""
        row = (body.tokens.tobytes(), *body.pack.parts())
        self._db.execute(
            "REPLACE INTO shelf_bodies VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, *row, body.pack.vectors),
        )
        return _hash(row)

    def _rewrite(self, header: _Header, over: Collection[int]) -> None:
        """Write a pack anew, without some memories."""
        pack, tokens = self._whole(header)
        places = [place for place, each in enumerate(pack.sequences) if each not in over]
        if not places:
            self._delete(header.id)
            return
        gone = {key: when for key, when in header.when_gone().items() if key not in over}
        body = _Body(pack.only(places), tokens[places])
        self._save(header.id, header.since, body, gone, self._save_body(header.id, body))

    def _delete(self, number: int) -> None:
        self._db.execute("DELETE FROM shelf_packs WHERE id = ?", (number,))
        self._db.execute("DELETE FROM shelf_bodies WHERE id = ?", (number,))


def _checked(pack: Pack, place: int) -> Stored:
    """A memory in a pack, checked: the hash over the pack leaves out the vectors."""
    stored = pack.stored(place)
    if of_shelved(pack.agent, stored.record) != stored.digest:
        raise BankDamaged(
            f"what the journal keeps of memory {stored.record.sequence} of {pack.agent} is not "
            "what was written; nothing was changed",
            hint="restore the bank from a backup",
        )
    return stored


def _damaged(agent: str) -> BankDamaged:
    return BankDamaged(
        f"what the journal keeps of cold memories of {agent} is not what was written; "
        "nothing was changed",
        hint="restore the bank from a backup",
    )


def _hash(parts: Iterable[bytes]) -> bytes:
    """The hash over parts, which can't be mistaken for others that are the same in a row."""
    result = hashlib.sha256()
    for part in parts:
        result.update(b"%d " % len(part))
        result.update(part)
    return result.digest()


def _seal(header: _Header) -> bytes:
    numbers = f"{header.id} {header.first} {header.last} {header.since} {header.ended}"
    own = (header.amounts, header.gone, header.body)
    return _hash((numbers.encode(), header.agent.encode(), *own))
