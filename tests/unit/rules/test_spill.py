"""Spilling: the least relevant leaves hot first, pinned never, newcomers last."""

from agents.memory.tiers import Temperature
from agents.rules.temperature import HotFact, HotLimits, choose_spill, destination, least_relevant


def fact(
    sequence: int, relevance: float = 0.5, tokens: int = 10, created: int = 0, pinned: bool = False
) -> HotFact:
    return HotFact(sequence, tokens, relevance, created, 0, pinned)


def test_within_the_limits_nothing_leaves() -> None:
    assert choose_spill([fact(1), fact(2)], HotLimits(20, 2)) == []
    assert choose_spill([], HotLimits(0, 0)) == []


def test_the_least_relevant_leaves_first() -> None:
    hot = [fact(1, 0.9), fact(2, 0.1), fact(3, 0.5)]
    assert choose_spill(hot, HotLimits(10, 9)) == [2, 3]


def test_among_equally_relevant_the_first_created_leaves_then_the_lowest_sequence() -> None:
    hot = [fact(1, created=5), fact(3, created=2), fact(2, created=2)]
    assert choose_spill(hot, HotLimits(0, 0)) == [2, 3, 1]


def test_as_many_leave_as_the_number_asks() -> None:
    assert choose_spill([fact(1), fact(2), fact(3)], HotLimits(999, 2)) == [1]


def test_as_many_leave_as_the_tokens_ask() -> None:
    hot = [fact(1, tokens=1), fact(2, tokens=50), fact(3, tokens=50)]
    assert choose_spill(hot, HotLimits(60, 9)) == [1, 2]


def test_pinned_never_leaves_but_counts() -> None:
    hot = [fact(1, 0.0, pinned=True), fact(2, 0.9)]
    assert choose_spill(hot, HotLimits(999, 1)) == [2]
    assert choose_spill(hot, HotLimits(10, 9)) == [2]


def test_where_pinned_alone_exceed_the_limits_everything_else_leaves() -> None:
    hot = [fact(1, pinned=True), fact(2, pinned=True), fact(3), fact(4)]
    assert choose_spill(hot, HotLimits(5, 1)) == [3, 4]


def test_newcomers_leave_only_when_no_other_is_left() -> None:
    hot = [fact(1, 0.9), fact(2, 0.1), fact(3, 0.2)]
    assert choose_spill(hot, HotLimits(999, 2), newcomers={2, 3}) == [1]
    assert choose_spill(hot, HotLimits(999, 0), newcomers={2, 3}) == [1, 2, 3]


def test_the_least_relevant_are_given_in_the_order_in_which_they_would_leave() -> None:
    hot = [fact(1, 0.9), fact(2, 0.1), fact(3, 0.0, pinned=True), fact(4, 0.5)]
    assert least_relevant(hot, 2) == [2, 4]
    assert least_relevant(hot, 9) == [2, 4, 1]
    assert least_relevant(hot, 0) == []


def test_what_was_retrieved_often_enough_becomes_warm_the_rest_cold() -> None:
    assert [destination(count, 3) for count in (2, 3, 4)] == [
        Temperature.COLD,
        Temperature.WARM,
        Temperature.WARM,
    ]
