"""The JSON value that is kept beside a memory."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import InvalidInput, MemoryBank, TierMemError

MANUAL = {"sync": "manual"}
NESTED = {"a": [1, {"b": None, "ü": "ß"}], "z": {"pi": 3.14, "no": False}, "A": "x" * 20_000}
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_a_value_comes_back(value: object) -> None:
    with MemoryBank.ephemeral(storage=MANUAL) as bank:
        kept = bank.agent("alice").add("With a value", value=value)
        assert kept.value == value
        assert json.dumps(bank.agent("alice").get(kept.id).value) == json.dumps(
            json.loads(json.dumps(value, sort_keys=True))
        )


def test_a_value_lives_through_reopening_checkpoint_and_cold(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        memory = bank.agent("alice").add("With a value", value=NESTED)
        bank.agent("alice").update(memory.id, temperature="cold")
        bank.checkpoint(tmp_path / "then.ckpt")
        before = bank.state_hash()
    with MemoryBank.open(tmp_path / "bank") as bank:
        assert bank.agent("alice").get(memory.id).value == NESTED
        assert bank.state_hash() == before
    with MemoryBank.restore(tmp_path / "then.ckpt", tmp_path / "restored") as bank:
        assert bank.agent("alice").get(memory.id).value == NESTED


def test_a_value_takes_part_in_the_hash_and_in_no_search() -> None:
    hashes, scores = set(), set()
    for value in ({"a": 1}, {"a": 2}):
        with MemoryBank.ephemeral(storage=MANUAL) as bank:
            bank.agent("alice").add("Same text", value=value)
            hashes.add(bank.state_hash())
            (hit,) = bank.agent("alice").search("Same")
            scores.add(hit.score)
    assert (len(hashes), len(scores)) == (2, 1)


def test_an_update_keeps_the_value_or_replaces_it() -> None:
    with MemoryBank.ephemeral(storage=MANUAL) as bank:
        alice = bank.agent("alice")
        first = alice.add("One", metadata={"place": "bay"}, value={"n": [1]})
        second = alice.update(first.id, "Two")
        assert (second.value, second.metadata["place"]) == ({"n": [1]}, "bay")
        third = alice.update(second.id, "Three", metadata={"place": "hill"})
        assert third.value == {"n": [1]}
        assert alice.update(third.id, "Four", value={"n": [2]}).value == {"n": [2]}
        assert alice.history(first.id)[0].value == {"n": [1]}


def _deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({1: "a"}, "keys are text"),
        ({"a": {"b": [object()]}}, r"value\.a\.b\[0\] is not JSON"),
        (float("nan"), "is not JSON"),
        ({"a": float("inf")}, "is not JSON"),
        (1 << 2000, "is not JSON"),
        (_deep(65), "more than 64 deep"),
        (_deep(100_000), "more than 64 deep"),
        ("x" * (1 << 20), "over the limit"),
        ("a\0b", "NUL|zero|null"),
        ({"\ud800": 1}, "UTF-8|surrogate"),
        (b"bytes", "is not JSON"),
    ],
)
def test_what_is_no_value_is_refused_and_harms_nothing(value: object, said: str) -> None:
    with MemoryBank.ephemeral(storage=MANUAL) as bank:
        with pytest.raises(InvalidInput, match=said):
            bank.agent("alice").add("Text", value=value)
        assert bank.agents() == []


def test_the_deepest_and_the_largest_are_kept() -> None:
    with MemoryBank.ephemeral(storage=MANUAL) as bank:
        for value in (_deep(64), "x" * ((1 << 20) - 2), -(2**70)):
            assert bank.agent("alice").add("Text", value=value).value == value


@pytest.mark.parametrize("text", ['{"b":1,"a":2}', '{"a": 1}', "{", 5, "NaN", "[" * 100_000])
def test_metadata_takes_no_value_in_another_form(text: object) -> None:
    with MemoryBank.ephemeral(storage=MANUAL) as bank:
        with pytest.raises(TierMemError):
            bank.agent("alice").add("Text", metadata={"memory_value": text})  # type: ignore[dict-item]
        assert bank.agents() == []
