"""The async bank: the same bank, whose calls take turns in one thread and leave the loop free."""

import asyncio
import functools
import gc
import inspect
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import Context, ContextVar
from pathlib import Path
from typing import Any

import pytest

from agents import (
    AgentMemory,
    AsyncMemoryBank,
    BankClosed,
    BankError,
    BankLocked,
    BankNotFound,
    InvalidAgentId,
    InvalidContent,
    MemoryBank,
    MemoryNotFound,
    tools,
)
from agents.bank.agent_session import AgentSession
from agents.bank.async_bank import (
    AsyncAgentMemory,
    AsyncAgentNotes,
    AsyncAgentSession,
    AsyncGroup,
    AsyncNoteWatch,
)
from agents.bank.memory_bank import Group
from agents.notes.agent_notes import AgentNotes
from agents.notes.watching import NoteWatch
from agents.simulation.kept_ticks import ticks_of
from banks import MANUAL, ROOT, Undone, contents
from embedders import Directions, FromFunction, direction
from waiting import LONG


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test in an event loop of its own; one that waits for ever fails."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        async def soon() -> None:
            async with asyncio.timeout(LONG):
                await test(*arguments, **named)

        asyncio.run(soon())

    return run


async def ephemeral(**options: Any) -> AsyncMemoryBank:
    options.setdefault("embedder", Directions())
    return await AsyncMemoryBank.ephemeral(preset="vector", **options)


async def opened(folder: Path, **options: Any) -> AsyncMemoryBank:
    options.setdefault("embedder", Directions())
    return await AsyncMemoryBank.open(folder, preset="vector", storage=MANUAL, **options)


async def texts(bank: AsyncMemoryBank, agent: str = "alice") -> list[str]:
    return [memory.content for memory in await bank.agent(agent).all()]


async def turn_of_the_loop(times: int = 5) -> None:
    """Let the other tasks go as far as they get."""
    for _ in range(times):
        await asyncio.sleep(0)


def elsewhere(work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    """A task that is outside of all transactions, like one that was started before them."""
    return asyncio.create_task(work, context=Context())


class Gate:
    """An embedder that stops at texts with a ``|`` until the gate is opened."""

    name = "test/gate"
    dims = 4
    reproducible = True

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def embed(self, wanted: Sequence[str], /) -> list[list[float]]:
        if any("|" in text for text in wanted):
            self.reached.set()
            assert self.open.wait(LONG)
        return [direction(text, self.dims) for text in wanted]

    async def wait(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, 10)


# The same methods


def public(kind: type) -> dict[str, Any]:
    return {name: each for name, each in vars(kind).items() if not name.startswith("_")}


def all_public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("kind", "twin", "left_out"),
    [
        (MemoryBank, AsyncMemoryBank, {"engine"}),
        (AgentMemory, AsyncAgentMemory, {"engine"}),
        (AgentSession, AsyncAgentSession, {"agent"}),
        (AgentNotes, AsyncAgentNotes, set()),
        (Group, AsyncGroup, {"engine"}),
        (NoteWatch, AsyncNoteWatch, set()),
    ],
)
def test_every_public_name_has_its_twin(kind: type, twin: type, left_out: set[str]) -> None:
    assert all_public(kind) | {"run"} == all_public(twin) | left_out


@pytest.mark.parametrize(
    ("kind", "twin"),
    [
        (MemoryBank, AsyncMemoryBank),
        (AgentMemory, AsyncAgentMemory),
        (AgentSession, AsyncAgentSession),
        (AgentNotes, AsyncAgentNotes),
        (Group, AsyncGroup),
        (NoteWatch, AsyncNoteWatch),
    ],
)
def test_a_twin_takes_the_same_arguments_and_says_what_it_does(kind: type, twin: type) -> None:
    for name in public(twin):
        own, sync = getattr(twin, name), getattr(kind, name, None)
        assert own.__doc__, name
        if callable(sync) and name != "transaction":
            taken = inspect.signature(own).parameters
            assert list(taken.values()) == list(inspect.signature(sync).parameters.values()), name
            opens = name in ("open", "ephemeral", "restore", "at")  # what to await or to enter
            assert inspect.iscoroutinefunction(own) or opens or name in ("agent", "session"), name


