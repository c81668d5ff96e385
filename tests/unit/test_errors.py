"""What the errors say: what, why and what to do."""

import pickle
import re

import pytest

from agents import errors
from agents.errors import (
    BankLocked,
    BankNotFound,
    ChatFailed,
    InvalidTier,
    MemoryNotFound,
    TierFull,
    TierMemError,
)


def tree(kind: type[TierMemError]) -> list[type[TierMemError]]:
    return [kind, *(below for each in kind.__subclasses__() for below in tree(each))]


CLASSES = [kind for kind in tree(TierMemError) if kind.__module__ == errors.__name__]


def made(kind: type[TierMemError], hint: str = "") -> TierMemError:
    if kind is ChatFailed:
        return ChatFailed("Timeout", "no answer")
    if issubclass(kind, TierFull):
        return kind("it is full", tier=0, cap=3, hint=hint)
    if issubclass(kind, BankLocked):
        return kind("it is open", pid=7, hint=hint)
    return kind("it went wrong", hint=hint)


def test_a_hint_of_its_own_stands_after_the_message() -> None:
    error = BankNotFound("there is no bank in x", hint="make one with: tiermem init x")
    assert error.why == "there is no bank in x"
    assert error.hint == "make one with: tiermem init x"
    assert str(error) == "there is no bank in x; make one with: tiermem init x"


def test_what_is_true_of_the_whole_class_is_no_part_of_the_message() -> None:
    error = InvalidTier("'top' is not a tier")
    assert (error.why, str(error)) == ("'top' is not a tier", "'top' is not a tier")
    assert error.hint == InvalidTier.hint != ""


def test_an_error_without_a_message_says_nothing() -> None:
    error = TierMemError()
    assert (error.why, error.hint, str(error)) == ("", "", "")


def test_a_missing_memory_is_told_as_plainly_as_the_others() -> None:
    # A KeyError of Python's own shows its message in quotes.
    assert str(MemoryNotFound("alice has no memory 'x'")) == "alice has no memory 'x'"


def test_the_tree_in_the_docstring_names_every_error() -> None:
    named = re.findall(r"^[│├└─ ]*(\w+)(?: \(|   |$)", errors.__doc__ or "", re.MULTILINE)
    assert named == [kind.__name__ for kind in CLASSES]


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("hint", ["", "do something else"])
def test_pickling_keeps_what_it_says(kind: type[TierMemError], hint: str) -> None:
    error = made(kind, hint)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (again.why, again.hint, str(again)) == (error.why, error.hint, str(error))
    assert again.__dict__ == error.__dict__
    assert again.args == error.args


@pytest.mark.parametrize("kind", CLASSES)
def test_a_class_says_what_happened_and_what_to_do_in_a_short_line(
    kind: type[TierMemError],
) -> None:
    assert 0 < len(kind.what) <= 80
    for text in (kind.what, kind.hint):
        assert len(text) <= 100
        assert not text.endswith((".", "!"))
        assert text == text.strip()
        assert "\n" not in text
