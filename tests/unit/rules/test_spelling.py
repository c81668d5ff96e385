"""Slips and nicknames, by the rules alone."""

import random

import pytest

from agents.rules.spelling import is_of_name, may_be_nickname, slips, slips_allowed


@pytest.mark.parametrize(
    ("word", "other", "between"),
    [
        ("hotel", "hotel", 0),
        ("hotle", "hotel", 1),  # swapped with the next
        ("hotl", "hotel", 1),  # left out
        ("hottel", "hotel", 1),  # added
        ("hitel", "hotel", 1),  # another one
        ("hotle", "motel", 2),
        ("", "hotel", 3),
        ("tasting", "tart", 3),
    ],
)
def test_slips_are_counted_up_to_three(word: str, other: str, between: int) -> None:
    assert slips(word, other, 2) == slips(other, word, 2) == between


def test_slips_are_as_many_as_were_made_or_fewer() -> None:
    rng = random.Random(5)
    for _ in range(300):
        word = made = "".join(rng.choices("abcd", k=9))
        for _ in range(2):
            at = rng.randrange(len(made) - 1)
            made = (
                made[:at] + rng.choice(["", made[at] * 2, made[at : at + 2][::-1]]) + made[at + 1 :]
            )
        assert slips(word, made, 4) <= 4


def test_a_short_word_may_have_no_slip_and_a_long_one_two() -> None:
    allowed = [slips_allowed(word) for word in ("boat", "boats", "restaur", "restaurant")]
    assert allowed == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("word", "name", "expected"),
    [
        ("caro", "caroline", True),
        ("johnny", "john", True),
        ("jo", "joanna", True),
        ("j", "joanna", False),
        ("tom", "tim", False),
        ("line", "caroline", False),
    ],
)
def test_a_nickname_and_its_name_begin_alike(word: str, name: str, expected: bool) -> None:
    assert is_of_name(word, name) is expected


def test_months_and_days_are_no_nicknames() -> None:
    assert not any(map(may_be_nickname, ["May", "Jun", "Sun", "J", "R2"]))
    assert may_be_nickname("Mel")
