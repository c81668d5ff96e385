"""What a status suggests, and by which numbers."""

from agents.engine import status as suggest
from agents.rules.temperature import HotFact, HotLimits

LIMITS = HotLimits(100, 10)


def hot(sequence: int, tokens: int, relevance: float = 0.5, *, pinned: bool = False) -> HotFact:
    return HotFact(sequence, tokens, relevance, 0, 0, pinned)


# Hot


def test_the_least_relevant_leave_until_hot_is_below_the_threshold() -> None:
    facts = [hot(1, 30, 0.9), hot(2, 30, 0.1), hot(3, 35, 0.5)]
    assert suggest.spill_sequences(facts, LIMITS, 0.9) == [2]
    assert suggest.spill_sequences(facts, LIMITS, 0.5) == [2, 3]
    assert suggest.spill_sequences(facts, LIMITS, 0.95) == []


def test_a_full_hot_names_its_numbers_and_how_many_could_go() -> None:
    facts = [hot(1, 60), hot(2, 35)]
    said = suggest.spill("alice", facts, LIMITS, 1, ["x"], auto_spill=True)
    assert said.what == "spill"
    assert said.ids == ("x",)
    assert "95 of 100 tokens and 2 of 10 memories" in said.reason
    assert "spill 1," in said.reason
    assert "auto_spill" not in said.reason


def test_a_hot_over_its_limits_says_that_auto_spill_is_off() -> None:
    said = suggest.spill("alice", [hot(1, 150)], LIMITS, 1, ["x"], auto_spill=False)
    assert "more than its limits" in said.reason
    assert "auto_spill is off" in said.reason


def test_where_all_of_hot_is_pinned_a_spill_is_no_help() -> None:
    facts = [hot(1, 95, pinned=True)]
    assert suggest.spill_sequences(facts, LIMITS, 0.9) == []
    assert "unpin some" in suggest.spill("alice", facts, LIMITS, 0, [], auto_spill=True).reason


def test_a_limit_of_nothing_is_used_up_by_anything() -> None:
    assert (suggest.share(0, 0), suggest.share(3, 0), suggest.share(3, 4)) == (0.0, 1.0, 0.75)


# Cold


def test_too_many_cold_memories_say_how_many_would_be_archived() -> None:
    said = suggest.prune("alice", 1200, 1000, 200, ["x"] * 200)
    assert "1,200 cold memories, 200 more than temperature.max_cold_items (1,000)" in said.reason
    assert "archive the 200" in said.reason
    assert len(said.ids) == 10


def test_too_many_critical_ones_can_not_be_pruned() -> None:
    assert "raise temperature.max_cold_items" in suggest.prune("alice", 3, 1, 0, []).reason


def test_what_is_recalled_repeatedly_is_to_be_promoted() -> None:
    said = suggest.recall("alice", [4, 2], ["x", "y"])
    assert said.reason.startswith("2 cold memories were recalled repeatedly, up to 4 times")
    assert "promote them" in said.reason
    assert "promote it" in suggest.recall("alice", [2], ["x"]).reason
