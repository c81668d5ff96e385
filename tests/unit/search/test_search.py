"""Which memories a search gives, and in which order."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from agents import AgentMemory, Hit, InvalidInput, MemoryBank, Tier
from embedders import Counting, Noise

MakeBank = Callable[..., MemoryBank]

ALONG = "<1 0>"
ACROSS = "<0 1>"


def contents(hits: list[Hit]) -> list[str]:
    return [hit.memory.content for hit in hits]


def at_angle(degrees: float) -> str:
    """A direction whose similarity to ``ALONG`` is the cosine of the angle."""
    return f"<{math.cos(math.radians(degrees))} {math.sin(math.radians(degrees))}>"


def brute_force(
    agent: AgentMemory, embedder: Noise, query: str, limit: int, boosts: list[float], times: int
) -> list[tuple[str, float, float]]:
    """The rules, as plainly as they can be written."""

    def whole_numbers(text: str) -> list[int]:
        (vector,) = embedder.embed([text]).tolist()
        largest = max(map(abs, vector))
        return [round(x / largest * 127) for x in vector]

    def similarity(text: str) -> float:
        a, b = whole_numbers(query), whole_numbers(text)
        dot = sum(x * y for x, y in zip(a, b, strict=True))
        scale = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
        return min(1.0, max(0.0, dot / scale))

    scored = [(similarity(memory.content), memory) for memory in agent.all()]
    pinned = [(score, memory) for score, memory in scored if memory.tier is Tier.PINNED]
    pinned.sort(key=lambda pair: (pair[1].tier_tick, pair[1].sequence))
    rest = [(score, memory) for score, memory in scored if memory.tier is not Tier.PINNED]
    rest.sort(key=lambda pair: (-pair[0], -pair[1].sequence))
    wanted = max(0, limit - len(pinned))
    candidates = rest[: wanted * times]
    candidates.sort(key=lambda p: (-(p[0] + boosts[p[1].tier]), -p[0], -p[1].sequence))
    chosen = [*pinned, *candidates[:wanted]]
    return [(memory.id, score, score + boosts[memory.tier]) for score, memory in chosen]


# Pinned first


def test_pinned_memories_come_first_whatever_the_query(alice: AgentMemory) -> None:
    alice.add(f"on topic {ALONG}")
    alice.add(f"warning {ACROSS}", "pinned")
    assert contents(alice.search(f"topic {ALONG}")) == [f"warning {ACROSS}", f"on topic {ALONG}"]


def test_pinned_memories_come_oldest_pin_first(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    late = alice.add("created first, pinned last")
    alice.add("b", "pinned")
    alice.add("c", "pinned")
    bank.advance(1)
    alice.pin(late.id)
    expected = ["b", "c", "created first, pinned last"]
    assert contents(alice.search("x")) == expected
    assert [memory.content for memory in alice.get_pinned_memories()] == expected


def test_pinned_memories_may_exceed_the_limit(alice: AgentMemory) -> None:
    alice.add_many([(f"p{n}", "pinned") for n in range(5)])
    alice.add(f"rest {ALONG}", "critical")
    for limit in (0, 1, 3, 5):
        assert contents(alice.search(ALONG, limit)) == [f"p{n}" for n in range(5)]


def test_the_limit_governs_the_rest(alice: AgentMemory) -> None:
    alice.add_many([("p0", "pinned"), ("p1", "pinned")])
    alice.add_many([f"m{n} {ALONG}" for n in range(10)])
    for limit in range(2, 10):
        assert len(alice.search(ALONG, limit)) == limit


def test_no_memory_appears_twice(alice: AgentMemory) -> None:
    alice.add_many([(f"{n} {ALONG}", n % 5) for n in range(40)])
    for limit in (0, 1, 5, 7, 20, 100):
        found = [hit.memory.id for hit in alice.search(ALONG, limit)]
        assert len(found) == len(set(found))


def test_the_same_text_stored_twice_is_two_memories(alice: AgentMemory) -> None:
    first, second = alice.add_many([ALONG, ALONG])
    assert [hit.memory for hit in alice.search(ALONG)] == [second, first]


def test_a_limit_of_0_gives_the_pinned_only(alice: AgentMemory) -> None:
    alice.add_many([("p", "pinned"), "n"])
    assert contents(alice.search("n", 0)) == ["p"]


def test_an_agent_without_memories_finds_nothing(alice: AgentMemory) -> None:
    assert alice.search("anything") == []
    assert alice.search("") == []


def test_a_warning_survives_two_hundred_rounds_of_small_talk(alice: AgentMemory) -> None:
    alice.add("NEVER transfer to agent_X (scammer)", "pinned")
    alice.add_many([f"small talk {n} {ALONG}" for n in range(200)])
    found = contents(alice.search(f"who can I trade with? {ALONG}", 5))
    assert found[0] == "NEVER transfer to agent_X (scammer)"
    assert len(found) == 5


# The rest


def test_the_most_similar_comes_first(alice: AgentMemory) -> None:
    angles = [60, 0, 45, 80, 20]
    alice.add_many([at_angle(angle) for angle in angles])
    assert contents(alice.search(ALONG)) == [at_angle(angle) for angle in sorted(angles)]


def test_a_boost_lifts_a_memory_over_more_similar_ones(alice: AgentMemory) -> None:
    alice.add(f"small talk {at_angle(30)}")  # 0.87
    alice.add(f"rule {at_angle(50)}", "critical")  # 0.64 + 0.3
    assert contents(alice.search(ALONG, 1)) == [f"rule {at_angle(50)}"]


def test_a_boost_does_not_lift_a_memory_over_far_more_similar_ones(alice: AgentMemory) -> None:
    alice.add(f"on topic {ALONG}")  # 1.0
    alice.add(f"rule {at_angle(60)}", "critical")  # 0.5 + 0.3
    assert contents(alice.search(ALONG, 1)) == [f"on topic {ALONG}"]


def test_a_low_memory_loses_to_an_equal_normal_one(alice: AgentMemory) -> None:
    alice.add_many([(f"normal {ALONG}",), (f"low {ALONG}", "low")])
    assert contents(alice.search(ALONG)) == [f"normal {ALONG}", f"low {ALONG}"]


def test_hits_carry_score_boost_and_their_sum(alice: AgentMemory) -> None:
    boosts = {"pinned": 1.0, "critical": 0.3, "important": 0.15, "normal": 0.0, "low": -0.1}
    alice.add_many([(f"{tier} {ALONG}", tier) for tier in boosts])
    for hit in alice.search(ALONG):
        assert hit.score == 1.0
        assert hit.boost == boosts[hit.memory.tier.name.lower()]
        assert hit.boosted_score == hit.score + hit.boost


def test_only_three_candidates_per_result_are_considered(alice: AgentMemory) -> None:
    """A critical memory that is the fourth most similar isn't lifted when one result is wanted."""
    alice.add(f"rule {at_angle(20)}", "critical")
    alice.add_many([f"talk {n} {at_angle(n)}" for n in range(3)])
    assert contents(alice.search(ALONG, 1)) == [f"talk 0 {at_angle(0)}"]
    assert contents(alice.search(ALONG, 2))[0] == f"rule {at_angle(20)}"


