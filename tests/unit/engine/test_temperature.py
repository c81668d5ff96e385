"""How warm a memory starts, what changes that, and what hot, warm and cold mean for who sees it."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from agents import (
    AgentMemory,
    Hits,
    InvalidInput,
    InvalidTemperature,
    InvalidTier,
    Memory,
    MemoryBank,
    Retention,
    Temperature,
    Tier,
)
from agents.memory.records import KINDS

MakeBank = Callable[..., MemoryBank]

HOT, WARM, COLD = Temperature


def real_mem0(test: Callable[..., None]) -> Callable[..., None]:
    """Third-party code, on Python 3.11 and what it depends on."""
    for category in ("DeprecationWarning", "ResourceWarning", "UserWarning:mem0"):
        test = pytest.mark.filterwarnings(f"ignore::{category}")(test)
    return test


def texts(hits: Hits) -> list[str]:
    return [hit.memory.content for hit in hits]


def lines(text: str) -> list[str]:
    """The lines of a context, without what tells their tier."""
    return [line.removeprefix("- ").split("] ")[-1] for line in text.splitlines()]


def vector(bank: MemoryBank, memory: Memory) -> bytes:
    """A memory's vector, wherever it is kept."""
    resident = bank.engine.state
    block = resident.block(memory.agent_id)
    row = block.row_of(memory.sequence)
    if row is not None:
        return block.vectors([row]).tobytes()
    stored = resident.shelf.get((memory.agent_id, memory.sequence))
    assert stored is not None
    return stored.record.vector


# How it starts


def test_a_new_memory_is_a_warm_active_fact_that_stays(alice: AgentMemory) -> None:
    memory = alice.add("a")
    assert (memory.kind, memory.tags, memory.temperature) == ("fact", (), WARM)
    assert (memory.retention, memory.expires_tick) == (Retention.ACTIVE, None)
    assert (memory.access_count, memory.last_access_tick, memory.relevance) == (0, None, 0.5)


@pytest.mark.parametrize("asked", ["hot", "WARM", "Cold", *Temperature], ids=repr)
def test_a_temperature_is_a_name_in_any_case_or_a_member(
    alice: AgentMemory, asked: Temperature | str
) -> None:
    memory = alice.add("a", temperature=asked)
    expected = asked if isinstance(asked, Temperature) else Temperature[asked.upper()]
    assert memory.temperature is alice.get(memory.id).temperature is expected


@pytest.mark.parametrize("initial", ["hot", "warm", "cold"])
def test_the_setting_says_how_a_memory_starts(make_bank: MakeBank, initial: str) -> None:
    alice = make_bank(temperature={"initial": initial}).agent("alice")
    assert alice.add("a").temperature is Temperature[initial.upper()]
    assert alice.add("b", temperature="warm").temperature is WARM  # asked for wins


@pytest.mark.parametrize("initial", ["hot", "warm", "cold"])
def test_a_new_pinned_memory_is_hot_whatever_the_setting(make_bank: MakeBank, initial: str) -> None:
    alice = make_bank(temperature={"initial": initial}).agent("alice")
    assert alice.add("a", "pinned").temperature is HOT
    assert alice.add("b", "pinned", temperature="hot").temperature is HOT


@pytest.mark.parametrize("ttl", [1, 4, 5, 9, 10, 100])
def test_a_short_life_starts_warm_and_a_shorter_one_cold(make_bank: MakeBank, ttl: int) -> None:
    own = {"initial": "hot", "ttl_cold_below": 5, "ttl_warm_below": 10}
    bank = make_bank(temperature=own)
    bank.advance(7)
    expected = COLD if ttl < 5 else WARM if ttl < 10 else HOT
    alice = bank.agent("alice")
    by_ttl, by_tick = alice.add("a", ttl=ttl), alice.add("b", expires_tick=7 + ttl)
    assert by_ttl.temperature is by_tick.temperature is expected
    assert by_ttl.expires_tick == by_tick.expires_tick == 7 + ttl


def test_thresholds_for_lifetimes_are_durations(make_bank: MakeBank) -> None:
    own = {"initial": "hot", "ttl_cold_below": "12h", "ttl_warm_below": "7d"}
    alice = make_bank(temperature=own, clock={"ticks_per_day": 2}).agent("alice")
    assert alice.add("a", ttl=1).temperature is WARM  # 12h is one tick, and 1 is not below it
    assert alice.add("b", ttl=13).temperature is WARM
    assert alice.add("c", ttl=14).temperature is HOT


def test_a_temperature_that_is_asked_for_wins_over_the_lifetime(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"ttl_cold_below": 100}).agent("alice")
    memory = alice.add("a", ttl=3, temperature="hot")
    assert (memory.temperature, memory.expires_tick) == (HOT, 3)


