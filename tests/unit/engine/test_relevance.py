"""What is used stays hot, what is promoted stays longest, and what is in use becomes hot."""

import pytest

from agents import AgentMemory, MemoryBank
from asking import asked
from banks import MakeBank
from movements import COLD, HOT, WARM, added_hot, hot, used


def test_what_is_used_does_not_leave_hot_before_what_never_was(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"hot_max_facts": 3, "min_score": 0})
    alice = bank.agent("alice")
    (top,) = added_hot(alice, "top <1 0>")
    added_hot(alice, "filler 1 <0 0 1>", "filler 2 <0 0 0 1>")
    for query in ("<1 0>", "<1 9>", "<1 99>"):  # it is found, though it matches less and less
        used(alice, top, query, 1)
    added_hot(alice, "new 1", "new 2")
    assert hot(alice) == ["top", "new 1", "new 2"]


def test_what_questions_found_stays_with_the_default_embedder() -> None:
    with MemoryBank.ephemeral(temperature={"initial": "hot", "hot_max_facts": 3}) as bank:
        alice = bank.agent("alice")
        tea = alice.add("Alice likes her tea without sugar")
        alice.add_many(["The mill burned down", "The north road is closed"])
        for question in ("how does Alice drink her tea?", "tea?", "sugar for Alice?"):
            before = alice.get(tea.id).relevance
            alice.search(question, 1)
            assert alice.get(tea.id).relevance > before
        alice.add_many(["The cat is called Miso", "The library closes at six"])
        assert alice.get(tea.id).temperature is HOT


@pytest.mark.parametrize("room", [1, 2, 3])
def test_the_next_add_does_not_eject_what_was_promoted(make_bank: MakeBank, room: int) -> None:
    alice = make_bank(temperature={"hot_max_facts": room}).agent("alice")
    for memory in added_hot(alice, *[f"used {n} <1 {n}>" for n in range(room)]):
        used(alice, memory, memory.content, 5)
    promoted = alice.add("promoted")
    assert alice.update(promoted.id, temperature="hot")
    relevances = {each.content: each.relevance for each in alice.all(temperature="hot")}
    assert max(relevances, key=relevances.__getitem__) == "promoted"
    added_hot(alice, "a", "b", "c")
    assert "promoted" in hot(alice)
    assert len(hot(alice)) == room


def test_a_new_memory_that_hot_has_no_room_for_is_warm(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 1}).agent("alice")
    alice.update(alice.add("promoted").id, temperature="hot")
    assert alice.add("new", temperature="hot").temperature is WARM


