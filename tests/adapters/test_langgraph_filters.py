"""Which items a filter lets pass."""

from typing import Any

import pytest
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from agents import InvalidInput, MemoryBank
from agents.langgraph import TierMemStore

ANN = ("users", "ann")


@pytest.fixture
def store() -> Any:
    with MemoryBank.ephemeral() as bank:
        yield TierMemStore(bank)


def keys(items: Any) -> list[str]:
    return [item.key for item in items]


FILTERS = [
    ({"n": 1}, ["a"]),
    ({"n": {"$eq": 1}}, ["a"]),
    ({"n": {"$ne": 1}}, ["b", "c", "d"]),
    ({"n": {"$gt": 1}}, ["b"]),
    ({"n": {"$gte": 1, "$lt": 2.5}}, ["a"]),
    ({"n": {"$lte": float("inf")}}, ["a", "b"]),
    ({"t": {"$gt": "k"}}, ["c"]),
    ({"user.name": "ann"}, ["b"]),
    ({"user": {"name": "ann"}}, ["b"]),
    ({"user": {"age": {"$gte": 30}}}, ["b"]),
    ({"user.age": {"$gte": 30}, "n": 2.5}, ["b"]),
    ({"a.b": 7}, ["d"]),
    ({"list": [1, 2]}, ["c"]),
    ({"list": [1]}, []),
    ({"yes": True}, ["c"]),
    ({"yes": 1}, []),
    ({"yes": {"$gt": 0}}, []),
    ({"n": {"$gt": False}}, []),
    ({"missing": None, "t": "x"}, ["c"]),
    ({5: 1}, []),
    ({None: None, "n": 1}, ["a"]),
    ({"user": {5: 1}}, []),
    ({"user": {"$eq": {"name": "ann"}}}, []),
    ({"user": {"$eq": {"name": "ann", "age": 31}}}, ["b"]),
    ({"user": {"$eq": {"name": "ann", "age": 31.0}}}, ["b"]),
    ({"user": {"$eq": {"name": "ann", "other": None}}}, []),
    ({"user": {"$eq": {}}}, []),
    ({"user": {"$ne": {"name": "ann"}}}, ["a", "b", "c", "d"]),
    ({"user": {"$ne": {"name": "ann", "age": 31}}}, ["a", "c", "d"]),
    ({"user": {"$eq": {"$gt": 1}}}, []),
    ({"list": {"$eq": [1, 2]}}, ["c"]),
    ({"list": {"$eq": (1, 2)}}, ["c"]),
    ({"list": {"$eq": [1, True]}}, []),
    ({"list": {"$ne": [1]}}, ["a", "b", "c", "d"]),
]


@pytest.mark.parametrize(("wanted", "found"), FILTERS)
@pytest.mark.parametrize("query", [None, "anything"])
def test_filters(store: TierMemStore, query: str | None, wanted: Any, found: list[str]) -> None:
    store.put(ANN, "a", {"n": 1})
    store.put(ANN, "b", {"n": 2.5, "user": {"name": "ann", "age": 31}})
    store.put(ANN, "c", {"n": "1", "t": "x", "list": [1, 2], "yes": True})
    store.put(ANN, "d", {"a.b": 7, "a": {"b": 8}})
    assert sorted(keys(store.search((), query=query, filter=wanted))) == found


def test_a_filter_finds_what_is_far_from_the_query() -> None:
    with MemoryBank.ephemeral(preset="vector") as bank:
        store = TierMemStore(bank, fields=["text"])
        puts = [PutOp(ANN, f"{n}", {"text": f"tea {n}", "n": n}) for n in range(200)]
        store.batch([*puts, PutOp(ANN, "far", {"text": "granite", "n": -1})])
        assert keys(store.search(ANN, query="tea 7", filter={"n": {"$lt": 0}})) == ["far"]
        bank.commit()
        uses = {each.key: each.access_count for each in bank.agent("users.ann").all()}
        assert sum(uses.values()) == uses["far"] <= 1


NESTED = [
    {}, {"b": 1}, {"b": 1, "c": 2}, {"b": {"c": 2}}, {"b": [1]}, {"b": None}, [], [1], [{"b": 1}],
    [{"b": 1, "c": 2}], [[{"b": 1, "c": 2}]], None, 0, "x",
]  # fmt: skip


@pytest.mark.parametrize("operator", [None, "$eq", "$ne"])
@pytest.mark.parametrize("wanted", NESTED)
def test_nested_values_are_the_same_as_in_langgraphs_own_store(
    store: TierMemStore, operator: str | None, wanted: Any
) -> None:
    theirs = InMemoryStore()
    for own in (store, theirs):
        own.batch([PutOp(ANN, str(n), {"a": value}) for n, value in enumerate(NESTED)])
        own.put(ANN, "none", {"z": 1})
    asked = {"a": wanted if operator is None else {operator: wanted}}
    expected = keys(theirs.search(ANN, filter=asked, limit=99))
    assert sorted(keys(store.search(ANN, filter=asked, limit=99))) == sorted(expected)


@pytest.mark.parametrize("wrong", [{"$like": 1}, {"$eq": 1, "b": 1}, {"$eq": 1, 5: 1}])
def test_what_is_no_operator_is_refused(store: TierMemStore, wrong: Any) -> None:
    for nested in ({"a": wrong}, {"a": {"b": wrong}}):
        with pytest.raises(InvalidInput, match="no operator"):
            store.search(ANN, filter=nested)
    assert store.search(ANN, filter={"a": {"$eq": wrong}}) == []