def test_without_thresholds_a_lifetime_does_not_decide(alice: AgentMemory) -> None:
    assert alice.add("a", ttl=1).temperature is WARM


def test_kind_and_tags_come_back_tags_sorted_and_once(alice: AgentMemory) -> None:
    memory = alice.add("a", kind="decision", tags=["z", "open", "z", "ünï"])
    assert (memory.kind, memory.tags) == ("decision", ("open", "z", "ünï"))
    assert alice.get(memory.id) == memory


def test_every_kind_is_taken(alice: AgentMemory) -> None:
    assert [alice.add("a", kind=kind).kind for kind in KINDS] == [
        "message", "fact", "decision", "preference", "entity", "context", "observation", "action",
        "note", "insight",
    ]  # fmt: skip


def test_what_stores_for_a_purpose_names_the_kind(alice: AgentMemory) -> None:
    assert alice.record_action("trade").kind == "action"
    assert alice.record_observation("rain").kind == "observation"
    assert [m.kind for m in alice.add_messages("hello", infer=False)] == ["message"]


def test_up_to_32_tags_of_up_to_64_characters(alice: AgentMemory) -> None:
    tags = [f"{n:02}" + "x" * 62 for n in range(32)]
    assert alice.add("a", tags=tags).tags == tuple(tags)


def test_tags_are_any_iterable(alice: AgentMemory) -> None:
    assert alice.add("a", tags=(str(n) for n in range(3))).tags == ("0", "1", "2")
    assert alice.add("b", tags={"x"}).tags == ("x",)


def test_add_many_takes_options_as_a_fifth_element(bank: MemoryBank) -> None:
    options = {"kind": "decision", "tags": ["x"], "temperature": "cold", "ttl": 9}
    (memory,) = bank.add_many([("alice", "a", "low", None, options)])
    assert memory == bank.agent("alice").get(memory.id)
    assert (memory.kind, memory.tags, memory.temperature) == ("decision", ("x",), COLD)
    assert memory.expires_tick == 9
    assert bank.agent("alice").add_many([("b", "low", None, {"expires_tick": 4})])[0].expires_tick