def test_what_others_are_used_more_than_leaves(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    (often,) = added_hot(alice, "often <1 0>")
    alice.update(alice.add("promoted <0 1>").id, temperature="hot")
    used(alice, often, "<1 0>", 4)
    added_hot(alice, "new")
    assert hot(alice) == ["often", "new"]


def test_the_later_promotion_is_the_more_relevant(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    for name in ("first", "second", "third"):
        alice.update(alice.add(name).id, temperature="hot")
    assert hot(alice) == ["second", "third"]


def test_promoting_what_is_hot_makes_it_the_most_relevant(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    first, second = added_hot(alice, "first <1 0>", "second <0 1>")
    used(alice, second, "<0 1>", 3)
    assert asked(alice, "promote", first.id) is False  # it was hot
    assert alice.get(first.id).relevance > alice.get(second.id).relevance
    added_hot(alice, "third")
    assert hot(alice) == ["first", "third"]


def test_a_promotion_is_kept_after_reopening(open_bank: MakeBank) -> None:
    limits = {"temperature": {"hot_max_facts": 2}}
    alice = open_bank(**limits).agent("alice")
    for memory in added_hot(alice, "a <1 0>", "b <0 1>"):
        used(alice, memory, memory.content, 3)
    promoted = alice.add("promoted")
    alice.update(promoted.id, temperature="hot")
    expected = tuple(alice.get(promoted.id))
    alice = open_bank().agent("alice")
    assert tuple(alice.get(promoted.id)) == expected
    added_hot(alice, "new")
    assert "promoted" in hot(alice)


def day_of_use(bank: MemoryBank, alice: AgentMemory, ticks: int) -> None:
    for tick in range(1, ticks + 1):
        bank.advance(tick)
        alice.search("<1 0>", 1)
        bank.sweep()
        if tick % 24 == 0:
            bank.compact()


@pytest.mark.parametrize(
    ("preset", "becomes"),
    [("hot-warm-cold", HOT), ("lifetime", HOT), ("tiers", WARM), ("hot-cold-session", WARM)],
)
def test_use_makes_hot_where_the_preset_says_so(
    make_bank: MakeBank, preset: str, becomes: int
) -> None:
    vector = {"mode": "vector", "sif": 0}
    bank = make_bank(preset=preset, retrieval=vector)
    alice = bank.agent("alice")
    memory = alice.add("a <1 0>", temperature="warm")
    rare = alice.add("b <0 1>", temperature="warm")
    day_of_use(bank, alice, 29)
    assert alice.get(memory.id).access_count == 29
    assert alice.get(memory.id).temperature == becomes
    assert alice.get(rare.id).temperature is WARM


def test_what_is_no_longer_in_use_cools_down(make_bank: MakeBank) -> None:
    bank = make_bank(preset="hot-warm-cold", retrieval={"mode": "vector", "sif": 0})
    alice = bank.agent("alice")
    memory = alice.add("a <1 0>")
    day_of_use(bank, alice, 24)
    assert alice.get(memory.id).temperature is HOT
    bank.advance(48)
    bank.compact()
    assert alice.get(memory.id).temperature is WARM


def test_more_uses_fade_later(make_bank: MakeBank) -> None:
    own = {"enabled": True, "half_life": {"normal": 10}}
    bank = make_bank(decay=own)
    alice = bank.agent("alice")
    often, once, never = added_hot(alice, "often <1 0>", "once <0 1>", "never <0 0 1>")
    used(alice, often, "<1 0>", 4)
    used(alice, once, "<0 1>", 1)
    left: dict[str, int] = {}
    for tick in range(1, 60):
        bank.advance(tick)
        bank.sweep()
        for memory in (often, once, never):
            if alice.get(memory.id).temperature is not HOT:
                left.setdefault(memory.content.split(" <")[0], tick)
    assert left == {"never": 11, "once": 21, "often": 41}


def test_a_memory_shows_how_often_it_was_used_and_how_little_it_has_faded(
    make_bank: MakeBank,
) -> None:
    bank = make_bank(decay={"enabled": True, "half_life": {"normal": 10}})
    alice = bank.agent("alice")
    memory, pin = alice.add("a <1 0>"), alice.add("p", "pinned")
    bank.advance(10)
    assert alice.decay_score(memory.id) == 0.5
    assert alice.decay_score(pin.id) == 1.0
    alice.search("<1 0>")
    assert alice.decay_score(memory.id) == 1.0
    bank.advance(30)
    assert alice.decay_score(memory.id) == 0.5
    assert alice.get(memory.id).usage_count == 1


def test_nothing_has_faded_where_nothing_fades(alice: AgentMemory) -> None:
    memory = alice.add("a")
    alice.engine.ledger.advance(10**6)
    assert alice.decay_score(memory.id) == 1.0


def test_inactive_preferences_become_warm_after_the_time_that_is_set(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"inactive_preference": "2d"})
    alice = bank.agent("alice")
    likes = alice.add("tea", kind="preference", temperature="hot")
    bank.advance(47)
    alice.compact()
    assert alice.get(likes.id).temperature is HOT
    bank.advance(48)
    alice.compact()
    assert alice.get(likes.id).temperature is WARM


def test_recalls_count_for_the_hit_rate(make_bank: MakeBank) -> None:
    bank = make_bank()
    alice = bank.agent("alice")
    alice.add("a <1 0>", temperature="cold")
    alice.recall("<1 0>")
    assert bank.metrics()["memory_hit_rate"] == 1.0
    alice.recall("<0 1>")
    alice.search("<0 1>")
    alice.search("<1 0>", include_cold=True)
    assert bank.metrics()["memory_hit_rate"] == 0.5


def test_a_spilled_memory_is_cold_unless_it_was_used_often(make_bank: MakeBank) -> None:
    bank = make_bank(preset="hot-cold-session", retrieval={"mode": "vector", "sif": 0})
    alice = bank.agent("alice")
    three, four = added_hot(alice, "three <1 0>", "four <0 1>")
    used(alice, three, "<1 0>", 3)
    used(alice, four, "<0 1>", 4)
    assert alice.spill(count=2).moved == {three.id: COLD, four.id: WARM}