def test_pinned_memories_take_no_place_among_the_candidates(alice: AgentMemory) -> None:
    alice.add_many([(f"pin {n} {ALONG}", "pinned") for n in range(3)])
    alice.add(f"rule {at_angle(20)}", "critical")
    alice.add_many([f"talk {n} {at_angle(n)}" for n in range(2)])
    assert contents(alice.search(ALONG, 4))[3:] == [f"rule {at_angle(20)}"]


def test_equal_scores_give_the_newest_first(alice: AgentMemory) -> None:
    alice.add_many([f"{n} {ALONG}" for n in range(6)])
    assert contents(alice.search(ALONG, 4)) == [f"{n} {ALONG}" for n in (5, 4, 3, 2)]


def test_equal_scores_choose_the_newest_candidates(alice: AgentMemory) -> None:
    """Six share a score and three may be candidates: the oldest, though critical, is not one."""
    alice.add(f"rule {ALONG}", "critical")
    alice.add_many([f"{n} {ALONG}" for n in range(5)])
    assert contents(alice.search(ALONG, 1)) == [f"4 {ALONG}"]


def test_equal_boosted_scores_give_the_more_similar_first(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"tier_boosts": {"important": 1.0}})
    alice = bank.agent("alice")
    alice.add(f"similar {ALONG}")  # 1 + 0
    alice.add(f"boosted {ACROSS}", "important")  # 0 + 1, and newer
    assert contents(alice.search(ALONG)) == [f"similar {ALONG}", f"boosted {ACROSS}"]


