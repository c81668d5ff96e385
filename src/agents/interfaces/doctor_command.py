"""The command that finds out what is wrong with an installation or a bank."""

import fcntl
import os
import re
import shutil
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.markup import escape

from agents.interfaces.look_commands import echo_json
from agents.interfaces.options import AsJson

if TYPE_CHECKING:
    from agents.bank import MemoryBank

__all__ = ["doctor"]

_LEAST_PYTHON = (3, 11)
_LEAST_SQLITE = (3, 35, 0)
_LITTLE_SPACE, _NO_SPACE = 1 << 30, 50 << 20
_COLOURS = {"ok": "green", "warning": "yellow", "problem": "bold red"}
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*([^;\[]*)(;.*)?")
_BOUND = re.compile(r"(>=|<|==)\s*([\d.]+)")


class Finding(NamedTuple):
    """What a check found out."""

    state: str
    """ok, warning or problem."""
    about: str
    said: str
    todo: str = ""
    """What to do about it."""


Findings = Iterator[Finding]


def doctor(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[BANK]", help="The bank's folder, if it is about one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the installation, and a bank: what is wrong, and what to do about it.

    It looks at copies and changes nothing. The exit code is 1 where there is a problem.
    """
    checks = [_python, _packages, _sqlite, _disk(Path(tempfile.gettempdir()), "temporary files")]
    if folder is None:
        checks.append(_offline_embedder)
    else:
        from agents.errors import BankNotFound

        if not (folder / "journal.db").is_file():
            raise BankNotFound(f"there is no bank in {folder}; `tiermem init` makes one")
        checks += [_disk(folder, "bank"), lambda: _bank(folder)]
    findings = [finding for check in checks for finding in check()]
    if as_json:
        echo_json([finding._asdict() for finding in findings])
    else:
        _print(findings)
    if any(finding.state == "problem" for finding in findings):
        sys.exit(1)


# The installation


def _python() -> Findings:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _LEAST_PYTHON:
        yield Finding("problem", "python", version, "TierMem needs Python 3.11 or newer")
    else:
        yield Finding("ok", "python", f"{version} in {sys.prefix}")


def _packages() -> Findings:
    from agents import __version__

    yield Finding("ok", "tiermem", __version__)
    sound = []
    for line in metadata.requires("tiermem") or ():
        match = _REQUIREMENT.fullmatch(line)
        if match is None:
            continue
        name, bounds, extra = match[1], match[2], match[3]
        version = _version(name)
        if extra is None and version is None:
            yield Finding("problem", name, "is not installed", f"pip install '{name}{bounds}'")
        elif version is not None and not _fits(version, bounds):
            state = "problem" if extra is None else "warning"
            todo = f"pip install '{name}{bounds}'"
            yield Finding(state, name, f"{version}, and {bounds} is needed", todo)
        elif extra is None:
            sound.append(f"{name} {version}")
    yield Finding("ok", "packages", ", ".join(sound))
    if _version("openai-agents") is not None:
        yield Finding(
            "problem",
            "openai-agents",
            "is a package that is imported as `agents`, like TierMem",
            "install one of them into an environment of its own",
        )


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _fits(version: str, bounds: str) -> bool:
    own = _numbers(version)
    for sign, text in _BOUND.findall(bounds):
        other = _numbers(text)
        if sign == ">=" and own < other:
            return False
        if sign == "<" and own >= other:
            return False
        if sign == "==" and own[: len(other)] != other:
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    leading = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, leading[0].split("."))) if leading else ()


def _sqlite() -> Findings:
    if sqlite3.sqlite_version_info < _LEAST_SQLITE:
        todo = "use a Python that was built with SQLite 3.35 or newer"
        yield Finding("warning", "sqlite", sqlite3.sqlite_version, todo)
    else:
        yield Finding("ok", "sqlite", sqlite3.sqlite_version)


def _disk(place: Path, what: str) -> Callable[[], Findings]:
    def check() -> Findings:
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

    return check


def _offline_embedder() -> Findings:
    from agents.storage.embedders import OfflineEmbedder

    yield _embedding(OfflineEmbedder())


def _embedding(embedder: Any) -> Finding:
    """Whether an embedder gives vectors that tell two texts apart."""
    from agents.errors import EmbedderError
    from agents.storage.embedders import CachedEmbedder

    try:
        one, other = CachedEmbedder(embedder, 0, lambda _: {}).encode(["the sea", "a tax form"])
    except EmbedderError as error:
        return Finding("problem", "embedder", str(error), "memories can't be stored until it works")
    said = f"{embedder.name}, {embedder.dims} dimensions"
    if embedder.name != "none" and (one == other).all():
        todo = "searches find by words alone; check embedder.* in the settings"
        return Finding("warning", "embedder", f"{said}: the same vector for two texts", todo)
    return Finding("ok", "embedder", said)


# A bank


def _bank(folder: Path) -> Findings:
    from agents.bank import MemoryBank
    from agents.errors import TierMemError

    holder = _holder(folder)
    if holder is None:
        yield Finding("ok", "lock", "nobody has the bank open")
    else:
        yield Finding("ok", "lock", f"the bank is open in process {holder}; reading works")
    yield from _tokens(folder)
    try:
        yield _journal(folder)
        bank = MemoryBank.at(folder)
    except TierMemError as error:
        todo = "restore journal.db from a backup, or a checkpoint with MemoryBank.restore()"
        yield Finding("problem", "journal", str(error), todo)
        return
    with bank:
        yield _embedding(bank._embedder.embedder)
        yield from _store(bank, folder, is_open=holder is not None)
        yield from _notes(bank, folder)


def _holder(folder: Path) -> str | None:
    """The process that has the bank open; a process that was killed leaves its number behind."""
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


def _tokens(folder: Path) -> Findings:
    path = folder / "tokens.json"
    if not path.is_file():
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        todo = f"let only yourself read it: chmod 600 {quote(str(path))}"
        yield Finding("problem", "tokens", f"others may read {path} (mode {mode:o})", todo)
    else:
        yield Finding("ok", "tokens", f"only you may read {path}")


def _journal(folder: Path) -> Finding:
    """The pages of the file, the hash over every commit, and what is kept of ticks."""
    from agents import history
    from agents.errors import BankDamaged
    from agents.storage.sqlite_files import copy_database

    with closing(sqlite3.connect("")) as copy:
        try:
            copy_database(folder / "journal.db", copy)
            (found,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
        except sqlite3.Error as error:
            raise BankDamaged(f"{folder / 'journal.db'} can't be read: {error}") from error
    if found != "ok":
        raise BankDamaged(f"{folder / 'journal.db'} is damaged: {found}")
    journal = history.past(folder, None)
    with closing(journal):
        base = journal.base
        # Of a journal that was made from a checkpoint, the hash before its commits may be gone.
        first = base if base in (0, journal.snapshot().commit) else base + 1
        for _ in journal.commits(after=first):
            pass
        for _ in journal.tick_rows():
            pass
        number = journal.head - base
        said = f"{number:,} commits up to tick {journal.tick:,}, each with the right hash"
    return Finding("ok", "journal", said)


def _store(bank: "MemoryBank", folder: Path, *, is_open: bool) -> Findings:
    from agents import history
    from agents.errors import StoreError
    from agents.storage.mem0_store import Mem0Store

    with closing(history.past(folder, None)) as journal:  # of its own store, the copy knows nothing
        kept = journal.get("store")
    if kept is None or not max(kept["commit"], kept["writing"]):
        yield Finding("ok", "mem0", "nothing was written to mem0's store yet")
        return
    behind = bank._ledger.journal.head - kept["commit"]
    settings, identity = bank.settings.store, bank._ledger.journal.get("bank")
    dims = identity["embedder"]["dims"]
    store = Mem0Store(settings, folder.absolute(), dims, identity["id"])
    if is_open:
        yield Finding("ok", "mem0", "not looked at while the bank is open")
        return
    repair = f"tiermem repair {quote(str(folder))}"
    if store.path is not None and not store.path.is_dir():
        yield Finding("problem", "mem0", f"the store {store.path} is missing", repair)
        return
    with tempfile.TemporaryDirectory(prefix="tiermem-doctor-") as scratch:
        if store.path is not None:  # whoever opens Chroma's files changes them
            copy = Path(scratch) / "store"
            shutil.copytree(store.path, copy)
            config = {**settings.config, "path": str(copy)}
            store = Mem0Store(replace(settings, config=config), copy, dims, identity["id"])
        try:
            wrong = store.probe(0 if behind else kept["rows"]) if store.path is not None else None
            if wrong is None:
                store.open(written=kept["commit"] > 0)
        except StoreError as error:
            wrong = str(error)
        finally:
            store.close()
    if wrong is not None:
        yield Finding("problem", "mem0", f"mem0's store is damaged: {wrong}", repair)
    elif kept["stale"] or behind:
        todo = "nothing: it is written when the bank is opened, or by bank.sync()"
        late = "of another time" if kept["stale"] else f"{behind:,} commits behind"
        yield Finding("warning", "mem0", f"mem0's store is {late}", todo)
    else:
        yield Finding("ok", "mem0", f"{settings.provider}, {kept['rows']:,} memories, in step")


def _notes(bank: "MemoryBank", folder: Path) -> Findings:
    from agents.errors import InvalidAgentId, NoteRefused
    from agents.memory.records import check_agent_id
    from agents.notes.agent_notes import notes_in
    from agents.notes.opening import look_at_files

    root, number, refused = folder / "notes", 0, 0
    names = set(bank.agents())
    if root.is_dir():
        names |= {path.name for path in root.iterdir()}
    for agent in sorted(names):
        try:
            files = notes_in(folder, check_agent_id(agent), bank.settings.notes.extra_paths)
            paths = files.paths()
        except InvalidAgentId:
            continue  # somebody else's folder
        except NoteRefused as error:
            refused += 1
            yield Finding("warning", "notes", f"{agent}: {error}", "it is not indexed")
            continue
        _, seen = look_at_files(bank, folder, agent)
        refused += len(seen.problems)
        number += len(paths) - len(seen.problems)
        for problem in seen.problems:
            yield Finding("warning", "notes", f"{agent}: {problem}", "it is not indexed; mend it")
    if number or not refused:
        yield Finding("ok", "notes", f"{number:,} can be read")


# Output


def _print(findings: list[Finding]) -> None:
    from agents.memory.context import one_line

    if not sys.stdout.isatty():
        for finding in findings:
            typer.echo("\t".join(one_line(part) for part in finding if part))
        return
    console = Console(highlight=False, soft_wrap=True)
    for state, about, said, todo in findings:
        label = f"[{_COLOURS[state]}]{state:<8}[/]"
        console.print(f"{label} [bold]{about:<12}[/] {escape(one_line(said))}")
        if todo:
            console.print(f"{'':21} [dim]→[/] {escape(one_line(todo))}")
    problems = sum(finding.state == "problem" for finding in findings)
    if problems:
        console.print(f"[bold red]{problems} {'problem' if problems == 1 else 'problems'}[/]")
    else:
        console.print("[green]all is well[/]")
