"""An error comes at the very call of a transaction's end, and the program keeps the error.

A notebook keeps the last error, and with it the frames of its traceback and all that they hold.
"""

import ast
import asyncio
import gc
import inspect
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread
from traceback import walk_stack
from types import FrameType
from typing import Any

import pytest
from every_step import Steps

from agents import AsyncMemoryBank, BankBroken, MemoryBank
from agents.engine.engine import Changing, Opened
from agents.storage.state import ledger
from embedders import Directions

Call = Callable[[MemoryBank], object]


def _open(folder: Path) -> MemoryBank:
    return MemoryBank.open(folder, embedder=Directions(), storage={"sync": "manual"})


def _add(bank: MemoryBank) -> None:
    bank.agent("alice").add("not acknowledged")


def _in_a_transaction(bank: MemoryBank) -> None:
    with bank.transaction():
        bank.engine.ledger.hold("alice", "a", "b", 1)


def _held_in_a_variable(bank: MemoryBank) -> None:
    transaction = bank.transaction()
    with transaction:
        bank.engine.ledger.hold("alice", "a", "b", 1)


def _in_a_generator(bank: MemoryBank) -> None:
    @contextmanager
    def inside():
        with bank.transaction():
            yield

    with inside():
        bank.engine.ledger.hold("alice", "a", "b", 1)


def _after_an_error(bank: MemoryBank) -> None:
    with bank.transaction():
        bank.engine.ledger.hold("alice", "a", "b", 1)
        raise ValueError


WAYS: dict[str, Call] = {
    "a call": _add,
    "a transaction": _in_a_transaction,
    "in a variable": _held_in_a_variable,
    "in a generator": _in_a_generator,
    "after an error": _after_an_error,
}


def _at_the_end(number: int = 1) -> Steps:
    """An error right at the call of a transaction's end."""
    return Steps(number, of={Changing.leave.__code__})


@pytest.mark.parametrize("way", WAYS)
def test_a_transaction_that_nothing_will_end_breaks_the_bank(tmp_path: Path, way: str) -> None:
    bank = _open(tmp_path / "bank")
    bank.agent("alice").add("acknowledged")
    state = bank.state_hash()
    with pytest.raises(MemoryError) as kept, _at_the_end():
        WAYS[way](bank)
    assert kept.traceback
    _is_broken_for_all(bank)
    bank.close()
    with _open(tmp_path / "bank") as bank:
        assert bank.state_hash() == state


def _is_broken_for_all(bank: MemoryBank) -> None:
    with pytest.raises(BankBroken):
        bank.agent("bob").add("never acknowledged")
    with pytest.raises(BankBroken), bank.transaction():
        pass
    with pytest.raises(BankBroken):
        bank.state_hash()
    with ThreadPoolExecutor(1) as other, pytest.raises(BankBroken):
        other.submit(bank.agents).result(timeout=60)


def test_a_program_in_the_frame_of_its_transaction_can_not_go_on(tmp_path: Path) -> None:
    bank, kept = _open(tmp_path / "bank"), None
    try:
        with bank.transaction():
            bank.engine.ledger.hold("alice", "a", "b", 1)
            steps = _at_the_end()
            steps.__enter__()
    except MemoryError as error:
        kept = error
    finally:
        steps.__exit__()
    assert kept is not None
    _is_broken_for_all(bank)
    bank.close()


def test_an_outer_transaction_does_not_end_as_if_all_was_written(tmp_path: Path) -> None:
    bank = _open(tmp_path / "bank")

    def go_on() -> None:
        with bank.transaction():
            bank.agent("bob").add("before")
            try:
                with _at_the_end():
                    _add(bank)
            except MemoryError as error:
                kept.append(error)

    kept: list[MemoryError] = []
    with pytest.raises(BankBroken):
        go_on()
    assert kept
    bank.close()
    with _open(tmp_path / "bank") as bank:
        assert bank.agents() == []


def test_an_outer_transaction_that_is_undone_undoes_what_is_left_open(tmp_path: Path) -> None:
    with _open(tmp_path / "bank") as bank:
        bank.agent("bob").add("acknowledged")
        with pytest.raises(MemoryError) as kept, bank.transaction(), _at_the_end():
            _add(bank)
        assert kept.traceback
        assert bank.agents() == ["bob"]
        bank.agent("bob").add("more")
        state = bank.state_hash()
    with _open(tmp_path / "bank") as bank:
        assert bank.state_hash() == state


