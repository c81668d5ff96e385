"""What a status suggests, and by which numbers."""

from collections.abc import Sequence

import numpy as np
import pytest

from agents.memory.tiers import Tier
from agents.rules import suggestions as suggest
from agents.rules.spill import HotFact, HotLimits
from agents.rules.suggestions import Crowd

BOOSTS = (1.0, 0.3, 0.15, 0.0, -0.1)
LIMITS = HotLimits(100, 10)


def crowd(*rows: Sequence[float]) -> Crowd:
    """Rows of owner, created, entered, accesses, last access, tier and relevance."""
    owners, *numbers, relevance = np.array(rows, float).T.reshape(7, -1)
    whole = [column.astype(np.int64) for column in numbers]
    return Crowd(owners.astype(np.intp), *whole, relevance)


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


# Tiers


@pytest.mark.parametrize(
    ("entered", "relevance", "tier", "found"),
    [
        (0, 0.1, Tier.PINNED, [0]),
        (0, 0.2, Tier.PINNED, []),
        (1, 0.1, Tier.PINNED, []),
        (0, 0.1, Tier.CRITICAL, []),
    ],
    ids=["irrelevant", "relevant", "not for long", "not pinned"],
)
def test_pinned_for_long_and_not_relevant_is_to_be_unpinned(
    entered: int, relevance: float, tier: Tier, found: list[int]
) -> None:
    seen = crowd([0, 0, entered, 5, 30, tier, relevance])
    assert suggest.unpin_rows(seen, 1, tick=30, after=30, below=0.2).tolist() == found


def test_a_pin_that_searches_passed_over_is_to_be_unpinned() -> None:
    pin = [0, 0, 0, 0, -1, Tier.PINNED, 0.5]
    used, unused = [0, 0, 0, 1, 28, Tier.NORMAL, 0.5], [0, 0, 0, 0, -1, Tier.NORMAL, 0.5]
    assert suggest.unpin_rows(crowd(pin, used), 1, 30, 30, 0.2).tolist() == [0]
    assert suggest.unpin_rows(crowd(pin, unused), 1, 30, 30, 0.2).tolist() == []
    others = [1, *used[1:]]  # another agent's searches say nothing
    assert suggest.unpin_rows(crowd(pin, others), 2, 30, 30, 0.2).tolist() == []


def test_unpinning_says_how_long_and_how_irrelevant() -> None:
    said = suggest.unpin("alice", np.array([0.04, 0.1]), 30, ["x", "y"])
    assert "2 pinned memories were not relevant to any search for 30 ticks" in said.reason
    assert "0.04" in said.reason


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ([0, 0, 0, 0, -1, Tier.CRITICAL, 0.5], [0]),
        ([0, 0, 0, 3, 10, Tier.CRITICAL, 0.5], [0]),
        ([0, 0, 0, 3, 11, Tier.CRITICAL, 0.5], []),
        ([0, 11, 11, 0, -1, Tier.CRITICAL, 0.5], []),
        ([0, 0, 11, 0, -1, Tier.CRITICAL, 0.5], []),
        ([0, 0, 0, 0, -1, Tier.IMPORTANT, 0.5], []),
    ],
    ids=["never", "long ago", "lately", "new", "critical since lately", "not critical"],
)
def test_critical_and_not_accessed_for_long_is_stale(row: list[float], found: list[int]) -> None:
    assert suggest.stale_rows(crowd(row), tick=40, after=30).tolist() == found


def test_a_stale_memory_says_for_how_long() -> None:
    said = suggest.stale("alice", 1, 55, ["x"])
    assert said.reason.startswith("1 critical memory was not retrieved for up to 55 ticks")


# Ranking


def seen(scores: Sequence[float], *, owner: int = 0, tiers: Sequence[int] = (2, 3)) -> list[list]:  # type: ignore[type-arg]
    """Memories that one search each gave, with these scores."""
    return [
        [owner, 0, 0, 1, 1, tiers[place % len(tiers)], (0.5 + score) / 2]
        for place, score in enumerate(scores)
    ]


