"""The command ``doctor``: it looks at an installation, and at a bank.

Of a bank, it looks at lock, permissions, journal, store and notes.

A check yields findings, and its failure does not stop the next check.
"""

import fcntl
import importlib
import importlib.util
import os
import platform
import shutil
import sqlite3
import stat
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from importlib import metadata
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from rich.console import Console
from rich.text import Text
from typer import Argument, Exit

from ....errors import (
    BankDamaged,
    BankTooNew,
    BankTooOld,
    EmbedderError,
    TierMemError,
)
from ....memory.context import one_line
from ....memory.words import counted, first_of
from ....packages import install, module_of, purpose, requirements
from ....storage.files import TemporaryFolder
from .. import failures
from ..options import AsJson
from ..output import echo_json, say

if TYPE_CHECKING:
    from ....bank.memory_bank import MemoryBank


_COLOURS = {"ok": "green", "warning": "yellow", "problem": "bold red"}
_LEAST_SQLITE = (3, 35, 0)
_LITTLE_SPACE, _NO_SPACE = 1 << 30, 50 << 20


class Finding(NamedTuple):
    """One result of a check."""

    state: str
    """ok, warning or problem."""
    about: str
    said: str
    todo: str = ""
    """What to do about it."""


Findings = Iterator[Finding]


class Check(NamedTuple):
    """A function that yields findings, and the subject for the finding that it failed."""

    about: str
    look: Callable[[], Findings]


