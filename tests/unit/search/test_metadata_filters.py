"""Filters on metadata hold inside the search, wherever a memory is."""

import asyncio
import random
from typing import Any

import numpy as np
import pytest

from agents import AgentMemory, AsyncMemoryBank, InvalidInput, MemoryBank
from banks import MakeBank

BAY = {"metadata.place": "bay"}


def texts(hits: Any) -> list[str]:
    return [hit.memory.content for hit in hits]


def test_the_candidates_are_memories_that_match(alice: AgentMemory) -> None:
    alice.add("needle <1 1>", metadata={"place": "bay"})
    alice.add_many([f"hay {n} <1 0>" for n in range(50)])
    assert texts(alice.search("<1 0>", 1, filters=BAY)) == ["needle <1 1>"]


def test_pinned_memories_have_to_pass_too(alice: AgentMemory) -> None:
    alice.add("pinned bay <0 1>", "pinned", {"place": "bay"})
    alice.add("pinned sea <1 0>", "pinned", {"place": "sea"})
    alice.add("pinned <1 0>", "pinned")
    assert texts(alice.search("<1 0>", filters=BAY)) == ["pinned bay <0 1>"]
    assert texts(alice.search("", filters=BAY)) == ["pinned bay <0 1>"]


@pytest.mark.parametrize("query", ["<1 0>", ""])
def test_cold_memories_have_to_pass(open_bank: MakeBank, query: str) -> None:
    alice = open_bank().agent("alice")
    for n in range(20):
        alice.add(f"sea {n} <1 0>", metadata={"place": "sea", "n": n}, temperature="cold")
    alice.add("bay <1 1>", metadata={"place": "bay", "n": 99}, temperature="cold")
    assert texts(alice.search(query, 2, filters=BAY, include_cold=True)) == ["bay <1 1>"]
    assert alice.search(query, 2, filters=BAY) == []
    few = alice.search(query, 3, filters={"metadata.n": {"$lt": 2}}, include_cold=True)
    assert sorted(texts(few)) == ["sea 0 <1 0>", "sea 1 <1 0>"]


def test_mem0s_store_is_asked_until_enough_match(tmp_path: Any) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "close"}, preset="vector") as bank:
        alice = bank.agent("alice")
        places = ["sea"] * 30 + ["bay"] * 2
        for n, place in enumerate(places):
            alice.add(f"fish number {n} was caught", metadata={"place": place}, temperature="cold")
        bank.sync()
        found = alice.search("fish number 3 was caught", 2, filters=BAY, include_cold=True)
        assert {hit.memory.metadata["place"] for hit in found} == {"bay"}
        assert len(found) == 2


def test_recall_all_and_explain_take_them(alice: AgentMemory) -> None:
    alice.add("bay <1 0>", metadata={"place": "bay"})
    alice.add("cold bay <1 0>", metadata={"place": "bay"}, temperature="cold")
    alice.add("sea <1 0>", metadata={"place": "sea"})
    alice.add("none <1 0>")
    found = alice.recall("<1 0>", auto_promote=False, filters=BAY)
    assert sorted(each.content for each in found.items) == ["bay <1 0>", "cold bay <1 0>"]
    assert [each.content for each in alice.all(filters=BAY)] == ["bay <1 0>", "cold bay <1 0>"]
    assert [each.content for each in alice.all("low", filters=BAY)] == []
    told = {each.memory.content: each.reason for each in alice.explain("<1 0>", filters=BAY)}
    assert told == {
        "bay <1 0>": "chosen",
        "cold bay <1 0>": "cold",
        "sea <1 0>": "filtered",
        "none <1 0>": "filtered",
    }


@pytest.fixture
def talks(alice: AgentMemory) -> AgentMemory:
    """Two conversations, one of them named by a number, and a memory of none."""
    alice.add("bay <1 0>", session="talk 7", metadata={"place": "bay"})
    alice.add("cold bay <1 0>", session="talk 7", temperature="cold")
    alice.add("sea <1 0>", session=8, metadata={"place": "bay"})
    alice.add("none <1 0>")
    return alice


@pytest.mark.parametrize(
    ("session", "warm", "cold"),
    [
        ("talk 7", ["bay <1 0>"], ["cold bay <1 0>"]),
        (8, ["sea <1 0>"], []),
        ("8", ["sea <1 0>"], []),
        (np.int64(8), ["sea <1 0>"], []),
        ("8.0", [], []),
        ("talk 9", [], []),
    ],
)
def test_a_session_is_searched_alone(
    talks: AgentMemory, session: Any, warm: list[str], cold: list[str]
) -> None:
    assert texts(talks.search("<1 0>", session=session)) == warm
    assert texts(talks.search("", session=session)) == warm
    both = sorted(warm + cold)
    assert sorted(texts(talks.search("<1 0>", session=session, include_cold=True))) == both
    assert sorted(each.content for each in talks.all(session=session)) == both
    found = talks.recall("<1 0>", auto_promote=False, session=session)
    assert sorted(each.content for each in found.items) == both
    told = talks.explain("<1 0>", session=session)
    assert [each.memory.content for each in told if each.reason == "chosen"] == warm


