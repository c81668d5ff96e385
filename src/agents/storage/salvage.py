"""What is whole of a damaged journal, as a new journal in memory.

The commits hold everything, so whole commits from the first to the last give the whole bank,
whatever else is damaged. Otherwise the new journal gets the whole snapshots, the whole rows of the
shelf, and the whole commits after the snapshots. A lost memory is then one more memory that was
purged: its number is taken, and it is not there.
"""

import json
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import BankDamaged
from .beside_journal import doubt, find_records
from .columns.agent_columns import NUMBERS
from .files import TemporaryFolder
from .journal.journal import Journal, JournalFile, chained
from .journal.redaction import redacted_digest
from .journal.tables import Commit, Snapshot, SnapshotRow
from .shelf import checked_row
from .sqlite import DAMAGE, log_of
from .state import snapshots
from .state.state import Population

_NO_SNAPSHOT = Snapshot(0, 0, bytes(32).hex(), 0)
_AT_ONCE = 1000
_ROWS_IN_PAGE = 64
"""More rows than a page of any table holds."""


class Salvage(NamedTuple):
    """What could be read of a damaged journal."""

    journal: Journal
    """In memory, with all that is whole."""
    identity: dict[str, Any] | None
    """The bank's identity; None if it is damaged."""
    dims: int
    on_shelf: Mapping[str, int]
    """By agent, the sum of the hashes over its whole memories that are not resident."""
    purged: Mapping[str, set[int]]
    """By agent, the memories of which a whole commit says that they were purged."""
    touched: set[str]
    """Agents with a damaged row."""
    problems: list[str]
    is_of_commits: bool
    """Whether the commits alone gave the new journal, without snapshots and shelf."""
    is_complete: bool
    """Whether the new journal lacks nothing that was committed."""


class _Found(NamedTuple):
    """The whole rows of a damaged journal."""

    meta: dict[str, Any]
    unknown: set[str]
    """The keys whose values are damaged."""
    commits: dict[int, Commit]
    snapshots: dict[str, SnapshotRow]
    shelf: list[tuple[Any, ...]]
    touched: set[str]
    problems: dict[str, None]
    """What is damaged, each once."""


def salvage(path: Path, *, has_lost_rows: bool = False) -> Salvage:
    """Read what is whole of the journal at ``path``, which is not changed.

    ``has_lost_rows`` says that rows of the shelf are missing, which no damaged row shows.
    :class:`BankDamaged` if not even its tables can be told apart.
    """
    with _copy(path) as file:
        whole = _read(file)
    commits, identity = whole.commits, whole.meta.get("bank")
    kept = whole.meta.get("snapshot")
    snapshot = Snapshot(*kept) if kept else _NO_SNAPSHOT
    head = (whole.meta.get("head") or [max(commits, default=snapshot.commit)])[0]
    base = (whole.meta.get("base") or [0])[0]
    missing = [number for number in range(base + 1, head + 1) if number not in commits]
    is_late = any(number > snapshot.commit for number in missing)
    has_lost_rows, is_told = has_lost_rows or bool(whole.problems), not whole.unknown
    if missing:
        said = f"{len(missing):,} of {head - base:,} commits ({_ranges(missing)})"
        whole.problems[said] = None
    records = find_records(path)
    acknowledged = [each.last.commit for each in records if each.last]
    lost = range(head + 1, max(acknowledged, default=0) + 1)
    from_commits = base == 0 and has_lost_rows and (not missing or "snapshot" in whole.unknown)
    end = commits[head].hash if head in commits else bytes.fromhex(snapshot.hash)
    unsure = None if lost else doubt(records, head, end)
    if lost:
        whole.problems[f"{len(lost):,} acknowledged commits at the end ({_ranges(lost)})"] = None
    if unsure:
        whole.problems[f"maybe commits at the end: {unsure}"] = None
    dims = identity["embedder"]["dims"] if identity else _dims_of(whole)
    journal = Journal(None)
    try:
        begin = _NO_SNAPSHOT if from_commits else snapshot
        _pour(journal, whole, begin, head, dims, with_shelf=not from_commits)
    except BaseException:
        journal.close()
        raise
    sums: Counter[str] = Counter()
    for row in whole.shelf:
        if row[3] is None:
            sums[row[0]] += int.from_bytes(row[5], "big")
    return Salvage(
        journal,
        identity,
        dims,
        sums,
        _purged(commits.values()),
        whole.touched,
        list(whole.problems),
        from_commits,
        is_complete=not lost
        and not unsure
        and is_told
        and not (missing if from_commits else has_lost_rows or is_late),
    )


