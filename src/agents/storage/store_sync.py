"""Keeping mem0's store in step with the journal.

The journal keeps a cursor under ``store``: the last commit that the store has, whether a write was
under way, and how the store's files looked after it. Ids are deterministic and every write can be
repeated, so after a kill the rest is pushed again.
"""

import logging
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from ..config.settings import StoreSettings
from ..errors import BankDamaged, CommitFailed, ConfigError, StoreDamaged, StoreError, StoreMismatch
from ..memory.events import (
    Accessed,
    Added,
    NoteWritten,
    Retained,
    TickAdvanced,
    TierChanged,
    ValueSet,
    VersionReplaced,
)
from ..memory.records import Memory, memory_id
from ..memory.tiers import Retention
from .beside_journal import checkpoints_before_purge
from .embedding import Quantised, unit
from .files import TemporaryFolder
from .interrupts import once
from .journal.journal import Journal, decode
from .mem0.store import Mem0Store, store_config
from .state.state import State

logger = logging.getLogger(__name__)

_CHUNK = 5000

# What the store needs for a memory: a changed row, a new row, or a row that may be there already.
CHANGED, _ADDED, RETURNED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class StoreCursor:
    store: str
    commit: int = 0
    """The store has everything up to this commit."""
    writing: int = 0
    """A write up to this commit was begun; above ``commit``, the store may have a part of it."""
    rows: int = 0
    """The number of memories that the store has at least, since the last write."""
    files: str | None = None
    """The digest of the store's files after the last write."""
    stale: bool = False
    """The bank went back to an earlier state: the store has to be made anew."""
    vacuum: bool = False
    """A vacuum was begun: what is there has purged texts, and goes without being read."""

    def reached(self, journal: Journal) -> int | None:
        """The last commit that the store has; None if it has to be made anew.

        That is where the journal lacks commits that lead from the state of the store to its own.
        """
        is_stale = self.stale or self.vacuum or self.commit < journal.base
        return None if is_stale else self.commit


def cursor_of(journal: Journal, store: str) -> StoreCursor:
    """What the journal keeps about the store of this name."""
    kept = journal.get("store")
    cursor = StoreCursor(**kept) if kept else StoreCursor(store)
    if cursor.store != store:  # the settings name another store: it has nothing yet
        return StoreCursor(store)
    return cursor


def stale_store(journal: Journal, commit: int) -> dict[str, Any]:
    """What the journal has to keep about its store when it goes back to ``commit``."""
    kept = journal.get("store")
    if kept is None or max(kept["commit"], kept["writing"]) <= commit:
        return {}
    return {"store": {**kept, "stale": True}}


def changes_after(journal: Journal, last: int) -> Iterator[tuple[int, dict[tuple[str, int], int]]]:
    """The memories that later commits touched and what the store needs for each, in chunks."""
    changes: dict[tuple[str, int], int] = {}
    for commit in journal.commits(after=last):
        for event in decode(commit.events):
            if isinstance(event, TickAdvanced | Accessed | NoteWritten | ValueSet):
                continue  # the store does not keep what these change
            how = {Added: _ADDED, Retained: RETURNED}.get(type(event), CHANGED)
            if isinstance(event, Added | TierChanged | VersionReplaced):
                numbers = [event.sequence]
            else:
                numbers = event.sequences
            for sequence in numbers:
                key = event.agent_id, sequence
                changes[key] = max(changes.get(key, CHANGED), how)
        last = commit.id
        if len(changes) >= _CHUNK:
            yield last, changes
            changes = {}
    if changes:
        yield last, changes


__all__ = ["Progress", "StoreSync", "stale_store"]

Progress = Callable[[int, int], None]
"""Called with the number of memories that are done, and of all; a push counts commits instead."""

_KEPT = "the journal has every memory; rebuild the store with"
_READ = "another program reads it; end that program, and vacuum again"
_UNUSED = "a store that this bank no longer uses; delete it if you don't need it"
_EARLIER = "a checkpoint that may be from before the last purge; delete it if you don't need it"
_DAMAGED = "a damaged journal that a restore moved aside; delete it if you don't need it"
_FORMER = "the journal in its former format, which is kept; delete it if all is well"
_PAUSE = 10
"""After a write that failed, commits leave the store alone, this many times as long as it took."""


