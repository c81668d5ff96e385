"""Metadata of ``tiermem.mem0`` that is too long to stay flat: calls see all of it."""

import json
from typing import Any

import pytest
from mem0_calls import ANN, add, texts

from tiermem import InvalidInput
from tiermem.mem0 import Memory
from tiermem.mem0.payloads import kept

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

MANY: dict[str, Any] = {f"k{number:04}": number % 10 for number in range(1500)}
"""Short values that are too many."""


def found(memory: Memory, **filters: Any) -> list[str]:
    """What get_all and search find, which is the same."""
    listed = texts(memory.get_all(filters={**ANN, **filters}))
    assert sorted(texts(memory.search("tea", filters={**ANN, **filters}))) == sorted(listed)
    return listed


def test_filters_see_what_is_kept_beside_the_metadata() -> None:
    memory = Memory()
    own = {**MANY, "big": 2**70, "long": "m" * 13_000, "url": "u" * 900, "nested": {"a": 1}}
    add(memory, "tea", metadata=own)
    add(memory, "tea without")
    for name in ("k0000", "k0007", "k0777", "k1499"):
        assert found(memory, **{name: own[name]}) == ["tea"]
        assert found(memory, **{name: {"ne": own[name]}}) == ["tea without"]
        assert found(memory, **{name: {"gte": own[name]}}) == ["tea"]
    for filters, expected in (
        ({"big": {"gt": 5}}, ["tea"]),
        ({"big": 2**70}, ["tea"]),
        ({"big": {"in": [1, 2**70]}}, ["tea"]),
        ({"long": "m" * 13_000}, ["tea"]),
        ({"long": {"gt": "a"}}, ["tea"]),
        ({"url": own["url"], "k0003": 3}, ["tea"]),
        ({"nested": {"ne": 1}}, ["tea", "tea without"]),
        ({"nested": {"gt": 1}}, []),
        ({"NOT": [{"k1499": 9}]}, ["tea without"]),
    ):
        assert found(memory, **filters) == expected, filters


def test_ids_and_dates_are_seen_beside_long_metadata() -> None:
    memory = Memory()
    ids = {"agent_id": "a" * 100, "run_id": "r" * 100}
    first = add(memory, "tea", metadata=MANY, **ANN, **ids)
    add(memory, "old tea", metadata=MANY, expiration_date="2020-01-01")
    assert found(memory, **ids) == ["tea"]
    assert texts(memory.get_all(filters={"run_id": ids["run_id"]})) == ["tea"]
    assert texts(memory.search("tea", filters={"agent_id": ids["agent_id"]})) == ["tea"]
    assert found(memory) == ["tea"]
    row = memory.get(first) or {}
    assert (row["agent_id"], row["role"]) == (ids["agent_id"], "user")
    assert row["metadata"] == MANY
    memory.delete_all(run_id=ids["run_id"])
    assert memory.get(first) is None


def test_ids_that_are_too_long_themselves_are_seen() -> None:
    memory = Memory()
    long = "r" * 13_000
    add(memory, "tea", **ANN, run_id=long)
    assert found(memory, run_id=long) == ["tea"]
    assert found(memory, run_id=long[:-1]) == []


def test_get_all_gives_the_oldest_first_whatever_metadata_is_long() -> None:
    memory = Memory()
    for year in (2022, 2020, 2021):
        add(memory, f"tea {year}", metadata={**MANY, "created_at": f"{year}-01-01T00:00:00+00:00"})
    assert found(memory) == ["tea 2020", "tea 2021", "tea 2022"]
    rows = [{"created_at": "2020"}, {"created_at": "2019", "note": "x" * 13_000}]
    flat = [kept(row).metadata for row in rows]
    assert [list(each.values()) for each in flat] == [["2020"], ["2019"]]


def test_no_more_is_kept_beside_than_must_be() -> None:
    own: dict[str, Any] = {f"k{number}": "ä" * 10 for number in range(1000)} | {"long": "y" * 500}
    flat, beside, _ = kept(own)
    assert {**flat, **beside} == own
    size = len(json.dumps(flat, ensure_ascii=False).encode())
    assert 12_000 - 40 < size <= 12_000
    assert "long" in beside


@pytest.mark.parametrize("metadata", [{"a": "\ud800"}, {"\ud800": 1}, {"a": ["\ud800"]}])
def test_a_lone_surrogate_in_metadata_is_refused(metadata: Any) -> None:
    memory = Memory()
    for more in ({}, {"long": "x" * 13_000}):
        with pytest.raises(InvalidInput, match="surrogate"):
            add(memory, "tea", metadata={**metadata, **more})
    assert memory.bank.agents() == []


def test_a_value_that_is_no_mapping_breaks_no_call() -> None:
    memory = Memory()
    agent = memory.bank.agent("ann")
    first = agent.add("tea", value=[1, 2]).id
    agent.add("black tea", value="text", metadata={"day": 3})
    assert found(memory) == ["tea", "black tea"]
    assert found(memory, day=3) == ["black tea"]
    assert texts(memory.get_all(filters={"user_id": "*"})) == ["tea", "black tea"]
    memory.update(first, metadata={"day": 4})
    assert found(memory, day=4) == ["tea"]
    assert agent.all()[-1].value == [1, 2]
