"""Pruning: the least relevant cold memories are archived, critical and pinned ones never."""

import numpy as np

from agents.memory.tiers import Tier
from agents.rules.temperature import choose_prune


def chosen(
    relevances: list[float],
    most: int,
    tiers: list[Tier] | None = None,
    access_counts: list[int] | None = None,
) -> list[int]:
    """With the sequences 1, 2, 3, …"""
    count = len(relevances)
    return choose_prune(
        np.arange(1, count + 1),
        np.array(tiers or [Tier.NORMAL] * count, np.int8),
        np.array(relevances, np.float64),
        np.array(access_counts or [0] * count, np.int64),
        most,
    )


def test_up_to_the_most_nothing_is_archived() -> None:
    assert chosen([0.1, 0.2], most=2) == []
    assert chosen([0.1, 0.2], most=9) == []
    assert chosen([], most=0) == []


def test_the_least_relevant_goes_first() -> None:
    assert chosen([0.9, 0.1, 0.5], most=1) == [2, 3]


def test_among_equals_the_oldest_goes_first() -> None:
    assert chosen([0.5] * 40, most=37) == [1, 2, 3]


def test_among_equally_relevant_the_one_with_fewer_retrievals_goes_first() -> None:
    assert chosen([1.0, 1.0], most=1, access_counts=[70, 60]) == [2]
    assert chosen([0.6, 0.7], most=1, access_counts=[2, 1]) == [1]


def test_critical_and_pinned_stay_though_more_than_the_most_remain() -> None:
    tiers = [Tier.PINNED, Tier.CRITICAL, Tier.IMPORTANT, Tier.LOW]
    assert chosen([0.0, 0.0, 0.9, 0.8], most=3, tiers=tiers) == [4]
    assert chosen([0.0, 0.0, 0.9, 0.8], most=0, tiers=tiers) == [4, 3]


def test_what_is_chosen_are_plain_whole_numbers() -> None:
    assert [type(sequence) for sequence in chosen([0.1, 0.2], most=0)] == [int, int]