@contextmanager
def _copy(path: Path) -> Iterator[JournalFile]:
    """A copy of the file; bytes that were cut off at its end are zeros."""
    with ExitStack() as last:
        try:
            file = JournalFile(None, copied=path)
        except BankDamaged as error:
            folder = last.enter_context(TemporaryFolder("salvage"))
            copy = Path(folder) / path.name
            for each in (path, log_of(path)):
                if each.exists():
                    shutil.copyfile(each, copy.with_name(each.name))
            header = copy.read_bytes()[:100]
            page = int.from_bytes(header[16:18], "big")
            size = (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
            if copy.stat().st_size < size < 4 * path.stat().st_size + (1 << 20):
                os.truncate(copy, size)
            try:
                file = JournalFile(copy)
            except BankDamaged:
                raise error from None  # it names the bank's own file
        last.callback(file.close)
        yield file


# Reading


def _read(file: JournalFile) -> _Found:
    whole = _Found({}, set(), {}, {}, [], set(), {})
    database = file.db
    for key in ("bank", "head", "base", "snapshot", "purged"):
        try:
            whole.meta[key] = file.get(key)
        except BankDamaged:
            whole.unknown.add(key)
            whole.problems[f"what the journal keeps as {key}"] = None
    redactions = {row[1]: row[2] for row in _rows(database, "redactions", [])}
    _read_commits(whole, list(_rows(database, "commits", [])), redactions)
    lost: list[int] = []
    for row in _rows(database, "snapshots", lost):
        snapshot = SnapshotRow(*row[1:])
        if _is_whole(snapshots.check, snapshot):
            whole.snapshots[snapshot.agent] = snapshot
        else:
            _count(whole, "the snapshot", snapshot.agent)
    lost_shelf: list[int] = []
    for row in _rows(database, "shelf", lost_shelf):
        if _is_whole(checked_row, row[1:]):
            whole.shelf.append(tuple(row[1:]))
        else:
            _count(whole, "memories that are not resident", row[1])
    for name, rows in (("snapshots", lost), ("the shelf", lost_shelf)):
        if rows:
            whole.problems[f"pages of {name}"] = None
    return whole


def _rows(database: sqlite3.Connection, table: str, lost: list[int]) -> Iterator[tuple[Any, ...]]:
    """The rows that can be read, each with its number first; ``lost`` gets the other numbers."""
    query = f"SELECT rowid, * FROM {table} WHERE rowid BETWEEN ? AND ? ORDER BY rowid"  # noqa: S608
    try:
        top = database.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0] or 0  # noqa: S608
    except DAMAGE:
        top = database.execute("PRAGMA page_count").fetchone()[0] * _ROWS_IN_PAGE
    for start in range(1, top + 1, _AT_ONCE):
        ranges = [(start, min(top, start + _AT_ONCE - 1))]
        while ranges:
            first, last = ranges.pop()
            try:
                yield from database.execute(query, (first, last)).fetchall()
            except DAMAGE:
                middle = (first + last) // 2
                if first == last:
                    lost.append(first)
                else:
                    ranges += [(middle + 1, last), (first, middle)]


def _read_commits(
    whole: _Found, rows: list[tuple[Any, ...]], redactions: Mapping[int, bytes]
) -> None:
    """Keep the commits that fit the hash before them, or what a redaction left of them."""
    hashes = {0: bytes(32)}
    if kept := whole.meta.get("snapshot"):
        hashes[kept[0]] = bytes.fromhex(kept[2])
    for _, number, *values in rows:
        commit = Commit(number, *values)
        try:
            digest = chained(
                hashes[number - 1], commit.tick, commit.events, commit.vectors, commit.note
            )
            is_left = redactions.get(number) == redacted_digest(commit)
            if commit.hash == digest or is_left:
                whole.commits[number] = commit
        except DAMAGE:  # a value of another type, or the commit before is gone
            pass
        if isinstance(commit.hash, bytes):
            hashes[number] = commit.hash