TYPED = """
from typing import assert_type
from agents import AsyncMemoryBank, Hits, Memory, MemoryBank, tools

async def use(sync: MemoryBank) -> None:
    assert_type(await AsyncMemoryBank.open("folder", preset="vector"), AsyncMemoryBank)
    await AsyncMemoryBank.ephemeral(preset=3)  # type: ignore[arg-type]
    async with AsyncMemoryBank.ephemeral() as other:
        assert_type(other, AsyncMemoryBank)
    async with AsyncMemoryBank(sync) as bank, bank.transaction():
        alice = bank.agent("alice")
        assert_type(await alice.add("x", "low", kind="fact"), Memory)
        await alice.add(3)  # type: ignore[arg-type]
        await alice.add("x", teir="low")  # type: ignore[call-arg]
        assert_type(await alice.search("x", limit=3), Hits)
        assert_type(await alice.notes.read(), str)
        assert_type(await bank.agents(), list[str])
        assert_type(await alice.run(tools.call, "memory_status"), tools.Outcome)
        assert_type(await bank.run(lambda own: own.tick), int)
        watch = await bank.watch_notes()
"""


@pytest.mark.long
def test_type_checkers_know_the_methods(tmp_path: Path) -> None:
    views = [
        ("bank", AsyncMemoryBank),
        ("alice", AsyncAgentMemory),
        ("alice.notes", AsyncAgentNotes),
        ("watch", AsyncNoteWatch),
    ]
    uses = [f"        {name}.{each}\n" for name, view in views for each in sorted(all_public(view))]
    (tmp_path / "typed.py").write_text(TYPED + "".join(uses))
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", tmp_path / "typed.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LONG,
    )
    assert (result.returncode, result.stderr) == (0, ""), result.stdout


async def a_bit_of_everything(bank: AsyncMemoryBank) -> None:
    alice, bob = bank.agent("alice"), bank.agent("bob")
    first = await alice.add("NEVER trust <1 0>", "pinned", {"n": 1}, tags=["x"])
    await bank.add_many([("bob", f"m{n} <{n} 1>", n % 5) for n in range(10)])
    await bank.advance(3)
    await alice.add_many(["b <0 1>", ("c", "low")])
    await alice.unpin(first.id, "critical")
    async with bank.transaction():
        await alice.record_action("trade", {"with": "bob"}, success=False)
        await bob.record_observation("rain")
    with suppress(Undone):
        async with bank.transaction():
            await alice.delete(first.id)
            raise Undone
    await alice.search("<1 0>")
    await bob.recall("m3 <3 1>")
    await bob.update((await bob.all("low"))[0].id, retention="archived")
    await alice.notes.write("MEMORY.md", "# Trade\n\nSalt is dear.\n")
    await bank.compact()
    await bank.sweep()


def a_bit_of_everything_at_once(bank: MemoryBank) -> None:
    alice, bob = bank.agent("alice"), bank.agent("bob")
    first = alice.add("NEVER trust <1 0>", "pinned", {"n": 1}, tags=["x"])
    bank.add_many([("bob", f"m{n} <{n} 1>", n % 5) for n in range(10)])
    bank.advance(3)
    alice.add_many(["b <0 1>", ("c", "low")])
    alice.unpin(first.id, "critical")
    with bank.transaction():
        alice.record_action("trade", {"with": "bob"}, success=False)
        bob.record_observation("rain")
    alice.search("<1 0>")
    bob.recall("m3 <3 1>")
    bob.update(bob.all("low")[0].id, retention="archived")
    alice.notes.write("MEMORY.md", "# Trade\n\nSalt is dear.\n")
    bank.compact()
    bank.sweep()


@in_a_loop
async def test_the_state_is_that_of_the_sync_bank(tmp_path: Path) -> None:
    with MemoryBank.open(
        tmp_path / "sync", preset="vector", storage=MANUAL, embedder=Directions()
    ) as bank:
        a_bit_of_everything_at_once(bank)
        wanted = bank.state_hash(), bank.agent("alice").get_relevant_memories("<1 0>")
    async with await opened(tmp_path / "async") as other:
        await a_bit_of_everything(other)
        found = await other.state_hash()
        text = await other.agent("alice").get_relevant_memories("<1 0>")
    assert (found, text) == wanted


@in_a_loop
async def test_what_is_known_without_waiting_is_no_coroutine() -> None:
    async with await ephemeral(memory={"max_pinned": 2}) as bank:
        await bank.advance(7)
        alice = bank.agent("alice")
        assert (bank.tick, bank.settings.memory.max_pinned) == (7, 2)
        assert (alice.agent_id, alice.notes.agent_id) == ("alice", "alice")
        async with bank.transaction():  # the bank's lock is held by another thread now
            assert repr(bank) == "<AsyncMemoryBank in memory>"
            assert repr(alice) == "<AsyncAgentMemory alice>"
            assert repr(alice.notes) == "<AsyncAgentNotes alice>"
    assert "closed" in repr(bank)


