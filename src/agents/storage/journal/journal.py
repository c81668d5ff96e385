"""The journal: every change to a bank, in SQLite. It is the truth; all else is rebuilt from it."""

import hashlib
import json
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import BankDamaged, BankError, CommitFailed, TickNotKept
from ...memory.records import Memory
from ..beside_journal import Found, HeadRecord, doubt, find_records, records_of
from ..embedding import keys_of
from ..interrupts import first
from ..note import is_transcript
from ..shelf import Changes, ShelfTable
from .attachments import Attachment, AttachmentRow, Attachments
from .file import Commit, JournalFile, Snapshot, SnapshotRow, chained

# Taking the text and the vector of a memory out of a journal
#
# The commit that added the memory keeps its hash, so the chain still holds. A second hash covers
# what is left of the commit, so damage still shows.


class Purge(NamedTuple):
    """A memory to be forgotten."""

    agent: str
    sequence: int
    created_tick: int
    content: str


class Redaction(NamedTuple):
    """Memories to be forgotten, and the snapshots of their agents without them."""

    purges: Sequence[Purge]
    snapshots: Sequence[SnapshotRow]


def redacted_digest(commit: Commit) -> bytes:
    """The hash over what is left of a commit."""
    digest = hashlib.sha256(commit.hash)
    digest.update(commit.events.encode())
    digest.update(commit.vectors)
    return digest.digest()


def redact(
    database: sqlite3.Connection,
    shelf: ShelfTable,
    read: Callable[[int], Commit],
    redaction: Redaction,
) -> None:
    """Purge memories from the commits, the snapshots, the shelf and the kept embeddings.

    ``read`` gives a commit, checked. The caller opens and ends the transaction.
    """
    by_commit: dict[int, set[tuple[str, int]]] = {}
    by_agent: dict[str, list[int]] = {}
    for agent, sequence, created, _ in redaction.purges:
        by_agent.setdefault(agent, []).append(sequence)
        # Inside a text, quotation marks are escaped: only the event itself can match.
        with shelf.reading():
            found = database.execute(
                "SELECT id FROM commits WHERE tick >= ? AND instr(events, ?) ORDER BY id LIMIT 1",
                (created, f'["add","{agent}",{sequence},'),
            ).fetchone()
        if found:
            by_commit.setdefault(found[0], set()).add((agent, sequence))
    for number, keys in by_commit.items():
        commit = _without(read(number), keys)
        database.execute(
            "UPDATE commits SET events = ?, vectors = ? WHERE id = ?",
            (commit.events, commit.vectors, number),
        )
        database.execute("REPLACE INTO redactions VALUES (?, ?)", (number, redacted_digest(commit)))
    database.executemany("REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)", redaction.snapshots)
    for agent, sequences in by_agent.items():
        shelf.purge(agent, sequences)
    database.executemany(
        "DELETE FROM embeddings WHERE hash = ?",
        [(key,) for purge in redaction.purges for key in keys_of(purge.content)],
    )


def _without(commit: Commit, keys: set[tuple[str, int]]) -> Commit:
    events = json.loads(commit.events)
    adds = [event for event in events if event[0] == "add"]
    vectors = bytearray(commit.vectors)
    size = len(vectors) // len(adds)
    for place, event in enumerate(adds):
        if (event[1], event[2]) in keys:
            event[4:] = [None, None, None]
            vectors[place * size : (place + 1) * size] = bytes(size)
    text = json.dumps(events, ensure_ascii=False, separators=(",", ":"))
    return commit._replace(events=text, vectors=bytes(vectors))


# The journal itself


_SNAPSHOT = "REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)"
_EMBEDDING = "INSERT OR IGNORE INTO embeddings VALUES (?, ?)"