def _is_whole(check: Any, row: Any) -> bool:
    try:
        check(row)
    except (BankDamaged, *DAMAGE):
        return False
    return True


def _count(whole: _Found, what: str, agent: object) -> None:
    if isinstance(agent, str) and agent.isprintable():
        whole.touched.add(agent)
        whole.problems[f"{what} of {agent}"] = None
    else:
        whole.problems[f"{what} of an agent whose name is damaged"] = None


# Writing


def _pour(
    journal: Journal, whole: _Found, begin: Snapshot, head: int, dims: int, *, with_shelf: bool
) -> None:
    """Fill a new journal with the state ``begin``, and with the commits after it."""
    names = dict.fromkeys(row[0] for row in whole.shelf) if begin.commit else {}
    rows = {**{agent: _empty(agent, dims, whole) for agent in names}, **whole.snapshots}
    following = {agent: row.next_sequence for agent, row in rows.items()} if begin.commit else {}
    digest, tick = bytes.fromhex(begin.hash), begin.tick
    database = journal.file.db
    with journal.file.writing():
        if begin.commit:
            insert = "INSERT INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)"
            database.executemany(insert, rows.values())
        if with_shelf:
            journal.shelf.adopt(whole.shelf)
        for number in range(begin.commit + 1, head + 1):
            events, vectors = "[]", b""
            if commit := whole.commits.get(number):
                tick = commit.tick
                events, vectors = _without_gaps(commit, following, dims)
            digest = chained(digest, tick, events, vectors, b"")
            made = Commit(number, tick, b"", digest, events, vectors)
            database.execute("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?)", made)
        values: dict[str, object] = {"purged": True, "rebuild_shelf": not with_shelf}
        if begin.commit:
            values["snapshot"] = begin._replace(agents=len(rows))
        if head:
            values["head"] = (head, tick, digest.hex())
        journal.file.put(values)
    journal.head, journal.tick, journal.hash = head, tick, digest


def _empty(agent: str, dims: int, whole: _Found) -> SnapshotRow:
    """The snapshot of an agent that has lost its own, and has memories on the shelf."""
    block = Population(0, dims).own(agent)
    block.next_sequence = 1 + max(row[1] for row in whole.shelf if row[0] == agent)
    return snapshots.pack(block)


def _without_gaps(commit: Commit, following: dict[str, int], dims: int) -> tuple[str, bytes]:
    """The events and vectors of a commit, after those of lost memories, which count as purged."""
    lost: list[list[Any]] = []
    for event in json.loads(commit.events):
        if event[0] == "add":
            _, agent, sequence, *_ = event
            expected = following.get(agent, 1)
            lost += [
                ["add", agent, number, 3, None, None, None] for number in range(expected, sequence)
            ]
            following[agent] = sequence + 1
    if not lost:
        return commit.events, commit.vectors
    events = json.dumps([*lost, *json.loads(commit.events)], ensure_ascii=False)
    return events, bytes(dims * len(lost)) + commit.vectors


def _purged(commits: Iterable[Commit]) -> dict[str, set[int]]:
    purged: dict[str, set[int]] = {}
    for commit in commits:
        if '["purge",' in commit.events:
            for event in json.loads(commit.events):
                if event[0] == "purge":
                    purged.setdefault(event[1], set()).update(event[2])
    return purged


def _dims_of(whole: _Found) -> int:
    """The dimensions of the bank's vectors, if the journal no longer says."""
    if whole.shelf:
        return len(bytes(whole.shelf[0][-1]))
    for row in whole.snapshots.values():
        if numbers := len(row.columns) // (8 * NUMBERS):
            return len(row.vectors) // numbers
    for commit in whole.commits.values():
        adds = [event for event in json.loads(commit.events) if event[0] == "add"]
        if adds:
            return len(commit.vectors) // len(adds)
    return 1


def _ranges(numbers: Sequence[int]) -> str:
    """Whole numbers in order, as ranges: 3–5, 9."""
    parts: list[str] = []
    first = last = numbers[0]
    for number in [*numbers[1:], -1]:
        if number != last + 1:
            parts.append(str(first) if first == last else f"{first}–{last}")
            first = number
        last = number
    return ", ".join([*parts[:5], *(["…"] if len(parts) > 5 else [])])