def test_an_opposite_memory_scores_0_and_not_less(alice: AgentMemory) -> None:
    alice.add("<-1 0>")
    (hit,) = alice.search(ALONG)
    assert hit.score == 0.0


def test_a_change_of_tier_shows_in_the_next_search(alice: AgentMemory) -> None:
    alice.add(f"a {ALONG}")
    memory = alice.add(f"b {at_angle(30)}")
    alice.set_tier(memory.id, "critical")
    hits = alice.search(ALONG)
    assert (hits[0].memory.id, hits[0].memory.tier) == (memory.id, Tier.CRITICAL)
    alice.unpin(alice.pin(memory.id).id)
    assert contents(alice.search(ALONG))[0] == f"a {ALONG}"


def test_a_deleted_memory_is_not_found(alice: AgentMemory) -> None:
    keep, gone, pin = alice.add_many([f"keep {ALONG}", f"gone {ALONG}", (f"pin {ALONG}", 0)])
    alice.delete(gone.id)
    alice.unpin(pin.id)
    alice.delete(pin.id)
    assert [hit.memory for hit in alice.search(ALONG)] == [keep]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("limit", [0, 1, 3, 5, 10, 50, 500])
def test_search_equals_brute_force_bit_for_bit(make_bank: MakeBank, limit: int) -> None:
    embedder = Noise(24)
    bank = make_bank(embedder=embedder)
    alice = bank.agent("alice")
    for n in range(120):
        bank.advance(n // 10)
        alice.add(f"memory {n % 100}", n * 7 % 5)
    for gone in alice.all()[::9]:
        alice.delete(gone.id)
    boosts = list(bank.settings.memory.tier_boosts)
    for query in ("one", "two", "three", "memory 7"):
        found = [(h.memory.id, h.score, h.boosted_score) for h in alice.search(query, limit)]
        assert found == brute_force(alice, embedder, query, limit, boosts, 3)


# Blank queries


@pytest.mark.parametrize("query", ["", " ", "\n\t", "\u3000"], ids=ascii)
def test_a_blank_query_gives_the_pinned_then_the_newest_by_tier(
    alice: AgentMemory, query: str
) -> None:
    tiers = ["low", "normal", "pinned", "critical", "important"]
    alice.add_many([(f"{tier} {age}", tier) for age in ("old", "new") for tier in tiers])
    assert contents(alice.search(query, 10)) == [
        "pinned old", "pinned new", "critical new", "critical old", "important new",
        "important old", "normal new", "normal old", "low new", "low old",
    ]  # fmt: skip


def test_a_blank_query_obeys_the_limit(alice: AgentMemory) -> None:
    alice.add_many([("p", "pinned"), "a", "b", "c"])
    assert contents(alice.search("", 3)) == ["p", "c", "b"]
    assert contents(alice.search("", 0)) == ["p"]


def test_a_blank_query_asks_no_embedder(make_bank: MakeBank) -> None:
    embedder = Counting()
    alice = make_bank(embedder=embedder).agent("alice")
    alice.search("  ")
    assert embedder.batches == []


# Batches


@pytest.fixture
def crowd(make_bank: MakeBank) -> MemoryBank:
    """Agents with very different numbers of memories, pinned and not."""
    bank = make_bank(embedder=Noise(16))
    sizes = [0, 1, 2, 3, 7, 8, 9, 30, 31, 100, 250]
    bank.add_many(
        [
            (f"agent{size}", f"memory {n} of {size}", 0 if n % 11 == 3 else n % 4 + 1)
            for size in sizes
            for n in range(size)
        ]
    )
    return bank


@pytest.mark.parametrize("limit", [0, 1, 5, 40])
def test_search_many_equals_single_searches(crowd: MemoryBank, limit: int) -> None:
    names = [*crowd.agents(), "nobody"]
    requests = [(name, f"query {n}") for n in range(3) for name in names]
    requests += [(name, "") for name in names]
    batched = crowd.search_many(requests, limit)
    assert batched == [crowd.agent(name).search(query, limit) for name, query in requests]


def test_relevant_many_equals_single_calls(crowd: MemoryBank) -> None:
    requests = [(name, query) for name in crowd.agents() for query in ("hello", "", "x")]
    batched = crowd.relevant_many(requests, 6, context_tokens=40)
    assert batched == [
        crowd.agent(name).get_relevant_memories(query, 6, context_tokens=40)
        for name, query in requests
    ]


def test_the_order_of_a_batch_does_not_matter(crowd: MemoryBank) -> None:
    requests = [(name, f"query {n}") for n, name in enumerate(crowd.agents() * 2)]
    forwards = crowd.search_many(requests)
    backwards = crowd.search_many(requests[::-1])
    assert forwards == backwards[::-1]


def test_a_batch_of_nothing_gives_nothing(bank: MemoryBank) -> None:
    assert bank.search_many([]) == []
    assert bank.relevant_many([]) == []
    assert bank.add_many([]) == []


def test_a_batch_may_ask_the_same_twice(crowd: MemoryBank) -> None:
    first, second = crowd.search_many([("agent30", "x"), ("agent30", "x")])
    assert first == second
    assert first


def test_a_batch_embeds_all_its_queries_in_one_call(make_bank: MakeBank) -> None:
    embedder = Counting()
    bank = make_bank(embedder=embedder)
    bank.search_many([("a", "x"), ("b", "y"), ("c", "x"), ("d", "")])
    assert embedder.batches == [["x", "y"]]


def test_search_changes_nothing_but_how_often_memories_were_used(crowd: MemoryBank) -> None:
    before = [crowd.agent(name).all() for name in crowd.agents()]
    crowd.search_many([(name, "x") for name in [*crowd.agents(), "stranger"]])
    assert [crowd.agent(name).all() for name in crowd.agents()] == before
    assert "stranger" not in crowd.agents()


def test_explaining_and_blank_searches_change_nothing_at_all(crowd: MemoryBank) -> None:
    before = crowd.state_hash()
    crowd.search_many([(name, " ") for name in [*crowd.agents(), "stranger"]])
    for name in crowd.agents():
        crowd.agent(name).explain("x")
    assert crowd.state_hash() == before


@pytest.mark.parametrize("limit", [100, 10**9, 2**61, 2**62])
def test_a_huge_limit_gives_all(crowd: MemoryBank, limit: int) -> None:
    assert len(crowd.agent("agent100").search("x", limit)) == 100


@pytest.mark.parametrize("request_", [("a",), ("a", "x", "y"), "alice", 5, None], ids=repr)
def test_a_request_that_is_no_pair_is_refused(bank: MemoryBank, request_: Any) -> None:
    with pytest.raises(InvalidInput):
        bank.search_many([("a", "x"), request_])


def test_a_search_of_an_unknown_kind_of_limit_is_refused_in_batches_too(bank: MemoryBank) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        bank.search_many([("a", "x")], -1)