def test_empty_options_are_a_plain_memory(bank: MemoryBank) -> None:
    options: list[Any] = [None, {}, {"kind": None, "ttl": None}]
    for memory in bank.add_many([("alice", "a", 3, None, each) for each in options]):
        assert (memory.kind, memory.temperature, memory.expires_tick) == ("fact", WARM, None)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown kind": ({"kind": "rumour"}, "'rumour' is not a kind.*message, fact, decision"),
    "a kind in capitals": ({"kind": "FACT"}, "not a kind"),
    "a kind that is not text": ({"kind": 3}, "not a kind"),
    "tags as a text": ({"tags": "blocker"}, "tags are a list of texts; got 'blocker'"),
    "tags as a number": ({"tags": 3}, "tags are a list"),
    "tags as a mapping": ({"tags": {"a": 1}}, "tags are a list"),
    "a comma in a tag": ({"tags": ["a,b"]}, "'a,b' is not a tag.*without commas"),
    "an empty tag": ({"tags": [""]}, "not a tag"),
    "a blank around a tag": ({"tags": [" a"]}, "not a tag.*without blanks"),
    "a tag that is not text": ({"tags": [3]}, "tag"),
    "a tag with half a character": ({"tags": ["\ud800"]}, "tag"),
    "a tag of 65 characters": ({"tags": ["x" * 65]}, "1 to 64 characters"),
    "33 tags": ({"tags": [str(n) for n in range(33)]}, "at most 32 tags; got 33"),
    "a ttl of 0": ({"ttl": 0}, "ttl"),
    "a negative ttl": ({"ttl": -1}, "ttl"),
    "a ttl that is not a whole number": ({"ttl": 1.5}, "ttl"),
    "a ttl as a text": ({"ttl": "7d"}, "ttl"),
    "a ttl that is True": ({"ttl": True}, "ttl"),
    "a ttl and an end": ({"ttl": 3, "expires_tick": 9}, "ttl or an expires_tick, not both"),
    "an end in the past": ({"expires_tick": 4}, "expires_tick 4 is not after.*tick, 5"),
    "an end that is now": ({"expires_tick": 5}, "expires_tick 5 is not after.*tick, 5"),
    "pinned with a ttl": ({"tier": "pinned", "ttl": 3}, "pinned memory does not expire"),
    "pinned with an end": ({"tier": "pinned", "expires_tick": 9}, "pinned.*does not expire"),
    "pinned and cold": ({"tier": "pinned", "temperature": "cold"}, "pinned memory is hot.*cold"),
    "pinned and warm": ({"tier": "pinned", "temperature": "warm"}, "pinned memory is hot.*warm"),
    "an unknown temperature": ({"temperature": "tepid"}, "'tepid' is not a temp.*hot, warm, cold"),
    "a temperature as a number": ({"temperature": 1}, "not a temperature"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_with_a_clear_message_and_nothing_is_stored(
    bank: MemoryBank, options: dict[str, Any], message: str
) -> None:
    bank.advance(5)
    before = bank.state_hash()
    with pytest.raises(InvalidInput, match=message):
        bank.agent("alice").add("a", **options)
    rest = {name: value for name, value in options.items() if name != "tier"}
    bad = ("alice", "a", options.get("tier", "normal"), None, rest)
    with pytest.raises(InvalidInput, match=message):
        bank.add_many([("alice", "fine"), bad])
    assert bank.state_hash() == before
    assert bank.agents() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"colour": "red"},
            "'colour' is not an option of a memory; use kind, tags, ttl, expires_tick, temperature",
        ),
        ({5: 1}, "5 is not an option"),
        ("hot", "options are a mapping; got 'hot'"),
        (["hot"], "options are a mapping"),
    ],
)
def test_options_that_nobody_knows_are_refused(
    bank: MemoryBank, options: Any, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        bank.add_many([("alice", "a", 3, None, options)])
    assert bank.agents() == []


# What a change leaves alone


def test_no_tier_and_no_temperature_changes_id_vector_text_or_scope(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    bank.agent("bob").add("bob's")
    first = alice.add("cats <1 2 3>", metadata={"k": "v"}, kind="entity", tags=["t"], ttl=50)
    before = vector(bank, first)
    steps: list[Callable[[], object]] = [
        *(lambda tier=tier: alice.set_tier(first.id, tier) for tier in (4, 2, 1, 3)),
        lambda: alice.update(first.id, temperature="cold"),
        *(lambda tier=tier: alice.set_tier(first.id, tier) for tier in (4, 2, 1, 3)),
        lambda: alice.update(first.id, temperature="hot"),
        lambda: alice.update(first.id, temperature="warm"),
        lambda: alice.pin(first.id),
        lambda: alice.unpin(first.id, "low"),
        lambda: alice.update(first.id, temperature="cold"),
        lambda: alice.pin(first.id),
        lambda: alice.unpin(first.id),
    ]
    for step in steps:
        step()
        now = alice.get(first.id)
        assert (now.id, now.agent_id, now.content, now.sequence) == (
            first.id, "alice", "cats <1 2 3>", first.sequence,
        )  # fmt: skip
        assert (now.metadata, now.kind, now.tags) == (first.metadata, "entity", ("t",))
        assert (now.created_tick, now.expires_tick) == (0, 50)
        assert vector(bank, now) == before
        assert alice.count() == 1
    assert bank.agent("bob").count() == 1


def test_a_tier_change_leaves_the_temperature_alone(alice: AgentMemory) -> None:
    for temperature in Temperature:
        memory = alice.add("a", temperature=temperature)
        for tier in ("critical", "low", "important", "normal"):
            assert alice.set_tier(memory.id, tier).temperature is temperature


def test_cold_to_hot_to_cold_is_lossless(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a <1 2>", "important", {"n": 1}, tags=["x"], temperature="cold", ttl=9)
    alice.recall("a <1 2>", auto_promote=False)
    before, bits = alice.get(memory.id), vector(bank, memory)
    assert alice.update(memory.id, temperature="hot")
    assert alice.update(memory.id, temperature="cold")
    after = alice.get(memory.id)
    assert after == before
    assert vector(bank, after) == bits


# Pinning


@pytest.mark.parametrize("temperature", ["hot", "warm", "cold"])
def test_pinning_makes_a_memory_hot_and_active(alice: AgentMemory, temperature: str) -> None:
    memory = alice.add("a <1 0>", temperature=temperature)
    pinned = alice.pin(memory.id)
    assert (pinned.tier, pinned.temperature, pinned.retention) == (Tier.PINNED, HOT, 0)
    assert alice.get(memory.id) == pinned
    assert alice.get_pinned_memories() == [pinned]
    assert texts(alice.search("nothing <0 1>", 1)) == ["a <1 0>"]


@pytest.mark.parametrize("temperature", ["hot", "warm", "cold"])
def test_pinning_an_archived_memory_makes_it_hot_and_active(
    alice: AgentMemory, temperature: str
) -> None:
    memory = alice.add("a", temperature=temperature)
    alice.update(memory.id, retention="archived")
    pinned = alice.pin(memory.id)
    assert (pinned.temperature, pinned.retention) == (HOT, Retention.ACTIVE)
    assert alice.all() == [pinned]


def test_unpinning_makes_a_memory_warm(alice: AgentMemory) -> None:
    memory = alice.add("a", "pinned")
    assert alice.unpin(memory.id).temperature is WARM
    again = alice.pin(memory.id)
    assert alice.set_tier(again.id, "critical").temperature is WARM


def test_unpinning_what_is_not_pinned_leaves_its_temperature(alice: AgentMemory) -> None:
    memory = alice.add("a", temperature="cold")
    assert alice.unpin(memory.id).temperature is COLD
    with pytest.raises(InvalidTier):
        alice.unpin(memory.id, "pinned")


def test_a_pin_that_is_demoted_to_make_room_is_warm(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_pinned": 1}).agent("alice")
    first = alice.add("a", "pinned")
    alice.add("b", "pinned")
    demoted = alice.get(first.id)
    assert (demoted.tier, demoted.temperature) == (Tier.CRITICAL, WARM)


def test_a_pin_that_a_smaller_cap_demotes_is_warm(open_bank: MakeBank) -> None:
    first = open_bank().agent("alice").add("a", "pinned")
    demoted = open_bank(memory={"max_pinned": 0}).agent("alice").get(first.id)
    assert (demoted.tier, demoted.temperature) == (Tier.CRITICAL, WARM)


# The context


def test_the_context_is_pinned_then_hot_then_what_is_found(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.add("warm far <0 1>")
    alice.add("warm near <1 0>")
    alice.add("hot <0 1>", temperature="hot")
    alice.add("pin <0 1>", "pinned")
    alice.add("cold near <1 0>", temperature="cold")
    assert lines(alice.get_relevant_memories("<1 0>")) == [
        "pin <0 1>", "hot <0 1>", "warm near <1 0>", "warm far <0 1>",
    ]  # fmt: skip


def test_hot_memories_come_most_recently_accessed_first(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.add("first <1 0>", temperature="hot")
    alice.add("second <0 1>", temperature="hot")
    bank.advance(1)
    alice.add("third <0 0 1>", temperature="hot")
    assert lines(alice.get_relevant_memories()) == ["third <0 0 1>", "second <0 1>", "first <1 0>"]
    bank.advance(2)
    alice.search("<1 0>", 1)
    assert lines(alice.get_relevant_memories()) == ["first <1 0>", "third <0 0 1>", "second <0 1>"]


def test_warm_memories_are_reranked_by_tier(alice: AgentMemory) -> None:
    alice.add("hot", temperature="hot")
    alice.add("nearer <1 0>")
    alice.add("critical <0.9 0.4>", "critical")
    assert lines(alice.get_relevant_memories("<1 0>", 2)) == [
        "hot", "critical <0.9 0.4>", "nearer <1 0>",
    ]  # fmt: skip


def test_nothing_is_in_the_context_twice(alice: AgentMemory) -> None:
    for number in range(4):
        alice.add(f"pin {number} <1 0>", "pinned")
        alice.add(f"hot {number} <1 0>", temperature="hot")
        alice.add(f"warm {number} <1 0>")
    shown = lines(alice.get_relevant_memories("<1 0>", 100))
    assert len(shown) == len(set(shown)) == 12


def test_a_context_for_a_blank_query_has_the_hot_once_too(alice: AgentMemory) -> None:
    alice.add("warm")
    alice.add("hot", "low", temperature="hot")
    alice.add("pin", "pinned")
    assert lines(alice.get_relevant_memories("  ")) == ["pin", "hot", "warm"]


def test_the_limit_counts_the_pinned_but_not_the_hot(alice: AgentMemory) -> None:
    alice.add_many([("pin 1", "pinned"), ("pin 2", "pinned")])
    for number in range(3):
        alice.add(f"hot {number}", temperature="hot")
        alice.add(f"warm {number} <1 0>")
    shown = lines(alice.get_relevant_memories("<1 0>", 3))
    assert shown == ["pin 1", "pin 2", "hot 2", "hot 1", "hot 0", "warm 2 <1 0>"]
    assert len(lines(alice.get_relevant_memories("<1 0>", 0))) == 5


def crowded(make_bank: MakeBank, **limits: int) -> AgentMemory:
    """Hot memories of 10, 40 and 10 characters, each oldest first, and limits they exceed."""
    bank = make_bank(temperature={**limits, "auto_spill": False}, count_tokens=len)
    alice = bank.agent("alice")
    for text in ("a" * 7, "b" * 37, "c" * 7):  # a line has three characters more
        alice.add(text, temperature="hot")
    return alice


def test_one_that_does_not_fit_is_skipped_and_smaller_ones_still_go_in(make_bank: MakeBank) -> None:
    alice = crowded(make_bank, hot_max_tokens=20)
    assert lines(alice.get_relevant_memories()) == ["c" * 7, "a" * 7]
    assert lines(alice.get_relevant_memories("x")) == ["c" * 7, "a" * 7]


def test_hot_memories_that_just_fit_all_go_in(make_bank: MakeBank) -> None:
    assert len(lines(crowded(make_bank, hot_max_tokens=60).get_relevant_memories())) == 3
    assert len(lines(crowded(make_bank, hot_max_tokens=59).get_relevant_memories())) == 2


def test_no_more_hot_memories_than_facts_are_allowed(make_bank: MakeBank) -> None:
    assert lines(crowded(make_bank, hot_max_facts=2).get_relevant_memories()) == ["c" * 7, "b" * 37]


def test_pinned_memories_count_against_the_limits_of_hot(make_bank: MakeBank) -> None:
    alice = crowded(make_bank, hot_max_facts=2)
    alice.add("pin", "pinned")
    assert lines(alice.get_relevant_memories()) == ["pin", "c" * 7]
    alice = crowded(make_bank, hot_max_tokens=40)
    alice.add("p" * 19, "pinned")  # with its label 31 of 40
    assert lines(alice.get_relevant_memories()) == ["p" * 19]


def test_pinned_memories_come_even_beyond_the_limits_of_hot(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_tokens": 1, "hot_max_facts": 1}).agent("alice")
    alice.add_many([("pin 1", "pinned"), ("pin 2", "pinned")])
    assert lines(alice.get_relevant_memories()) == ["pin 1", "pin 2"]


def test_a_hot_memory_left_out_of_the_context_is_not_ranked_instead(make_bank: MakeBank) -> None:
    alice = crowded(make_bank, hot_max_tokens=20)
    assert "b" not in alice.get_relevant_memories("b", 50)


def test_a_token_budget_holds_for_hot_memories_too(make_bank: MakeBank) -> None:
    bank = make_bank(count_tokens=len)
    alice = bank.agent("alice")
    alice.add("hot one", temperature="hot")
    alice.add("warm one <1 0>")
    assert lines(alice.get_relevant_memories("<1 0>", context_tokens=12)) == ["hot one"]


def test_the_hot_context_is_the_hot_block_alone(alice: AgentMemory) -> None:
    assert alice.get_relevant_memories() == "(No relevant memories)"
    alice.add("warm")
    alice.add("cold", temperature="cold")
    assert alice.get_relevant_memories() == "(No relevant memories)"
    alice.add("hot", "critical", temperature="hot")
    alice.add("pin", "pinned")
    assert alice.get_relevant_memories() == "- [pinned] pin\n- [critical] hot"


def test_the_hot_context_counts_as_no_use(bank: MemoryBank) -> None:
    memory = bank.agent("alice").add("hot", temperature="hot")
    bank.advance(1)
    bank.agent("alice").get_relevant_memories()
    assert bank.agent("alice").get(memory.id).access_count == 0


def test_contexts_of_many_are_those_of_each(make_bank: MakeBank) -> None:
    def filled() -> MemoryBank:
        bank = make_bank()
        for name in ("alice", "bob", "carol"):
            agent = bank.agent(name)
            agent.add(f"{name} warm <1 0>")
            if name != "bob":
                agent.add(f"{name} hot", temperature="hot")
                agent.add(f"{name} pin", "pinned")
        return bank

    asked = [("alice", "<1 0>"), ("bob", "<1 0>"), ("carol", " "), ("dave", "x")]
    many = filled().relevant_many(asked)
    single = filled()
    assert many == [single.agent(name).get_relevant_memories(query) for name, query in asked]


# Search and its filters


@pytest.fixture
def mixed(make_bank: MakeBank) -> AgentMemory:
    """Memories that are equally similar to <1 0> and differ in one thing from the first."""
    bank = make_bank(memory={"tier_boosts": {"low": 0.0, "important": 0.0, "critical": 0.0}})
    alice = bank.agent("alice")
    alice.add("plain <1 0>")
    alice.add("low <1 0>", "low")
    alice.add("important <1 0>", "important")
    alice.add("decision <1 0>", kind="decision")
    alice.add("preference <1 0>", kind="preference")
    alice.add("tagged x <1 0>", tags=["x"])
    alice.add("tagged x y <1 0>", tags=["x", "y"])
    alice.add("hot <1 0>", temperature="hot")
    alice.add("cold <1 0>", temperature="cold")
    alice.add("cold tagged x <1 0>", "low", temperature="cold", tags=["x"], kind="decision")
    alice.add("half <1 1>")
    bank.advance(3)
    alice.add("late <1 0>")
    return alice


def names(hits: Hits) -> set[str]:
    return {hit.memory.content.split(" <")[0] for hit in hits}


ALL = {
    "plain", "low", "important", "decision", "preference", "tagged x", "tagged x y", "hot", "half",
    "late",
}  # fmt: skip

FILTERS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "none": ({}, ALL),
    "a tier": ({"tier": "low"}, {"low"}),
    "a tier as a number": ({"tier": 4}, {"low"}),
    "tiers": ({"tier": ["low", Tier.IMPORTANT]}, {"low", "important"}),
    "a tier that is empty": ({"tier": "critical"}, set()),
    "hot": ({"temperature": "hot"}, {"hot"}),
    "warm": ({"temperature": "warm"}, ALL - {"hot"}),
    "cold": ({"temperature": "cold"}, {"cold", "cold tagged x"}),
    "hot and cold": ({"temperature": ["hot", COLD]}, {"hot", "cold", "cold tagged x"}),
    "with cold": ({"include_cold": True}, ALL | {"cold", "cold tagged x"}),
    "hot with cold": (
        {"temperature": "hot", "include_cold": True}, {"hot", "cold", "cold tagged x"},
    ),
    "a kind": ({"kind": "decision"}, {"decision"}),
    "kinds": ({"kind": ["decision", "preference"]}, {"decision", "preference"}),
    "a kind with cold": (
        {"kind": "decision", "include_cold": True}, {"decision", "cold tagged x"},
    ),
    "a tag": ({"tags": "x"}, {"tagged x", "tagged x y"}),
    "a tag in a list": ({"tags": ["y"]}, {"tagged x y"}),
    "any of the tags": ({"tags": ["y", "x", "z"]}, {"tagged x", "tagged x y"}),
    "a tag nobody has": ({"tags": "z"}, set()),
    "a tag with cold": (
        {"tags": "x", "include_cold": True}, {"tagged x", "tagged x y", "cold tagged x"},
    ),
    "a score": ({"min_score": 0.9}, ALL - {"half"}),
    "a score with cold": (
        {"min_score": 0.9, "include_cold": True}, (ALL - {"half"}) | {"cold", "cold tagged x"},
    ),
    "a tick": ({"since_tick": 3}, {"late"}),
    "the first tick": ({"since_tick": 0}, ALL),
    "a tick to come": ({"since_tick": 4}, set()),
    "tier and kind": ({"tier": "low", "kind": "decision"}, set()),
    "tier and kind and tag and cold": (
        {"tier": "low", "kind": "decision", "tags": "x", "temperature": "cold"}, {"cold tagged x"},
    ),
    "all at once": (
        {"tier": "normal", "temperature": "warm", "kind": "fact", "tags": ["x", "y"],
         "min_score": 0.5, "since_tick": 0}, {"tagged x", "tagged x y"},
    ),
    "since and kind": ({"since_tick": 3, "kind": "decision"}, set()),
}  # fmt: skip


@pytest.mark.parametrize(("only", "expected"), FILTERS.values(), ids=FILTERS)
def test_a_filter_lets_through_what_it_says(
    mixed: AgentMemory, only: dict[str, Any], expected: set[str]
) -> None:
    assert names(mixed.search("<1 0>", 50, **only)) == expected


UNSCORED = {name: row for name, row in FILTERS.items() if "min_score" not in row[0]}


@pytest.mark.parametrize(("only", "expected"), UNSCORED.values(), ids=UNSCORED)
def test_a_filter_holds_for_a_blank_query_too(
    mixed: AgentMemory, only: dict[str, Any], expected: set[str]
) -> None:
    assert names(mixed.search(" ", 50, **only)) == expected


@real_mem0
def test_a_filter_lets_through_the_same_where_the_cold_are_in_mem0s_store(
    mixed: AgentMemory,
) -> None:
    MemoryBank(mixed.engine).sync()
    for name, (only, expected) in FILTERS.items():
        assert names(mixed.search("<1 0>", 50, **only)) == expected, name


def test_filters_hold_for_pinned_memories_except_the_score(mixed: AgentMemory) -> None:
    mixed.add("pin <0 1>", "pinned", kind="decision")
    assert "pin" in names(mixed.search("<1 0>", 50, min_score=0.9))
    assert "pin" in names(mixed.search("<1 0>", 50, kind="decision"))
    assert "pin" not in names(mixed.search("<1 0>", 50, kind="preference"))
    assert "pin" not in names(mixed.search("<1 0>", 50, tier="low"))
    assert names(mixed.search("<1 0>", 50, tier="pinned")) == {"pin"}


def test_a_filter_acts_before_the_limit(alice: AgentMemory) -> None:
    alice.add("wanted <1 1>", kind="decision")
    alice.add_many([f"nearer {number} <1 0>" for number in range(50)])
    assert texts(alice.search("<1 0>", 1, kind="decision")) == ["wanted <1 1>"]


def with_many_cold(bank: MemoryBank) -> list[str]:
    """Cold memories that are more similar to <1 0> than the warm ones, whose texts it gives."""
    options = {"temperature": "cold"}
    rows = [("alice", f"cold {n} <1 0>", 1 if n < 5 else 3, None, options) for n in range(60)]
    bank.add_many(rows)
    warm = [f"warm {n} <1 1>" for n in range(5)]
    bank.agent("alice").add_many(warm)
    return warm


def test_cold_hits_never_eat_warm_slots(bank: MemoryBank) -> None:
    warm, alice = with_many_cold(bank), bank.agent("alice")
    assert set(texts(alice.search("<1 0>", 5))) == set(warm)
    assert set(texts(alice.search("<1 0>", 5, temperature=["hot", "warm"]))) == set(warm)
    assert set(lines(alice.get_relevant_memories("<1 0>", 5))) == set(warm)
    assert len(alice.search("", 50)) == 5


@real_mem0
def test_neither_warm_nor_anothers_hits_eat_cold_slots_in_mem0s_store(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.add("cold <1 1>", tags=["x"], temperature="cold")
    near = [f"{n} <99 {n % 30} {n * n % 31}>" for n in range(60)]
    alice.add_many(near)
    again = alice.add("promoted since <1 0>", tags=["x"], temperature="cold")
    bank.add_many([("bob", text, 3, None, {"temperature": "cold"}) for text in near])
    bank.sync()
    alice.update(again.id, temperature="hot")  # the store does not know that yet
    assert texts(alice.search("<1 0>", 1, temperature="cold")) == ["cold <1 1>"]
    assert texts(alice.search("<1 0>", 1, temperature="cold", tags="x")) == ["cold <1 1>"]


@real_mem0
def test_what_mem0s_store_finds_comes_back_bit_identical(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory = alice.add(
        "a\n“ü” <3 1 4>", "important", {"n": 1, "x": 0.1, "none": None}, kind="entity",
        tags=["t"], temperature="cold", ttl=9,
    )  # fmt: skip
    bits = vector(bank, memory)
    (before,) = alice.search("<1 2>", include_cold=True)
    bank.sync()
    (after,) = alice.search("<1 2>", include_cold=True)
    assert after == before
    assert after.memory == memory
    (found,) = alice.recall("<3 1 4>").items
    assert found.temperature is HOT
    assert vector(bank, found) == bits


def test_cold_memories_take_part_where_they_are_asked_for(alice: AgentMemory) -> None:
    alice.add("cold <1 0>", temperature="cold")
    alice.add("warm <1 1>")
    assert texts(alice.search("<1 0>")) == ["warm <1 1>"]
    assert texts(alice.search("<1 0>", include_cold=True)) == ["cold <1 0>", "warm <1 1>"]
    assert texts(alice.search("<1 0>", 1, include_cold=True)) == ["cold <1 0>"]
    assert texts(alice.search("<1 0>", temperature="cold")) == ["cold <1 0>"]


def test_a_search_with_cold_gives_the_pinned_first_and_ranks_by_tier(alice: AgentMemory) -> None:
    alice.add("pin <0 1>", "pinned")
    alice.add("cold <0.9 0.4>", "critical", temperature="cold")
    alice.add("warm <1 0>")
    found = alice.search("<1 0>", 2, include_cold=True)
    assert texts(found) == ["pin <0 1>", "cold <0.9 0.4>"]
    assert found[1].boost == 0.3


def test_a_search_with_cold_scores_as_a_warm_search_does(alice: AgentMemory) -> None:
    memory = alice.add("a <3 1>")
    (warm,) = alice.search("<1 0>")
    alice.update(memory.id, temperature="cold")
    (cold,) = alice.search("<1 0>", include_cold=True)
    assert warm[1:] == cold[1:]


def test_a_search_with_cold_keeps_to_the_token_budget(make_bank: MakeBank) -> None:
    alice = make_bank(count_tokens=len).agent("alice")
    alice.add("cold <1 0>", temperature="cold")
    alice.add("pin", "pinned")
    found = alice.search("<1 0>", include_cold=True, context_tokens=16)
    assert texts(found) == ["pin"]
    assert texts(alice.search("<1 0>", include_cold=True, context_tokens=40)) == [
        "pin", "cold <1 0>",
    ]  # fmt: skip


def test_a_cold_memory_of_another_agent_is_never_found(bank: MemoryBank) -> None:
    bank.agent("bob").add("bob's <1 0>", temperature="cold")
    mine = bank.agent("alice").add("mine <0 1>", temperature="cold")
    for query in ("<1 0>", ""):
        found = bank.agent("alice").search(query, 9, include_cold=True)
        assert [hit.memory for hit in found] == [mine]


@pytest.mark.parametrize(
    ("only", "error", "message"),
    [
        ({"tier": "vital"}, InvalidTier, "vital"),
        ({"tier": ["low", 9]}, InvalidTier, "9"),
        ({"temperature": "tepid"}, InvalidTemperature, "tepid"),
        ({"kind": "rumour"}, InvalidInput, "rumour"),
        ({"tags": 3}, InvalidInput, "tags are a list"),
        ({"tags": "a,b"}, InvalidInput, "commas"),
        ({"min_score": 1.1}, InvalidInput, "min_score is a number from 0 to 1"),
        ({"min_score": "high"}, InvalidInput, "min_score"),
        ({"min_score": float("nan")}, InvalidInput, "min_score"),
        ({"min_score": True}, InvalidInput, "min_score"),
        ({"since_tick": -1}, InvalidInput, "since_tick"),
        ({"since_tick": 1.5}, InvalidInput, "since_tick"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(
    alice: AgentMemory, only: dict[str, Any], error: type[Exception], message: str
) -> None:
    alice.add("a")
    with pytest.raises(error, match=message):
        alice.search("a", **only)


def test_all_and_count_include_the_cold(alice: AgentMemory) -> None:
    added = [alice.add(str(t), "low", temperature=t) for t in ("cold", "hot", "warm", "cold")]
    assert alice.all() == alice.all("low") == added
    assert alice.all(temperature="cold") == [added[0], added[3]]
    assert alice.all("low", temperature="hot") == [added[1]]
    assert alice.all("normal", temperature="cold") == []
    assert alice.count() == alice.count("low") == 4


# Caps count what is cold


def criticals(agent: AgentMemory) -> list[str]:
    return [memory.content for memory in agent.all("critical")]


def test_cold_critical_memories_count_for_the_cap(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_critical": 2}).agent("alice")
    old = [alice.add(f"old {n}", "critical") for n in range(2)]
    for memory in old:
        alice.update(memory.id, temperature="cold")
    alice.add("new", "critical")
    assert criticals(alice) == ["old 1", "new"]  # the oldest, a cold one, was demoted
    demoted = alice.get(old[0].id)
    assert (demoted.tier, demoted.temperature) == (Tier.IMPORTANT, COLD)


def test_caps_do_not_leak_through_cold_however_often(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_critical": 3}).agent("alice")
    for number in range(12):
        memory = alice.add(f"{number} <1 0>", "critical")
        assert alice.count("critical") <= 3
        alice.update(memory.id, temperature="cold")
        assert alice.count("critical") <= 3
    assert len(alice.recall("<1 0>", limit=50).promoted) == 12
    assert criticals(alice) == [f"{n} <1 0>" for n in (9, 10, 11)]


def test_a_cold_critical_memory_can_reject_a_newcomer(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"max_critical": 1, "on_tier_full": "reject"})
    alice = bank.agent("alice")
    alice.add("cold", "critical", temperature="cold")
    with pytest.raises(Exception, match="critical"):
        alice.add("new", "critical")


def test_a_cap_counts_the_cold_after_reopening(open_bank: MakeBank) -> None:
    alice = open_bank(memory={"max_critical": 2}).agent("alice")
    alice.add("cold", "critical", temperature="cold")
    alice.add("warm", "critical")
    alice = open_bank(memory={"max_critical": 2}).agent("alice")
    alice.add("new", "critical")
    assert criticals(alice) == ["warm", "new"]


def test_a_smaller_cap_demotes_cold_ones_on_opening(open_bank: MakeBank) -> None:
    alice = open_bank().agent("alice")
    alice.add("cold", "critical", temperature="cold")
    alice.add("warm", "critical")
    alice = open_bank(memory={"max_critical": 1}).agent("alice")
    assert criticals(alice) == ["warm"]
    assert alice.all("important")[0].temperature is COLD


def test_an_archived_critical_memory_takes_no_place(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_critical": 1}).agent("alice")
    for temperature in ("warm", "cold"):
        gone = alice.add(f"{temperature} gone", "critical", temperature=temperature)
        alice.update(gone.id, retention="archived")
    alice.add("new", "critical")
    assert criticals(alice) == ["new"]


def test_a_cap_holds_through_compaction_and_spill(make_bank: MakeBank) -> None:
    own = {"hot_max_facts": 2}
    alice = make_bank(memory={"max_critical": 2}, temperature=own).agent("alice")
    for number in range(8):
        kinds: Iterable[str] = ("decision", "fact")
        for kind in kinds:
            alice.add(f"{number} {kind}", "critical", kind=kind, temperature="hot")
            alice.compact()
            assert alice.count("critical") == min(2, alice.count())


@pytest.mark.parametrize("name", ["tier", "temperature", "kind", "tags"])
def test_a_filter_with_an_empty_list_is_refused(bank: MemoryBank, name: str) -> None:
    empty: dict[str, Any] = {name: []}
    with pytest.raises(InvalidInput, match="empty list"):
        bank.agent("alice").search("x", **empty)