def test_boosts_further_apart_than_similarities_decide_alone() -> None:
    close = crowd(*seen(np.linspace(0.40, 0.50, 10).tolist()))
    (found,) = suggest.dominances(close, 1, BOOSTS)
    assert (found.upper, found.lower, found.gap) == (Tier.IMPORTANT, Tier.NORMAL, 0.15)
    assert found.spread == pytest.approx(0.10)
    said = suggest.boost("alice", found, ["x"])
    assert "important is boosted by 0.15 more than normal" in said.reason
    assert "0.10 apart" in said.reason
    assert "memory.tier_boosts" in said.reason


def test_similarities_further_apart_than_boosts_leave_them_alone() -> None:
    assert suggest.dominances(crowd(*seen(np.linspace(0.3, 0.5, 10).tolist())), 1, BOOSTS) == []


def test_few_retrievals_say_nothing_about_similarities() -> None:
    assert suggest.dominances(crowd(*seen([0.4] * 9)), 1, BOOSTS) == []
    assert len(suggest.dominances(crowd(*seen([0.4] * 10)), 1, BOOSTS)) == 1


def test_no_similarity_makes_up_for_a_boost_of_more_than_one() -> None:
    unused = crowd([0, 0, 0, 0, -1, 1, 0.5], [0, 0, 0, 0, -1, 3, 0.5])
    (found,) = suggest.dominances(unused, 1, (1.0, 1.5, 0.7, 0.0, 0.0))
    assert found.spread is None
    assert "never lie more than 1 apart" in suggest.boost("alice", found, []).reason
    between = crowd(*[[0, 0, 0, 0, -1, tier, 0.5] for tier in (1, 2, 3)])
    assert suggest.dominances(between, 1, (1.0, 1.5, 0.7, 0.0, 0.0)) == []


def test_tiers_without_memories_and_pinned_ones_do_not_count() -> None:
    alone = crowd(*seen([0.4] * 10, tiers=[3]), [0, 0, 0, 5, 1, Tier.PINNED, 0.5])
    assert suggest.dominances(alone, 1, BOOSTS) == []


def test_a_pair_of_tiers_is_named_once_for_all_agents() -> None:
    rows = [*seen([0.4] * 10), *seen([0.4, 0.45] * 5, owner=1), *seen([0.1, 0.9] * 5, owner=2)]
    (found,) = suggest.dominances(crowd(*rows), 3, BOOSTS)
    assert (found.owner, found.others) == (0, 1)
    assert "1 other agent)" in suggest.boost("alice", found, []).reason


def test_nobody_has_nothing_to_suggest() -> None:
    nobody = Crowd(np.empty(0, np.intp), *[np.empty(0, np.int64)] * 5, np.empty(0))
    assert suggest.dominances(nobody, 0, BOOSTS) == []
    assert suggest.unpin_rows(nobody, 0, 9, 1, 0.5).tolist() == []


# Duplicates


def test_each_memory_joins_the_group_of_the_oldest_that_it_is_near_to() -> None:
    near = np.eye(6, dtype=bool)
    for one, other in ((0, 2), (2, 5), (1, 4)):
        near[one, other] = near[other, one] = True
    assert suggest.groups_of(near) == [[0, 2, 5], [1, 4]]
    assert suggest.groups_of(np.eye(3, dtype=bool)) == []


def test_duplicates_say_how_many_and_what_to_do() -> None:
    said = suggest.duplicates("alice", 3, 0.98, 1, 50, ["x", "y", "z"])
    assert "3 memories are near-identical (similarity 0.98 or more): keep one" in said.reason
    assert "one of 4 such groups among the newest 50" in (
        suggest.duplicates("alice", 2, 0.98, 4, 50, ["x", "y"]).reason
    )
