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


# Filters that the bank has no words for


def test_a_filter_for_normal_finds_no_tier_of_another_name() -> None:
    memory = Memory()
    for tier in ("gold", "normal", "low", None):
        add(memory, f"plan {tier}", metadata=None if tier is None else {"tier": tier})
    for filters, expected in (
        ({"tier": "normal"}, ["plan normal", "plan None"]),
        ({"tier": 3}, ["plan normal", "plan None"]),
        ({"tier": {"in": ["normal", "low"]}}, ["plan normal", "plan low", "plan None"]),
        ({"OR": [{"tier": "normal"}]}, ["plan normal", "plan None"]),
        ({"tier": "low"}, ["plan low"]),
        ({"tier": "gold"}, ["plan gold"]),
    ):
        assert texts(memory.get_all(filters={**ANN, **filters})) == expected
        found = texts(memory.search("plan", filters={**ANN, **filters}))
        assert sorted(found) == sorted(expected)


def nested(depth: int) -> dict[str, Any]:
    wanted: dict[str, Any] = {"doc": "d7"}
    for _ in range(depth):
        wanted = {"AND": [wanted, {"OR": [{"doc": "d7"}, {"doc": "d8"}]}]}
    return wanted


@pytest.mark.parametrize(
    "filters",
    [
        {"doc": {"in": [f"d{number}" for number in range(1001)]}},
        {"doc": {"nin": [f"e{number}" for number in range(5000)]}, "n": {"ne": 2}},
        {"OR": [{"doc": f"d{number}"} for number in range(101)]},
        {"$or": [{"doc": f"d{number}"} for number in range(2000)]},
        nested(6),
        nested(20),
    ],
)
def test_filters_may_be_long_and_deep(filters: dict[str, Any]) -> None:
    memory = Memory()
    add(memory, "tea", metadata={"doc": "d7", "n": 1}, run_id="r1", **ANN)
    add(memory, "old tea", metadata={"doc": "d7", "n": 1}, expiration_date="2020-01-01")
    add(memory, "other tea", metadata={"doc": "e7", "n": 2})
    assert texts(memory.get_all(filters={**ANN, **filters})) == ["tea"]
    assert texts(memory.search("tea", filters={**ANN, **filters})) == ["tea"]
    assert texts(memory.search("tea", filters={**ANN, "run_id": "r1", **filters})) == ["tea"]
    assert texts(memory.search("tea", filters={**ANN, "run_id": "r2", **filters})) == []


def test_a_filter_that_is_nested_without_end_is_refused() -> None:
    memory = Memory()
    add(memory, "tea", metadata={"doc": "d7"})
    with pytest.raises(InvalidInput, match="nested"):
        memory.get_all(filters={**ANN, **nested(1000)})
