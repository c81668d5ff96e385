"""An error or an interrupt at every step of a change, of its commit and of its undoing.

What was acknowledged is there after reopening, and what was not is there whole or not at all. A
bank that can't be sure says so by BankBroken, and writes nothing. Any other bank can be used on.
"""

import os
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from every_step import Steps, at_most, interrupt, lines_of, run_out_of_memory, steps_of

from agents import BankBroken, MemoryBank, TierMemError
from agents.engine.engine import Changing
from agents.storage.state.ledger import Ledger, let_signals_come
from embedders import Directions
from examples import number_by_profile

# An error between open() and `with` leaves a file to Python, which closes it when nothing holds it.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")

MOST = int(os.environ.get("TIERMEM_STEPS", number_by_profile(4, 4, 40)))
"""How many steps of each call are tried; 0 stands for all."""
LIMIT = 120.0
"""Seconds in which a bank that does not hang has done a few calls, on the busiest machine."""

Call = Callable[[MemoryBank], object]
Fault = Callable[[], None]


class Unwanted(Exception):
    """A user's error inside a transaction."""


def _open(folder: Path) -> MemoryBank:
    return MemoryBank.open(
        folder,
        embedder=Directions(),
        memory={"max_pinned": 2, "max_critical": 3},
        storage={"sync": "manual"},
    )