@in_a_loop
async def test_run_takes_any_function_of_the_sync_view() -> None:
    async with await ephemeral() as bank:
        alice = bank.agent("alice")
        done = await alice.run(tools.call, "store_memory", {"content": "x"})
        assert done.result is not None
        assert done.result["content"] == "x"
        assert await bank.run(lambda own, more: own.agent("alice").count() + more, more=2) == 3
        assert await bank.run(lambda own: ticks_of(own).state()) is None


@in_a_loop
async def test_errors_come_through_unchanged() -> None:
    async with await ephemeral() as bank:
        with pytest.raises(InvalidAgentId):
            bank.agent("*")
        with pytest.raises(InvalidContent, match="blank"):
            await bank.agent("alice").add(" ")
        with pytest.raises(MemoryNotFound, match="alice has no memory 'nope'"):
            await bank.agent("alice").get("nope")
        mine = ZeroDivisionError("mine")

        def fail(own: MemoryBank) -> None:
            raise mine

        with pytest.raises(ZeroDivisionError) as caught:
            await bank.run(fail)
        assert caught.value is mine


@in_a_loop
async def test_context_variables_are_seen_in_the_thread() -> None:
    request = ContextVar("request", default="none")
    async with await ephemeral() as bank:
        request.set("number 7")
        assert await bank.run(lambda own: request.get()) == "number 7"


# Order, and a free loop


@in_a_loop
async def test_a_hundred_tasks_are_served_in_the_order_in_which_they_were_made() -> None:
    async with await ephemeral() as bank:
        alice = bank.agent("alice")
        await asyncio.gather(*(alice.add(f"{n}") for n in range(100)))
        assert await texts(bank) == [f"{n}" for n in range(100)]


@in_a_loop
async def test_calls_of_all_agents_are_done_in_the_order_in_which_they_came() -> None:
    done: list[str] = []

    def note(embedded: Sequence[str]) -> list[list[float]]:
        done.extend(embedded)
        return [direction(text, 4) for text in embedded]

    async with await ephemeral(embedder=FromFunction(note)) as bank:
        async with asyncio.TaskGroup() as group:
            for n in range(60):
                group.create_task(bank.agent(f"a{n % 7}").add(f"{n}"))
        assert done == [f"{n}" for n in range(60)]


@in_a_loop
async def test_the_loop_goes_on_while_an_embedder_is_slow() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def slow(embedded: Sequence[str]) -> list[list[float]]:
        begun.set()
        assert may_end.wait(LONG), "the loop did not go on"
        return [direction(text, 4) for text in embedded]

    async with await ephemeral(embedder=FromFunction(slow)) as bank:
        adding = asyncio.create_task(bank.agent("alice").add("x"))
        while not begun.is_set():
            await asyncio.sleep(0.005)
        assert not adding.done()
        may_end.set()
        assert (await adding).content == "x"


@in_a_loop
async def test_many_agents_work_at_once_on_real_files(tmp_path: Path) -> None:
    async def live(bank: AsyncMemoryBank, name: str) -> None:
        me = bank.agent(name)
        for n in range(8):
            memory = await me.add(f"{name} {n} <1 {n}>")
            if n % 3 == 0:
                await me.pin(memory.id)
            await me.search("<1 0>")
        await me.notes.append("That was a day.", "MEMORY.md")

    async with await opened(tmp_path / "bank") as bank:
        names = [f"agent{n}" for n in range(20)]
        await asyncio.gather(*(live(bank, name) for name in names))
        before = await bank.state_hash()
    with MemoryBank.open(
        tmp_path / "bank", preset="vector", storage=MANUAL, embedder=Directions()
    ) as again:
        assert again.state_hash() == before
        for name in names:
            own = again.agent(name)
            facts = [memory.content for memory in own.all() if memory.kind == "fact"]
            assert facts == [f"{name} {n} <1 {n}>" for n in range(8)]
            assert len(own.get_pinned_memories()) == 3
            assert own.notes.read() == "That was a day.\n"


# Cancelling


@in_a_loop
async def test_a_call_that_is_cancelled_before_its_turn_is_never_begun() -> None:
    gate = Gate()
    async with await ephemeral(embedder=gate) as bank:
        alice = bank.agent("alice")
        slow = asyncio.create_task(alice.add("slow |"))
        await gate.wait()
        waiting = asyncio.create_task(alice.add("waiting"))
        after = asyncio.create_task(alice.add("after"))
        await turn_of_the_loop()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.open.set()
        await asyncio.gather(slow, after)
        assert await texts(bank) == ["slow |", "after"]


