"""Caps hold on every path: the oldest makes room, or the newcomer is refused."""

from collections.abc import Callable, Sequence

import pytest

from agents import AgentMemory, MemoryBank, Tier, TierFull
from agents.rules.tiers import Caps, Occupant, demote_over_cap, entering, make_room
from agents.storage.columns.extras import Standing

MakeBank = Callable[..., MemoryBank]


def memory(sequence: int, tier: Tier, tier_tick: int = 0) -> Standing:
    return Standing(sequence, tier, tier_tick, (sequence, 0))


def occupants(*memories: Standing) -> Callable[[Tier], Sequence[Standing]]:
    return lambda tier: [each for each in memories if each.tier is tier]


def pinned(*sequences: int) -> list[Standing]:
    return [memory(sequence, Tier.PINNED) for sequence in sequences]


def critical(*sequences: int) -> list[Standing]:
    return [memory(sequence, Tier.CRITICAL) for sequence in sequences]


def moves(demotions: Sequence[tuple[Occupant, Tier]]) -> list[tuple[int, Tier]]:
    return [(each.sequence, tier) for each, tier in demotions]


def texts(agent: AgentMemory, tier: Tier | str) -> list[str]:
    return [each.content for each in agent.all(tier)]


# The rules


def test_a_tier_with_room_needs_no_demotion() -> None:
    assert make_room(Tier.PINNED, Caps(3, 3), occupants(*pinned(1, 2)), None) == []


def test_a_full_tier_demotes_its_oldest_by_one_tier() -> None:
    demotions = make_room(Tier.PINNED, Caps(3, 3), occupants(*pinned(3, 1, 2)), None)
    assert moves(demotions) == [(1, Tier.CRITICAL)]


def test_the_oldest_is_the_one_that_entered_the_tier_first_not_the_one_created_first() -> None:
    members = [memory(1, Tier.PINNED, 9), memory(2, Tier.PINNED, 4), memory(3, Tier.PINNED, 5)]
    demotions = make_room(Tier.PINNED, Caps(3, 3), occupants(*members), None)
    assert moves(demotions) == [(2, Tier.CRITICAL)]


def test_a_demotion_into_a_full_tier_cascades() -> None:
    demotions = make_room(Tier.PINNED, Caps(2, 2), occupants(*pinned(3, 4), *critical(1, 2)), None)
    assert moves(demotions) == [(3, Tier.CRITICAL), (1, Tier.IMPORTANT)]


def test_the_place_that_a_newcomer_leaves_is_free_for_whom_it_displaces() -> None:
    demotions = make_room(Tier.PINNED, Caps(2, 2), occupants(*pinned(3, 4), *critical(1, 2)), 1)
    assert moves(demotions) == [(3, Tier.CRITICAL)]


@pytest.mark.parametrize("tier", [Tier.IMPORTANT, Tier.NORMAL, Tier.LOW])
def test_lower_tiers_have_no_cap(tier: Tier) -> None:
    members = [memory(sequence, tier) for sequence in range(1000)]
    assert make_room(tier, Caps(0, 0), occupants(*members), None) == []


def test_reject_refuses_the_newcomer() -> None:
    with pytest.raises(TierFull):
        make_room(Tier.PINNED, Caps(2, 2, reject=True), occupants(*pinned(1, 2)), None)


def test_reject_lets_in_what_has_room() -> None:
    assert make_room(Tier.PINNED, Caps(2, 2, reject=True), occupants(*pinned(1)), None) == []


def test_demotion_passes_through_a_tier_whose_cap_is_0() -> None:
    demotions = make_room(Tier.PINNED, Caps(1, 0), occupants(*pinned(1)), None)
    assert moves(demotions) == [(1, Tier.IMPORTANT)]


def test_a_tier_over_its_cap_lets_its_oldest_go_and_cascades() -> None:
    demotions = demote_over_cap(Tier.PINNED, Caps(1, 1), occupants(*pinned(1, 2, 3), *critical(4)))
    assert moves(demotions) == [(1, Tier.CRITICAL), (4, Tier.IMPORTANT)]