class Journal:
    """The journal of a bank, in a file; ``path``, ``copied``, ``seen`` say which, as for the file.

    ``head`` is the id of the last commit, ``hash`` the hash over all commits, ``tick`` the tick
    after the last one. ``base`` is the commit before the first commit that is here: 0, unless the
    journal was made from a checkpoint.
    """

    def __init__(
        self, path: Path | None, copied: Path | None = None, seen: Path | None = None
    ) -> None:
        source = copied or seen or path
        # They are read first: another process may write more commits while the journal is copied.
        # Who only looks may look again and again: one who copies or writes is warned.
        records = find_records(source) if source else []
        self._records = records_of(path) if path else []
        self._expects_more = False
        self.file = file = JournalFile(path, copied, seen)
        self.get, self.set, self.reading = file.get, file.set, file.reading
        self.check_there = file.check_there
        self._db = file.db
        self.shelf = ShelfTable(file.db, file.reading)
        self.attachments = Attachments(file)
        self.base: int
        self.base_tick: int
        self.head: int
        self.tick: int
        self.hash: bytes
        try:
            with self.reading():
                self.base, self.base_tick = self.get("base") or (0, 0)
                self.head, self.tick, self.hash = self._last()
            self._check_acknowledged(records)
        except BaseException:
            self.leave()
            raise
        for each in () if seen else records:
            each.warn()

    def close(self) -> None:
        """Fold the log into the journal, and close the files."""
        self._close_record()
        self.file.close()

    def leave(self) -> None:
        """Close the files, and leave them as they were before they were opened."""
        self._close_record()
        self.file.leave()

    def _close_record(self) -> None:
        for each in self._records:
            each.close()

    def _check_acknowledged(self, records: Sequence[Found]) -> None:
        """Raise :class:`BankDamaged` if commits are missing that were acknowledged, or may be."""
        last = [each.last for each in records if each.last is not None]
        lost = [each.commit for each in last if not each.is_in(self.head, self.hash)]
        files = " and ".join(str(each.path) for each in records if each.is_there)
        if lost:
            raise self.lost_commits(max(lost), f"delete {files}")
        if why := doubt(records, self.head, self.hash):
            raise BankDamaged(
                f"the journal {self.file.name} may have lost commits: it ends at commit "
                f"{self.head}, and {why}; nothing was changed",
                hint="put the missing files back, or restore a checkpoint or a copy; to go on with "
                f"what is left, delete {files}",
            )

    def lost_commits(self, last: int, go_on: str) -> BankDamaged:
        """The error for a journal that has not the commit ``last``, which was acknowledged."""
        why = f"it ends at commit {self.head}, and {last} were acknowledged"
        if last == self.head:
            why = f"its commit {self.head} is another than was acknowledged"
        return BankDamaged(
            f"the journal {self.file.name} has lost commits: {why}; its log was damaged or lost, "
            "or an older copy is in its place; nothing was changed",
            hint=f"restore a checkpoint or a copy; to go on with what is left, {go_on}",
        )

    def _last(self) -> tuple[int, int, bytes]:
        """The last commit; its hash covers all before it, and what is kept of it covers it."""
        row = self._db.execute(
            "SELECT id, tick, hash FROM commits ORDER BY id DESC LIMIT 1"
        ).fetchone()
        if row is None and self.base:
            snapshot = self.snapshot()
            row = (snapshot.commit, snapshot.tick, bytes.fromhex(snapshot.hash))
        head, tick, digest = row or (0, 0, bytes(32))
        if self.get("head") != ([head, tick, digest.hex()] if row else None):
            raise self.file.damaged("its last commit is not what was written")
        return head, tick, digest

    # Commits

    def append(
        self,
        tick: int,
        events: str,
        vectors: bytes,
        embeddings: Mapping[bytes, bytes],
        attachment: Attachment | None = None,
        shelf: Changes | None = None,
        shelf_sum: int = 0,
        redaction: Redaction | None = None,
        purged: bool = False,
        clock: Sequence[int] | None = None,
    ) -> None:
        """Record one commit. When this returns, the commit is on disk.

        :class:`CommitFailed` says that it is not, :class:`CommitUnknown` that it may be. After any
        other error, ``head`` tells.

        ``shelf`` has the changes of the memories that are not resident, ``shelf_sum`` is the sum of
        the hashes over all of these memories after the commit. ``redaction`` takes the texts and
        vectors of purged memories out of the whole journal. ``purged`` says that sequence numbers
        may be missing from now on. ``clock`` says how the wall clock moves the tick from now on.
        """
        row = None if attachment is None else attachment.row(tick, self.head + 1)
        mark = row.digest if row else b""
        digest = chained(self.hash, tick, events, vectors, mark)
        try:
            self._expect_more()
            with self.file.writing():
                self._db.execute(
                    "INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?)",
                    Commit(self.head + 1, tick, mark, digest, events, vectors),
                )
                if attachment and row:
                    self.attachments.write(row, attachment.log, digest)
                if embeddings:
                    self._db.executemany(_EMBEDDING, embeddings.items())
                if shelf:
                    self.shelf.write(self.head + 1, shelf)
                    self.file.put({"shelf_sum": _hex(shelf_sum)})
                if redaction:
                    redact(self._db, self.shelf, self._commit, redaction)
                if redaction or purged:
                    self.file.put({"purged": True, "last_purge": (self.head + 1, digest.hex())})
                if clock:
                    self.file.put({"clock": clock})
                self.file.put({"head": (self.head + 1, tick, digest.hex())})
            self.head, self.tick, self.hash = self.head + 1, tick, digest
            if self._records:
                self._records[0].write(self.head, digest)
        except CommitFailed:
            raise
        except BaseException:  # perhaps it came right after the COMMIT
            self.settle()
            raise

    def _expect_more(self) -> None:
        """Say beside the journal that commits come, before the first one after :meth:`rest`."""
        if self._records and not self._expects_more:
            self.check_there()  # or these may be the records of another journal
            is_recorded = self._records[0].begin(self.head, self.hash)
            for record in self._of_bank():
                record.expect_more(self.head, self.hash, is_recorded=is_recorded)
            self._expects_more = True

    def rest(self) -> None:
        """Keep beside the journal whose it is, what its last commit is, and that none comes now."""
        self._expects_more = False
        for record in self._of_bank():
            record.update(self.head, self.hash, at_rest=True)

    def _of_bank(self) -> list[HeadRecord]:
        """The records that say which bank has this journal."""
        bank = self.get("bank")
        for record in self._records[1:]:
            record.owner = bank["id"] if bank else None
        return self._records[1:]

    def settle(self) -> None:
        """End a transaction that an error left open, and find out what the last commit is."""
        with self.reading():
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            self.head, self.tick, self.hash = self._last()

    def commits(self, after: int) -> Iterator[Commit]:
        """The commits with an id above ``after``, in order, each checked against its hash."""
        with self.reading():
            before, expected = self.hash_of(after) or bytes(32), after + 1
            for raw in self._db.execute("SELECT * FROM commits WHERE id > ? ORDER BY id", (after,)):
                commit = Commit(*raw)
                digest = chained(before, commit.tick, commit.events, commit.vectors, commit.note)
                if commit.id != expected or (commit.hash != digest and not self._is_left(commit)):
                    raise self.file.damaged(f"commit {expected} is not what was written")
                before, expected = commit.hash, expected + 1
                yield commit

    def _is_left(self, commit: Commit) -> bool:
        """Whether this is what a redaction left of a commit."""
        row = self._db.execute(
            "SELECT digest FROM redactions WHERE commit_id = ?", (commit.id,)
        ).fetchone()
        return row is not None and bool(row[0] == redacted_digest(commit))

    def _commit(self, number: int) -> Commit:
        return next(self.commits(after=number - 1))

    def commit_of(self, tick: int) -> int:
        """The last commit that left the bank at this tick or an earlier one."""
        with self.reading():
            row = self._db.execute("SELECT max(id) FROM commits WHERE tick <= ?", (tick,))
            found = row.fetchone()[0]
            if found is None and tick < self.base_tick:
                raise TickNotKept(
                    f"the journal {self.file.name} was made from a checkpoint and begins with tick "
                    f"{self.base_tick}; it does not know tick {tick}",
                    hint=f"name a tick from {self.base_tick} on",
                )
            return self.base if found is None else int(found)

    def hash_of(self, commit: int) -> bytes | None:
        """The hash over all commits up to this one, if it is here."""
        with self.reading():
            if commit == (snapshot := self.snapshot()).commit:
                return bytes.fromhex(snapshot.hash)
            row = self._db.execute("SELECT hash FROM commits WHERE id = ?", (commit,)).fetchone()
            return row[0] if row else None

    def rewind(self, commit: int, **values: object) -> None:
        """Delete every commit after this one, for good, and keep ``values`` as :meth:`set` does.

        :class:`TickNotKept` for a commit before the checkpoint that the journal was made from.
        """
        snapshot = self.snapshot()
        with self.file.writing():
            row = self._db.execute(
                "SELECT id, tick, hash FROM commits WHERE id = ?", (commit,)
            ).fetchone()
            if snapshot.commit == commit:
                row = (commit, snapshot.tick, bytes.fromhex(snapshot.hash))
            elif snapshot.commit > commit and self.base == 0:
                self._db.execute("DELETE FROM snapshots")
                # The next opening replays all commits, and finds what was not resident.
                self.file.put({"snapshot": None, "rebuild_shelf": True})
            elif snapshot.commit > commit:
                row = None
            if row is None and (commit or self.base):
                raise TickNotKept(
                    f"the journal {self.file.name} can't go back to commit {commit}: it was made "
                    f"from a checkpoint, and has commits from {snapshot.commit} on"
                )
            for each in reversed(self._records):
                each.forget()
            self._expects_more = False
            self._db.execute("DELETE FROM commits WHERE id > ?", (commit,))
            self._db.execute("DELETE FROM redactions WHERE commit_id > ?", (commit,))
            self.attachments.rewind(commit)
            self.shelf.rewind(commit)
            head, tick, digest = row or (0, 0, bytes(32))
            own = {"head": (head, tick, digest.hex()) if head else None, "shelf_sum": None}
            self.file.put({**own, **values})
        self.head, self.tick, self.hash = head, tick, digest

    def adopt(
        self,
        head: tuple[int, int, str],
        snapshots: Iterable[SnapshotRow],
        attachments: Iterable[AttachmentRow],
        embeddings: Mapping[bytes, bytes],
        shelf: Iterable[Sequence[Any]] = (),
        **values: object,
    ) -> None:
        """Begin with the state after another journal's commit ``head``: an id, a tick, a hash."""
        if self.head or self.get("bank"):
            raise BankError(f"the journal {self.file.name} has a history of its own")
        with self.file.writing():
            self._db.executemany(_SNAPSHOT, snapshots)
            self.attachments.adopt(attachments)
            self._db.executemany(_EMBEDDING, embeddings.items())
            self.shelf.adopt(shelf)
            agents = self._db.execute("SELECT count(*) FROM snapshots").fetchone()[0]
            if head[0]:
                values |= {"snapshot": Snapshot(*head, agents), "head": head, "base": head[:2]}
            self.file.put(values)
        self.base, self.base_tick = head[:2]
        self.head, self.tick, self.hash = self._last()

    # Embeddings

    def save_embeddings(self, vectors: Mapping[bytes, bytes]) -> None:
        """Keep vectors by the hash of their text, in a transaction of their own."""
        with self.file.writing():
            self._db.executemany(_EMBEDDING, vectors.items())

    def embeddings(self, hashes: Sequence[bytes] | None = None) -> dict[bytes, bytes]:
        """The kept vectors, of all texts or of the texts with these hashes, by hash."""
        one = "SELECT * FROM embeddings WHERE hash = ?"
        with self.reading():
            if hashes is None:
                found = dict(self._db.execute("SELECT * FROM embeddings ORDER BY hash"))
            else:
                found = dict(chain.from_iterable(self._db.execute(one, (each,)) for each in hashes))
            if found:
                dims = self.get("bank")["embedder"]["dims"]
                if any(type(own) is not bytes or len(own) != dims for own in found.values()):
                    raise self.file.damaged("a vector that it keeps is not what was written")
            return found

    # The shelf

    @contextmanager
    def rebuilding_shelf(self) -> Iterator[bool]:
        """Inside, commits are replayed; True if the caller has to write the shelf on the way."""
        if not self.get("rebuild_shelf"):
            yield False
            return
        with self.file.writing():
            self.shelf.clear()
            yield True
            self.file.put({"rebuild_shelf": False})

    def check_shelf(self, shelf_sum: int) -> None:
        """Raise :class:`BankDamaged` if a replay came to another sum than the last commit.

        A memory is then missing on the shelf that was not purged.
        """
        if self.get("shelf_sum") not in (None, _hex(shelf_sum)):
            raise self.file.damaged("it has lost memories that are not resident")

    def vacuum(self) -> bool:
        """Write the file anew, without deleted rows; False if a reader keeps the old file."""
        with self.reading():
            self._db.execute("VACUUM")
            is_busy, *_ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not is_busy

    def last_purge(self) -> tuple[int, str] | None:
        """The number and the hash of the last commit that purged memories; None if none did.

        In a journal of an earlier version, it looks at every commit. If such a journal was made
        from a checkpoint, the purge may have come as late as the checkpoint.
        """
        with self.reading():
            kept = self.get("last_purge")
            if kept is None:
                purge = "SELECT id, hex(hash) FROM commits WHERE instr(events, '[\"purge\",')"
                kept = self._db.execute(f"{purge} ORDER BY id DESC LIMIT 1").fetchone()
            if kept is None and self.base and self.get("purged"):
                kept = self.base, self.snapshot().hash
            return None if kept is None else (int(kept[0]), str(kept[1]).lower())

    # Snapshots

    def write_snapshots(self, rows: Iterable[SnapshotRow]) -> None:
        """Replace the snapshots of these agents; from now on, opening starts at this commit."""
        with self.file.writing():
            self._db.executemany(_SNAPSHOT, rows)
            agents = self._db.execute("SELECT count(*) FROM snapshots").fetchone()[0]
            self.file.put({"snapshot": Snapshot(self.head, self.tick, self.hash.hex(), agents)})
            self.shelf.forget_versions(self.head)

    def snapshot(self) -> Snapshot:
        """The commit of the snapshots; commit 0 if there are none."""
        kept = self.get("snapshot")
        return Snapshot(*kept) if kept else Snapshot(0, 0, bytes(32).hex(), 0)

    def snapshot_size(self) -> int:
        """The bytes of the numbers in all snapshots: as many for each memory."""
        with self.reading():
            row = self._db.execute("SELECT total(length(columns)) FROM snapshots").fetchone()
            return int(row[0])

    def snapshots(self, agents: Iterable[str] | None = None) -> Iterator[SnapshotRow]:
        """The snapshots of all agents, or of these."""
        with self.reading():
            if agents is not None:
                one = "SELECT * FROM snapshots WHERE agent = ?"
                for agent in agents:
                    yield from map(SnapshotRow._make, self._db.execute(one, (agent,)))
                return
            count = 0
            for row in self._db.execute("SELECT * FROM snapshots ORDER BY agent"):
                count += 1
                yield SnapshotRow(*row)
            if count != self.snapshot().agents:
                raise self.file.damaged(f"it has the snapshots of {count} agents, and not of all")