class StoreSync:
    """Writes a bank's journal to its mem0 store."""

    def __init__(
        self,
        journal: Journal,
        state: State,
        settings: StoreSettings,
        folder: Path | None,
        bank_id: str,
    ) -> None:
        self._journal = journal
        self._state = state
        self._settings = settings
        self._folder = folder
        self._scratch: TemporaryFolder | None = None
        self._bank_id = bank_id
        self._paused_until = 0.0
        self._left_behind = 0
        self.problem: str | None = None
        """Why the last write failed; None if it did not."""

    def config(self) -> dict[str, Any]:
        """mem0's config for the store."""
        self._check_wanted()
        return store_config(self._settings, self._place(), self._state.dims)

    def _check_wanted(self) -> None:
        if self._settings.provider == "none":
            raise ConfigError(
                "this bank has no store of mem0's: store.provider is none",
                hint="name a store, such as store.provider=chroma; it gets every memory",
            )

    def _place(self) -> Path:
        """The bank's folder; for a bank in memory, a folder that is deleted with it."""
        if self._folder is not None:
            return self._folder
        if self._scratch is None:
            self._scratch = TemporaryFolder("store")
        return Path(self._scratch.name)

    @once
    def _store(self) -> Mem0Store:
        return Mem0Store(
            self._settings, self._place(), self._state.dims, self._bank_id, self._total
        )

    @once
    def _cursor(self) -> StoreCursor:
        return cursor_of(self._journal, self._store.name)

    def leave(self, folder: Path, settings: StoreSettings) -> None:
        """Make this the store of a copy of the bank in ``folder``: it is never read or written."""
        if settings.provider != "none":
            store = Mem0Store(settings, folder, self._state.dims, self._bank_id)
            cursor = cursor_of(self._journal, store.name)
            lacks = self._journal.head - (cursor.reached(self._journal) or 0)
            self._left_behind = max(0, lacks)  # a copy of an earlier state lacks later commits
        self._journal.set(store=None)

    @property
    def behind(self) -> bool:
        """Whether the store lacks something that the journal has."""
        return self._is_stale or self._cursor.commit < self._journal.head

    @property
    def commits_behind(self) -> int:
        """How many commits the store lacks; 0 for a bank that writes none.

        For a copy of a bank: how many the bank's own store lacked.
        """
        if self._settings.provider == "none":
            return 0
        if self._folder is None:
            return self._left_behind
        return self._journal.head - self.written

    @property
    def _is_stale(self) -> bool:
        """Whether the store has to be made anew."""
        return self._cursor.reached(self._journal) is None

    def check(self) -> None:
        """Raise :class:`StoreError` if the store is gone, is broken or belongs to another bank.

        The store is tried, unless its files are as the last write left them. What :meth:`catch_up`
        will read of the journal is read first.
        """
        self.check_record()
        if self.behind and not self._is_stale:  # damage shows before the store's files are touched
            for _, changes in changes_after(self._journal, self._cursor.commit):
                for key in changes:
                    self._state.memory(*key)
        cursor = self._cursor
        if self._is_stale:
            return  # nothing of it is used again, and its vectors may be another embedder's
        if not (cursor.commit or cursor.writing) and self._store.files() is None:
            return  # nothing was ever written, and nothing is there
        interrupted = cursor.writing > cursor.commit
        if not interrupted and cursor.files is not None and cursor.files == self._store.files():
            return
        with self._apart(StoreDamaged, StoreMismatch, ConfigError), self._naming_the_repair():
            if self._store.path is not None:
                if self._store.files() is None and cursor.commit:
                    raise StoreDamaged(f"mem0's store is missing: {self._store.path}")
                problem = self._store.probe(0 if interrupted else cursor.rows)
                if problem:
                    raise StoreDamaged(f"mem0's store in {self._store.path} is damaged: {problem}")
            self._store.open(written=cursor.commit > 0)

    def check_record(self) -> None:
        """Raise :class:`BankDamaged` if the store has commits that the journal lacks."""
        last = None if self._is_stale else self._store.recorded()
        if last is not None and not last.is_in(self._journal.head, self._journal.hash):
            place = quote(str(self._place()))
            repair = f"rebuild mem0's store from it: tiermem store rebuild {place}"
            raise self._journal.lost_commits(last.commit, repair)

    def catch_up(self) -> None:
        """Write what a killed process left unwritten; an error is reported apart.

        A store that has to be made anew waits for the next sync, because that takes long.
        """
        if self._cursor.vacuum:
            with self._apart():
                self._remove()
        elif not self._is_stale:
            self.follow_commit((), push=True)

    def follow_commit(self, purged: Sequence[str], *, push: bool) -> None:
        """Delete purged memories from the store and, for ``push``, write what it lacks.

        The commit is kept whatever becomes of the store: an error is reported apart, and the next
        push does what is left to do.
        """
        if time.monotonic() >= self._paused_until:
            with self._apart():
                self.forget(purged)
                if push:
                    self.push()

    def keep_up(self, progress: Progress | None = None) -> None:
        """Write what the store lacks; an error is reported apart, and the next sync goes on."""
        with self._apart():
            self.push(progress)

    def catch_up_at_last(self) -> None:
        """Write what the store lacks before the bank is closed.

        An error that the next opening may mend by itself is reported apart.
        """
        self.check_record()
        sync = f"tiermem store sync {quote(str(self._place()))}"
        later = f"; the next opening brings the store up to date, or {sync}"
        with self._apart(StoreDamaged, StoreMismatch, ConfigError, CommitFailed, later=later):
            self.push()

    @contextmanager
    def _apart(self, *raised: type[Exception], later: str = "") -> Iterator[None]:
        """Inside, an error of the store is logged and kept; only these errors are raised.

        ``later`` says in the log when the store is tried again.
        """
        begun = time.monotonic()
        try:
            yield
        except (StoreError, ConfigError, CommitFailed) as error:
            if isinstance(error, raised):
                raise
            now = time.monotonic()
            self._paused_until = now + _PAUSE * (now - begun)
            self.problem = error.why
            logger.warning("the memories are kept, but mem0's store lacks some: %s%s", error, later)

    def push(self, progress: Progress | None = None) -> int:
        """Write what the store lacks; the number of memories written, changed or deleted."""
        self._check_wanted()
        if not self.behind:
            self.problem = None
            return 0
        self._journal.check_there()  # or a store would be made where the bank is gone

        def of_memories(written: int, of: int) -> None:
            if progress:
                progress(self._journal.head * written // of, self._journal.head)

        if self._cursor.vacuum:
            self.vacuum(of_memories)
            return self._total()
        if self._is_stale:
            with self._naming_the_repair():
                self.rebuild(of_memories)
            return self._total()
        done = 0
        total = self._journal.head - self._cursor.commit
        logger.info("writing %d commits to mem0's store", total)
        with self._naming_the_repair():
            self._store.open(written=self._cursor.commit > 0)
            retried = self._cursor.writing
            self._save(writing=self._journal.head)
            for commit, changes in changes_after(self._journal, self._cursor.commit):
                self._apply(changes, known=retried > self._cursor.commit)
                done += len(changes)
                self._cursor = replace(self._cursor, commit=commit)
                if progress:
                    progress(commit - (self._journal.head - total), total)
            self._done()
        return done

    @property
    def written(self) -> int:
        """The commit up to which the store can be searched; 0 if it can't be searched."""
        return self._cursor.reached(self._journal) or 0

    def search(self, vector: Quantised, most: int, filters: Mapping[str, object]) -> list[str]:
        """The ids of the ``most`` memories nearest to a vector that pass the filters."""
        with self._naming_the_repair():
            self._store.open(written=True)  # an empty store in its place must not answer
            return self._store.search(unit(vector[None])[0], most, filters)

    @property
    def exists(self) -> bool:
        """Whether anything was ever written to the store."""
        return bool(self._cursor.commit or self._cursor.writing)

    def forget(self, ids: Sequence[str]) -> None:
        """Delete purged memories now, before the next push."""
        if ids and self.exists and not self._cursor.vacuum:
            with self._naming_the_repair():
                self._store.open(written=self._cursor.commit > 0)
                # Before they go: a process that ends now must not leave a store that lacks rows.
                self._save(rows=max(0, self._cursor.rows - len(ids)))
                self._store.delete(ids)

    def rebuild(self, progress: Progress | None = None) -> list[str]:
        """Replace the store by a new one with every memory of the journal; a report in lines."""
        self._check_wanted()
        problem, is_foreign = self._diagnose()
        is_wanted = is_foreign or (problem is not None and not self._cursor.stale)
        report = [f"found: {problem or 'the store answers and is this bank’s'}"]
        self._begin_anew()
        aside = self._store.set_aside("of-another-bank" if is_foreign else "set-aside")
        report.append(self._fill(progress))
        if aside is not None and not is_wanted:
            shutil.rmtree(aside)  # the new store has all that it had
        elif aside is not None:
            report.append(f"the old store is now in {aside}; delete it if you don't need it")
        return report

    def vacuum(self, progress: Progress | None = None) -> list[str]:
        """Write the journal's file anew, and a local store; where purged texts may still be.

        If this is interrupted, the next sync begins it again. A store that is not local stays as
        it is.
        """
        is_written = self._folder is not None and self._store.path is not None and self.exists
        if is_written:
            self._save(vacuum=True)
        left = [] if self._journal.vacuum() else [f"{self._journal.file.name}: {_READ}"]
        if is_written:
            with self._naming_the_repair():
                self._remove()
                self._fill(progress)
        left += [f"{path}: {_UNUSED}" for path in self._store.unused()]
        purge = self._journal.last_purge()
        if self._folder is not None and purge is not None:
            earlier = (self._folder, self._bank_id, purge, self._journal.hash_of)
            left += [f"{path}: {_EARLIER}" for path in checkpoints_before_purge(*earlier)]
            damaged = sorted(self._folder.glob("journal.db.damaged-*"))
            left += [f"{path}: {_DAMAGED}" for path in damaged]
            former = sorted(self._folder.glob("journal.db.before-*"))
            left += [f"{path}: {_FORMER}" for path in former]
        return left

    def _fill(self, progress: Progress | None) -> str:
        """Write every memory of the journal to a new store; what was done, in a line."""
        self._begin_anew()
        total, done = self._total(), 0
        self._store.open()
        agents: set[str] = set()
        for memories, vectors in self._everything():
            self._store.upsert(memories, unit(vectors), known=False)
            agents.update(memory.agent_id for memory in memories)
            done += len(memories)
            if progress:
                progress(done, total)
        self._done()
        return (
            f"wrote {done:,} {'memory' if done == 1 else 'memories'} of {len(agents):,} "
            f"{'agent' if len(agents) == 1 else 'agents'} from the journal"
        )

    def _begin_anew(self) -> None:
        """Note that the store has nothing, or a part of what it should have."""
        self._save(commit=0, writing=self._journal.head, files=None)

    def _remove(self) -> None:
        """Delete a local store, and what was set aside of it, without reading them."""
        self._store.close_for_new_process()
        try:
            for path in self._store.folders():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        except OSError as error:
            raise StoreError(
                f"mem0's store could not be deleted: {error}",
                hint="purged texts may still be in it; let your user delete it",
            ) from error

    def _total(self) -> int:
        return len(self._state) + self._state.cold

    def _everything(self) -> Iterator[tuple[list[Memory], Quantised]]:
        """Every active memory, in chunks: first the resident memories, then the cold ones."""
        waiting, vectors = list[Memory](), list[Quantised]()
        for agent in sorted(self._state.blocks):
            block = self._state.blocks.peek(agent)
            for start in range(0, len(block), _CHUNK):
                stop = min(start + _CHUNK, len(block))
                waiting += block.memories(range(start, stop))
                vectors.append(block.vectors(slice(start, stop)))
                if len(waiting) >= _CHUNK:
                    yield waiting, np.concatenate(vectors)
                    waiting, vectors = [], []
        if waiting:
            yield waiting, np.concatenate(vectors)
        with self._journal.reading():
            cold, block_of = self._journal.shelf.active(), self._state.block
            while chunk := list(islice(cold, _CHUNK)):
                memories = [each.record.memory(own, block_of(own).prefix) for own, each in chunk]
                yield memories, _as_array([each.record.vector for _, each in chunk])

    def close(self, *, keep: bool = True) -> None:
        """Close the store, if it is open, and if ``keep``, note how its files look after that."""
        if self._scratch is not None:
            self._store.close()
            self._scratch.cleanup()
            return
        if self._folder is None or not self._store.is_open:
            return
        self._store.close()
        cursor = self._cursor
        files = self._store.files()
        if keep and cursor.files is not None and cursor.files != files:
            self._save(files=files)

    def _diagnose(self) -> tuple[str | None, bool]:
        """What is wrong with the store, if anything is, and whether it is another bank's."""
        try:
            if self._store.path is not None and self._store.files() is None:
                return "the store is missing" if self._cursor.commit else "there is no store", False
            if self._store.path is not None and (problem := self._store.probe()):
                return f"the store is damaged: {problem}", False
            self._store.open()
        except StoreMismatch as error:
            if not self._store.is_inside_bank:
                raise  # another program may use it there
            self._refuse_an_empty_journal(error)
            return str(error), True
        return None, False

    def _refuse_an_empty_journal(self, error: StoreMismatch) -> None:
        """Raise if the journal has no commit: beside a full store, that means it was lost."""
        if self._journal.head == 0:
            raise BankDamaged(
                f"the journal is empty, and {self._store.path} holds the memories of a bank: the "
                "journal was lost",
                hint="restore it from a backup; to start anew, move the store away",
            ) from error

    def _apply(self, changes: dict[tuple[str, int], int], *, known: bool) -> None:
        """Write the memories as they are now, which may be after the commits."""
        new: list[tuple[Memory, bytes]] = []
        changed: list[tuple[Memory, bytes]] = []
        gone = []
        for (agent, sequence), how in changes.items():
            block = self._state.block(agent)
            row = block.row_of(sequence)
            memory, vector = None, b""
            if row is not None:
                memory, vector = block.memory(row), block.vectors([row]).tobytes()
            elif stored := self._state.shelf.get((agent, sequence)):
                vector = stored.record.vector
                if stored.record.retention == Retention.ACTIVE:
                    memory = stored.record.memory(agent, block.prefix)
            if memory is None:
                gone.append(memory_id(block.prefix, sequence))
            else:
                (new if how > CHANGED else changed).append((memory, vector))
        if gone:
            self._store.delete(gone)
        if new:
            memories, vectors = zip(*new, strict=True)
            known = known or RETURNED in changes.values()
            self._store.upsert(memories, unit(_as_array(vectors)), known)
        if changed:
            memories, vectors = zip(*changed, strict=True)
            self._store.update(memories, unit(_as_array(vectors)))

    def _done(self) -> None:
        self._save(
            commit=self._journal.head,
            rows=self._total(),
            files=self._store.files(),
            stale=False,
            vacuum=False,
        )
        self._store.record(self._journal.head, self._journal.hash)
        self.problem = None

    def _save(self, **changes: Any) -> None:
        self._cursor = replace(self._cursor, **changes)
        self._journal.set(store=asdict(self._cursor))

    @contextmanager
    def _naming_the_repair(self) -> Iterator[None]:
        try:
            yield
        except (StoreDamaged, StoreMismatch) as error:
            if isinstance(error, StoreMismatch):
                if not self._store.is_inside_bank:
                    raise
                self._refuse_an_empty_journal(error)
            repair = f"tiermem store rebuild {quote(str(self._place()))}"
            raise type(error)(error.why, hint=f"{_KEPT}: {repair}") from error


def _as_array(vectors: Sequence[bytes]) -> Quantised:
    return np.frombuffer(b"".join(vectors), np.int8).reshape(len(vectors), -1)
