"""What the inspector keeps in memory while it reads a journal, and while it is looked at."""

import gc
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from inspected_sites import ask, looked_at, opened

from agents.errors import RunError
from agents.interfaces.inspector import inspected, past
from agents.interfaces.inspector.inspected import Later
from agents.interfaces.inspector.inspection import Inspection
from agents.interfaces.inspector.slices import Item, Slices
from waiting import LONG


def test_what_waits_to_be_written_takes_little_more_than_its_bytes() -> None:
    slices = Slices()
    item = Item(1, 1, [["tick", 1], ["touch", "alice", [1, 2, 3]]], None)
    tracemalloc.start()
    try:
        for agent in range(500):
            slices.put(agent, item, bytes(64))
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        slices.close()
    assert taken < 500 * 600, "an item has some 60 bytes and 64 of vectors, beside Python's objects"


def test_the_banks_that_are_kept_have_few_memories(
    market: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 60
    monkeypatch.setattr(past, "_MOST_MEMORIES", most)
    with looked_at(market) as site:
        banks = set()
        for tick in (5, 10, 38):
            for number in range(5):
                total = ask(site, "memories", agent=f"agent_0{number}", tick=tick)["total"]
                kept = site.runs[0].past.kept()
                assert kept.memories <= most or kept.banks == 1, "the bank in use may be larger"
                assert kept.memories >= total
                banks.add(kept.banks)
    assert max(banks) > 1


def test_no_more_than_eight_banks_are_kept(market: Path) -> None:
    with looked_at(market) as site:
        for tick in (5, 35):
            for number in range(5):
                ask(site, "memories", agent=f"agent_0{number}", tick=tick)
        assert site.runs[0].past.kept().banks == 8


@pytest.mark.slow
def test_the_stages_of_one_agent_are_bounded_and_every_tick_is_reached(
    market: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = (40, 3, 22, 39, 8, 31)
    with looked_at(market) as site:
        expected = [ask(site, "memories", agent="agent_01", tick=tick) for tick in ticks]
    monkeypatch.setattr(past, "_STEP", 2)
    monkeypatch.setattr(past, "_SECONDS", 0)  # each request makes one stage
    with looked_at(market) as site:
        own = site.runs[0].past
        ask(site, "memories", agent="agent_01", tick=40)
        most = own.kept().bytes // 3
        monkeypatch.setattr(past, "_MOST_BYTES", most)
        found = []
        for tick in ticks:
            found.append(ask(site, "memories", agent="agent_01", tick=tick))
            assert 0 < own.kept().bytes <= most or tick == ticks[0]
            ask(site, "memories", agent="agent_02", tick=tick)
    assert found == expected


def test_what_stays_read_is_few_objects_for_the_collector(market: Path) -> None:
    with looked_at(market) as site:
        site.runs[0].need(40, LONG)
        slices = site.runs[0].reader.slices
        before = len(gc.get_objects())
        lists = sum(len(item.events) for agent in range(5) for item in slices.items(agent))
        assert lists > 500
        assert len(gc.get_objects()) - before < lists / 5


def test_a_few_answers_that_took_long_are_kept() -> None:
    answers, made = Later(), list[int]()

    def make(number: int) -> dict[str, Any]:
        made.append(number)
        return {"number": number}

    for number in range(100):
        answers.answer(number, 0, lambda own=number: make(own), 60)
    for number in range(100 - inspected._MOST_KEPT, 100):
        assert answers.answer(number, 0, lambda own=number: make(own), 60) == {"number": number}
    assert made == list(range(100))
    answers.answer(100 - inspected._MOST_KEPT - 1, 0, lambda: make(-1), 60)
    assert made[-1] == -1
    answers.close()


def test_an_answer_that_somebody_waits_for_stays_while_others_are_made() -> None:
    answers, made, gate = Later(), list[int](), threading.Event()

    def make(number: int) -> dict[str, Any]:
        gate.wait(LONG)
        made.append(number)
        return {"number": number}

    assert answers.answer(0, 0, lambda: make(0), 0) is None, "it is told to ask again"
    gate.set()
    for number in range(1, 11):
        answers.answer(number, 0, lambda own=number: make(own), LONG)
    assert answers.answer(0, 0, lambda: make(-1), LONG) == {"number": 0}
    assert made == list(range(11))
    for number in range(100, 200):  # nobody asks for these again
        gate.clear()
        assert answers.answer(number, 0, lambda own=number: make(own), 0) is None
        gate.set()
        answers.answer(-number, 0, lambda own=number: make(-own), LONG)
    assert len(answers._kept) <= inspected._MOST_KEPT + inspected._MOST_WAITED
    answers.close()


def test_the_collector_waits_until_an_answer_is_made(
    market: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its look at everything would be a part of an answer's time."""
    seen: dict[str, bool] = {}

    def noted(self: Inspection, name: str, given: object) -> dict[str, Any]:
        seen[name] = gc.isenabled()
        return {}

    def branched(self: Inspection, given: object) -> dict[str, Any]:
        seen["branch"] = gc.isenabled()
        raise RunError("there is no room")

    monkeypatch.setattr(Inspection, "answer", noted)
    monkeypatch.setattr(Inspection, "branched", branched)
    with opened(market, allow_branch=True) as door:
        assert door.get("api/about").status_code == 200
        assert door.post("api/branch", json={"tick": 1}).status_code == 409
    assert seen == {"about": False, "branch": True}, "a branch runs a user's code"
    assert gc.isenabled()