def test_a_session_holds_beside_other_filters(talks: AgentMemory) -> None:
    assert texts(talks.search("<1 0>", session=8, filters=BAY)) == ["sea <1 0>"]
    assert texts(talks.search("<1 0>", session=8, filters={})) == ["sea <1 0>"]
    assert talks.search("<1 0>", session=8, filters={"metadata.session": "talk 7"}) == []
    assert talks.search("<1 0>", session=8, tier="low") == []
    deep: dict[str, Any] = BAY
    for _ in range(7):
        deep = {"$and": [deep]}
    assert texts(talks.search("<1 0>", session=8, filters=deep)) == ["sea <1 0>"]


def test_a_session_is_searched_on_boards_and_among_superseded_memories(bank: MemoryBank) -> None:
    bank.group("guild", ["alice"])
    alice = bank.agent("alice")
    alice.social.post("guild", "on the board <1 0>")
    former = alice.add("former <1 0>", session="s")
    alice.update(former.id, "now <1 0>")
    assert texts(alice.search("<1 0>", session="s", include_groups=True)) == ["now <1 0>"]
    found = alice.search("<1 0>", session="s", include_superseded=True)
    assert sorted(texts(found)) == ["former <1 0>", "now <1 0>"]


@pytest.mark.parametrize("session", [True, 1.5, ["talk 7"], {"$ne": "talk 7"}, b"talk 7"], ids=repr)
def test_what_names_no_session_is_refused_everywhere(talks: AgentMemory, session: Any) -> None:
    for call in (
        lambda: talks.search("<1 0>", session=session),
        lambda: talks.recall("<1 0>", session=session),
        lambda: talks.explain("<1 0>", session=session),
        lambda: talks.all(session=session),
    ):
        with pytest.raises(InvalidInput, match="a session is a text or a whole number, not"):
            call()


def test_a_session_can_be_awaited() -> None:
    async def found() -> list[str]:
        async with AsyncMemoryBank.ephemeral() as bank:
            alice = bank.agent("alice")
            await alice.add("the mill", session="talk 7")
            await alice.add("the mill again")
            recalled = await alice.recall("the mill", session="talk 7")
            hits = await alice.search("the mill", session="talk 7")
            return [*texts(hits), *[each.content for each in recalled.items]]

    assert asyncio.run(found()) == ["the mill", "the mill"]


def test_filters_hold_together(alice: AgentMemory) -> None:
    alice.add("a <1 0>", "low", {"place": "bay"}, tags=["x"])
    alice.add("b <1 0>", metadata={"place": "bay"}, tags=["x"])
    alice.add("c <1 0>", "low", {"place": "bay"})
    assert texts(alice.search("<1 0>", tier="low", tags="x", filters=BAY)) == ["a <1 0>"]


@pytest.mark.parametrize("filters", [{"place": "bay"}, {"metadata.x": {"$near": 1}}, "x", 5, [1]])
def test_a_wrong_filter_is_refused_everywhere(alice: AgentMemory, filters: Any) -> None:
    alice.add("a")
    for call in (
        lambda: alice.search("a", filters=filters),
        lambda: alice.recall("a", filters=filters),
        lambda: alice.all(filters=filters),
        lambda: alice.explain("a", filters=filters),
    ):
        with pytest.raises(InvalidInput, match="filters"):
            call()


@pytest.mark.slow
def test_a_filtered_search_is_a_search_of_the_memories_that_match(make_bank: MakeBank) -> None:
    draw = random.Random(5)
    for _ in range(10):
        bank = make_bank()
        alice, bob = bank.agent("alice"), bank.agent("bob")
        for n in range(40):
            place = draw.choice(["bay", "sea"])
            text = f"{n} <{draw.random():.2f} {draw.random():.2f}>"
            tier, heat = draw.choice([0, 3, 3, 4]), draw.choice([None, "cold"])
            heat = None if tier == 0 else heat
            for agent in (alice, bob) if place == "bay" else (alice,):
                agent.add(text, tier, {"place": place}, temperature=heat)
        caps = {each.content: each.tier for each in bob.all()}
        for memory in alice.all(filters=BAY):
            alice.set_tier(memory.id, caps[memory.content])
        for cold in (False, True):
            options: Any = {"include_cold": cold}
            wanted = bob.search("<1 0.3>", 6, **options)
            found = alice.search("<1 0.3>", 6, filters=BAY, **options)
            assert [(hit.memory.content, *hit[1:]) for hit in found if hit.memory.tier] == [
                (hit.memory.content, *hit[1:]) for hit in wanted if hit.memory.tier
            ]