@in_a_loop
async def test_a_call_that_is_cancelled_after_it_began_runs_to_its_end() -> None:
    gate = Gate()
    async with await ephemeral(embedder=gate) as bank:
        alice = bank.agent("alice")
        slow = asyncio.create_task(alice.add("slow |"))
        await gate.wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(slow, 0.01)
        after = asyncio.create_task(alice.add("after"))
        await turn_of_the_loop()
        gate.open.set()
        await after
        assert await texts(bank) == ["slow |", "after"]


@in_a_loop
async def test_a_cancelled_call_that_fails_later_disturbs_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reached, go = threading.Event(), threading.Event()

    def fail(own: MemoryBank) -> None:
        reached.set()
        go.wait(LONG)
        raise ZeroDivisionError

    async with await ephemeral() as bank:
        failing = asyncio.create_task(bank.run(fail))
        assert await asyncio.to_thread(reached.wait, 10)
        failing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await failing
        go.set()
        await bank.agent("alice").add("x")
    assert caplog.records == []


# Transactions


@in_a_loop
async def test_a_transaction_is_kept_whole(tmp_path: Path) -> None:
    async with await opened(tmp_path / "bank") as bank:
        async with bank.transaction():
            await bank.agent("alice").add("a")
            await bank.agent("bob").add("b")
            assert await texts(bank) == ["a"]  # seen inside
        assert await texts(bank, "bob") == ["b"]


@in_a_loop
async def test_an_error_undoes_the_transaction_and_is_the_one_that_comes_out() -> None:
    async with await ephemeral() as bank:
        await bank.agent("alice").add("before")
        state = await bank.state_hash()
        mine = ZeroDivisionError("mine")

        async def fail() -> None:
            async with bank.transaction():
                await bank.agent("alice").add("lost")
                await bank.advance(9)
                raise mine

        with pytest.raises(ZeroDivisionError) as caught:
            await fail()
        assert caught.value is mine
        assert await bank.state_hash() == state
        assert (await bank.agent("alice").add("kept")).sequence == 2


@in_a_loop
async def test_a_refused_call_inside_does_not_end_the_transaction() -> None:
    async with await ephemeral() as bank, bank.transaction():
        alice = bank.agent("alice")
        await alice.add("first")
        with pytest.raises(InvalidContent):
            await alice.add("")
        await alice.add("second")
        assert await texts(bank) == ["first", "second"]


@in_a_loop
async def test_calls_of_other_tasks_wait_until_a_transaction_ends() -> None:
    async with await ephemeral() as bank:
        alice = bank.agent("alice")
        with suppress(Undone):
            async with bank.transaction():
                await alice.add("mine")
                others = [elsewhere(alice.add(f"other {n}")) for n in range(3)]
                await asyncio.sleep(0.02)
                assert not any(other.done() for other in others)
                assert await texts(bank) == ["mine"]
                raise Undone
        await asyncio.gather(*others)
        assert await texts(bank) == ["other 0", "other 1", "other 2"]


@in_a_loop
async def test_transactions_of_many_tasks_do_not_mix() -> None:
    async with await ephemeral() as bank:

        async def three(number: int) -> None:
            with suppress(Undone):
                async with bank.transaction():
                    for part in "abc":
                        await bank.agent("alice").add(f"{number}{part}")
                        await asyncio.sleep(0.001 * (number % 2))
                    if number % 3 == 0:
                        raise Undone

        async def one(number: int) -> None:
            await asyncio.sleep(0.001 * number)
            await bank.agent("alice").add(f"single {number}")

        await asyncio.gather(*(three(n) for n in range(12)), *(one(n) for n in range(12)))
        found = await texts(bank)
        together = [text for text in found if not text.startswith("single")]
        assert together == [f"{n}{part}" for n in range(12) if n % 3 for part in "abc"]
        assert len(found) == 24 + 12
        places = [found.index(f"{n}a") for n in range(12) if n % 3]
        assert all(found[place + 2][-1] == "c" for place in places)  # nothing in between


@in_a_loop
async def test_transactions_begin_in_the_order_in_which_they_were_asked_for() -> None:
    async with await ephemeral() as bank:

        async def one(number: int) -> None:
            async with bank.transaction():
                await asyncio.sleep(0)
                await bank.agent("alice").add(f"{number}")

        await asyncio.gather(*(one(n) for n in range(20)))
        assert await texts(bank) == [f"{n}" for n in range(20)]


