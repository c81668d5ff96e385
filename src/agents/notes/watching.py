"""Indexes notes while people edit them."""

import atexit
import importlib.util
import logging
import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self, final

from ..engine.engine import Engine
from ..errors import BankClosed, InvalidInput, NoteRefused, TierMemError
from ..packages import missing
from ..storage.files import FOLDER_MODE
from .opening import sync_notes

logger = logging.getLogger(__name__)

_PAUSE = 0.1
"""Seconds after which the thread checks again whether it should stop."""


def watch_notes(bank: Engine, debounce: float | None) -> "NoteWatch":
    """:meth:`MemoryBank.watch_notes`."""
    if debounce is None:
        debounce = bank.settings.notes.watch_debounce
    is_number = isinstance(debounce, int | float) and not isinstance(debounce, bool)
    if not is_number or not math.isfinite(debounce) or debounce < 0:
        raise InvalidInput(f"debounce {debounce!r:.40} is not a number of seconds from 0 on")
    if bank.folder is None:
        raise InvalidInput(
            "notes can be watched in a bank with a folder; this one is in memory, or a copy, and "
            "has no files",
            hint="open one with MemoryBank.open()",
        )
    if importlib.util.find_spec("watchfiles") is None:
        raise missing("to watch notes", "watchfiles")
    folder = bank.folder / "notes"
    with bank.using():
        bank.journal.check_there()
        try:
            folder.mkdir(FOLDER_MODE, exist_ok=True)
        except OSError as error:
            raise NoteRefused(
                f"{folder} can't hold notes: {error.strerror or error}",
                hint="let your user make folders there",
            ) from error
        if folder.is_symlink():
            raise NoteRefused(
                f"{folder} can't be watched: it is a symbolic link; no note is one",
                hint="make it a folder",
            )
        return NoteWatch(bank, folder, debounce)


@final
class NoteWatch:
    """Indexes notes when their files change. Made by :meth:`MemoryBank.watch_notes`.

    :meth:`stop`, the end of its ``with`` block, and closing the bank stop it.
    """

    __slots__ = (
        "_bank", "_debounce", "_folder", "_is_followed", "_problems", "_stopping", "_thread"
    )  # fmt: skip

    def __init__(self, bank: Engine, folder: Path, debounce: float) -> None:
        self._bank = bank
        self._folder = folder
        self._debounce = debounce
        self._is_followed = False
        self._problems: set[tuple[str, str]] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tiermem-notes", daemon=True)
        atexit.register(self.stop)  # native code must not run while the interpreter ends
        self._thread.start()

    def __repr__(self) -> str:
        return f"<NoteWatch {self._folder}: {'watching' if self._thread.is_alive() else 'stopped'}>"

    def stop(self) -> None:
        """Stop watching, after the indexing that is under way. A second call does nothing."""
        self._stopping.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    # In the thread

    def _run(self) -> None:
        try:
            while self._is_wanted():
                # The folder may be gone, or replaced by a file; it may come back.
                with suppress(FileNotFoundError, NotADirectoryError):
                    self._follow()
        except BankClosed:
            pass
        except Exception:  # an error in a thread would be lost
            logger.exception("the notes in %s are no longer watched", self._folder)
        finally:
            atexit.unregister(self.stop)

    def _follow(self) -> None:
        """Index changes in the folder until it is gone or replaced."""
        if not self._folder.is_dir():
            if self._is_followed:  # it went after the last look, and no event will tell
                self._is_followed = False
                self._sync()
            self._stopping.wait(_PAUSE)
            return
        self._is_followed = True
        with _number_of(self._folder) as followed:
            self._follow_one(followed)

    def _follow_one(self, followed: int) -> None:
        from watchfiles import watch

        is_due = True  # changes before the watch began bring no event
        for changes in watch(
            self._folder,
            watch_filter=lambda change, path: not Path(path).name.startswith("."),
            stop_event=self._stopping,
            rust_timeout=int(_PAUSE * 1000),
            yield_on_timeout=True,
            raise_interrupt=False,
            ignore_permission_denied=True,
        ):
            if changes or is_due:
                self._stopping.wait(self._debounce if changes else 0)
                self._sync()
            # What is written into a new folder before the folder is watched brings no event either.
            is_due = bool(changes)
            if not self._is_wanted() or self._folder.stat().st_ino != followed:
                return

    def _sync(self) -> None:
        """Index in turn with other threads. Do not wait for a thread that waits in stop()."""
        turn = self._bank.turn
        while not turn.acquire(timeout=_PAUSE):
            if self._stopping.is_set():
                return
        try:
            if not self._stopping.is_set():
                self._index()
        finally:
            turn.release()

    def _index(self) -> None:
        try:
            with self._bank.using():
                synced = sync_notes(self._bank)
        except BankClosed:
            raise
        except TierMemError as error:
            logger.warning("the notes in %s are not indexed: %s", self._folder, error)
            return
        problems = {(agent, text) for agent, done in synced.items() for text in done.problems}
        skipped = {(agent, text) for agent, done in synced.items() for text in done.skipped}
        for agent, problem in sorted((problems - self._problems) | skipped):
            logger.warning("a note of %s is not indexed: %s", agent, problem)
        self._problems = problems

    def _is_wanted(self) -> bool:
        return self._bank.is_open and not self._stopping.is_set()


@contextmanager
def _number_of(folder: Path) -> Iterator[int]:
    """The folder's inode number. Inside, no other folder gets it, even if this one is deleted."""
    if os.name == "nt":  # Windows can't open a folder
        yield folder.stat().st_ino
        return
    held = os.open(folder, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY)
    try:
        yield os.fstat(held).st_ino
    finally:
        os.close(held)
