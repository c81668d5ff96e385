"""Ctrl-C at the worst moments."""

import dataclasses
import signal
import sqlite3
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from agents import BankBroken, BankClosed, CommitUnknown, MemoryBank
from embedders import Directions


class Interrupting:
    """A database connection on which Ctrl-C is pressed right before or after one statement."""

    def __init__(self, database: Any, statement: str, after: bool) -> None:
        self._database = database
        self._statement = statement
        self._after = after

    def execute(self, statement: str, *arguments: Any) -> Any:
        if statement != self._statement:
            return self._database.execute(statement, *arguments)
        self._statement = ""
        if self._after:
            self._database.execute(statement, *arguments)
        raise KeyboardInterrupt

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "COMMIT"])
def test_an_interrupted_commit_is_there_whole_or_not_at_all_and_the_bank_goes_on(
    tmp_path: Path, statement: str, after: bool
) -> None:
    def open_bank() -> MemoryBank:
        return MemoryBank.open(tmp_path, embedder=Directions(), storage={"sync": "manual"})

    with open_bank() as bank:
        alice = bank.agent("alice")
        alice.add("before")
        file = bank.engine.journal.file
        file.db = Interrupting(file.db, statement, after)  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            alice.add_many(["one", "two"])
        kept = [memory.content for memory in alice.all()]
        assert kept in (["before"], ["before", "one", "two"])
        assert (kept == ["before"]) == (not (statement == "COMMIT" and after))
        alice.add("next")
        state = bank.state_hash()
    with open_bank() as bank:
        assert bank.state_hash() == state


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_snapshot_whose_rollback_fails_stops_no_later_call(tmp_path: Path, after: bool) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    def open_bank() -> MemoryBank:
        return MemoryBank.open(tmp_path, embedder=Directions(), storage={"sync": "manual"})

    with open_bank() as bank:
        alice = bank.agent("alice")
        alice.add("before")
        journal = bank.engine.journal
        database = journal.file.db
        journal.file.db = Interrupting(database, "ROLLBACK", after)  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            journal.write_snapshots(map(fail, [1]))
        assert database.in_transaction is not after
        alice.add("next")
        state = bank.state_hash()
    with open_bank() as bank:
        assert bank.state_hash() == state


class FailingDisk(Interrupting):
    """A connection whose next COMMIT reaches the disk and is said to have failed."""

    def __init__(self, database: Any) -> None:
        super().__init__(database, "COMMIT", after=True)

    def execute(self, statement: str, *arguments: Any) -> Any:
        try:
            return super().execute(statement, *arguments)
        except KeyboardInterrupt:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            raise error from None


def test_a_commit_that_may_be_on_disk_breaks_the_bank_until_it_is_opened_again(
    tmp_path: Path,
) -> None:
    def open_bank() -> MemoryBank:
        return MemoryBank.open(tmp_path / "bank", embedder=Directions(), storage={"sync": "manual"})

    bank = open_bank()
    alice = bank.agent("alice")
    alice.add("before")
    file = bank.engine.journal.file
    file.db = FailingDisk(file.db)  # type: ignore[assignment]
    with pytest.raises(CommitUnknown, match="known when the bank is opened again"):
        alice.add("perhaps")
    for call in (
        lambda: alice.add("next"),
        alice.all,
        bank.commit,
        bank.sync,
        bank.state_hash,
        lambda: bank.checkpoint(tmp_path / "no.tmck"),
        lambda: alice.notes.write("a.md", "text"),
    ):
        with pytest.raises(BankBroken, match="open it again"):
            call()
    assert not (tmp_path / "no.tmck").exists()
    bank.close()
    with pytest.raises(BankClosed):
        alice.all()
    with open_bank() as bank:
        kept = [memory.content for memory in bank.agent("alice").all()]
        assert kept in (["before"], ["before", "perhaps"])
        bank.agent("alice").add("next")


def test_a_broken_bank_notes_nothing_about_its_store(tmp_path: Path) -> None:
    bank = MemoryBank.open(tmp_path / "bank", embedder=Directions())
    bank.agent("alice").add("before <1 0>")
    bank.sync()
    journal = bank.engine.journal
    journal.file.db = FailingDisk(journal.file.db)  # type: ignore[assignment]
    with pytest.raises(CommitUnknown):
        bank.agent("alice").add("perhaps")
    store = bank.engine.store  # closing it changes its files, on some versions of Chroma
    store._cursor = dataclasses.replace(store._cursor, files="as before")
    saved = list[dict[str, Any]]()
    journal.set = lambda **values: saved.append(values)  # type: ignore[assignment]
    bank.close()
    assert not saved