@in_a_loop
async def test_tasks_that_are_started_inside_are_inside() -> None:
    async with await ephemeral() as bank:
        alice = bank.agent("alice")
        with suppress(Undone):
            async with bank.transaction():
                await asyncio.gather(*(alice.add(f"{n}") for n in range(5)))
                await asyncio.wait_for(alice.add("in time"), 5)
                async with asyncio.TaskGroup() as group:
                    group.create_task(alice.add("grouped"))
                assert await alice.count() == 7
                raise Undone
        assert await alice.count() == 0


@in_a_loop
async def test_a_task_that_outlives_the_transaction_works_on_by_itself() -> None:
    async with await ephemeral() as bank:
        alice, ended = bank.agent("alice"), asyncio.Event()

        async def linger() -> None:
            await alice.add("inside")
            await ended.wait()
            await alice.add("later")
            async with bank.transaction():
                await alice.add("in one of its own")

        with suppress(Undone):
            async with bank.transaction():
                task = asyncio.create_task(linger())
                while not await alice.count():
                    await asyncio.sleep(0)
                raise Undone
        ended.set()
        await task
        assert await texts(bank) == ["later", "in one of its own"]


@in_a_loop
async def test_a_transaction_inside_another_is_undone_alone() -> None:
    async with await ephemeral() as bank:
        alice = bank.agent("alice")
        async with bank.transaction():
            await alice.add("outer 1")
            with suppress(Undone):
                async with bank.transaction():
                    await alice.add("inner")
                    raise Undone
            await alice.add("outer 2")
        assert await texts(bank) == ["outer 1", "outer 2"]


@in_a_loop
async def test_transactions_of_tasks_inside_a_transaction_do_not_mix() -> None:
    async with await ephemeral() as bank:
        alice = bank.agent("alice")

        async def inner(name: str, *, fails: bool) -> None:
            with suppress(Undone):
                async with bank.transaction():
                    await alice.add(f"{name} 1")
                    await asyncio.sleep(0.005)
                    await alice.add(f"{name} 2")
                    if fails:
                        raise Undone

        async with bank.transaction():
            await asyncio.gather(
                inner("a", fails=True),
                inner("b", fails=False),
                alice.add("beside"),
                inner("c", fails=True),
            )
        assert await texts(bank) == ["b 1", "b 2", "beside"]


@in_a_loop
async def test_a_transaction_ends_after_those_that_were_begun_inside_of_it() -> None:
    async with await ephemeral() as bank:
        alice, begun = bank.agent("alice"), asyncio.Event()

        async def inner() -> None:
            async with bank.transaction():
                begun.set()
                await asyncio.sleep(0.02)
                await alice.add("inner")

        async with bank.transaction():
            task = asyncio.create_task(inner())
            await begun.wait()
            outside = elsewhere(alice.add("outside"))
            await turn_of_the_loop()
        await asyncio.gather(task, outside)
        assert await texts(bank) == ["inner", "outside"]


@in_a_loop
async def test_what_waited_longest_comes_first_when_transactions_end() -> None:
    async with await ephemeral() as bank:
        alice, begun, go_on = bank.agent("alice"), asyncio.Event(), asyncio.Event()

        async def whole(text: str) -> None:
            async with bank.transaction():
                begun.set()
                await go_on.wait()
                await alice.add(text)

        async def around() -> None:
            async with bank.transaction():
                inner.append(asyncio.create_task(whole("inner")))
                await begun.wait()
                outside.append(elsewhere(alice.add("first")))
                await turn_of_the_loop()

        inner: list[asyncio.Task[Any]] = []
        outside: list[asyncio.Task[Any]] = []
        outer = asyncio.create_task(around())  # its end waits for that of the one inside
        await turn_of_the_loop(50)
        while not outside:
            await asyncio.sleep(0.001)
        await turn_of_the_loop(10)
        last = elsewhere(whole("second"))
        await turn_of_the_loop()
        go_on.set()
        await asyncio.gather(outer, last, *inner, *outside)
        assert await texts(bank) == ["inner", "first", "second"]


@in_a_loop
async def test_transactions_of_two_banks_are_each_its_own() -> None:
    async with await ephemeral() as one, await ephemeral() as other:
        with suppress(Undone):
            async with one.transaction():
                await one.agent("alice").add("lost")
                async with other.transaction():
                    await one.agent("alice").add("lost too")
                    await other.agent("alice").add("kept")
                raise Undone
        assert (await texts(one), await texts(other)) == ([], ["kept"])


@in_a_loop
async def test_a_task_that_is_cancelled_inside_leaves_nothing() -> None:
    gate = Gate()
    async with await ephemeral(embedder=gate) as bank:
        alice = bank.agent("alice")

        async def work() -> None:
            async with bank.transaction():
                await alice.add("first")
                await alice.add("second |")

        task = asyncio.create_task(work())
        await gate.wait()
        task.cancel()
        await turn_of_the_loop()
        after = asyncio.create_task(alice.add("after"))
        gate.open.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        await after
        assert await texts(bank) == ["after"]


