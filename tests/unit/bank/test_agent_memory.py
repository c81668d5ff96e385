"""One agent's view, method by method, and that it can't reach another's."""

from collections.abc import Callable
from typing import Any

import pytest

from agents import (
    AgentMemory,
    ExtractionError,
    InvalidContent,
    InvalidInput,
    InvalidTier,
    Memory,
    MemoryBank,
    MemoryNotFound,
    Tier,
    TierMemError,
)

MakeBank = Callable[..., MemoryBank]

BY_ID: dict[str, Callable[[AgentMemory, Any], object]] = {
    "get": lambda agent, id_: agent.get(id_),
    "delete": lambda agent, id_: agent.delete(id_),
    "set_tier": lambda agent, id_: agent.set_tier(id_, "low"),
    "set_tier to the same": lambda agent, id_: agent.set_tier(id_, "normal"),
    "pin": lambda agent, id_: agent.pin(id_),
    "unpin": lambda agent, id_: agent.unpin(id_),
}
by_id = pytest.mark.parametrize("method", BY_ID.values(), ids=BY_ID.keys())


# Adding and reading


def test_add_returns_what_get_gives(alice: AgentMemory) -> None:
    memory = alice.add("hello", "important", {"a": 1})
    assert alice.get(memory.id) == memory
    assert (memory.content, memory.tier, dict(memory.metadata)) == ("hello", 2, {"a": 1})


def test_all_is_oldest_first(alice: AgentMemory) -> None:
    added = alice.add_many(["c", ("a", "low"), ("b", "pinned")])
    assert alice.all() == added


def test_all_of_a_tier(alice: AgentMemory) -> None:
    _, low, _, low2 = alice.add_many(["a", ("b", "low"), ("c", "pinned"), ("d", "low")])
    assert alice.all(tier="low") == alice.all(tier=4) == alice.all(tier=Tier.LOW) == [low, low2]
    assert alice.all(tier="critical") == []


def test_all_gives_a_list_of_ones_own(alice: AgentMemory) -> None:
    alice.add("a")
    alice.all().clear()
    alice.get_pinned_memories().clear()
    assert alice.count() == 1


def test_count_counts_all_or_a_tier(alice: AgentMemory) -> None:
    assert alice.count() == 0
    alice.add_many(["a", ("b", "low"), ("c", "low")])
    assert alice.count() == 3
    assert alice.count("low") == 2
    assert alice.count(tier="pinned") == 0


def test_add_many_takes_texts_and_tuples(alice: AgentMemory) -> None:
    added = alice.add_many(["a", ("b",), ("c", "low"), ("d", 1, {"k": "v"}), ["e", "important"]])
    assert [(m.content, m.tier, dict(m.metadata)) for m in added] == [
        ("a", Tier.NORMAL, {}),
        ("b", Tier.NORMAL, {}),
        ("c", Tier.LOW, {}),
        ("d", Tier.CRITICAL, {"k": "v"}),
        ("e", Tier.IMPORTANT, {}),
    ]


def test_add_many_of_one_text_is_refused_rather_than_stored_letter_by_letter(
    alice: AgentMemory,
) -> None:
    with pytest.raises(InvalidInput):
        alice.add_many("hello")
    assert alice.count() == 0


def test_add_many_takes_any_iterable(alice: AgentMemory) -> None:
    assert len(alice.add_many(f"m{n}" for n in range(3))) == 3


def test_add_many_stores_all_or_none(bank: MemoryBank) -> None:
    before = bank.state_hash()
    with pytest.raises(InvalidContent):
        bank.agent("alice").add_many(["a", "b", ""])
    assert bank.state_hash() == before
    assert bank.agents() == []


@pytest.mark.parametrize("item", [5, None, ("a", "low", None, "extra"), ()], ids=repr)
def test_add_many_refuses_an_item_of_another_shape(alice: AgentMemory, item: Any) -> None:
    with pytest.raises(InvalidInput):
        alice.add_many(["fine", item])
    assert alice.count() == 0


def test_add_many_cannot_reach_another_agent(alice: AgentMemory, bank: MemoryBank) -> None:
    with pytest.raises(InvalidInput):
        alice.add_many([("bob", "text", "low", None)])
    assert bank.agents() == []


# Changing