def test_a_tier_within_its_cap_is_left_alone() -> None:
    assert demote_over_cap(Tier.PINNED, Caps(3, 1), occupants(*pinned(1, 2, 3), *critical(4))) == []
    assert demote_over_cap(Tier.LOW, Caps(0, 0), occupants(memory(1, Tier.LOW))) == []


def test_a_smaller_cap_ignores_reject_since_there_is_nobody_to_refuse() -> None:
    demotions = demote_over_cap(Tier.PINNED, Caps(1, 5, reject=True), occupants(*pinned(1, 2)))
    assert moves(demotions) == [(1, Tier.CRITICAL)]


def test_a_memory_enters_after_the_newest_and_all_that_entered_since() -> None:
    assert entering(9, [(9, 1), (7, 5)]) == (9, 2)
    assert entering(12, [(9, 1), (7, 5)]) == (12, 1)
    assert entering(12, []) == (12, 1)


# Through the bank


def test_sixth_pin_demotes_the_oldest(alice: AgentMemory) -> None:
    for n in range(1, 7):
        alice.add(f"p{n}", tier="pinned")
    assert texts(alice, "pinned") == ["p2", "p3", "p4", "p5", "p6"]
    assert texts(alice, "critical") == ["p1"]


def test_eleventh_critical_demotes_the_oldest(alice: AgentMemory) -> None:
    alice.add_many([(f"c{n}", "critical") for n in range(1, 12)])
    assert texts(alice, "critical") == [f"c{n}" for n in range(2, 12)]
    assert texts(alice, "important") == ["c1"]


def test_a_pin_into_two_full_tiers_cascades(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_pinned": 1, "max_critical": 1}).agent("alice")
    alice.add("old critical", "critical")
    alice.add("old pin", "pinned")
    alice.add("new pin", "pinned")
    assert texts(alice, "pinned") == ["new pin"]
    assert texts(alice, "critical") == ["old pin"]
    assert texts(alice, "important") == ["old critical"]


def test_demotion_counts_from_when_a_memory_was_pinned(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"max_pinned": 2})
    alice = bank.agent("alice")
    first = alice.add("created first, pinned last")
    alice.add("pinned at 0", "pinned")
    bank.advance(1)
    alice.pin(first.id)
    alice.add("newcomer", "pinned")
    assert texts(alice, "pinned") == ["created first, pinned last", "newcomer"]


