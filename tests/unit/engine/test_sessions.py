"""A session of an agent has limits, a status, spills, recalls and an end of its own."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from agents import AgentMemory, InvalidInput, InvalidMetadata, Memory, MemoryBank, MemoryNotFound

Make = Callable[..., MemoryBank]

HOT = {"initial": "hot", "hot_max_facts": None, "hot_max_tokens": 10_000}


@pytest.fixture
def alice(make_bank: Make) -> AgentMemory:
    """New memories are hot; a session keeps three of them."""
    return make_bank(temperature={**HOT, "session_max_facts": 3}).agent("alice")


def contents(memories: Iterable[Memory]) -> list[str]:
    return [memory.content for memory in memories]


def talk(alice: AgentMemory, session: str | int, number: int) -> list[str]:
    """The ids of messages <1 0>, <1 1>, and so on, of a session."""
    texts = [f"{session} says <1 {n}>" for n in range(number)]
    return [memory.id for memory in alice.add_many(texts, session=session)]


def hot(alice: AgentMemory, session: str | None = None) -> list[str]:
    return contents(alice.all(temperature="hot", session=session))


# Limits


def test_a_session_that_is_over_its_limits_spills_and_others_stay_as_they_are(
    alice: AgentMemory,
) -> None:
    talk(alice, "one", 3)
    alice.add("of no session")
    talk(alice, "two", 5)
    assert hot(alice) == [
        *[f"one says <1 {n}>" for n in (0, 1, 2)], "of no session",
        *[f"two says <1 {n}>" for n in (2, 3, 4)],
    ]  # fmt: skip
    assert [len(alice.all(temperature="cold", session=each)) for each in ("one", "two")] == [0, 2]


@pytest.mark.parametrize(
    ("limits", "left"), [({}, 4), ({"session_max_facts": 9}, 4), ({"session_max_tokens": 8}, 2)]
)
def test_a_session_has_at_most_what_its_agent_may_have(
    make_bank: Make, limits: dict[str, Any], left: int
) -> None:
    alice = make_bank(temperature={**HOT, "hot_max_facts": 4, **limits}).agent("alice")
    talk(alice, "s", 6)
    assert len(hot(alice)) == left
    most = alice.session("s").status()
    assert (most.hot_max_facts, most.utilization) == (4, 1.0)


def test_all_sessions_together_are_within_the_limits_of_the_agent(make_bank: Make) -> None:
    limits = {**HOT, "hot_max_facts": 4, "session_max_facts": 3}
    alice = make_bank(temperature=limits).agent("alice")
    talk(alice, "one", 3)
    talk(alice, "two", 3)
    assert hot(alice) == ["one says <1 2>", *[f"two says <1 {n}>" for n in range(3)]]


def test_what_is_pinned_in_a_session_counts_and_stays(alice: AgentMemory) -> None:
    session = alice.session("s")
    pins = [session.add(f"pin <{n} 1>", tier="pinned") for n in range(3)]
    alice.add("pin of all <1 1>", tier="pinned")
    said = session.add("said <1 0>")
    assert alice.get(said.id).temperature.name == "WARM"
    assert set(hot(alice, "s")) == set(contents(pins))
    assert session.status().over_limits == 0


def test_a_memory_that_a_session_can_not_hold_is_warm_and_the_note_says_why(
    make_bank: Make,
) -> None:
    limits = {**HOT, "session_max_tokens": 10, "promote_threshold": 0.5}
    alice = make_bank(temperature=limits).agent("alice")
    long = alice.add("a long story <1 0> " + "x" * 60, temperature="cold", session=7)
    (note,) = alice.recall("<1 0>", session="7").notes
    assert "hot of the session '7' has room for 10 tokens" in note
    assert "temperature.session_max_tokens is 10, session_max_facts null" in note
    assert alice.get(long.id).temperature.name == "WARM"
    assert alice.update(long.id, temperature="hot").temperature.name == "WARM"


def test_a_tier_that_makes_a_line_longer_may_make_another_session_spill(make_bank: Make) -> None:
    """A demotion of a memory of one session, which makes room for that of another one."""
    limits = {**HOT, "session_max_tokens": 8}
    bank = make_bank(memory={"max_critical": 1}, temperature=limits)
    alice = bank.agent("alice")
    alice.add("xxxx <1 0>", tier="critical", session="one")  # its line takes 6 tokens
    alice.add("y <1>", session="one")  # takes 2
    assert len(hot(alice, "one")) == 2
    alice.add("z <1>", tier="critical", session="two")  # as [important], the first takes 7
    assert hot(alice) == ["y <1>", "z <1>"]


def test_smaller_limits_hold_when_a_bank_is_opened_with_them(
    tmp_path: Any, make_bank: Make
) -> None:
    own = {"store": {"provider": "none"}, "preset": "vector"}
    with MemoryBank.open(tmp_path / "bank", temperature=HOT, **own) as bank:
        for session in ("one", "two"):
            talk(bank.agent("alice"), session, 4)
    with MemoryBank.open(tmp_path / "bank", temperature={"session_max_facts": 2}) as bank:
        assert [len(hot(bank.agent("alice"), each)) for each in ("one", "two")] == [2, 2]


def test_without_limits_of_sessions_nothing_of_them_is_kept(make_bank: Make) -> None:
    bank = make_bank(temperature=HOT)
    talk(bank.agent("alice"), "s", 4)
    block = bank.engine.state.block("alice")
    assert (block._sessions, len(block._costs)) == (None, 0)


# Spilling, clearing and recalling


def test_a_session_spills_its_own_memories(alice: AgentMemory) -> None:
    talk(alice, "one", 3)
    session = alice.session("two")
    ids = talk(alice, "two", 3)
    assert list(session.spill().moved) == ids[:1]  # it is within its limits: one at least
    assert list(session.spill(1).moved) == ids[1:2]
    assert list(session.spill(tokens=1).moved) == ids[2:]
    assert session.spill(5).moved == {}
    assert len(hot(alice)) == 3


def test_a_session_spills_no_memory_of_another_by_its_id(alice: AgentMemory) -> None:
    (other,) = talk(alice, "one", 1)
    with pytest.raises(InvalidInput, match=f"memory {other} is not part of the session 'two'"):
        alice.session("two").spill(ids=[other])
    assert list(alice.session("one").spill(ids=[other]).moved) == [other]


def test_to_clear_a_session_leaves_what_is_pinned_and_what_is_of_others(
    alice: AgentMemory,
) -> None:
    ids = talk(alice, "one", 3)
    alice.pin(ids[0])
    talk(alice, "two", 1)
    moved = alice.session("one").clear().moved
    assert list(moved) == ids[1:]
    assert hot(alice) == ["one says <1 0>", "two says <1 0>"]


def test_a_recall_brings_back_to_the_session_and_makes_room_there(alice: AgentMemory) -> None:
    talk(alice, "one", 3)
    ids = talk(alice, "two", 4)
    found = alice.session("two").recall("two says <1 0>", 1)
    assert found.promoted == (ids[0],)
    assert len(hot(alice, "two")) == len(hot(alice, "one")) == 3
    everywhere = alice.session("two").recall("<1 1>", 9).items
    assert {memory.session for memory in everywhere} == {"two"}


# What is in front


def test_the_front_of_a_session_is_its_own(alice: AgentMemory) -> None:
    session = alice.session("one")
    session.add("never <0 1>", tier="pinned")
    alice.add("always <0 1>", tier="pinned")
    talk(alice, "one", 2)
    talk(alice, "two", 2)
    session.add("a warm one <1 0>", temperature="warm")
    front = "- [pinned] never <0 1>\n- one says <1 1>\n- one says <1 0>"
    assert session.get_relevant_memories() == front
    assert session.get_relevant_memories("<1 0>") == front + "\n- a warm one <1 0>"
    told = session.explain("<1 0>", context=True)
    assert [row.reason for row in told if row.rank] == ["pinned", "hot", "hot", "chosen"]
    assert {row.reason for row in told if not row.rank} == {"filtered"}
    everything = alice.get_relevant_memories()
    assert [line in everything for line in front.splitlines()] == [True] * 3
    assert "two says" in everything


# Status


def counted(alice: AgentMemory, session: str) -> dict[str, tuple[int, int]]:
    """Brute force: the number of memories and of tokens of texts by temperature."""
    result = {}
    for name in ("hot", "warm", "cold"):
        own = alice.all(temperature=name, session=session)
        lines = [m.content if name != "hot" else f"- {m.content}\n" for m in own]
        result[name] = len(own), sum(-(-len(text) // 4) for text in lines)
    return result


def test_the_status_of_a_session_counts_what_is_part_of_it(alice: AgentMemory) -> None:
    for session in (7, "seven"):
        ids = talk(alice, session, 6)
        alice.update(ids[3], temperature="warm")
        alice.update(ids[4], retention="archived")
        alice.delete(ids[0])
        alice.add("soon over", session=session, ttl=2)
        alice.add("over and cold", session=session, ttl=2, temperature="cold")
    alice.add("none")
    alice.engine.ledger.advance(2)
    status = alice.session("7").status()
    found = {name: tuple(amount) for name, amount in status.temperatures.items()}
    assert found == counted(alice, "7")
    assert status.retention == {"active": 4, "archived": 1, "deleted": 1}
    assert (status.session, status.agent_id, status.agents) == ("7", "alice", 1)
    assert status.tiers["normal"].items == len(alice.all(session=7))
    assert "session" not in alice.status().to_dict()
    assert alice.session("nobody's").status().retention["active"] == 0


def test_a_status_suggests_what_to_do_about_a_session(make_bank: Make) -> None:
    own = {**HOT, "session_max_facts": 2, "max_cold_items": 1, "auto_spill": False}
    alice = make_bank(temperature=own).agent("alice")
    cold = alice.add("cold <1 0>", session="one", temperature="cold")
    alice.add("cold <1 1>", session="one", temperature="cold")
    for _ in range(2):
        alice.recall("cold <1 0>", 1, auto_promote=False, session="one")
    talk(alice, "one", 3)
    talk(alice, "two", 1)
    told = {each.what: each for each in alice.session("one").status().suggestions}
    assert set(told) == {"spill", "prune", "recall"}
    assert "3 of 2 memories" in told["spill"].reason
    assert told["recall"].ids == (cold.id,)
    assert alice.session("two").status().suggestions == ()


# The end


def test_the_end_of_a_session_keeps_what_is_open_in_front_of_the_agent(
    alice: AgentMemory,
) -> None:
    session = alice.session("one")
    session.add("we build in stone", kind="decision")
    session.add("no permit yet", tags=["blocker"])
    session.add("nice weather")
    talk(alice, "two", 2)
    supposed = session.end(dry_run=True)
    assert {move.memory.content: move.rule for move in supposed.moves} == {
        "we build in stone": "completed", "nice weather": "cool down",
    }  # fmt: skip
    done = session.end()
    assert (done.hot, done.warm, done.cold) == (0, 1, 1)
    assert hot(alice) == ["no permit yet", "two says <1 0>", "two says <1 1>"]
    assert session.end() == done._replace(warm=0, cold=0)


def test_a_compaction_lets_no_more_into_hot_than_a_session_may_have(make_bank: Make) -> None:
    alice = make_bank(temperature={"session_max_facts": 2, "hot_max_facts": 5}).agent("alice")
    for session in ("one", "two", "three"):
        for n in range(3):
            alice.add(f"{session} {n}", session=session, tags=["blocker"], temperature="cold")
    alice.add("none", tags=["blocker"])
    assert alice.compact(session="two").hot == 2
    assert alice.compact().hot == 3
    assert hot(alice) == ["two 1", "two 2", "three 1", "three 2", "none"]
    assert alice.compact().hot == 0


def test_the_end_of_a_session_prunes_nothing(make_bank: Make) -> None:
    own = {"auto_prune": True, "max_cold_items": 1}
    alice = make_bank(temperature=own).agent("alice")
    for session in ("one", "two"):
        alice.add("done", kind="decision", session=session)
        assert alice.session(session).end().pruned == 0
    assert alice.compact().pruned == 1


# Names


def test_a_number_and_its_digits_name_one_session(alice: AgentMemory) -> None:
    for session in (7, "7", 7.0):
        alice.add(f"{session!r}", metadata={"session": session})
    alice.add("seven", session="07")
    for name in (7, "7", np.int64(7)):
        session = alice.session(name)
        assert session.name == "7"
        assert contents(session.all()) == ["7", "'7'", "7.0"]
        assert len(session.search("")) == session.status().temperatures["hot"].items == 3


@pytest.mark.parametrize("name", [None, True, 1.5, ["a"], b"a"], ids=repr)
def test_what_is_no_name_is_refused(alice: AgentMemory, name: Any) -> None:
    with pytest.raises(InvalidInput, match="a session is a text or a whole number, not"):
        alice.session(name)


@pytest.mark.parametrize("name", ["\ud800", "a\0b", 10**5000], ids=["half", "nul", "long"])
def test_what_no_memory_can_say_as_its_session_is_refused(alice: AgentMemory, name: Any) -> None:
    for call in (alice.session, lambda each: alice.search("x", session=each)):
        with pytest.raises(InvalidInput, match="a session"):
            call(name)


def test_a_session_takes_no_other_session(alice: AgentMemory) -> None:
    session = alice.session("one")
    for call in (session.add, session.search, session.recall, session.add_many):
        with pytest.raises(InvalidInput, match="this is the session 'one'"):
            call("text", session="two")  # type: ignore[operator]
    with pytest.raises(InvalidMetadata, match="another session"):
        session.add("text", metadata={"session": "two"})
    with pytest.raises(InvalidInput, match="of the session 'one' says that it is part of another"):
        session.add_many([("text", 3, None, {"session": "two"})])
    assert alice.all() == []


def test_many_memories_and_messages_are_of_the_session(alice: AgentMemory) -> None:
    session = alice.session(1)
    session.add_many(["a", ("b",), ("c", 3, None, {"session": "1", "kind": "message"})])
    session.add_messages([{"role": "user", "content": "d"}], infer=False)
    assert contents(session.all()) == ["a", "b", "c", "d"]
    with pytest.raises(InvalidInput, match="a new memory is a tuple"):
        session.add_many([("a", 3, None, None, None, None)])


def test_a_session_is_of_one_agent(make_bank: Make) -> None:
    bank = make_bank(temperature={**HOT, "session_max_facts": 2})
    for name in ("alice", "bob"):
        talk(bank.agent(name), "s", 3)
    assert [len(bank.agent(name).session("s").all()) for name in ("alice", "bob")] == [3, 3]
    (first, *_) = bank.agent("bob").all()
    with pytest.raises(MemoryNotFound):
        bank.agent("alice").session("s").spill(ids=[first.id])


def test_what_another_session_said_is_no_repetition(make_bank: Make) -> None:
    alice = make_bank(memory={"merge_duplicates": True}).agent("alice")
    ids = [alice.add("the permit is missing", session=each).id for each in ("one", "two", "one")]
    assert ids[0] == ids[2] != ids[1]
    assert alice.add("the permit is missing").id not in ids
