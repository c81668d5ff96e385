"""Metadata of ``tiermem.mem0``: tiers, values of any shape, and filters on them."""

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest
from mem0_calls import ANN, add, texts

from tiermem import InvalidInput
from tiermem.mem0 import Memory

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


# Tiers


def test_a_tier_is_metadata() -> None:
    memory = Memory()
    first = add(memory, "never pay agent X", metadata={"tier": "pinned", "why": "scam"})
    add(memory, "tea is cheap")
    assert memory.bank.agent("ann").get(first).tier == 0
    assert texts(memory.search("tea", filters=ANN))[0] == "never pay agent X"
    assert texts(memory.get_all(filters={**ANN, "tier": "pinned"})) == ["never pay agent X"]
    assert texts(memory.search("tea", filters={**ANN, "tier": {"in": ["normal", 0]}})) == [
        "never pay agent X",
        "tea is cheap",
    ]
    assert texts(memory.search("tea", filters={**ANN, "tier": {"ne": "pinned"}})) == [
        "tea is cheap"
    ]


def test_a_tier_is_shown_where_it_was_given_or_is_not_normal() -> None:
    memory = Memory()
    first, second = add(memory, "tea", metadata={"tier": 1}), add(memory, "milk")
    assert (memory.get(first) or {})["metadata"] == {"tier": 1}
    assert (memory.get(second) or {})["metadata"] is None
    memory.bank.agent("ann").set_tier(first, "low")
    memory.update(second, metadata={"tier": "critical"})
    assert (memory.get(first) or {})["metadata"] == {"tier": "low"}
    assert (memory.get(second) or {})["metadata"] == {"tier": "critical"}
    assert [each.content for each in memory.bank.agent("ann").all("critical")] == ["milk"]


def test_a_tier_that_is_none_of_ours_is_plain_metadata() -> None:
    memory = Memory()
    first = add(memory, "tea", metadata={"tier": "gold"})
    assert (memory.get(first) or {})["metadata"] == {"tier": "gold"}
    assert memory.bank.agent("ann").get(first).tier == 3
    assert texts(memory.get_all(filters={**ANN, "tier": "gold"})) == ["tea"]


@pytest.mark.parametrize("before", ["pinned", "critical", "low", "normal", "gold"])
@pytest.mark.parametrize("tier", ["gold", None, 9, ["x"]])
def test_an_update_with_such_a_tier_is_what_an_add_is(before: str, tier: Any) -> None:
    memory = Memory()
    first = add(memory, "tea", metadata={"tier": before, "day": 1})
    memory.update(first, metadata={"tier": tier})
    assert (memory.get(first) or {})["metadata"] == {"tier": tier, "day": 1}
    assert [each.content for each in memory.bank.agent("ann").all("normal")] == ["tea"]
    memory.update(first, metadata={"day": 2})
    assert (memory.get(first) or {})["metadata"] == {"tier": tier, "day": 2}


# Values


def test_metadata_of_any_shape_and_name_comes_back() -> None:
    own = {
        "nested": {"a": [1, {"b": None}]},
        "kind": "mine",
        "session": "s1",
        "memory_key": "k",
        "mem0_created_at": "x",
        "$odd": 1,
        "": "empty",
        "big": 2**70,
        "long": "y" * 20_000,
        "none": None,
    }
    memory = Memory()
    first = add(memory, "tea", metadata=own)
    assert (memory.get(first) or {})["metadata"] == own
    memory.update(first, metadata={"nested": 1})
    assert (memory.get(first) or {})["metadata"] == {**own, "nested": 1}


def test_scalars_of_numpy_are_kept_plain_and_found() -> None:
    own = {"f": np.float64(2.5), "n": np.int64(3), "b": np.bool_(True), "s": np.str_("hill")}
    plain = {"f": 2.5, "n": 3, "b": True, "s": "hill"}
    memory = Memory()
    first = add(memory, "tea", metadata={**own, "tier": np.int64(1)})
    found = (memory.get(first) or {})["metadata"]
    assert found == {**plain, "tier": 1}
    assert [type(found[name]) for name in plain] == [float, int, bool, str]
    assert len(memory.bank.agent("ann").all("critical")) == 1
    for name in plain:
        for wanted in (plain[name], own[name], {"in": [own[name]]}, [own[name]], {"eq": own[name]}):
            assert texts(memory.get_all(filters={**ANN, name: wanted})) == ["tea"]
    memory.update(first, metadata={"n": np.float32(0.5)})
    assert texts(memory.get_all(filters={**ANN, "n": {"lte": np.float64(0.5)}})) == ["tea"]


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        np.float64("inf"),
        np.datetime64("2026-05-04"),
        datetime(2026, 5, 4, tzinfo=UTC),
        date(2026, 5, 4),
        {1, 2},
        b"x",
        object(),
    ],
)
def test_metadata_that_is_no_json_is_refused(value: Any) -> None:
    memory = Memory()
    for metadata in ({"a": value}, {"a": [1, {"b": value}]}):
        with pytest.raises(InvalidInput, match="JSON"):
            add(memory, "tea", metadata=metadata)
    assert memory.bank.agents() == []


def test_filters_see_nested_values_and_parts_of_texts() -> None:
    memory = Memory()
    add(memory, "one", metadata={"names": ["Ann", "Bob"], "title": "The Harbour"})
    add(memory, "two", metadata={"names": ["Carl"], "title": "a hill"})
    for filters, expected in (
        ({"names": {"contains": "Bob"}}, ["one"]),
        ({"title": {"icontains": "harbour"}}, ["one"]),
        ({"title": {"contains": "harbour"}}, []),
        ({"NOT": [{"title": {"icontains": "HILL"}}]}, ["one"]),
        ({"title": ["a hill", "x"]}, ["two"]),
        ({"OR": [{"names": {"contains": "Carl"}}, {"memory": "one"}]}, ["one", "two"]),
        ({"AND": [{"title": {"gt": "Z"}}, {"title": {"ne": "x"}}]}, ["two"]),
    ):
        assert texts(memory.get_all(filters={**ANN, **filters})) == expected
        assert sorted(texts(memory.search("one two", filters={**ANN, **filters}))) == expected
