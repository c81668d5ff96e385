"""Metadata that memories share: checked once, kept once, and never another bank's."""

from typing import Any

import pytest

from agents import InvalidMetadata
from agents.memory.metadata import SharedMetadata, check_metadata
from banks import OpenBank

GIVEN: list[Any] = [
    None,
    {},
    {"a": 1},
    {"a": True},
    {"a": 1.0},
    {"a": -0.0},
    {"a": 0.0},
    {"b": "x", "a": None},
    {"a": None, "b": "x"},
    {str(n): n for n in range(7)},
    {"a": "x" * 101},
]


def test_shared_metadata_is_what_is_checked_alone() -> None:
    shared = SharedMetadata()
    for given in [*GIVEN, *GIVEN]:
        alone, together = check_metadata(given), shared.check(given)
        assert (together is None) == (alone is None)
        if alone is not None and together is not None:
            assert list(together.items()) == list(alone.items())
            assert together.json == alone.json


@pytest.mark.parametrize("given", [{"id": 1}, {1: 2}, {"a": [1]}, {"a": 2**63}, {"$a": 1}, "text"])
def test_what_is_refused_alone_is_refused_again_and_again(given: Any) -> None:
    shared = SharedMetadata()
    with pytest.raises(InvalidMetadata) as alone:
        check_metadata(given)
    for _ in range(2):
        with pytest.raises(InvalidMetadata) as refused:
            shared.check(given)
        assert str(refused.value) == str(alone.value)


def test_equal_small_metadata_is_one_object_in_any_order() -> None:
    shared = SharedMetadata()
    first = shared.check({"b": "x", "a": 1})
    assert first is shared.check({"a": 1, "b": "x"})
    assert first is shared.keep({"a": 1, "b": "x"})
    assert first is not SharedMetadata().check({"a": 1, "b": "x"})


def test_what_is_equal_but_not_the_same_stays_apart() -> None:
    shared = SharedMetadata()
    texts = [shared.check({"a": value}) for value in (1, True, 1.0, 0, False, 0.0, -0.0)]
    assert [own.json for own in texts if own is not None] == [
        '{"a":1}', '{"a":true}', '{"a":1.0}', '{"a":0}', '{"a":false}', '{"a":0.0}', '{"a":-0.0}',
    ]  # fmt: skip


def test_a_bank_keeps_what_it_was_given(make_bank: OpenBank) -> None:
    alice = make_bank().agent("alice")
    added = [alice.add(f"note {n}", metadata={"a": value}) for n, value in enumerate((1, True, 1))]
    assert [type(alice.get(memory.id).metadata["a"]) for memory in added] == [int, bool, int]