@pytest.fixture(autouse=True)
def _no_signal_waits_for_another_test() -> Iterator[None]:
    """An error in the bookkeeping of signals leaves our handler in place, which is harmless."""
    before = signal.getsignal(signal.SIGINT)
    yield
    for _ in range(1000):
        if signal.getsignal(signal.SIGINT) is before:
            return
        with suppress(KeyboardInterrupt):
            let_signals_come()
    raise AssertionError("our handler stays in place")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank with memories of every temperature, some of them before a snapshot."""
    folder = tmp_path_factory.mktemp("template") / "bank"
    for number in range(2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Ledger, "SNAPSHOT_ON_CLOSE", 10_000 if number else 1)
            with _open(folder) as bank:
                for agent in ("alice", "bob"):
                    own = bank.agent(agent)
                    for n in range(4):
                        own.add(f"{agent} {number} {n}", tier=("critical", "normal")[n % 2])
                    own.add(f"{agent} {number} cold", temperature="cold", metadata={"n": number})
                    own.add(f"{agent} {number} keyed", "pinned", key=f"key {number}")
                bank.advance(number + 1)
    return folder


def _add(bank: MemoryBank) -> None:
    bank.agent("alice").add("a new memory", tier="critical", metadata={"of": "alice"})


def _add_many(bank: MemoryBank) -> None:
    bank.add_many(
        [
            ("alice", "one", "critical"),
            ("carol", "two", "normal", None, {"temperature": "cold"}),
            ("bob", "three", "critical"),
        ]
    )


def _update(bank: MemoryBank) -> None:
    items = ["key 0", "key 1", "key 0"]
    bank.add_many([("alice", f"{n}", None, None, {"key": key}) for n, key in enumerate(items)])


def _forget(bank: MemoryBank) -> None:
    bank.agent("alice").forget(bank.agent("alice").all(temperature="cold")[0].id)


def _refuse(bank: MemoryBank) -> None:
    with suppress(Unwanted), bank.transaction():
        _add_many(bank)
        bank.advance(7)
        _forget(bank)
        raise Unwanted


def _undo_inside(bank: MemoryBank) -> None:
    with bank.transaction():
        bank.agent("bob").add("kept")
        _refuse(bank)


def _hash(bank: MemoryBank) -> None:
    bank.search_many([("alice", "alice 0 1"), ("bob", "bob 1 1")])
    bank.state_hash()
    bank.commit()


def _search(bank: MemoryBank) -> None:
    bank.search_many([("alice", "alice 0 1"), ("bob", "bob 1 1")])
    bank.agent("alice").recall("alice 0 cold")
    bank.commit()


def _compact(bank: MemoryBank) -> None:
    with bank.transaction():
        bank.advance(1_000)
        bank.compact()
        bank.sweep()


def _append(bank: MemoryBank) -> None:
    bank.agent("alice").notes.append("Never trade fish with Bob.", "MEMORY.md")


def _add_before_a_snapshot(bank: MemoryBank) -> None:
    with pytest.MonkeyPatch.context() as patch:
        write = Ledger._snapshot_if
        patch.setattr(Ledger, "SNAPSHOT_ON_COMMIT", 1)
        patch.setattr(Ledger, "_snapshot_if", lambda own, _: write(own, 1))
        _add_many(bank)


CALLS: list[Call] = [
    _add,
    _add_many,
    _update,
    _forget,
    _refuse,
    _undo_inside,
    _search,
    _hash,
    _compact,
    _append,
    _add_before_a_snapshot,
]


def _acknowledged(bank: MemoryBank) -> set[str]:
    return {
        memory.content
        for agent in bank.agents()
        for heat in ("hot", "warm", "cold")
        for memory in bank.agent(agent).all(temperature=heat)
    }


class Laws:
    """Tries a call with faults on copies of a bank, and looks at what is left of it."""

    def __init__(self, template: Path, folder: Path, call: Call) -> None:
        self._template = template
        self._folder = folder
        self._call = call
        self._number = 0
        self.broken = 0
        with self.opened() as bank:
            self.before = bank.state_hash()
            self.steps = steps_of(lambda: call(bank))
            self.after = bank.state_hash()
        with self.opened() as bank:
            self.lines = lines_of(lambda: call(bank))

    def opened(self) -> MemoryBank:
        """The bank in a new copy of its folder."""
        self._number += 1
        self.copy = self._folder / str(self._number)
        shutil.copytree(self._template, self.copy)
        return _open(self.copy)

    def hold(self, steps: Steps, *, may_break: bool = True) -> None:
        """Try the call with the faults of ``steps``. The error is kept, as a notebook keeps it."""
        bank = self.opened()
        whole = {self.before, self.after}
        kept: BaseException | None = None
        try:
            try:
                with steps:
                    self._call(bank)
            except (KeyboardInterrupt, MemoryError, TierMemError) as error:
                kept = error  # and with it all that its frames hold
            try:
                whole = {bank.state_hash()} & self._whole(bank)
                assert whole, f"memory has another state after {steps.where}"
                whole = self._used_on(bank, steps)
            except BankBroken:
                self.broken += 1
                assert may_break, steps.where
        finally:
            try:
                with at_most(LIMIT, lambda: f"close() after {steps.where}"):
                    bank.close()
            except Exception as error:
                raise AssertionError(f"closing failed after {steps.where}") from error
        del kept
        with _open(self.copy) as bank:
            assert bank.state_hash() in whole, f"the disk has another state after {steps.where}"
        shutil.rmtree(self.copy)

    @staticmethod
    def _used_on(bank: MemoryBank, steps: Steps) -> set[str]:
        """The bank is used as if nothing had happened; the state that it then has."""
        doing = ""
        bob = bank.agent("bob")
        with at_most(LIMIT, lambda: f"{doing} after {steps.where}"):
            doing = "add()"
            bob.add("acknowledged <1 2>")
            bob.add("acknowledged too <2 1>")
            doing = "search()"
            found = [hit.memory.content for hit in bob.search("acknowledged <1 2>", limit=10)]
            assert {"acknowledged <1 2>", "acknowledged too <2 1>"} <= set(found), steps.where
            doing = "commit()"
            bank.commit()
            doing = "state_hash()"
            return {bank.state_hash()}

    def _whole(self, bank: MemoryBank) -> set[str]:
        if self._call not in (_search, _hash):
            return {self.before, self.after}
        bank.commit()  # each search counts by itself: the disk has what memory has
        return {bank.state_hash()}


def _some(steps: int, seed: int) -> Iterable[int]:
    every = range(1, steps + 1)
    return sorted(Random(seed).sample(every, min(MOST, steps))) if MOST else every


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__[1:])
@pytest.mark.parametrize("fault", [interrupt, run_out_of_memory])
def test_a_fault_at_every_step_loses_nothing(
    template: Path, tmp_path: Path, call: Call, fault: Fault
) -> None:
    laws = Laws(template, tmp_path, call)
    for step in _some(laws.steps, 1):
        laws.hold(Steps(step, fault), may_break=fault is not interrupt)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__[1:])
def test_an_error_where_a_block_begins_or_ends_loses_nothing(
    template: Path, tmp_path: Path, call: Call
) -> None:
    laws = Laws(template, tmp_path, call)
    depth = vars(Ledger)["depth"].fget
    functions = (Changing.__enter__, Changing.leave, Ledger.begin, Ledger.give_up, depth)
    code = {each.__code__ for each in functions}
    with laws.opened() as bank:
        steps = steps_of(lambda: call(bank), code)
    for step in _some(steps, 5):
        laws.hold(Steps(step, of=code))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__[1:])
def test_an_error_in_the_undoing_loses_nothing(template: Path, tmp_path: Path, call: Call) -> None:
    laws = Laws(template, tmp_path, call)
    random = Random(2)
    for line in _some(laws.lines, 3):
        laws.hold(Steps(random.randint(1, 400), line=line))
    assert laws.broken or MOST < 40, "no fault hit an undoing"


def test_a_transaction_that_can_not_be_given_up_at_once_is_given_up(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bank"
    shutil.copytree(template, folder)
    give_up, tried = Ledger.give_up, list[int]()

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def run_out_once(self: Ledger, depth: int) -> None:
        tried.append(depth)
        if len(tried) == 1:
            run_out_of_memory()
        give_up(self, depth)

    with _open(folder) as bank:
        before = bank.state_hash()
        monkeypatch.setattr(Ledger, "end", interrupt)
        monkeypatch.setattr(Ledger, "give_up", run_out_once)
        with pytest.raises(MemoryError) as kept:  # with its frames, as a notebook keeps it
            bank.agent("bob").add("more")
        monkeypatch.undo()
        assert len(tried) == 2
        with pytest.raises(BankBroken):
            bank.agent("bob").add("more")
        del kept
    with _open(folder) as bank:
        assert bank.state_hash() == before


@pytest.mark.parametrize("call", [_refuse, _undo_inside], ids=lambda call: call.__name__[1:])
def test_an_undoing_that_can_not_begin_breaks_the_bank(
    template: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bank"
    shutil.copytree(template, folder)
    with _open(folder) as bank:
        before = bank.state_hash()
        monkeypatch.setattr(Ledger, "_undo", lambda *_, **__: run_out_of_memory())
        with pytest.raises(MemoryError):
            call(bank)
        monkeypatch.undo()
        with pytest.raises(BankBroken):
            bank.agent("bob").add("more")
    with _open(folder) as bank:
        assert bank.state_hash() == before


@pytest.mark.parametrize("fault", [interrupt, run_out_of_memory])
def test_a_fault_at_every_step_of_closing_loses_nothing(
    template: Path, tmp_path: Path, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "SNAPSHOT_ON_CLOSE", 1)

    def opened(number: int) -> MemoryBank:
        folder = tmp_path / str(number)
        shutil.copytree(template, folder)
        bank = _open(folder)
        bank.search_many([("alice", "alice 0 1")])  # closing writes it
        return bank

    bank = opened(0)
    steps = steps_of(bank.close)
    with _open(tmp_path / "0") as bank:
        whole = {bank.state_hash()}
    with _open(template) as bank:
        whole.add(bank.state_hash())
    for step in _some(steps, 4):
        bank = opened(step)
        made = Steps(step, fault)
        with suppress(KeyboardInterrupt, MemoryError, TierMemError), made:
            bank.close()
        with suppress(Exception):  # if closing was cut short, this process still has the lock
            bank.engine.release()
        with _open(tmp_path / str(step)) as bank:
            assert bank.state_hash() in whole, made.where
        shutil.rmtree(tmp_path / str(step))