@in_a_loop
async def test_a_transaction_that_is_cancelled_before_it_begins_holds_nobody_up() -> None:
    async with await ephemeral() as bank:
        alice = bank.agent("alice")

        async def never() -> None:
            async with bank.transaction():
                await alice.add("never")

        async with bank.transaction():
            waiting = elsewhere(never())
            others = [elsewhere(alice.add(f"{n}")) for n in range(2)]
            await turn_of_the_loop()
            waiting.cancel()
        await asyncio.gather(*others)
        assert waiting.cancelled()
        assert await texts(bank) == ["0", "1"]


@pytest.mark.parametrize("begun", [False, True])
@in_a_loop
async def test_a_transaction_that_is_cancelled_while_it_begins_is_ended(begun: bool) -> None:
    sync = MemoryBank.ephemeral(preset="vector", embedder=Directions())
    async with AsyncMemoryBank(sync) as bank:
        alice, held, free = bank.agent("alice"), threading.Event(), threading.Event()

        async def never() -> None:
            async with bank.transaction():
                await alice.add("never")

        def hold() -> None:
            with sync.transaction():
                held.set()
                assert free.wait(LONG)

        holding = threading.Thread(target=hold)
        holding.start()
        held.wait(LONG)
        # Unless the transaction is to have begun, its beginning waits behind another call.
        before = None if begun else asyncio.create_task(alice.count())
        await turn_of_the_loop()
        task = asyncio.create_task(never())
        await asyncio.sleep(0.02)
        task.cancel()
        other = asyncio.create_task(alice.add("other"))
        await turn_of_the_loop()
        free.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        await other
        if before is not None:
            await before
        assert await texts(bank) == ["other"]
        holding.join()


@in_a_loop
async def test_a_transaction_that_is_cancelled_while_it_commits_is_committed() -> None:
    gate = Gate()
    async with await ephemeral(embedder=gate) as bank:
        alice = bank.agent("alice")

        async def work() -> None:
            async with bank.transaction():
                await alice.add("kept")
                asyncio.create_task(alice.add("slow |"))  # noqa: RUF006
                await asyncio.sleep(0)

        task = asyncio.create_task(work())
        await gate.wait()
        await turn_of_the_loop()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.open.set()
        assert await texts(bank) == ["kept", "slow |"]
        await alice.add("after")


@pytest.mark.parametrize("seed", range(5))
@in_a_loop
async def test_whatever_is_cancelled_a_transaction_is_whole_or_nothing(seed: int) -> None:
    chance = random.Random(seed)

    async def three(bank: AsyncMemoryBank, number: int) -> None:
        async with bank.transaction():
            for part in "abc":
                await asyncio.gather(bank.agent("alice").add(f"{number} {part}"))
                await asyncio.sleep(chance.choice([0, 0, 0.001]))

    async with await ephemeral() as bank:
        tasks = []
        for number in range(40):
            tasks.append(asyncio.create_task(three(bank, number)))
            await asyncio.sleep(chance.choice([0, 0, 0.001]))
            if chance.random() < 0.5:
                chance.choice(tasks).cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(end is None or isinstance(end, asyncio.CancelledError) for end in ends)
        found = await texts(bank)
        numbers = [text.split()[0] for text in found]
        assert found == [f"{n} {part}" for n in dict.fromkeys(numbers) for part in "abc"]
        assert {f"{n}" for n, end in enumerate(ends) if end is None} <= set(numbers)
        assert 0 < len(numbers) < 120


@in_a_loop
async def test_threads_that_use_the_bank_itself_wait_for_a_transaction() -> None:
    sync = MemoryBank.ephemeral(preset="vector", embedder=Directions())
    async with AsyncMemoryBank(sync) as bank:
        async with bank.transaction():
            await bank.agent("alice").add("first")
            other = asyncio.create_task(asyncio.to_thread(sync.agent("alice").add, "second"))
            await asyncio.sleep(0.02)
            assert not other.done()
        await other
        assert await texts(bank) == ["first", "second"]


# Opening and closing


@in_a_loop
async def test_opening_raises_what_the_bank_raises(tmp_path: Path) -> None:
    with pytest.raises(BankNotFound):
        await AsyncMemoryBank.open(tmp_path / "none", create=False)
    async with await opened(tmp_path / "bank"):
        with pytest.raises(BankLocked):
            await opened(tmp_path / "bank")


