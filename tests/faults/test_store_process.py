"""The process that uses mem0's store is stopped, killed or left behind: the bank goes on."""

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread, Timer

import pytest

from agents import MemoryBank, StoreDamaged, StoreError
from agents.storage.mem0.child_process import StoreChild, end_idle
from banks import contents
from embedders import Directions
from plain_mem0 import assert_store_is_exact
from waiting import until

pytestmark = [
    pytest.mark.slow_after(1),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def opened(folder: Path, **options: object) -> MemoryBank:
    options.setdefault("embedder", Directions())
    return MemoryBank.open(folder, preset="vector", **options)  # type: ignore[arg-type]


def signalled(bank: MemoryBank, number: int) -> None:
    """Send a signal to the process that uses the bank's store."""
    child = bank.engine.store._store._child
    assert child is not None
    os.kill(child._process.pid, number)


def problem(bank: MemoryBank) -> str:
    """What the bank's status says about the store."""
    return "".join(each.reason for each in bank.status().suggestions if each.what == "sync")


def assert_in_step(bank: MemoryBank) -> None:
    assert problem(bank) == ""
    bank.engine.store.close()  # no two clients may hold a local store
    assert_store_is_exact(bank)


@pytest.mark.slow
def test_a_store_that_does_not_answer_is_given_up_and_caught_up_later(folder: Path) -> None:
    with opened(folder, store={"timeout": 5}) as bank:
        alice = bank.agent("alice")
        alice.add("first <1 0>")
        bank.sync()
        signalled(bank, signal.SIGSTOP)
        alice.add_many([f"second {n} <0 1>" for n in range(300)])
        with pytest.raises(StoreError, match=r"did not answer within 5 seconds.*next sync") as late:
            bank.sync()
        assert type(late.value) is StoreError
        alice.add("third <1 1>")
        assert alice.search("<1 1>", 1)[0].memory.content == "third <1 1>"
        assert bank.sync() == 301
        assert_in_step(bank)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_store_that_crashes_leaves_the_bank_at_work(folder: Path, number: int) -> None:
    with opened(folder) as bank:
        alice = bank.agent("alice")
        alice.add("first")
        bank.sync()
        signalled(bank, number)
        alice.add("second")
        with pytest.raises(
            StoreDamaged, match=rf"crashes \(signal {number:d}\).*tiermem store rebuild"
        ):
            bank.sync()
        alice.add("third")
        assert bank.sync() == 2
        assert_in_step(bank)


@pytest.mark.slow
def test_a_commit_is_acknowledged_whatever_becomes_of_the_store(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(folder, storage={"sync": "commit"}) as bank:
        alice = bank.agent("alice")
        gone = alice.add("first")
        shutil.rmtree(folder / "chroma")
        signalled(bank, signal.SIGKILL)
        with caplog.at_level(logging.WARNING):
            alice.add("second")
        assert "the memories are kept, but mem0's store lacks some" in caplog.text
        assert "crashes (signal 9)" in problem(bank)
        bank.engine.store._paused_until = 0.0
        alice.forget(gone.id)
        assert "lost this bank's memories" in problem(bank)
        with pytest.raises(StoreDamaged, match="tiermem store rebuild"):
            bank.sync()
        assert contents(bank) == ["second"]
        bank.repair_store()
        assert_in_step(bank)
    with opened(folder) as bank:
        assert contents(bank) == ["second"]


def test_a_store_that_failed_is_not_tried_again_with_each_commit(folder: Path) -> None:
    with opened(folder, storage={"sync": "commit"}) as bank:
        alice = bank.agent("alice")
        alice.add("first")
        signalled(bank, signal.SIGKILL)
        alice.add("second")
        bank.engine.store._paused_until += 600
        alice.add("third")
        assert problem(bank)
        bank.engine.store._paused_until = 0.0
        alice.add("fourth")
        assert_in_step(bank)


@contextlib.contextmanager
def slow_start(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Iterator[int]:
    """Inside, the next process for a store does not start, for which it has so many seconds."""
    end_idle()
    child = StoreChild()
    os.kill(child._process.pid, signal.SIGSTOP)
    child.give_back()
    with monkeypatch.context() as own:
        own.setattr("agents.storage.mem0.store._START_SECONDS", seconds)
        yield child._process.pid
    end_idle()


@pytest.mark.slow
def test_a_bank_closes_with_a_warning_if_the_process_of_its_store_does_not_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with slow_start(monkeypatch, 1), opened(folder, store={"timeout": 0.5}) as bank:
        bank.agent("alice").add("first")
    assert "its process did not start within 1 seconds" in caplog.text
    assert "set store.timeout above 1" in caplog.text
    todo = f"the next opening brings the store up to date, or tiermem store sync {folder}"
    assert todo in caplog.text
    with opened(folder, store={"timeout": 600}) as bank:
        assert_in_step(bank)


@pytest.mark.slow
def test_a_process_that_does_not_start_is_no_damage_of_the_store(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(folder) as bank:
        bank.agent("alice").add("first")
    os.utime(folder / "chroma" / "chroma.sqlite3")  # so that opening tries the store
    with (
        slow_start(monkeypatch, 1),
        opened(folder, store={"timeout": 0.5}) as bank,
    ):
        assert contents(bank) == ["first"]
        assert "did not start" in problem(bank)


@pytest.mark.slow
def test_a_process_may_take_as_long_to_start_as_the_setting_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with slow_start(monkeypatch, 0.1) as pid, opened(folder, store={"timeout": 600}) as bank:
        bank.agent("alice").add("first")
        goes_on = Timer(1, os.kill, (pid, signal.SIGCONT))
        goes_on.start()
        assert bank.sync() == 1
        goes_on.join()


LEAVES = """
import os, signal, sys
from agents import MemoryBank
from embedders import Directions
bank = MemoryBank.open(sys.argv[1], embedder=Directions(), preset="vector")
bank.agent("alice").add("first")
bank.sync()
child = bank.engine.store._store._child
if sys.argv[2] == "stopped":
    os.kill(child._process.pid, signal.SIGSTOP)
print(child._process.pid, flush=True)
bank.agent("alice").add("second")
os.kill(os.getpid(), signal.SIGKILL)
"""


def left_behind(folder: Path, how: str) -> int:
    """Kill a process that has a bank open; the number of the process that used its store."""
    done = subprocess.run(
        [sys.executable, "-c", LEAVES, str(folder), how],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        # The system wakes what is stopped in a process group that loses its last tie to its
        # session. The group of a new session never had such a tie.
        start_new_session=True,
    )
    assert done.returncode == -signal.SIGKILL
    return int(done.stdout)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.slow
def test_the_process_of_a_store_ends_with_the_process_of_its_bank(folder: Path) -> None:
    pid = left_behind(folder, "running")
    until("the process of the store to end", lambda: not is_running(pid))
    with opened(folder) as bank:
        assert_in_step(bank)


@pytest.mark.slow
def test_two_processes_never_write_one_store(folder: Path) -> None:
    pid = left_behind(folder, "stopped")
    try:
        with opened(folder) as bank:
            assert contents(bank) == ["first", "second"]
            assert "left behind" in problem(bank)
            os.kill(pid, signal.SIGCONT)
            until("the process of the store to end", lambda: not is_running(pid))
            assert bank.sync() == 1
            assert_in_step(bank)
    finally:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)


def test_files_that_go_while_a_bank_opens_are_no_error(folder: Path) -> None:
    with opened(folder) as bank:
        bank.agent("alice").add("first")
        bank.sync()
        bank.engine.store.close()
        files, done = bank.engine.store._store.files, Event()

        def make_and_remove() -> None:
            passing = folder / "chroma" / "chroma.sqlite3-journal"
            while not done.is_set():
                passing.touch()
                passing.unlink()

        other = Thread(target=make_and_remove)
        other.start()
        try:
            assert all(files() for _ in range(500))
        finally:
            done.set()
            other.join()


FULL = """
import os, sys
from pathlib import Path
from agents import MemoryBank, StoreError

disk, room = Path(sys.argv[2]), int(sys.argv[3])
with MemoryBank.open(sys.argv[1], store={"config": {"path": str(disk / "chroma")}, "timeout": 20},
                     storage={"sync": "manual"}) as bank:
    def add(turn):
        bank.add_many((f"a{n % 3}", f"memory {turn} {n} " + "x" * 200) for n in range(300))
    add(0)
    bank.sync()
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / "filler").write_bytes(bytes(max(0, free - room * 1024)))
    failed = 0
    for turn in range(1, 5):
        add(turn)
        try:
            bank.sync()
        except StoreError as error:
            failed += 1
            print(type(error).__name__, str(error)[:200], file=sys.stderr)
    assert failed, "the disk is too large"
    assert len(bank.agent("a0").search("memory 4 0", 5)) == 5
    (disk / "filler").unlink()
    add(7)
    try:
        bank.sync()
    except StoreError as error:  # a full disk may have damaged Chroma's own files
        print("rebuilt after", error, file=sys.stderr)
        bank.repair_store()
    assert all(each.what != "sync" for each in bank.status().suggestions)
print("done")
"""


@pytest.mark.slow
@pytest.mark.long_after(1)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a small disk")
@pytest.mark.parametrize("room", [400, 0, 1500])
def test_a_full_disk_under_the_store_ends_in_an_error_and_the_bank_goes_on(
    tmp_path: Path, room: int
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", disk], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("no disk can be mounted here")
    try:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(FULL), tmp_path / "bank", disk, str(room)],
            capture_output=True,
            text=True,
            timeout=550,
            check=False,
        )
        assert done.stdout == "done\n", done.stderr
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
