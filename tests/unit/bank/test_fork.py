"""A process that is forked from the one that has a bank open leaves the bank alone."""

import hashlib
import os
import sys
import threading
from pathlib import Path

import pytest

from agents import BankClosed, BankLocked, MemoryBank
from banks import MANUAL, MakeBank, child
from forks import in_a_fork
from waiting import until

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # threads and fork, as users mix them
]


def files_of(folder: Path) -> dict[str, str]:
    return {
        each.name: hashlib.sha256(each.read_bytes()).hexdigest()
        for each in sorted(folder.iterdir())
        if each.is_file() and each.suffix != ".db-shm"
    }


def test_a_forked_process_can_use_neither_the_bank_nor_its_agents(
    open_bank: MakeBank, tmp_path: Path
) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    alice.add("before the fork")
    before = files_of(tmp_path / "bank")

    def work() -> None:
        for call in (
            lambda: alice.add("from the fork"),
            lambda: alice.search("before"),
            lambda: bank.state_hash(),
            lambda: bank.sync(),
            lambda: bank.__enter__(),
        ):
            with pytest.raises(BankClosed, match="was forked"):
                call()

    in_a_fork(work)
    assert files_of(tmp_path / "bank") == before
    alice.add("after the fork")
    assert [each.content for each in alice.all()] == ["before the fork", "after the fork"]


def test_closing_the_bank_in_a_forked_process_does_nothing(
    open_bank: MakeBank, tmp_path: Path
) -> None:
    bank = open_bank()
    bank.agent("alice").add("before the fork")
    before = files_of(tmp_path / "bank")
    in_a_fork(bank.close)
    assert files_of(tmp_path / "bank") == before
    with pytest.raises(BankLocked, match=str(os.getpid())):
        MemoryBank.open(tmp_path / "bank", storage=MANUAL)
    bank.agent("alice").add("after the fork")


def test_a_fork_while_another_thread_uses_the_bank_is_refused_too(open_bank: MakeBank) -> None:
    bank = open_bank()
    inside, done = threading.Event(), threading.Event()

    def use() -> None:
        with bank.transaction():
            bank.agent("alice").add("in a transaction")
            inside.set()
            done.wait()

    thread = threading.Thread(target=use)
    thread.start()
    inside.wait()
    try:

        def work() -> None:
            with pytest.raises(BankClosed, match="was forked"):
                bank.agent("alice").add("from the fork")
            bank.close()

        in_a_fork(work)
    finally:
        done.set()
        thread.join()
    assert bank.agent("alice").count() == 1


def test_a_forked_process_cannot_open_the_bank_either(open_bank: MakeBank, tmp_path: Path) -> None:
    bank = open_bank()
    bank.agent("alice").add("before the fork")
    read, write = os.pipe()

    def work() -> None:
        os.close(write)
        os.read(read, 1)  # until the parent has closed the bank
        with pytest.raises(BankLocked, match="was forked"):
            MemoryBank.open(tmp_path / "bank", storage=MANUAL)
        MemoryBank.open(tmp_path / "other", storage=MANUAL).close()

    forked = threading.Timer(0.5, lambda: (bank.close(), os.close(write)))
    forked.start()
    in_a_fork(work)
    forked.join()
    os.close(read)


# The forked process ends as a program does: it tidies up, and closes what it thinks is its own.
ENDS_LATE = """
import os, sys
from agents import MemoryBank
folder = sys.argv[1]
bank = MemoryBank.open(folder, storage={"sync": "manual"}, embedder={"provider": "none"})
bank.agent("alice").add("one")
ready, go = os.pipe(), os.pipe()
forked = os.fork()
if not forked:
    os.close(go[1])
    os.read(go[0], 1)
    del bank
    sys.exit()
bank.agent("alice").add("two")
os.close(go[1])
assert os.waitpid(forked, 0)[1] == 0
names = sorted(each for each in os.listdir(folder) if each.startswith("journal"))
bank.agent("alice").add("three")
is_own = open(os.path.join(folder, "bank.lock")).read().strip() == str(os.getpid())
print(names, is_own, flush=True)
os._exit(0)
"""


def test_the_end_of_a_forked_process_touches_neither_journal_nor_lock(tmp_path: Path) -> None:
    said = child(ENDS_LATE, tmp_path / "bank")
    assert said == "['journal.db', 'journal.db-head', 'journal.db-shm', 'journal.db-wal'] True"
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert [each.content for each in bank.agent("alice").all()] == ["one", "two", "three"]


# The parent is killed, a new process opens the bank; then the forked one ends.
OUTLIVES = """
import os, sys
from agents import MemoryBank
folder, gone = sys.argv[1:]
bank = MemoryBank.open(folder, storage={"sync": "manual"}, embedder={"provider": "none"})
bank.agent("alice").add("one")
began, begin = os.pipe()
forked = os.fork()
if not forked:
    os.write(begin, b"x")
    while not os.path.exists(gone):
        pass
    del bank
    open(gone + ".ended", "w").close()
    sys.exit()
os.read(began, 1)
print(forked, flush=True)
os._exit(0)
"""


def test_a_forked_process_that_outlives_its_parent_harms_nothing(tmp_path: Path) -> None:
    folder, gone = tmp_path / "bank", tmp_path / "gone"
    script = tmp_path / "outlives.py"
    script.write_text(OUTLIVES)
    pid = os.spawnl(os.P_WAIT, sys.executable, sys.executable, str(script), str(folder), str(gone))
    assert pid == 0
    with MemoryBank.open(folder, storage=MANUAL) as bank:  # the fork does not hold the lock
        bank.agent("alice").add("two")
        gone.touch()
        until("the forked process ends", (tmp_path / "gone.ended").exists)
        bank.agent("alice").add("three")
    with MemoryBank.open(folder, storage=MANUAL) as bank:
        assert [each.content for each in bank.agent("alice").all()] == ["one", "two", "three"]


def test_a_fork_inside_a_transaction_commits_nothing(open_bank: MakeBank, tmp_path: Path) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    alice.add("before")
    before = files_of(tmp_path / "bank")
    transaction = bank.transaction()
    transaction.__enter__()
    alice.add("in the parent alone")

    def work() -> None:
        with pytest.raises(BankClosed, match="forked"):
            transaction.__exit__(None, None, None)
        assert files_of(tmp_path / "bank") == before

    in_a_fork(work)
    transaction.__exit__(None, None, None)
    assert [memory.content for memory in alice.all()] == ["before", "in the parent alone"]