@in_a_loop
async def test_a_bank_comes_back_from_a_checkpoint_and_as_it_was(tmp_path: Path) -> None:
    async with await opened(tmp_path / "bank") as bank:
        await bank.agent("alice").add("x")
        await bank.checkpoint(tmp_path / "file", {"round": 3})
        assert await bank.checkpoint_extra(tmp_path / "file") == {"round": 3}
        wanted = await bank.state_hash()
        await bank.advance(1)
        await bank.agent("alice").add("y")
    options: dict[str, Any] = {"embedder": Directions(), "storage": MANUAL}
    async with await AsyncMemoryBank.restore(
        tmp_path / "file", tmp_path / "other", **options
    ) as restored:
        assert await restored.state_hash() == wanted
    async with await AsyncMemoryBank.at(tmp_path / "bank", 0, embedder=Directions()) as past:
        assert await texts(past) == ["x"]


@pytest.mark.parametrize("pause", [0, 0.001, 0.01])
@in_a_loop
async def test_opening_that_is_cancelled_leaves_the_folder_free(
    pause: float, tmp_path: Path
) -> None:
    opening = asyncio.create_task(opened(tmp_path / "bank"))
    await asyncio.sleep(pause)
    if opening.cancel():
        with pytest.raises(asyncio.CancelledError):
            await opening
    else:
        await (await opening).close()
    bank = None
    while bank is None:
        try:
            bank = await opened(tmp_path / "bank")
        except BankLocked:  # it was opened, and is being closed
            await asyncio.sleep(0.01)
    async with bank:
        await bank.agent("alice").add("x")


@in_a_loop
async def test_close_comes_after_the_calls_that_came_before(tmp_path: Path) -> None:
    gate = Gate()
    bank = await opened(tmp_path / "bank", embedder=gate)
    alice = bank.agent("alice")
    adding = [asyncio.create_task(alice.add(f"{n} |")) for n in range(10)]
    await gate.wait()
    closing = asyncio.create_task(bank.close())
    await turn_of_the_loop()
    late = asyncio.create_task(alice.add("late"))
    await turn_of_the_loop()
    gate.open.set()
    await asyncio.gather(*adding, closing)
    with pytest.raises(BankClosed):
        await late
    with MemoryBank.open(
        tmp_path / "bank", preset="vector", storage=MANUAL, embedder=gate
    ) as again:
        assert contents(again) == [f"{n} |" for n in range(10)]


@in_a_loop
async def test_close_waits_for_the_transaction_of_another_task() -> None:
    bank = await ephemeral()
    async with bank.transaction():
        closing = elsewhere(bank.close())
        await turn_of_the_loop()
        await bank.agent("alice").add("x")
        assert not closing.done()
    await closing
    with pytest.raises(BankClosed):
        await bank.agents()


@in_a_loop
async def test_a_bank_cannot_be_closed_inside_its_own_transaction() -> None:
    async with await ephemeral() as bank:
        async with bank.transaction():
            with pytest.raises(BankError, match="transaction"):
                await bank.close()
            await bank.agent("alice").add("x")
        assert await texts(bank) == ["x"]


@in_a_loop
async def test_a_closed_bank_says_so() -> None:
    bank = await ephemeral()
    alice = bank.agent("alice")
    await alice.add("x")
    await bank.close()
    await bank.close()  # a second time does nothing
    calls: list[Callable[[], Coroutine[Any, Any, Any]]] = [
        lambda: alice.add("y"),
        lambda: alice.search("y"),
        lambda: alice.notes.read(),
        lambda: bank.advance(1),
        lambda: bank.state_hash(),
        lambda: bank.__aenter__(),
    ]
    for call in calls:
        with pytest.raises(BankClosed):
            await call()
    with pytest.raises(BankClosed):
        async with bank.transaction():
            raise AssertionError("it was begun")


@in_a_loop
async def test_the_thread_ends_with_the_bank() -> None:
    def threads() -> set[threading.Thread]:
        return {each for each in threading.enumerate() if each.name.startswith("tiermem-bank")}

    before = threads()
    async with await ephemeral() as bank:
        (own,) = threads() - before
        await bank.agent("alice").add("x")
    await asyncio.to_thread(own.join, 5)
    assert not own.is_alive()


@in_a_loop
async def test_leaving_the_block_closes_even_when_cancelled(tmp_path: Path) -> None:
    async def work() -> None:
        async with await opened(tmp_path / "bank") as bank:
            await bank.agent("alice").add("x")
            begun.set()
            await asyncio.sleep(60)

    begun = asyncio.Event()
    task = asyncio.create_task(work())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with await opened(tmp_path / "bank") as again:
        assert await texts(again) == ["x"]