def doctor(
    folder: Annotated[
        Path | None, Argument(metavar="BANK", help="The folder of a bank to check, too.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the installation, and a bank: what is wrong, and what to do about it.

    The command reads copies and changes nothing. It exits with 1 if there is a problem.
    """
    checks = installation_checks()
    if folder is None:
        checks.append(Check("embedder", embedding))
    else:
        if not (folder / "journal.db").is_file():
            from ....bank.history import no_bank  # it needs packages that may be missing

            raise no_bank(folder)
        checks += bank_checks(folder)
    findings = list(run_checks(checks))
    if as_json:
        echo_json([finding._asdict() for finding in findings])
    else:
        _print(findings)
    if any(finding.state == "problem" for finding in findings):
        raise Exit(1)


def _print(findings: list[Finding]) -> None:
    if not sys.stdout.isatty():
        for finding in findings:
            say("\t".join(filter(None, finding)))
        return
    console = Console(highlight=False, soft_wrap=True)
    for state, about, said, todo in findings:
        label, subject = (f"{state:<8}", _COLOURS[state]), (f"{about:<12}", "bold")
        console.print(Text.assemble(label, " ", subject, " ", one_line(said)))
        if todo:
            console.print(Text.assemble(" " * 22, ("→", "dim"), " ", one_line(todo)))
    problems = sum(finding.state == "problem" for finding in findings)
    if problems:
        console.print(Text(counted(problems, "problem"), "bold red"))
    else:
        console.print(Text("all is well", "green"))


def run_checks(checks: Iterable[Check]) -> Findings:
    """The findings of all checks; the failure of a check is a finding, too."""
    for check in checks:
        try:
            yield from check.look()
        except ImportError as error:
            yield _not_checked(check.about, error)
        except TierMemError as error:
            lacking = error.__cause__ if isinstance(error.__cause__, ImportError) else None
            yield _not_checked(check.about, lacking) if lacking else _of_error(check.about, error)
        except OSError as error:
            _, why, todo = failures.of_system(error)
            yield Finding("problem", check.about, f"it can't be checked: {why}", todo)
        except Exception as error:  # noqa: BLE001 - the next checks still run
            said = f"it can't be checked: {type(error).__name__}: {error}"
            yield Finding("problem", check.about, said, "tell the authors of TierMem")


def _not_checked(about: str, error: ImportError) -> Finding:
    """A warning for the check; the missing package itself is a problem of another check."""
    missing = (error.name or str(error)).partition(".")[0]
    todo = f"get {missing} first, then look again"
    return Finding("warning", about, f"not checked: it needs {missing}", todo)


def _of_error(about: str, error: TierMemError) -> Finding:
    """The finding that a check ended with an error."""
    if isinstance(error, EmbedderError):
        return Finding("problem", "embedder", error.why, error.hint)
    if isinstance(error, BankDamaged) and not isinstance(error, BankTooNew | BankTooOld):
        todo = "restore journal.db from a backup, or a checkpoint with MemoryBank.restore()"
        return Finding("problem", about, error.why, todo)
    return Finding("problem", about, error.why, error.hint)


# An installation


def installation_checks() -> list[Check]:
    """The checks without a bank; the packages come first, because other checks need them."""
    temporary = Path(tempfile.gettempdir())
    return [
        Check("python", _python),
        Check("packages", _packages),
        Check("sqlite", _sqlite),
        Check("disk", partial(_space, temporary, "temporary files")),
    ]


def _python() -> Findings:
    version = platform.python_version()
    yield Finding("ok", "python", f"{version} in {sys.prefix}")


# Packages


def _packages() -> Findings:
    from .... import __version__

    yield Finding("ok", "tiermem", __version__)
    sound = []
    own = {module_of(each.name) for each, extra in requirements() if extra is None}
    unused = {extra for each, extra in requirements() if extra and _version(each.name) is None}
    for wanted, extra in requirements():
        if extra in unused:  # an extra that lacks a package: its bounds bind nobody
            continue
        name, bounds = wanted.name, wanted.specifier
        version, todo = _version(name), f"pip install '{name}{bounds}'"
        if extra is None and version is None:
            yield Finding("problem", name, "is not installed", todo)
        elif version is not None and not bounds.contains(version, prereleases=True):
            state = "problem" if extra is None else "warning"
            yield Finding(state, name, f"{version}, and {bounds} is needed", todo)
        elif extra is None and (error := _tried(module_of(name))):
            lacking = (error.name or module_of(name)).partition(".")[0]
            if lacking == module_of(name) or lacking not in own:  # else it is a finding itself
                use = purpose(module_of(name)) or "all of TierMem"
                said = f"can't be imported ({error}); it is for {use}"
                yield Finding("problem", name, said, install(lacking))
        elif extra is None:
            sound.append(f"{name} {version}")
    if sound:
        yield Finding("ok", "packages", ", ".join(sound))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _tried(module: str) -> ImportError | None:
    """The error of importing a package, which can be installed and yet not load."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _import(module)
    except ImportError as error:
        return error
    return None


def _import(module: str) -> None:
    if module == "wordllama":  # only its files are used; its code would set up logging
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(f"No module named '{module}'", name=module)
    elif module == "mem0":
        from ....storage.mem0.package import import_store

        import_store(None)
    else:
        importlib.import_module(module)


# The machine


def _sqlite() -> Findings:
    if sqlite3.sqlite_version_info < _LEAST_SQLITE:
        todo = "use a Python that was built with SQLite 3.35 or newer"
        yield Finding("warning", "sqlite", sqlite3.sqlite_version, todo)
    else:
        yield Finding("ok", "sqlite", sqlite3.sqlite_version)


def _space(place: Path, what: str) -> Findings:
    """Whether a folder has room, and the user may write to it."""
    free = shutil.disk_usage(place).free
    said = f"{free / 1e9:,.1f} GB free for {what} in {place}"
    if free < _NO_SPACE:
        yield Finding("problem", "disk", said, "make room: nothing more can be stored soon")
    elif free < _LITTLE_SPACE:
        yield Finding("warning", "disk", said, "make room before it runs out")
    else:
        yield Finding("ok", "disk", said)
    if not os.access(place, os.W_OK | os.X_OK):
        todo = f"give yourself the right to write: chmod u+rwx {quote(str(place))}"
        yield Finding("problem", "disk", f"{place} can't be written to", todo)


def embedding(embedder: Any = None) -> Findings:
    """Whether an embedder, by default the offline one, gives two texts different vectors."""
    from ....storage.embedding import CachedEmbedder, OfflineEmbedder

    embedder = embedder or OfflineEmbedder()
    one, other = CachedEmbedder(embedder, 0, lambda _: {}).encode(["the sea", "a tax form"])
    said = f"{embedder.name}, {embedder.dims} dimensions"
    if embedder.name != "none" and (one == other).all():
        todo = "searches find by words alone; check embedder.* in the settings"
        yield Finding("warning", "embedder", f"{said}: the same vector for two texts", todo)
    else:
        yield Finding("ok", "embedder", said)


# A bank


def bank_checks(folder: Path) -> list[Check]:
    return [
        Check("disk", partial(_space, folder, "bank")),
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
    from ...tokens import FILE, grants

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
    from ....bank import history
    from ....bank.memory_bank import MemoryBank
    from ....exchange.salvage import stand_in

    try:
        sound = _journal(folder)
    except (BankTooNew, BankTooOld):
        raise
    except BankDamaged as error:
        yield _damage(folder, _of_error("journal", error))
        return
    with closing(history.past(folder, None)) as journal:  # a copy of the bank has no store
        identity, kept = journal.get("bank"), journal.get("store")
    with MemoryBank.at(folder, embedder=stand_in(identity["embedder"])) as bank:
        if touched := _incomplete(bank):
            lost = BankDamaged(f"the journal has lost memories of {first_of(touched)}")
            yield _damage(folder, _of_error("journal", lost))
            return
        yield sound
        yield from run_checks(
            [
                Check("clock", partial(_clock, bank, folder)),
                Check("trust", partial(_trust, bank)),
                Check("embedder", partial(_embedder, bank)),
                Check("mem0", partial(_store, bank, folder, kept)),
                Check("notes", partial(_notes, bank, folder)),
            ]
        )


def _journal(folder: Path) -> Finding:
    """The pages of the file, and the hash of every commit, tick, snapshot and cold memory."""
    from ....bank import history
    from ....storage.checkpoint import check_all

    with closing(history.past(folder, None)) as journal:
        check_all(journal)
        number = journal.head - journal.base
        said = f"{number:,} commits up to tick {journal.tick:,}, each with the right hash"
    return Finding("ok", "journal", said)


def _incomplete(bank: "MemoryBank") -> list[str]:
    """The agents whose memories that are not resident do not add up to the hash over them."""
    sums = Counter[str]()
    for row in bank.engine.journal.shelf.all_now():
        sums[row[0]] += int.from_bytes(row[5], "big")
    blocks = bank.engine.state.blocks
    return [
        name for name in sorted(blocks) if (blocks.peek(name).shelf_sum - sums[name]) % (1 << 256)
    ]


def _damage(folder: Path, finding: Finding) -> Finding:
    """The finding that the journal is damaged, with the agents touched and what can be saved."""
    from ....exchange.salvage import salvage

    try:
        saved = salvage(folder)
    except BankDamaged:  # nothing can be read
        return finding
    with saved.bank as bank:
        agents = bank.agents()
        memories = sum(bank.agent(each).count() for each in agents)
    said = f"agents touched: {first_of(saved.touched) or 'none that is known'}"
    if saved.problems:
        said += f"; damaged: {first_of(saved.problems)}"
    what = "all" if saved.is_complete else "some"
    said += f"; {memories:,} memories of {len(agents):,} agents can be saved, which is {what}"
    export = f"tiermem store export {quote(str(folder))} --salvage --out FILE.jsonl"
    todo = f"save them first with: {export}"
    return finding._replace(said=f"{finding.said}; {said}", todo=f"{finding.todo}; {todo}")


def _clock(bank: "MemoryBank", folder: Path) -> Findings:
    """What moves the tick, and whether it does."""
    from ....engine import clock

    own = bank.settings.clock
    said, anchor = f"tick {bank.tick:,}; {own}", clock.anchor_of(bank.engine)
    if own.mode == "wall" and anchor is not None:
        behind = bank.tick - anchor.tick_at(clock.now_ms())
        if behind > 0 or clock.now_ms() < anchor.ms:
            said += "; the wall clock is behind, and the tick stands until it has caught up"
            todo = "set the clock of this machine; if it is right, let the time go on with: "
            todo += f"tiermem advance {quote(str(folder))} --by 0"
            yield Finding("warning", "clock", said, todo)
            return
    yield Finding("ok", "clock", said)


def _trust(bank: "MemoryBank") -> Findings:
    """What an untrusted bank wants to do, and is not checked."""
    guard = bank.engine.guard
    for refused in (guard.embedder(), guard.files(), guard.llm()) if guard else ():
        if refused is not None:
            yield Finding("warning", "trust", refused.why, refused.hint)


def _embedder(bank: "MemoryBank") -> Findings:
    from ....storage.trust import prepare

    if bank.engine.guard is not None and bank.engine.guard.embedder():
        return
    journal = bank.engine.journal
    yield from embedding(prepare(journal, journal.get("bank"), bank.settings, None)[1])


def _store(bank: "MemoryBank", folder: Path, cursor: dict[str, Any] | None) -> Findings:
    from ....errors import StoreError
    from ....storage.mem0.package import import_store
    from ....storage.mem0.store import Mem0Store

    if bank.engine.guard is not None and bank.engine.guard.files():
        return
    if bank.settings.store.provider == "none":
        yield Finding("ok", "mem0", "this bank has no store of mem0's: store.provider is none")
        return
    if cursor is None or not max(cursor["commit"], cursor["writing"]):
        yield Finding("ok", "mem0", "nothing was written to mem0's store yet")
        return
    if _holder(folder) is not None:
        yield Finding("ok", "mem0", "not looked at while the bank is open")
        return
    import_store(bank.settings.store.provider)
    behind = bank.engine.journal.head - cursor["commit"]
    settings, identity = bank.settings.store, bank.engine.journal.get("bank")
    dims = identity["embedder"]["dims"]
    store = Mem0Store(settings, folder.absolute(), dims, identity["id"])
    repair = f"tiermem store rebuild {quote(str(folder))}"
    if store.path is not None:
        if not store.path.is_dir():
            yield Finding("problem", "mem0", f"the store {store.path} is missing", repair)
            return
        if wrong := _not_allowed((store.path, *sorted(store.path.rglob("*")))):
            yield wrong
            if wrong.said.startswith("you may not read"):
                return
    late = f"only readers by mem0 need it: tiermem store sync {quote(str(folder))}"
    if cursor["stale"]:  # the next sync makes it anew, whatever it is
        yield Finding("warning", "mem0", "mem0's store is of another time", late)
        return
    with TemporaryFolder("doctor") as scratch:
        if store.path is not None:  # Chroma writes to the files that it opens
            copy = Path(scratch) / "store"
            shutil.copytree(store.path, copy, copy_function=shutil.copyfile)
            config = {**settings.config, "path": str(copy)}
            store = Mem0Store(replace(settings, config=config), copy, dims, identity["id"])
        damage = None
        try:
            if store.path is not None:
                damage = store.probe(0 if behind else cursor["rows"])
            if damage is None:
                store.open(written=cursor["commit"] > 0)
                if store.path is not None:
                    damage = _differing(bank, store.rows(), is_in_step=not behind)
        except StoreError as error:
            damage = error.why
        finally:
            store.close()
    if damage is not None:
        yield Finding("problem", "mem0", f"mem0's store is damaged: {damage}", repair)
    elif behind:
        yield Finding("warning", "mem0", f"mem0's store is {behind:,} commits behind", late)
    else:
        yield Finding("ok", "mem0", f"{settings.provider}, {cursor['rows']:,} memories, in step")


def _differing(
    bank: "MemoryBank", rows: Iterable[tuple[str, dict[str, Any]]], *, is_in_step: bool
) -> str | None:
    """How the rows of a store differ from the memories of its bank; None if they do not.

    The text of a memory never changes, so a store that is behind has the same texts.
    """
    found = {key: own for key, own in rows if "user_id" in own}
    memories = [memory for each in bank.agents() for memory in bank.agent(each).all()]
    changed = [
        memory
        for memory in memories
        if (own := found.get(memory.id)) is not None
        and (own.get("data"), own["user_id"]) != (memory.content, memory.agent_id)
    ]
    if changed:
        names = sorted({memory.agent_id for memory in changed})
        which = "1 memory" if len(changed) == 1 else f"{len(changed):,} memories"
        return f"it has another text for {which} of {first_of(names)} ({changed[0].id})"
    if is_in_step and (missing := sum(memory.id not in found for memory in memories)):
        return f"{missing:,} memories of the bank are not in it"
    return None


def _notes(bank: "MemoryBank", folder: Path) -> Findings:
    from ....errors import NoteRefused
    from ....notes.files import agent_of_folder, notes_in
    from ....notes.opening import look_at_files

    root, number, refused = folder / "notes", 0, 0
    names = set(bank.agents())
    if root.is_dir():
        names.update(filter(None, (agent_of_folder(path.name) for path in root.iterdir())))
    for agent in sorted(names):
        try:
            paths = notes_in(folder, agent, bank.settings.notes.extra_paths).paths()
        except NoteRefused as error:
            refused += 1
            yield Finding("warning", "notes", f"{agent}: {error}", "it is not indexed")
            continue
        _, seen = look_at_files(bank.engine, folder, agent)
        refused += len(seen.problems)
        number += len(paths) - len(seen.problems)
        for problem in seen.problems:
            yield Finding("warning", "notes", f"{agent}: {problem}", "it is not indexed; mend it")
    if number or not refused:
        yield Finding("ok", "notes", f"{number:,} can be read")
