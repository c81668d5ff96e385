"""Requests come before reading, and what takes long is made beside them."""

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from inspected_sites import ask, looked_at

from agents import MemoryBank
from agents.bank.agent_memory import AgentMemory
from agents.interfaces.inspector import agent_view, run_view
from agents.interfaces.inspector.inspected import Later
from agents.interfaces.inspector.parameters import Reading
from agents.interfaces.inspector.slices import RequestsFirst
from agents.memory.events import Event, decode
from waiting import LONG


@pytest.fixture
def later() -> Iterator[Later]:
    opened = Later()
    yield opened
    opened.close()


def test_reading_waits_while_a_request_is_answered() -> None:
    turns, read = RequestsFirst(), threading.Event()

    def reading() -> None:
        turns.after_requests()
        read.set()

    with turns.answering():
        thread = threading.Thread(target=reading)
        thread.start()
        assert not read.wait(0.1)
        with turns.waiting():  # the request needs what is not read yet
            assert read.wait(LONG)
    thread.join(LONG)


def test_a_request_that_never_ends_does_not_stop_the_reading() -> None:
    turns = RequestsFirst()
    reading = threading.Thread(target=turns.after_requests, daemon=True)
    with turns.answering():
        reading.start()
        reading.join(LONG)
        assert not reading.is_alive()


def test_waiting_outside_a_request_changes_nothing() -> None:
    turns = RequestsFirst()
    with turns.waiting():
        pass
    turns.after_requests()
    with turns.answering(), turns.waiting(), turns.waiting():
        turns.after_requests()


def test_an_answer_that_takes_long_is_there_when_it_is_asked_for_again(later: Later) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def make() -> dict[str, int]:
        begun.set()
        assert may_end.wait(LONG)
        return {"made": 1}

    assert later.answer("slow", 1, make, 0.01) is None
    assert begun.wait(LONG)
    may_end.set()
    # The run went on meanwhile: who waited gets the answer, and the next one gets a new one.
    assert later.answer("slow", 2, _never, LONG) == {"made": 1}
    assert later.answer("slow", 1, _never, LONG) == {"made": 1}
    assert later.answer("slow", 2, lambda: {"made": 2}, LONG) == {"made": 2}


def _never() -> dict[str, int]:
    raise AssertionError("it is made already")


def test_only_the_answer_that_was_asked_for_last_is_begun(later: Later) -> None:
    may_end, made = threading.Event(), list[int]()

    def make(number: int) -> dict[str, int]:
        assert may_end.wait(LONG)
        made.append(number)
        return {"made": number}

    for number in range(5):
        assert later.answer(number, 0, partial(make, number), 0.01) is None
    may_end.set()
    assert later.answer(4, 0, _never, LONG) == {"made": 4}
    assert made == [0, 4]
    assert later.answer(2, 0, lambda: {"made": 2}, LONG) == {"made": 2}


def test_a_fault_is_told_and_not_kept(later: Later) -> None:
    with pytest.raises(AssertionError, match="made already"):
        later.answer("fault", 0, _never, LONG)
    assert later.answer("fault", 0, lambda: {"made": 1}, LONG) == {"made": 1}


def test_a_look_at_a_bank_that_another_thread_uses_is_to_be_made_again(market: Path) -> None:
    with looked_at(market) as site:
        (run,) = site.runs
        run.need(40, LONG)
        held, may_end = threading.Event(), threading.Event()

        def use() -> None:
            with run.past.after("agent_01", 3):
                held.set()
                may_end.wait(LONG)

        thread = threading.Thread(target=use)
        thread.start()
        assert held.wait(LONG)
        with pytest.raises(Reading):
            site.answer("memories", {"agent": "agent_02", "tick": "3"})
        may_end.set()
        thread.join(LONG)
        assert ask(site, "memories", agent="agent_02", tick=3)["rows"]


def test_the_parts_of_a_list_are_cut_from_one_list(
    market: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = _threads_of(monkeypatch, "all")
    given = {"agent": "agent_02", "tick": 30}
    monkeypatch.setattr(agent_view, "MOST_ROWS", 5)
    with looked_at(market) as site:
        assert all(ask(site, "memories", **given, offset=at)["rows"] for at in (0, 5, 10))
        assert len(threads) == 1
        ask(site, "memories", **{**given, "tick": 31})
        assert len(threads) == 2


def test_an_agent_with_many_memories_is_looked_at_beside_the_requests(
    market: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions: list[tuple[str, dict[str, object]]] = [
        ("memories", {}),
        ("explain", {"query": "who cheated me?"}),
        ("explain", {"when": "deciding"}),
        ("agent", {}),
    ]
    here = {"agent": "agent_02", "tick": 30}
    with looked_at(market) as site:
        expected = [ask(site, name, **here, **given) for name, given in questions]
    monkeypatch.setattr(agent_view, "_MANY", 10)
    threads = [*map(partial(_threads_of, monkeypatch), ("all", "explain"))]
    with looked_at(market) as site:
        assert [ask(site, name, **here, **given) for name, given in questions] == expected
    names = [name for own in threads for name in own]
    assert len(names) >= 3
    assert all(name.startswith("later") for name in names)


@pytest.mark.parametrize("bound", ["_MANY_COMMITS", "_MANY_BYTES"])
def test_the_parts_of_a_long_tick_are_cut_from_one_list_beside_the_requests(
    market: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    with looked_at(market) as site:
        whole = ask(site, "tick", tick=30)
        of_one = ask(site, "tick", tick=30, agent="agent_02")
    assert whole["total"] > 8
    threads = list[str]()

    def seen(events: str) -> list[Event]:
        threads.append(threading.current_thread().name.partition("_")[0])
        return decode(events)

    monkeypatch.setattr(run_view, "decode", seen)
    monkeypatch.setattr(run_view, bound, 0)
    monkeypatch.setattr(run_view, "MOST_ROWS", 4)
    with looked_at(market) as site:
        parts = [ask(site, "tick", tick=30, offset=at) for at in (0, 4)]
        assert parts[0]["events"] + parts[1]["events"] == whole["events"][:8]
        assert all(part["total"] == whole["total"] for part in parts)
        assert threads == ["later"]
        monkeypatch.setattr(run_view, "MOST_ROWS", 5000)
        assert ask(site, "tick", tick=30, agent="agent_02") == of_one
        assert threads == ["later"] * 2


def test_a_long_tick_that_goes_on_shows_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_view, "_MANY_COMMITS", 0)
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        bank.agent("ann").add("the mill burns")
        with looked_at(tmp_path / "bank") as site:
            assert ask(site, "tick", tick=0)["total"] == 1
            bank.agent("ann").add("the mill is lost")
            texts = [row["text"] for row in ask(site, "tick", tick=0)["events"]]
    assert texts == ["the mill burns", "the mill is lost"]


def _threads_of(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """The names of the threads that call a method of agents' memories from now on."""
    threads, method = list[str](), getattr(AgentMemory, name)

    def called(*given: object, **options: object) -> object:
        threads.append(threading.current_thread().name)
        return method(*given, **options)

    monkeypatch.setattr(AgentMemory, name, called)
    return threads