@in_a_loop
async def test_closing_at_the_end_of_a_block_is_finished_even_when_cancelled() -> None:
    gate = Gate()
    bank = await ephemeral(embedder=gate)

    async def work() -> None:
        async with bank:
            asyncio.create_task(bank.agent("alice").add("slow |"))  # noqa: RUF006
            await asyncio.sleep(0)

    task = asyncio.create_task(work())
    await gate.wait()
    await turn_of_the_loop()  # it waits for the slow call, to close the bank
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.open.set()
    with pytest.raises(BankClosed):
        await bank.agents()


def test_a_bank_is_for_one_loop_at_a_time() -> None:
    async def make() -> AsyncMemoryBank:
        bank = await ephemeral()
        await bank.agent("alice").add("x")
        return bank

    async def misuse(bank: AsyncMemoryBank) -> None:
        def elsewhere() -> None:
            with pytest.raises(BankError, match="another event loop"):
                asyncio.run(bank.agents())

        await bank.agents()
        await asyncio.to_thread(elsewhere)
        await bank.close()

    bank = asyncio.run(make())
    assert asyncio.run(texts(bank)) == ["x"]  # the first loop is gone
    asyncio.run(misuse(bank))


@in_a_loop
async def test_notes_are_watched_until_the_block_ends(tmp_path: Path) -> None:
    async with await opened(tmp_path / "bank") as bank:
        alice = bank.agent("alice")
        await alice.notes.write("MEMORY.md", "old\n")
        async with await bank.watch_notes(debounce=0) as watch:
            (tmp_path / "bank/notes/alice/MEMORY.md").write_text("new\n")
            while await texts(bank) != ["new\n"]:
                await asyncio.sleep(0.01)
        await watch.stop()  # a second time does nothing
        (tmp_path / "bank/notes/alice/MEMORY.md").write_text("newer\n")
        await asyncio.sleep(0.3)
        assert await texts(bank) == ["new\n"]


# What went wrong once


@in_a_loop
async def test_a_bank_is_opened_with_or_without_await(tmp_path: Path) -> None:
    async with AsyncMemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        await bank.agent("alice").add("salt")
    with pytest.raises(BankClosed):
        await bank.agents()
    async with await AsyncMemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert await bank.agents() == ["alice"]
    bank = await asyncio.create_task(AsyncMemoryBank.ephemeral())
    await bank.close()


@in_a_loop
async def test_a_bank_that_can_not_be_opened_is_not_entered(tmp_path: Path) -> None:
    with pytest.raises(BankNotFound):
        async with AsyncMemoryBank.open(tmp_path / "none", create=False):
            raise AssertionError


@in_a_loop
async def test_stop_iteration_does_not_keep_its_caller_waiting() -> None:
    async with AsyncMemoryBank.ephemeral() as bank:
        with pytest.raises(RuntimeError) as raised:
            await asyncio.wait_for(bank.run(lambda _: next(iter(()))), 10)
        assert isinstance(raised.value.__cause__, StopIteration)
        assert await bank.agents() == []


@pytest.mark.parametrize("is_used_again", [True, False])
def test_what_a_closed_loop_left_open_is_undone(tmp_path: Path, is_used_again: bool) -> None:
    sync = MemoryBank.open(tmp_path / "bank", storage=MANUAL)
    bank = AsyncMemoryBank(sync)

    begun: list[asyncio.Task[None]] = []

    async def begin() -> None:
        async with bank.transaction(), bank.transaction():
            await bank.agent("alice").add("never committed")
            loop.stop()
            await asyncio.Event().wait()

    loop = asyncio.new_event_loop()
    begun.append(loop.create_task(begin()))
    loop.run_forever()
    loop.close()

    async def after() -> list[str]:
        await bank.agent("bob").add("committed")
        return await bank.agents()

    if is_used_again:
        assert asyncio.run(after()) == ["bob"]
    begun[0]._log_destroy_pending = False  # type: ignore[attr-defined]
    begun.clear()
    gc.collect()
    assert sync.agents() == ["bob"] * is_used_again  # or it would wait for ever
    sync.close()


@in_a_loop
async def test_two_views_of_a_bank_do_not_wait_for_each_other_inside_a_transaction() -> None:
    with MemoryBank.ephemeral() as sync:
        one, other = AsyncMemoryBank(sync), AsyncMemoryBank(sync)
        async with one.transaction():
            await one.agent("alice").add("salt")
            with pytest.raises(BankError, match="another AsyncMemoryBank"):
                await asyncio.wait_for(other.agent("alice").count(), 10)
        assert await other.agent("alice").count() == 1