def test_the_newcomer_is_never_demoted_even_if_it_is_the_oldest_memory(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_pinned": 2}).agent("alice")
    oldest = alice.add("oldest")
    alice.add_many([("a", "pinned"), ("b", "pinned")])
    assert alice.pin(oldest.id).tier is Tier.PINNED
    assert texts(alice, "pinned") == ["oldest", "b"]


def test_with_a_cap_of_1_the_newcomer_takes_the_place(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_pinned": 1, "max_critical": 1}).agent("alice")
    for n in range(4):
        assert alice.add(f"p{n}", "pinned").tier is Tier.PINNED
    assert texts(alice, "pinned") == ["p3"]
    assert texts(alice, "critical") == ["p2"]
    assert texts(alice, "important") == ["p0", "p1"]


def test_swapping_pinned_and_critical_at_full_caps_demotes_no_third(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_pinned": 1, "max_critical": 1}).agent("alice")
    up = alice.add("up", "critical")
    down = alice.add("down", "pinned")
    alice.pin(up.id)
    assert alice.get(up.id).tier is Tier.PINNED
    assert alice.get(down.id).tier is Tier.CRITICAL


def test_setting_a_tier_it_has_already_moves_nothing(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"max_pinned": 2})
    alice = bank.agent("alice")
    first, _ = alice.add_many([("a", "pinned"), ("b", "pinned")])
    bank.advance(5)
    assert alice.pin(first.id) == first
    assert texts(alice, "pinned") == ["a", "b"]


def test_add_many_demotes_among_its_own_memories(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_pinned": 2, "max_critical": 2}).agent("alice")
    alice.add_many([(f"p{n}", "pinned") for n in range(6)])
    assert texts(alice, "pinned") == ["p4", "p5"]
    assert alice.count("critical") == 2
    assert alice.count("important") == 2


def test_add_many_gives_the_same_state_as_single_adds(make_bank: MakeBank) -> None:
    together, one_by_one = (make_bank(memory={"max_pinned": 2, "max_critical": 3}) for _ in "ab")
    tiers = ["pinned", "critical", "normal", "low", "critical"] * 5
    items = [(f"agent{n % 3}", f"m{n}", tier) for n, tier in enumerate(tiers)]
    together.add_many(items)
    for agent, text, tier in items:
        one_by_one.agent(agent).add(text, tier)
    assert together.state_hash() == one_by_one.state_hash()


def test_caps_are_per_agent(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"max_pinned": 1})
    bank.add_many([("alice", "a", "pinned"), ("bob", "b", "pinned")])
    assert texts(bank.agent("alice"), "pinned") == ["a"]
    assert texts(bank.agent("bob"), "pinned") == ["b"]


def test_set_tier_makes_room(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_critical": 1}).agent("alice")
    alice.add("old", "critical")
    new = alice.add("new")
    alice.set_tier(new.id, "critical")
    assert texts(alice, "critical") == ["new"]
    assert texts(alice, "important") == ["old"]


def test_unpinning_to_critical_makes_room_there(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_critical": 1}).agent("alice")
    alice.add("old", "critical")
    pin = alice.add("pin", "pinned")
    alice.unpin(pin.id, "critical")
    assert texts(alice, "critical") == ["pin"]
    assert texts(alice, "important") == ["old"]


def test_record_action_makes_room(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_pinned": 1}).agent("alice")
    alice.add("old", "pinned")
    alice.record_action("buy", "bread", True, tier="pinned")
    assert texts(alice, "pinned") == ["buy succeeded: bread"]


def test_record_observation_makes_room(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_critical": 1}).agent("alice")
    alice.add("old", "critical")
    alice.record_observation("new", tier="critical")
    assert texts(alice, "critical") == ["new"]


def test_add_messages_makes_room(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_pinned": 1}).agent("alice")
    alice.add_messages([{"role": "user", "content": text} for text in "ab"], infer=False, tier=0)
    assert texts(alice, "pinned") == ["b"]


def test_a_demoted_memory_keeps_its_id_and_enters_its_tier_now(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"max_pinned": 1})
    alice = bank.agent("alice")
    old = alice.add("old", "pinned", {"a": 1})
    bank.advance(7)
    alice.add("new", "pinned")
    now = alice.get(old.id)
    assert (now.tier, now.tier_tick, now.created_tick) == (Tier.CRITICAL, 7, 0)
    assert (now.content, now.metadata, now.sequence) == (old.content, old.metadata, old.sequence)


def test_a_deleted_critical_memory_leaves_its_place(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_critical": 2}).agent("alice")
    gone, _ = alice.add_many([("gone", "critical"), ("stays", "critical")])
    alice.delete(gone.id)
    alice.add("new", "critical")
    assert texts(alice, "critical") == ["stays", "new"]


# Reopening with smaller caps


def test_reopening_with_a_smaller_cap_demotes_the_oldest(open_bank: MakeBank) -> None:
    alice = open_bank().agent("alice")
    alice.add_many([(f"p{n}", "pinned") for n in range(5)])
    alice = open_bank(memory={"max_pinned": 2}).agent("alice")
    assert texts(alice, "pinned") == ["p3", "p4"]
    assert texts(alice, "critical") == ["p0", "p1", "p2"]


def test_reopening_with_smaller_caps_cascades(open_bank: MakeBank) -> None:
    bank = open_bank()
    bank.agent("alice").add_many([(f"c{n}", "critical") for n in range(4)])
    bank.advance(1)
    bank.agent("alice").add_many([(f"p{n}", "pinned") for n in range(4)])
    alice = open_bank(memory={"max_pinned": 1, "max_critical": 2}).agent("alice")
    assert texts(alice, "pinned") == ["p3"]
    assert texts(alice, "critical") == ["p1", "p2"]
    assert texts(alice, "important") == ["c0", "c1", "c2", "c3", "p0"]


def test_reopening_with_a_smaller_cap_holds_for_every_agent(open_bank: MakeBank) -> None:
    open_bank().add_many([(f"agent{n}", f"p{m}", "pinned") for n in range(9) for m in range(5)])
    bank = open_bank(memory={"max_pinned": 3})
    assert {bank.agent(agent).count("pinned") for agent in bank.agents()} == {3}


def test_what_reopening_demoted_stays_demoted(open_bank: MakeBank) -> None:
    open_bank().agent("alice").add_many([(f"p{n}", "pinned") for n in range(5)])
    shrunk = open_bank(memory={"max_pinned": 2})
    state = shrunk.state_hash()
    again = open_bank(memory={"max_pinned": 5})
    assert again.state_hash() == state
    assert again.agent("alice").count("pinned") == 2


def test_reopening_with_the_cap_0_unpins_all(open_bank: MakeBank) -> None:
    open_bank().agent("alice").add_many([("a", "pinned"), ("b", "critical")])
    alice = open_bank(memory={"max_pinned": 0, "max_critical": 0}).agent("alice")
    assert {each.tier for each in alice.all()} == {Tier.IMPORTANT}


def test_reopening_in_reject_mode_with_a_smaller_cap_demotes_too(open_bank: MakeBank) -> None:
    open_bank().agent("alice").add_many([(f"p{n}", "pinned") for n in range(5)])
    alice = open_bank(memory={"max_pinned": 2, "on_tier_full": "reject"}).agent("alice")
    assert texts(alice, "pinned") == ["p3", "p4"]


def test_reopening_with_a_larger_cap_moves_nothing(open_bank: MakeBank) -> None:
    before = open_bank()
    before.agent("alice").add_many([(f"p{n}", "pinned") for n in range(5)])
    state = before.state_hash()
    assert open_bank(memory={"max_pinned": 50}).state_hash() == state


# Reject and cap 0


def test_reject_stores_nothing_and_says_tier_cap_and_how_to_make_room(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"max_pinned": 2, "on_tier_full": "reject"})
    alice = bank.agent("alice")
    alice.add_many([("a", "pinned"), ("b", "pinned")])
    before = bank.state_hash()
    with pytest.raises(TierFull, match=r"pinned.*2.*max_pinned.*(unpin|set_tier|delete)") as caught:
        alice.add("c", "pinned")
    assert (caught.value.tier, caught.value.cap) == (Tier.PINNED, 2)
    assert bank.state_hash() == before


@pytest.mark.parametrize("path", ["add", "add_many", "set_tier", "pin", "action", "observation"])
def test_reject_holds_on_every_path(make_bank: MakeBank, path: str) -> None:
    bank = make_bank(memory={"max_pinned": 1, "on_tier_full": "reject"})
    alice = bank.agent("alice")
    other = alice.add("other")
    alice.add("the one", "pinned")
    before = bank.state_hash()
    calls: dict[str, Callable[[], object]] = {
        "add": lambda: alice.add("x", "pinned"),
        "add_many": lambda: alice.add_many(["y", ("x", "pinned")]),
        "set_tier": lambda: alice.set_tier(other.id, "pinned"),
        "pin": lambda: alice.pin(other.id),
        "action": lambda: alice.record_action("buy", "", True, tier="pinned"),
        "observation": lambda: alice.record_observation("x", tier="pinned"),
    }
    with pytest.raises(TierFull):
        calls[path]()
    assert bank.state_hash() == before
    assert alice.all() == [other, *alice.all("pinned")]


def test_after_a_rejection_there_is_room_once_it_was_made(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_pinned": 1, "on_tier_full": "reject"}).agent("alice")
    first = alice.add("a", "pinned")
    with pytest.raises(TierFull):
        alice.add("b", "pinned")
    alice.unpin(first.id)
    assert alice.add("b", "pinned").tier is Tier.PINNED


@pytest.mark.parametrize("mode", ["demote", "reject"])
@pytest.mark.parametrize("tier", ["pinned", "critical"])
def test_a_cap_of_0_refuses_every_newcomer(make_bank: MakeBank, mode: str, tier: str) -> None:
    bank = make_bank(memory={f"max_{tier}": 0, "on_tier_full": mode})
    alice = bank.agent("alice")
    with pytest.raises(TierFull, match=f"max_{tier} is 0") as caught:
        alice.add("x", tier)
    assert caught.value.cap == 0
    assert alice.count() == 0