def test_set_tier_moves_a_memory_and_returns_it(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a")
    bank.advance(4)
    moved = alice.set_tier(memory.id, "critical")
    assert moved == alice.get(memory.id)
    assert (moved.id, moved.tier, moved.tier_tick, moved.created_tick) == (memory.id, 1, 4, 0)


def test_setting_the_tier_it_has_keeps_its_tick(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a", "critical")
    bank.advance(4)
    assert alice.set_tier(memory.id, "critical") == memory


def test_pin_and_unpin(alice: AgentMemory) -> None:
    memory = alice.add("a", "low")
    assert alice.pin(memory.id).tier is Tier.PINNED
    assert [pinned.id for pinned in alice.get_pinned_memories()] == [memory.id]
    assert alice.unpin(memory.id).tier is Tier.NORMAL
    assert alice.get_pinned_memories() == []


def test_unpin_goes_where_it_is_told(alice: AgentMemory) -> None:
    memory = alice.add("a", "pinned")
    assert alice.unpin(memory.id, "important").tier is Tier.IMPORTANT


def test_unpinning_what_is_not_pinned_changes_nothing(alice: AgentMemory) -> None:
    memory = alice.add("a", "critical")
    assert alice.unpin(memory.id) == memory
    assert alice.get(memory.id) == memory


def test_unpinning_to_pinned_is_refused(alice: AgentMemory) -> None:
    memory = alice.add("a", "pinned")
    with pytest.raises(InvalidTier):
        alice.unpin(memory.id, "pinned")
    assert alice.get(memory.id) == memory


def test_a_memory_pinned_again_counts_as_newly_pinned(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    first, second = alice.add_many([("first", "pinned"), ("second", "pinned")])
    bank.advance(1)
    alice.unpin(first.id)
    alice.pin(first.id)
    assert [m.id for m in alice.get_pinned_memories()] == [second.id, first.id]


def test_an_earlier_record_does_not_change(alice: AgentMemory) -> None:
    memory = alice.add("a")
    alice.pin(memory.id)
    assert memory.tier is Tier.NORMAL


def test_delete_removes_a_memory_from_everywhere(alice: AgentMemory) -> None:
    keep, gone = alice.add_many([("keep", "pinned"), "gone"])
    assert alice.delete(gone.id) is None
    assert alice.all() == alice.get_pinned_memories() == [keep]
    assert [hit.memory for hit in alice.search("gone")] == [keep]
    assert alice.count() == 1


# Recording


def test_record_action_says_what_was_done_and_whether_it_worked(alice: AgentMemory) -> None:
    done = alice.record_action("transfer", "50 coins to bob", True)
    failed = alice.record_action("transfer", "70 coins to bob", success=False, tier="important")
    assert (done.content, done.tier) == ("transfer succeeded: 50 coins to bob", Tier.NORMAL)
    assert (failed.content, failed.tier) == ("transfer failed: 70 coins to bob", Tier.IMPORTANT)


def test_record_action_keeps_type_and_success_as_metadata(alice: AgentMemory) -> None:
    metadata = alice.record_action("transfer", "x", False).metadata
    assert metadata["action_type"] == "transfer"
    assert metadata["success"] is False
    assert alice.record_action("transfer", "x", True).metadata["success"] is True


def test_record_action_takes_details_as_a_mapping(alice: AgentMemory) -> None:
    first = alice.record_action("buy", {"price": 3, "item": "brötchen", "to": ["a"]}, True)
    second = alice.record_action("buy", {"to": ["a"], "item": "brötchen", "price": 3}, True)
    assert first.content == second.content
    assert "brötchen" in first.content


def test_record_action_needs_no_details(alice: AgentMemory) -> None:
    assert alice.record_action("wait").content == "wait succeeded"


@pytest.mark.parametrize("action_type", ["", "  ", None, 5], ids=repr)
def test_record_action_needs_a_type(alice: AgentMemory, action_type: Any) -> None:
    with pytest.raises(InvalidContent):
        alice.record_action(action_type, "x", True)
    assert alice.count() == 0


def test_record_action_refuses_details_that_are_not_json(alice: AgentMemory) -> None:
    with pytest.raises(InvalidContent, match="JSON"):
        alice.record_action("buy", {"what": object()}, True)
    assert alice.count() == 0


def test_record_observation_keeps_the_text(alice: AgentMemory) -> None:
    memory = alice.record_observation("it rains", tier="low")
    assert (memory.content, memory.tier) == ("it rains", Tier.LOW)
    assert alice.record_observation("the sun").tier is Tier.NORMAL


def test_actions_and_observations_can_be_told_apart(alice: AgentMemory) -> None:
    action = alice.record_action("wait", "", True)
    observation = alice.record_observation("x")
    plain = alice.add("x")
    kinds = [memory.kind for memory in (action, observation, plain)]
    assert kinds == ["action", "observation", "fact"]


# Messages


def test_messages_without_inference_are_stored_as_they_are(alice: AgentMemory) -> None:
    chat = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
    ]
    added = alice.add_messages(chat, infer=False, tier="important", metadata={"chat": 1})
    assert [memory.content for memory in added] == ["hello", "hi"]
    assert {memory.tier for memory in added} == {Tier.IMPORTANT}
    assert all(memory.metadata["chat"] == 1 for memory in added)


def test_messages_with_inference_need_a_configured_llm(alice: AgentMemory) -> None:
    with pytest.raises(ExtractionError, match=r"llm\.provider"):
        alice.add_messages("hello", infer=True)
    assert alice.count() == 0


# Isolation


@by_id
def test_an_unknown_id_is_memory_not_found(
    alice: AgentMemory, method: Callable[[AgentMemory, Any], object]
) -> None:
    memory = alice.add("a")
    last = "0" if memory.id[-1] != "0" else "f"
    unknown = [
        "", "x", "*", "00000000-0000-0000-0000-000000000000", memory.id[:-1] + last,
        memory.id + " ", memory.id.upper(), memory.id.replace("-", ""), memory.id[:24],
        memory.id + "0", "\0", "\ud800",
        None, 1, memory.id.encode(), ["a"], "9" * 10_000, memory.id[:-1] + "١",
        memory.id[:24] + "0" * 12, memory.id[:24] + "-00000000001", memory.id[:24] + "f" * 10_000,
    ]  # fmt: skip
    for bad in unknown:
        with pytest.raises(MemoryNotFound):
            method(alice, bad)
    assert alice.all() == [memory]


@by_id
def test_another_agents_id_is_the_same_memory_not_found(
    bank: MemoryBank, method: Callable[[AgentMemory, Any], object]
) -> None:
    alice, bob = bank.agent("alice"), bank.agent("bob")
    bob.add("bob's first")
    theirs = alice.add_many(["a", ("b", "pinned")])
    before = bank.state_hash()
    for memory in theirs:
        with pytest.raises(MemoryNotFound) as caught:
            method(bob, memory.id)
        assert "alice" not in str(caught.value)
    assert bank.state_hash() == before


@by_id
def test_another_agents_id_and_an_unknown_id_get_the_same_answer(
    bank: MemoryBank, method: Callable[[AgentMemory, Any], object]
) -> None:
    theirs = bank.agent("alice").add("a").id
    unknown = "12345678-1234-8234-8234-123456789012"
    messages = []
    for bad in (theirs, unknown):
        with pytest.raises(MemoryNotFound) as caught:
            method(bank.agent("bob"), bad)
        messages.append(str(caught.value).replace(bad, "ID"))
    assert messages[0] == messages[1]


@by_id
def test_a_deleted_id_is_memory_not_found(
    alice: AgentMemory, method: Callable[[AgentMemory, Any], object]
) -> None:
    gone = alice.add("a")
    alice.delete(gone.id)
    with pytest.raises(MemoryNotFound):
        method(alice, gone.id)


def test_memory_not_found_is_a_key_error_with_a_readable_message(alice: AgentMemory) -> None:
    with pytest.raises(KeyError) as caught:
        alice.get("nope")
    assert isinstance(caught.value, TierMemError)
    assert str(caught.value) == "alice has no memory 'nope'"


def test_no_reading_method_shows_another_agents_memories(bank: MemoryBank) -> None:
    alice, bob = bank.agent("alice"), bank.agent("bob")
    alice.add_many([("secret <1 0>", n % 5) for n in range(10)])
    mine = bob.add("mine <1 0>")
    assert bob.all() == [mine]
    assert bob.get_pinned_memories() == []
    assert bob.count() == 1
    assert [hit.memory for hit in bob.search("secret <1 0>", 100)] == [mine]
    assert bob.get_relevant_memories("secret <1 0>", 100) == "- mine <1 0>"
    assert [row.memory for row in bob.explain("secret <1 0>", 100)] == [mine]
    assert [hit.memory for hit in bob.search("", 100)] == [mine]


def test_an_agent_whose_id_begins_like_anothers_is_another(bank: MemoryBank) -> None:
    for name in ("a", "a.", "a.b", "A", "a_", "a-", "a@b"):
        bank.agent(name).add(f"of {name}")
    for name in bank.agents():
        assert [m.content for m in bank.agent(name).all()] == [f"of {name}"]


def test_one_agents_changes_leave_anothers_memories_equal(bank: MemoryBank) -> None:
    bob = bank.agent("bob")
    bob.add_many([("b", n) for n in range(5)])
    before = bob.all()
    alice = bank.agent("alice")
    added: list[Memory] = alice.add_many([("a", "pinned") for _ in range(20)])
    alice.delete(added[0].id)
    bank.advance(3)
    alice.pin(added[1].id)
    assert bob.all() == before


def test_two_views_of_one_agent_see_the_same(bank: MemoryBank) -> None:
    memory = bank.agent("alice").add("a")
    assert bank.agent("alice").get(memory.id) == memory


def test_repr_tells_whose_it_is(alice: AgentMemory) -> None:
    alice.add("a")
    assert "alice" in repr(alice)
    assert "1" in repr(alice)
