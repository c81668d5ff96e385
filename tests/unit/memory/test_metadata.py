"""Metadata that memories share: checked once, kept once, and never another bank's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import InvalidMetadata, MemoryBank
from agents.memory.requests import SharedMetadata, check_metadata
from agents.simulation.kept_ticks import ticks_of
from banks import MakeBank

NUMPY: dict[str, Any] = {
    "whole": np.int64(-3), "byte": np.uint8(7), "share": np.float64(0.1), "half": np.float32(0.5),
    "yes": np.bool_(True), "no": np.bool_(False), "name": np.str_("Zoë"), "plain": 4,
}  # fmt: skip
PLAIN = {
    "whole": -3, "byte": 7, "share": 0.1, "half": 0.5, "yes": True, "no": False, "name": "Zoë",
    "plain": 4,
}  # fmt: skip

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


def test_a_bank_keeps_what_it_was_given(make_bank: MakeBank) -> None:
    alice = make_bank().agent("alice")
    added = [alice.add(f"note {n}", metadata={"a": value}) for n, value in enumerate((1, True, 1))]
    assert [type(alice.get(memory.id).metadata["a"]) for memory in added] == [int, bool, int]


@pytest.mark.parametrize("shared", [False, True])
def test_a_scalar_of_numpy_becomes_the_plain_value(shared: bool) -> None:
    check = SharedMetadata().check if shared else check_metadata
    for names in ([*NUMPY], ["whole"], ["name", "yes"]):
        given = {name: NUMPY[name] for name in names}
        kept, plain = check(given), check({name: PLAIN[name] for name in names})
        assert kept is not None
        assert plain is not None
        assert kept.json == plain.json
        assert [type(value) for value in kept.values()] == [type(own) for own in plain.values()]
        assert given == {name: NUMPY[name] for name in names}


@pytest.mark.parametrize(
    "value",
    [
        np.float64("nan"), np.float64("inf"), np.float32("-inf"), np.uint64(2**63), np.array([1]),
        np.array(1), np.complex128(1), np.datetime64("2026-01-01"), np.bytes_(b"x"),
        np.datetime64(1, "ns"), np.timedelta64(1, "ns"),
        np.longdouble(1), np.str_("a\0b"), np.str_("\ud800"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_plain_value_of_numpy_is_refused(value: Any) -> None:
    for check in (check_metadata, SharedMetadata().check):
        with pytest.raises(InvalidMetadata, match=r"metadata .*a"):
            check({"a": value})


def test_values_of_numpy_are_stored_as_the_same_bytes(tmp_path: Path) -> None:
    hashes = set()
    for name, given in (("numpy", NUMPY), ("plain", PLAIN)):
        with MemoryBank.open(tmp_path / name, storage={"sync": "manual"}) as bank:
            alice = bank.agent("alice")
            memory = alice.add("one", metadata=given)
            alice.add_many([("two", "low", given), ("three", None, {"day": given["whole"]})])
            alice.update(memory.id, "one more", metadata=given)
            alice.add("four", session=given["byte"], speaker=given["name"])
            alice.add("five", value={"all": [given]})
            alice.record_action("pay", {"to": [given], **given})
            before = bank.state_hash()
            hashes.add((before, ticks_of(bank).hash()))
        with MemoryBank.open(tmp_path / name) as bank:
            assert bank.state_hash() == before
            assert dict(bank.agent("alice").all()[0].metadata) == PLAIN
    assert len(hashes) == 1
