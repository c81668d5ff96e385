"""One score from the similarity of vectors and from words: known cases."""

from collections.abc import Sequence

import numpy as np
import pytest

from agents.rules.ranking import (
    Matches,
    keyword_scores,
    measure,
    weighted_sum,
    word_weights,
)


def one(value: float) -> "np.typing.NDArray[np.float64]":
    return np.array([value])


def matches(counts: list[list[int]], lengths: list[int]) -> Matches:
    """Of a table with a row for each term and a column for each memory."""
    table = np.array(counts)
    terms, memories = table.nonzero()
    own = table[terms, memories].astype(float)
    return Matches(terms, memories, own, np.array(lengths, float), len(counts))


def scores(counts: list[list[int]], lengths: list[int], common: Sequence[int] = ()) -> list[float]:
    found = matches(counts, lengths)
    by = measure(found, np.array([term in common for term in range(len(counts))]))
    result: list[float] = keyword_scores(by, found, 0.9, 0.4).tolist()
    return result


def test_a_vector_score_alone_counts_by_its_weight() -> None:
    assert weighted_sum(one(0.9), one(0.0), 0.7, 0.3)[0] == pytest.approx(0.63)


def test_a_keyword_score_alone_is_all_that_a_memory_without_a_vector_can_have() -> None:
    assert weighted_sum(one(0.0), one(1.0), 0.7, 0.3, np.array([False]))[0] == 1.0


def test_both_count_by_their_weights() -> None:
    assert weighted_sum(one(0.9), one(1.0), 0.7, 0.3)[0] == pytest.approx(0.93)


def test_weights_need_not_sum_to_one() -> None:
    assert weighted_sum(one(0.9), one(1.0), 0.07, 0.03)[0] == pytest.approx(0.93)


def test_an_average_memory_with_every_word_once_matches_fully() -> None:
    assert scores([[1, 0], [1, 0]], [10, 10]) == [1.0, 0.0]


def test_half_the_words_match_half() -> None:
    assert scores([[1, 0], [0, 1]], [10, 10]) == [0.5, 0.5]


def test_a_rare_word_says_more_than_a_frequent_one() -> None:
    common_only, rare_only, *_ = scores([[1, 0, 1, 1], [0, 1, 0, 0]], [10, 10, 10, 10])
    assert rare_only > common_only > 0.0


def test_a_long_memory_is_held_back_and_a_short_one_is_not_lifted_above_one() -> None:
    long, short = scores([[1, 1]], [30, 2])
    assert 0.0 < long < short <= 1.0


def test_a_word_that_no_memory_has_makes_the_others_say_less() -> None:
    with_it, _ = scores([[1, 0], [0, 0]], [10, 10])
    without, _ = scores([[1, 0]], [10, 10])
    assert with_it < without


def test_scores_are_rounded_so_that_logarithms_of_other_machines_agree() -> None:
    for score in scores([[1, 2, 0], [0, 1, 1]], [7, 9, 4]):
        assert score == pytest.approx(round(score, 6), abs=1e-15)


def test_words_that_are_everywhere_weigh_little_and_unheard_ones_most() -> None:
    everywhere, rare, unheard = word_weights(
        matches([[50, 60], [1, 0], [0, 0]], [9, 9]), 5000, 1e-3
    )
    assert everywhere < rare < unheard == 1024.0
    assert everywhere < 100


def test_with_a_few_memories_a_word_in_common_with_them_still_counts() -> None:
    (weight,) = word_weights(matches([[1]], [8]), 8, 1e-3)
    assert weight > 400


def test_a_word_such_as_the_says_little_even_where_it_is_rare() -> None:
    the_only, name_only = scores([[1, 0], [0, 1]], [10, 10], common=[0])
    assert the_only < name_only / 3
