"""What goes wrong in one of the threads that write a checkpoint is not lost, and harms no other."""

import errno
import os
import signal
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agents import CheckpointError, MemoryBank
from agents.storage import checkpoint
from waiting import LONG, until


def test_what_the_disk_says_meanwhile_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system says once that bytes did not reach the disk; asked again, it says all is well."""
    said: list[str] = []

    def sync(path: Path) -> None:
        said.append(threading.current_thread().name)
        if len(said) == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(checkpoint, "_AT_ONCE", 1)
    monkeypatch.setattr(checkpoint, "_TO_DISK", 1)
    monkeypatch.setattr(checkpoint, "sync_file", sync)
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        bank.add_many([(f"agent_{n}", "a text") for n in range(40)])
        with pytest.raises(CheckpointError, match="Input/output error"):
            bank.checkpoint(tmp_path / "one.tmck")
        assert said[0].startswith("tiermem-sync")  # not by who renames the file in the end
        assert not list(tmp_path.glob("*tmck*"))
        bank.checkpoint(tmp_path / "one.tmck")
    assert MemoryBank.restore(tmp_path / "one.tmck", into=tmp_path / "again").agents()


class Stopping(sqlite3.Connection):
    """A database that is slow to insert, or refuses to."""

    error: BaseException | None = None
    inserting = threading.Event()
    go_on = threading.Event()
    closed_by: ClassVar[list[str]] = []

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        if "INTO agents" in arguments[0]:
            Stopping.inserting.set()
            Stopping.go_on.wait(LONG)
            if Stopping.error is not None:
                raise Stopping.error
        return super().executemany(*arguments)

    def close(self) -> None:
        Stopping.closed_by.append(threading.current_thread().name)
        super().close()


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> type[Stopping]:
    """Checkpoints are written through it."""
    real = sqlite3.connect

    def connect(path: Any, **options: Any) -> sqlite3.Connection:
        if ".tmck" in str(path):
            options["factory"] = Stopping
        return real(path, **options)

    for event in (Stopping.inserting, Stopping.go_on):
        event.clear()
    Stopping.error = None
    Stopping.closed_by.clear()
    monkeypatch.setattr(sqlite3, "connect", connect)
    monkeypatch.setattr(checkpoint, "_AT_ONCE", 1)
    return Stopping


def test_what_goes_wrong_while_agents_are_inserted_is_told(
    tmp_path: Path, stopping: type[Stopping]
) -> None:
    stopping.error = sqlite3.OperationalError("database or disk is full")
    stopping.go_on.set()
    with MemoryBank.ephemeral() as bank:
        bank.add_many([(f"agent_{n}", "a text") for n in range(3)])
        with pytest.raises(CheckpointError, match="disk is full"):
            bank.checkpoint(tmp_path / "one.tmck")
    assert not list(tmp_path.glob("*tmck*"))
    assert len(stopping.closed_by) == 1


def test_a_second_interrupt_does_not_close_the_file_under_who_writes_it(
    tmp_path: Path, stopping: type[Stopping], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite would crash the process."""
    packed = checkpoint.snapshots.pack

    def interrupted(block: Any) -> Any:
        if block.agent_id == "agent_1":
            stopping.inserting.wait(LONG)
            raise KeyboardInterrupt
        return packed(block)

    def again(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint.snapshots, "pack", interrupted)
    with MemoryBank.ephemeral() as bank:
        bank.add_many([(f"agent_{n}", "a text") for n in range(3)])
        with monkeypatch.context() as second:
            second.setattr(checkpoint.Future, "result", again)
            second.setattr(checkpoint.ThreadPoolExecutor, "shutdown", again)
            with pytest.raises(KeyboardInterrupt):
                bank.checkpoint(tmp_path / "one.tmck")
        assert not stopping.closed_by
        stopping.go_on.set()
        until("the thread that writes closes the file", lambda: stopping.closed_by)
    assert len(stopping.closed_by) == 1
    assert stopping.closed_by[0].startswith("tiermem-checkpoint")
    assert not list(tmp_path.glob("*tmck*"))


class Dying(sqlite3.Cursor):
    """A cursor that tells which thread made it and which thread let it go."""

    threads: ClassVar[list[tuple[int, int]]] = []

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.maker = threading.get_ident()

    def __del__(self) -> None:
        Dying.threads.append((self.maker, threading.get_ident()))


class OfDying(sqlite3.Connection):
    """A database with these cursors."""

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        return self.cursor(Dying).executemany(*arguments)


def test_a_cursor_dies_in_the_thread_that_used_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cursor that dies resets its statement, which the other thread may be running."""
    real = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda path, **options: real(path, **options, factory=OfDying)
    )
    monkeypatch.setattr(checkpoint, "_AT_ONCE", 1)
    Dying.threads.clear()
    with MemoryBank.ephemeral() as bank:
        bank.add_many([(f"agent_{n}", "a text") for n in range(20)])
        Dying.threads.clear()
        bank.checkpoint(tmp_path / "one.tmck")
    assert len({maker for maker, _ in Dying.threads}) == 2
    assert all(maker == last for maker, last in Dying.threads)


def test_ctrl_c_again_and_again_leaves_no_thread_that_uses_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that ends while a thread of it uses SQLite may crash."""

    def insert(*_: object) -> None:
        for _ in range(3):
            time.sleep(0.05)  # for the main thread, which handles signals, to wait somewhere else
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)

    monkeypatch.setattr(checkpoint, "_insert", insert)
    with MemoryBank.ephemeral() as bank:
        bank.agent("alice").add("a text")
        with pytest.raises(KeyboardInterrupt):
            bank.checkpoint(tmp_path / "one.tmck")
        assert not [each for each in threading.enumerate() if "checkpoint" in each.name]
    assert not list(tmp_path.glob("*tmck*"))