def _hex(total: int) -> str:
    return f"{total % (1 << 256):064x}"


# Which texts of memories a journal keeps anyway, because they are the text of a note


Key = tuple[str, int]
"""An agent, and the sequence number of its memory."""


def chunks_in(events: Iterable[Sequence[Any]]) -> Iterator[Key]:
    """The memories that are chunks of the notes whose texts these events have.

    The event of a transcript has a bookmark and no text.
    """
    for event in events:
        if event[0] == "note":
            _, agent, path, _, text, chunks = event
            if text is not None:
                yield from _chunks_of(agent, path, chunks)


def kept_chunks(journal: Journal, memories: Sequence[Memory]) -> set[Key]:
    """Of these memories, those that were chunks of a note whose text a journal has.

    A chunk is added in the commit that has its note. What the journal has of the time before its
    first commit is a snapshot.
    """
    found: set[Key] = set()
    with journal.reading():
        for number in _commits_of(journal, {memory.created_tick for memory in memories}):
            commit = first(journal.commits(after=number - 1))
            found.update(() if commit is None else chunks_in(json.loads(commit.events)))
        agents = sorted({memory.agent_id for memory in memories}) if journal.base else ()
        for agent in agents:
            for row in journal.snapshots([agent]):
                for path, _, chunks in json.loads(row.extras).get("notes", ()):
                    found.update(_chunks_of(agent, path, chunks))
    return found


def _commits_of(journal: Journal, ticks: Iterable[int]) -> list[int]:
    """The commits in which memories of these ticks came; one may have ended in a later tick."""
    rows = journal.file.db.execute("SELECT id, tick FROM commits ORDER BY id").fetchall()
    ended = [tick for _, tick in rows]
    places = {
        place
        for tick in ticks
        for place in range(bisect_left(ended, tick), bisect_right(ended, tick) + 1)
    }
    return [rows[place][0] for place in sorted(places) if place < len(rows)]


def _chunks_of(agent: str, path: str, chunks: Iterable[Sequence[int]]) -> Iterator[Key]:
    if not is_transcript(path):
        yield from ((agent, number) for number, _, _ in chunks)
