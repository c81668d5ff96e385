"""The scores of classic agents, against tables that were worked out by hand."""

import numpy as np
import pytest

from agents.rules.classics import Lives, by_age, forgetting, generative, retentions, scaled
from agents.rules.weights import Generative

PAPER = Generative(decay=0.995, recency=1.0, importance=1.0, relevance=1.0)


def lives(
    idle: list[float], recalls: list[float] | None = None, importance: list[float] | None = None
) -> Lives:
    size = len(idle)
    return Lives(
        np.array(idle, float),
        np.array(recalls or [0] * size, float),
        np.array(importance or [1] * size, float),
        np.arange(1.0, size + 1),
    )


def test_the_sum_of_the_generative_agents_is_that_of_the_table() -> None:
    # One tick is an hour; 0.995^100 = 0.605770 and 0.995^200 = 0.366958.
    #
    #   memory   idle  recency   scaled    importance  scaled    relevance  scaled
    #   bread       0  1         1         2           0         0.9        1
    #   scam      100  0.605770  0.377246  9           1         0.3        0
    #   harvest   200  0.366958  0         5           0.428571  0.6        0.5
    #
    # 0.377246 is (0.605770 - 0.366958) / (1 - 0.366958), and 0.428571 is (5 - 2) / (9 - 2).
    # The sums: 1 + 0 + 1 = 2, 0.377246 + 1 + 0 = 1.377246, 0 + 0.428571 + 0.5 = 0.928571.
    judged = generative(
        np.array([0.9, 0.3, 0.6]), lives([0, 100, 200], importance=[2, 9, 5]), PAPER, 24
    )
    assert judged.recency == pytest.approx([1.0, 0.377246, 0.0], abs=2e-6)
    assert judged.importance == pytest.approx([0.0, 1.0, 3 / 7])
    assert judged.score == pytest.approx([2 / 3, 1.377246 / 3, 0.928571 / 3], abs=1e-6)


def test_the_weights_of_the_original_code_turn_the_order_around() -> None:
    # With 0.5 × recency + 2 × importance + 3 × relevance: bread 0.5+0+3 = 3.5,
    # scam 0.188623+2+0 = 2.188623, harvest 0+0.857143+1.5 = 2.357143; all by 5.5.
    weights = Generative(decay=0.995, recency=0.5, importance=2.0, relevance=3.0)
    judged = generative(
        np.array([0.9, 0.3, 0.6]), lives([0, 100, 200], importance=[2, 9, 5]), weights, 24
    )
    assert judged.score * 5.5 == pytest.approx([3.5, 2.188623, 2.357143], abs=1e-5)


def test_an_hour_has_as_many_ticks_as_the_clock_says() -> None:
    relevance, importance = np.array([0.5, 0.2, 0.1]), [1.0, 2.0, 3.0]
    hours = generative(relevance, lives([0, 10, 20], importance=importance), PAPER, 24)
    minutes = generative(relevance, lives([0, 600, 1200], importance=importance), PAPER, 24 * 60)
    assert minutes.score.tolist() == hours.score.tolist()


def test_recency_still_tells_memories_apart_that_all_are_old() -> None:
    now = generative(np.zeros(3), lives([0, 24, 48]), PAPER, 24)
    much_later = generative(np.zeros(3), lives([90_000, 90_024, 90_048]), PAPER, 24)
    assert much_later.score.tolist() == now.score.tolist()


def test_what_the_search_does_not_see_does_not_stretch_the_scale() -> None:
    values = lives([0, 10, 20, 5000], importance=[3, 4, 5, 10])
    relevance = np.array([0.1, 0.2, 0.3, 0.9])
    seen = np.array([True, True, True, False])
    few = generative(relevance[:3], Lives(*[each[:3] for each in values]), PAPER, 24)
    many = generative(relevance, values, PAPER, 24, seen)
    assert many.score[:3].tolist() == few.score.tolist()
    assert many.score[3] <= 1.0


@pytest.mark.parametrize("size", [0, 1, 2])
def test_equal_values_are_in_the_middle_of_the_scale(size: int) -> None:
    assert scaled(np.full(size, 7.0)).tolist() == [0.5] * size
    judged = generative(np.full(size, 0.4), lives([3] * size), PAPER, 24)
    assert judged.score.tolist() == [0.5] * size


def test_nothing_seen_is_no_error() -> None:
    assert scaled(np.array([1.0, 2.0]), np.zeros(2, bool)).tolist() == [0.0, 0.0]
    judged = generative(np.array([0.1]), lives([4]), PAPER, 24, np.zeros(1, bool))
    assert judged.score.tolist() == [0.0]


def test_the_forgetting_curve_is_that_of_the_table() -> None:
    # A day has 10 ticks, R = exp(-t / S):
    #
    #   days   recalls   S   R                   relevance   product
    #   0      0         1   exp(0)    = 1       0.5         0.5
    #   1      0         1   exp(-1)   = 0.367879  1.0       0.367879
    #   1      1         2   exp(-1/2) = 0.606531  1.0       0.606531
    #   2      3         4   exp(-2/4) = 0.606531  0.5       0.303265
    #   30     0         1   exp(-30)  = 0 (1e-13) 1.0       0
    own = lives([0, 10, 10, 20, 300], recalls=[0, 0, 1, 3, 0])
    assert retentions(own, 10) == pytest.approx([1.0, 0.367879, 0.606531, 0.606531, 0.0], abs=1e-6)
    judged = forgetting(np.array([0.5, 1.0, 1.0, 0.5, 1.0]), own, 10)
    assert judged.score == pytest.approx([0.5, 0.367879, 0.606531, 0.303265, 0.0], abs=1e-6)


def test_the_newest_is_first_in_whatever_order_memories_come() -> None:
    own = lives([9, 9, 9, 9])._replace(number=np.array([3.0, 1.0, 40.0, 12.0]))
    assert by_age(own).score.tolist() == [0.5, 0.25, 1.0, 0.75]
    assert by_age(lives([])).score.tolist() == []


def test_a_score_is_the_same_alone_and_among_many() -> None:
    rng = np.random.default_rng(5)
    idle, importance = rng.integers(0, 5000, 1003), rng.integers(1, 11, 1003)
    recalls, relevance = rng.integers(0, 50, 1003), rng.random(1003)
    own = Lives(*[each.astype(float) for each in (idle, recalls, importance, np.arange(1003))])
    once = forgetting(relevance, own, 24).score
    one_by_one = [
        forgetting(relevance[at : at + 1], Lives(*[each[at : at + 1] for each in own]), 24).score[0]
        for at in range(1003)
    ]
    assert once.tolist() == one_by_one
    assert generative(relevance, own, PAPER, 24).score.max() <= 1.0