def test_a_signal_waits_for_a_change_and_comes_inside_a_transaction() -> None:
    with MemoryBank.ephemeral(embedder=Directions()) as bank:
        alice = bank.agent("alice")
        handler = signal.getsignal(signal.SIGINT)

        def interrupted() -> None:
            with bank.transaction():
                alice.add("undone")
                signal.raise_signal(signal.SIGINT)
                alice.add("never")

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert alice.all() == []
        assert signal.getsignal(signal.SIGINT) is handler
        alice.add("kept")
        assert [memory.content for memory in alice.all()] == ["kept"]


CHANGES: dict[str, Callable[[MemoryBank], object]] = {
    "add": lambda bank: bank.agent("alice").add("one"),
    "add in a transaction": lambda bank: _in_transaction(bank, depth=1),
    "add in a transaction in another": lambda bank: _in_transaction(bank, depth=2),
    "commit": lambda bank: (bank.agent("alice").search("before <1 0>"), bank.commit()),
    "close": lambda bank: (bank.agent("alice").search("before <1 0>"), bank.close()),
}


def _in_transaction(bank: MemoryBank, depth: int) -> None:
    with bank.transaction():
        if depth > 1:
            _in_transaction(bank, depth - 1)
        else:
            bank.agent("alice").add("one")


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("raises", [False, True], ids=["notices", "interrupts"])
def test_a_signal_in_the_middle_of_a_commit_is_handled_right_after_it(
    name: str, raises: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    came: list[int] = []

    def handle(number: int, frame: object) -> None:
        came.append(number)
        if raises:
            raise KeyboardInterrupt

    bank = MemoryBank.open(tmp_path / "bank", embedder=Directions(), storage={"sync": "manual"})
    bank.agent("alice").add("before <1 0>")
    write = bank.engine.journal.append

    def append(*arguments: Any, **options: Any) -> None:
        signal.raise_signal(signal.SIGTERM)
        assert not came, "it did not wait"
        write(*arguments, **options)

    monkeypatch.setattr(bank.engine.journal, "append", append)
    before = signal.signal(signal.SIGTERM, handle)
    try:
        with pytest.raises(KeyboardInterrupt) if raises else nullcontext():
            CHANGES[name](bank)
        assert came == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) is handle
    finally:
        signal.signal(signal.SIGTERM, before)
        monkeypatch.undo()
        bank.close()
    with MemoryBank.open(tmp_path / "bank", embedder=Directions()) as bank:
        kept = [memory.content for memory in bank.agent("alice").all()]
        assert kept == (["before <1 0>", "one"] if "add" in name else ["before <1 0>"])


def test_a_signal_that_waited_inside_a_block_comes_in_that_block(tmp_path: Path) -> None:
    came: list[str] = []
    before = signal.signal(signal.SIGTERM, lambda *_: came.append("signal"))
    try:
        with MemoryBank.ephemeral(embedder=Directions()) as bank, bank.transaction():
            own = bank.engine.state
            add = own.add

            def interrupted(*arguments: Any) -> None:
                signal.raise_signal(signal.SIGTERM)
                add(*arguments)

            own.add = interrupted  # type: ignore[method-assign]
            bank.agent("alice").add("one")
            came.append("next line")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert came == ["signal", "next line"]


def test_a_handler_that_the_program_sets_inside_a_transaction_stays() -> None:
    came: list[int] = []
    before = signal.getsignal(signal.SIGUSR1)
    try:
        with MemoryBank.ephemeral(embedder=Directions()) as bank:
            signal.signal(signal.SIGUSR1, lambda number, _: came.append(number))
            with bank.transaction():
                bank.agent("alice").add("kept")
                signal.raise_signal(signal.SIGUSR1)
                own = lambda number, _: came.append(-number)  # noqa: E731
                signal.signal(signal.SIGUSR1, own)
            assert signal.getsignal(signal.SIGUSR1) is own
            assert came == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)