def test_it_needs_no_code_that_runs_at_the_death_of_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When memory is short, that code fails as well."""
    bank = _open(tmp_path / "bank")

    def fail(_: Opened) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Opened, "__del__", fail)
        patch.setattr(sys, "unraisablehook", lambda _: None)
        with pytest.raises(MemoryError) as kept, _at_the_end():
            _add(bank)
        with pytest.raises(BankBroken):
            bank.agent("bob").add("never acknowledged")
        with pytest.raises(BankBroken):
            bank.commit()
        bank.close()
    assert kept.traceback
    with _open(tmp_path / "bank") as bank:
        assert bank.agents() == []


@pytest.mark.parametrize("way", WAYS)
def test_no_interrupt_can_come_at_the_death_of_a_block(tmp_path: Path, way: str) -> None:
    """Python prints an interrupt that comes in ``__del__``, and forgets it: signals wait there."""
    bank, deaths = _open(tmp_path / "bank"), []

    def watched(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is Opened.__del__.__code__:
            codes = [each.f_code for each, _ in walk_stack(frame)]
            deaths.append(any(code in ledger._whole for code in codes))

    sys.setprofile(watched)
    try:
        with suppress(ValueError):
            WAYS[way](bank)
    finally:
        sys.setprofile(None)
    bank.close()
    assert deaths
    assert all(deaths)


def test_an_async_transaction_that_nothing_will_end_breaks_the_bank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave, times = Changing.leave, []

    def fail_once(self: Changing, *error: object) -> None:
        times.append(1)
        if len(times) == 2:  # the first end is that of the call inside
            raise MemoryError
        leave(self, *error)

    async def program() -> None:
        async with await AsyncMemoryBank.open(
            tmp_path / "bank", embedder=Directions(), storage={"sync": "manual"}
        ) as bank:
            monkeypatch.setattr(Changing, "leave", fail_once)
            with pytest.raises(MemoryError) as kept:
                async with bank.transaction():
                    await bank.agent("alice").add("not acknowledged")
            assert kept.traceback
            with pytest.raises(BankBroken):
                await bank.agent("bob").add("never acknowledged")

    asyncio.run(program())
    monkeypatch.undo()
    with _open(tmp_path / "bank") as bank:
        assert bank.agents() == []


def test_transactions_may_be_held_and_looked_at_in_other_ways() -> None:
    with MemoryBank.ephemeral(embedder=Directions()) as bank:
        alice = bank.agent("alice")
        with ExitStack() as stack:
            stack.enter_context(bank.transaction())
            alice.add("one")
        transaction = bank.transaction()
        transaction.__enter__()
        alice.add("two")
        transaction.__exit__(None, None, None)
        with transaction:  # once more
            alice.add("three")
            assert transaction.__exit__ is not None  # as a debugger does
            alice.add("four")
        with suppress(ValueError), ExitStack() as stack:
            stack.enter_context(transaction)
            alice.add("undone")
            raise ValueError
        with bank.transaction():
            alice.add("five")
        assert [each.content for each in alice.all()] == ["one", "two", "three", "four", "five"]
        assert not bank.engine.ledger.in_transaction


def test_a_transaction_that_is_dropped_is_given_up() -> None:
    bank = MemoryBank.ephemeral(embedder=Directions())
    transaction = bank.transaction()
    transaction.__enter__()
    bank.agent("alice").add("never ended")
    del transaction
    _is_broken_for_all(bank)
    bank.close()


def test_a_transaction_of_a_thread_that_is_gone_makes_nobody_wait() -> None:
    bank, held = MemoryBank.ephemeral(embedder=Directions()), list[Any]()

    def begin() -> None:
        held.append(bank.transaction())
        held[0].__enter__()
        bank.agent("alice").add("never written")

    thread = Thread(target=begin)
    thread.start()
    thread.join()
    held.clear()  # and with it the transaction dies, in this thread
    with pytest.raises(BankBroken):
        bank.agent("bob").add("never acknowledged")
    bank.close()


def test_an_error_that_is_kept_for_a_while_ends_no_later_commit(tmp_path: Path) -> None:
    """Where an error came at the end of a write, dropping it later must do nothing."""
    with _open(tmp_path / "bank") as bank:
        journal = bank.engine.journal
        end = type(journal.file.writing()).__exit__
        kept: list[BaseException] = []
        try:
            with Steps(1, of={end.__code__}):
                journal.set(first=1)
        except MemoryError as error:
            kept.append(error)
        assert kept
        with journal.file.writing():
            journal.file.put({"second": 2})
            kept.clear()
            gc.collect()
            journal.file.put({"third": 3})
        assert [journal.get(key) for key in ("first", "second", "third")] == [None, 2, 3]


def test_no_generator_of_ours_holds_a_transaction() -> None:
    """An error at the end of a generator's own block would leave the transaction open."""
    ours = Path(inspect.getfile(Changing)).parents[1]
    held = [
        path.relative_to(ours).as_posix()
        for path in sorted(ours.rglob("*.py"))
        if "yield" in (text := path.read_text())
        and ("changing()" in text or "transaction()" in text)
        for block in ast.walk(ast.parse(text))
        if isinstance(block, ast.With)
        and any(_begins(item.context_expr) for item in block.items)
        and any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(block))
    ]
    # A command ends with its error, and the histories are for tests.
    assert held == ["interfaces/cli/banks.py", "testing/strategies.py"]


def _begins(made: ast.expr) -> bool:
    """Whether an expression makes a transaction."""
    calls = [each for each in ast.walk(made) if isinstance(each, ast.Call)]
    names = {each.func.attr for each in calls if isinstance(each.func, ast.Attribute)}
    return bool(names & {"changing", "transaction"})
