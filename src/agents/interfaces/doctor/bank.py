"""The doctor's checks of a bank: its lock, its permissions, its journal, its store, its notes."""

import fcntl
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from .checks import Check, Finding, Findings, run_checks
from .installation import embedding, space

if TYPE_CHECKING:
    from ...bank.memory_bank import MemoryBank

__all__ = ["bank_checks"]


def bank_checks(folder: Path) -> list[Check]:
    return [
        Check("disk", partial(space, folder, "bank")),
        Check("lock", partial(_lock, folder)),
        Check("permissions", partial(_permissions, folder)),
        Check("tokens", partial(_tokens, folder)),
        Check("journal", partial(_memories, folder)),
    ]


# The folder


def _lock(folder: Path) -> Findings:
    holder = _holder(folder)
    if holder is None:
        yield Finding("ok", "lock", "nobody has the bank open")
    else:
        yield Finding("ok", "lock", f"the bank is open in process {holder}; reading works")


def _holder(folder: Path) -> str | None:
    """The process that has the bank open; a killed process leaves its number, but no lock."""
    try:
        file = os.open(folder / "bank.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        pid = os.read(file, 32).decode("ascii", "replace").strip()
        if not pid:
            return None
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return pid
    else:
        return None
    finally:
        os.close(file)


def _permissions(folder: Path) -> Findings:
    files = sorted(folder.glob("journal.db*"))
    wrong = _not_allowed((*files, folder / "bank.lock"))
    yield wrong or Finding("ok", "permissions", "you may write the journal and the lock")


def _not_allowed(paths: Iterable[Path]) -> Finding | None:
    """The first path that the user may not read or write: no damage, but nothing can be stored."""
    for path in paths:
        if not path.exists():
            continue
        entered = os.X_OK if path.is_dir() else 0
        todo = f"chmod u+rw{'x' if entered else ''} {quote(str(path))}, as its owner"
        if not os.access(path, os.R_OK | entered):
            return Finding("problem", "permissions", f"you may not read {path}", todo)
        if os.statvfs(path).f_flag & os.ST_RDONLY:
            said = f"{path} is on a disk that is mounted for reading alone"
            return Finding("problem", "permissions", said, "mount it for writing, or copy the bank")
        if not os.access(path, os.W_OK | entered):
            said = f"you may read {path}, and not write it: nothing can be stored"
            return Finding("problem", "permissions", said, todo)
    return None


def _tokens(folder: Path) -> Findings:
    from ..tokens import FILE, grants

    path = folder / FILE
    if not path.exists():
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        todo = f"let only yourself read it: chmod 600 {quote(str(path))}"
        yield Finding("problem", "tokens", f"others may read {path} (mode {mode:o})", todo)
    else:
        number = len(grants(folder))
        said = f"{number} {'token' if number == 1 else 'tokens'}; only you may read {path}"
        yield Finding("ok", "tokens", said)


# What is in it


def _memories(folder: Path) -> Findings:
    """The journal, and if it is sound, the embedder, the store and the notes."""
    from ...bank import history
    from ...bank.memory_bank import MemoryBank

    yield _journal(folder)
    with closing(history.past(folder, None)) as journal:  # a copy of the bank has no store
        identity, kept = journal.get("bank"), journal.get("store")
    with MemoryBank.at(folder, embedder=_stand_in(identity["embedder"])) as bank:
        yield from run_checks(
            [
                Check("trust", partial(_trust, bank)),
                Check("embedder", partial(_embedder, bank)),
                Check("mem0", partial(_store, bank, folder, kept)),
                Check("notes", partial(_notes, bank, folder)),
            ]
        )


def _journal(folder: Path) -> Finding:
    """The pages of the file, the hash of every commit, and the records of ticks."""
    from ...bank import history
    from ...errors import BankDamaged, BankError
    from ...storage.sqlite import copy_database, is_of_the_system

    path = folder / "journal.db"
    with closing(sqlite3.connect("")) as copy:
        try:
            copy_database(path, copy)
            (found,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
        except sqlite3.Error as error:
            if is_of_the_system(error):
                raise BankError(
                    f"{path} can't be read now: {error}; nothing is known to be wrong with it",
                    hint="look for missing permissions, or for a full disk where TMPDIR is",
                ) from error
            raise BankDamaged(f"{path} can't be read: {error}") from error
    if found != "ok":
        raise BankDamaged(f"{path} is damaged: {found}")
    journal = history.past(folder, None)
    with closing(journal):
        base = journal.base
        # A journal that was made from a checkpoint may lack the hash before its first commit.
        first = base if base in (0, journal.snapshot().commit) else base + 1
        for _ in journal.commits(after=first):
            pass
        for _ in journal.tick_rows():
            pass
        number = journal.head - base
        said = f"{number:,} commits up to tick {journal.tick:,}, each with the right hash"
    return Finding("ok", "journal", said)


def _stand_in(kept: dict[str, Any]) -> Any:
    """An embedder with the name of the bank's own, which has a check of its own."""
    from ...storage.embedding.embedders import NoEmbedder

    class StandIn(NoEmbedder):
        name, dims = kept["name"], kept["dims"]

    return StandIn()


def _trust(bank: "MemoryBank") -> Findings:
    """What an untrusted bank wants to do, and is not checked."""
    guard = bank.parts.guard
    for refused in (guard.embedder(), guard.files(), guard.llm()) if guard else ():
        if refused is not None:
            yield Finding("warning", "trust", refused.why, refused.hint)


def _embedder(bank: "MemoryBank") -> Findings:
    from ...storage.identity import prepare

    if bank.parts.guard is not None and bank.parts.guard.embedder():
        return
    yield from embedding(prepare(bank.parts.ledger.journal, bank.settings, None))


def _store(bank: "MemoryBank", folder: Path, kept: dict[str, Any] | None) -> Findings:
    from ...errors import StoreError
    from ...storage.mem0.package import import_store
    from ...storage.mem0.store import Mem0Store

    if bank.parts.guard is not None and bank.parts.guard.files():
        return
    if kept is None or not max(kept["commit"], kept["writing"]):
        yield Finding("ok", "mem0", "nothing was written to mem0's store yet")
        return
    if _holder(folder) is not None:
        yield Finding("ok", "mem0", "not looked at while the bank is open")
        return
    import_store(bank.settings.store.provider)
    behind = bank.parts.ledger.journal.head - kept["commit"]
    settings, identity = bank.settings.store, bank.parts.ledger.journal.get("bank")
    dims = identity["embedder"]["dims"]
    store = Mem0Store(settings, folder.absolute(), dims, identity["id"])
    repair = f"tiermem repair {quote(str(folder))}"
    if store.path is not None:
        if not store.path.is_dir():
            yield Finding("problem", "mem0", f"the store {store.path} is missing", repair)
            return
        if wrong := _not_allowed((store.path, *sorted(store.path.rglob("*")))):
            yield wrong
            if wrong.said.startswith("you may not read"):
                return
    with tempfile.TemporaryDirectory(prefix="tiermem-doctor-") as scratch:
        if store.path is not None:  # Chroma writes to the files that it opens
            copy = Path(scratch) / "store"
            shutil.copytree(store.path, copy, copy_function=shutil.copyfile)
            config = {**settings.config, "path": str(copy)}
            store = Mem0Store(replace(settings, config=config), copy, dims, identity["id"])
        damage = None
        try:
            if store.path is not None:
                damage = store.probe(0 if behind else kept["rows"])
            if damage is None:
                store.open(written=kept["commit"] > 0)
        except StoreError as error:
            damage = error.why
        finally:
            store.close()
    if damage is not None:
        yield Finding("problem", "mem0", f"mem0's store is damaged: {damage}", repair)
    elif kept["stale"] or behind:
        todo = "nothing: it is written when the bank is opened, or by bank.sync()"
        late = "of another time" if kept["stale"] else f"{behind:,} commits behind"
        yield Finding("warning", "mem0", f"mem0's store is {late}", todo)
    else:
        yield Finding("ok", "mem0", f"{settings.provider}, {kept['rows']:,} memories, in step")


def _notes(bank: "MemoryBank", folder: Path) -> Findings:
    from ...errors import InvalidAgentId, NoteRefused
    from ...memory.requests import check_agent_id
    from ...notes.files import notes_in
    from ...notes.opening import look_at_files

    root, number, refused = folder / "notes", 0, 0
    names = set(bank.agents())
    if root.is_dir():
        names |= {path.name for path in root.iterdir()}
    for agent in sorted(names):
        try:
            files = notes_in(folder, check_agent_id(agent), bank.settings.notes.extra_paths)
            paths = files.paths()
        except InvalidAgentId:
            continue  # not the folder of an agent
        except NoteRefused as error:
            refused += 1
            yield Finding("warning", "notes", f"{agent}: {error}", "it is not indexed")
            continue
        _, seen = look_at_files(bank.parts, folder, agent)
        refused += len(seen.problems)
        number += len(paths) - len(seen.problems)
        for problem in seen.problems:
            yield Finding("warning", "notes", f"{agent}: {problem}", "it is not indexed; mend it")
    if number or not refused:
        yield Finding("ok", "notes", f"{number:,} can be read")
