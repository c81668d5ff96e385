"""What memories of a session lend each other."""

import numpy as np
import pytest

from agents.rules.ranking import spread
from agents.rules.weights import Spread
from agents.storage.columns.sessions import Sessions

QUESTION = Spread(question=0.5, neighbours=0.0, session=0.0, asked=1.0, speaker=0.0)


def lent(scores: list[float], talk: list[tuple[str, str | None]], weights: Spread) -> "list[float]":
    """The scores of memories given as text and session."""
    sessions = Sessions()
    sessions.extend((text, session and {"session": session}) for text, session in talk)  # type: ignore[misc]
    places = sessions.places()
    assert places is not None
    result: list[float] = spread(np.array(scores), places, weights).tolist()
    return result


def test_a_question_lends_half_its_score_to_the_memory_after_it() -> None:
    talk = [("Where do you fish?", "a"), ("At the lake.", "a"), ("Nice.", "a")]
    asked, answer, after = lent([0.8, 0.1, 0.1], talk, QUESTION)
    assert answer == pytest.approx((0.1 + 0.5 * 0.8) / 1.25)
    assert after == pytest.approx(0.1 / 1.25)
    assert asked == pytest.approx(0.8 / 1.25)


def test_nothing_is_lent_to_another_session() -> None:
    talk = [("Where do you fish?", "a"), ("At the lake.", "b")]
    assert lent([0.8, 0.1], talk, QUESTION)[1] == pytest.approx(0.1 / 1.25)


def test_a_session_goes_on_after_memories_of_another() -> None:
    talk = [("Where do you fish?", "a"), ("Buy!", "b"), ("At the lake.", "a")]
    assert lent([0.8, 0.0, 0.1], talk, QUESTION)[2] == pytest.approx(0.5 / 1.25)


def test_a_memory_without_a_session_keeps_its_score() -> None:
    talk = [("Where do you fish?", "a"), ("At the lake.", "a"), ("A lone fact.", None)]
    assert lent([0.8, 0.1, 0.3], talk, Spread(0.5, 0.2, 0.8, 0.8, 0.0))[2] == 0.3


def test_where_the_context_matches_half_as_well_a_memory_keeps_its_score() -> None:
    weights = Spread(question=0.4, neighbours=0.2, session=0.0, asked=1.0, speaker=0.0)
    talk = [("So?", "a"), ("Well?", "a"), ("It is.", "a"), ("Yes.", "a")]
    assert lent([0.3, 0.3, 0.6, 0.3], talk, weights)[2] == pytest.approx(0.6)


def test_the_three_best_of_a_session_lift_all_of_it() -> None:
    weights = Spread(question=0.0, neighbours=0.0, session=0.8, asked=1.0, speaker=0.0)
    talk = [(f"line {number}", "a") for number in range(5)]
    last = lent([0.9, 0.6, 0.3, 0.0, 0.0], talk, weights)[4]
    assert last == pytest.approx(0.8 * 0.6 / 1.4)


def test_a_question_that_was_answered_keeps_less() -> None:
    weights = Spread(question=0.5, neighbours=0.0, session=0.0, asked=0.8, speaker=0.0)
    answered, *_ = lent([0.8, 0.1], [("Where?", "a"), ("Here.", "a")], weights)
    (unanswered,) = lent([0.8], [("Where?", "a")], weights)
    assert answered == pytest.approx(0.8 * unanswered)


@pytest.mark.parametrize("text", ["Where？", "أين؟", "Where? I wonder."])
def test_questions_are_told_in_other_scripts_and_near_the_end(text: str) -> None:
    assert lent([0.8, 0.1], [(text, "a"), ("Here.", "a")], QUESTION)[1] > 0.3


def test_scores_stay_within_one() -> None:
    talk = [("Why?", "a")] * 6
    assert max(lent([1.0] * 6, talk, Spread(1.0, 1.0, 1.0, 1.0, 0.0))) <= 1.0
