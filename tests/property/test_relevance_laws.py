"""Laws of relevance: another use never lowers it, and arrays give the bits of single numbers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agents.rules.ranking import after_use, is_promoted, promotion, relevance, relevances
from agents.rules.ranking import relevance_rank as rank

scores = st.floats(0.0, 1.0)
uses = st.lists(st.one_of(scores, scores, st.sampled_from([0.0, 1.0])), max_size=70)


def record_of(scores: list[float]) -> float:
    record = 0.5
    for score in scores:
        record = after_use(record, score)
    return record


@given(uses, scores, st.booleans())
def test_another_use_never_lowers_it(before: list[float], score: float, promoted: bool) -> None:
    record, count = record_of(before), len(before)
    if promoted:
        record, count = after_use(record, promotion(record, count, (9, -0.5))), count + 1
    after = after_use(record, score)
    assert rank(after, count + 1) >= rank(record, count)
    assert 0.5 <= relevance(record, count) <= relevance(after, count + 1) <= 1.0


@given(uses.filter(bool))
def test_what_was_used_is_more_relevant_than_what_never_was(scores: list[float]) -> None:
    assert rank(record_of(scores), len(scores)) > rank(0.5, 0)
    assert relevance(record_of(scores), len(scores)) > relevance(0.5, 0) == 0.5


@given(uses, uses)
def test_a_better_score_makes_it_no_less_relevant(first: list[float], more: list[float]) -> None:
    worse = [*first, 0.25, *more]
    better = [*first, 0.75, *more]
    assert rank(record_of(better), len(better)) >= rank(record_of(worse), len(worse))


@given(uses, uses, st.integers(0, 5))
def test_a_promotion_makes_it_the_most_relevant_until_others_are_used_more(
    own: list[float], others: list[float], promotions: int
) -> None:
    other, count = record_of(others), len(others)
    for _ in range(promotions):
        other, count = after_use(other, promotion(other, count, (count, -0.5))), count + 1
    score = promotion(record_of(own), len(own), rank(other, count))
    promoted = after_use(record_of(own), score)
    assert is_promoted(promoted)
    assert rank(promoted, len(own) + 1) > rank(other, count)
    for _ in range(3):
        other, count = after_use(other, 1.0), count + 1
    assert rank(other, count) > rank(promoted, len(own) + 1) or len(own) >= len(others)


@given(st.lists(st.tuples(uses, scores), min_size=1, max_size=9))
def test_many_at_once_are_the_same_to_the_bit(each: list[tuple[list[float], float]]) -> None:
    records = np.array([record_of(own) + 2 * (len(own) % 3) for own, _ in each])
    counts = np.array([len(own) for own, _ in each])
    given = np.array([score for _, score in each])
    after = after_use(records, given).tolist()
    assert after == [
        after_use(*pair) for pair in zip(records.tolist(), given.tolist(), strict=True)
    ]
    pairs = zip(records.tolist(), counts.tolist(), strict=True)
    assert relevances(records, counts).tolist() == [relevance(*pair) for pair in pairs]
