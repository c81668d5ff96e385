"""Conditions on metadata: what they say, and what is refused."""

from typing import Any

import pytest

from agents import InvalidInput
from agents.memory.filters import none_of, parse_condition

BAY = {"place": "bay", "day": 3, "ok": True, "none": None, "share": 0.5, "a.b": "x"}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"metadata.place": "bay"}, True),
        ({"metadata.place": "Bay"}, False),
        ({"metadata.a.b": "x"}, True),
        ({"metadata.day": 3.0}, True),
        ({"metadata.day": {"$eq": 3}}, True),
        ({"metadata.day": True}, False),
        ({"metadata.ok": 1}, False),
        ({"metadata.ok": True}, True),
        ({"metadata.day": "3"}, False),
        ({"metadata.none": None}, True),
        ({"metadata.gone": None}, False),
        ({"metadata.place": {"$ne": "bay"}}, False),
        ({"metadata.gone": {"$ne": "bay"}}, True),
        ({"metadata.place": {"$in": ["sea", "bay"]}}, True),
        ({"metadata.place": {"$in": []}}, False),
        ({"metadata.place": {"$nin": []}}, True),
        ({"metadata.place": {"$nin": ["bay"]}}, False),
        ({"metadata.gone": {"$nin": ["bay"]}}, True),
        ({"metadata.day": {"$gt": 2, "$lt": 4}}, True),
        ({"metadata.day": {"$gt": 3}}, False),
        ({"metadata.day": {"$gte": 3}}, True),
        ({"metadata.day": {"$lte": 2.9}}, False),
        ({"metadata.share": {"$lt": 1}}, True),
        ({"metadata.place": {"$gt": "a", "$lt": "c"}}, True),
        ({"metadata.place": {"$gt": 2}}, False),
        ({"metadata.day": {"$gt": "2"}}, False),
        ({"metadata.ok": {"$gt": 0}}, False),
        ({"metadata.gone": {"$lt": 9}}, False),
        ({"metadata.none": {"$exists": True}}, True),
        ({"metadata.gone": {"$exists": True}}, False),
        ({"metadata.gone": {"$exists": False}}, True),
        ({"metadata.place": "bay", "metadata.day": 4}, False),
        ({"$and": [{"metadata.place": "bay"}, {"metadata.day": 3}]}, True),
        ({"$or": [{"metadata.place": "sea"}, {"metadata.day": 3}]}, True),
        ({"$or": [{"metadata.place": "sea"}, {"metadata.day": 4}]}, False),
        ({"$not": {"metadata.place": "bay", "metadata.day": 4}}, True),
        ({"$not": {"$or": [{"metadata.place": "sea"}, {"metadata.day": 3}]}}, False),
        ({"$not": {"metadata.day": {"$gt": 5}}, "metadata.ok": True}, True),
    ],
    ids=repr,
)
def test_what_a_condition_says(filters: dict[str, Any], expected: bool) -> None:
    condition = parse_condition(filters)
    assert condition is not None
    assert condition.matches(BAY) is expected


def nested(depth: int) -> dict[str, Any]:
    filters: dict[str, Any] = {"metadata.place": "bay"}
    for _ in range(depth):
        filters = {"$not": filters}
    return filters


@pytest.mark.parametrize(
    ("filters", "named"),
    [
        ({"place": "bay"}, "use metadata.place"),
        ({"tier": 0}, "argument"),
        ({"metadata.": 1}, "metadata"),
        ({"": 1}, "metadata"),
        ({5: 1}, "5"),
        ({"$nor": []}, r"\$nor"),
        ({"metadata.place": {"$near": 1}}, r"metadata.place.*\$near"),
        ({"metadata.place": {"eq": 1}}, r"metadata.place.*'eq'"),
        ({"metadata.place": {}}, "metadata.place"),
        ({"metadata.place": ["bay"]}, "metadata.place"),
        ({"metadata.place": object()}, "metadata.place"),
        ({"metadata.day": {"$gt": True}}, "metadata.day"),
        ({"metadata.day": {"$gt": None}}, "metadata.day"),
        ({"metadata.day": {"$gt": [3]}}, "metadata.day"),
        ({"metadata.day": {"$lt": float("nan")}}, "metadata.day"),
        ({"metadata.day": float("inf")}, "metadata.day"),
        ({"metadata.day": {"$in": 3}}, "metadata.day"),
        ({"metadata.day": {"$in": "abc"}}, "metadata.day"),
        ({"metadata.day": {"$in": [[1]]}}, "metadata.day"),
        ({"metadata.day": {"$in": [{}]}}, "metadata.day"),
        ({"metadata.day": {"$in": list(range(1001))}}, "1000"),
        ({"metadata.day": {"$exists": 1}}, "metadata.day"),
        ({"$and": {}}, r"\$and"),
        ({"$or": []}, r"\$or"),
        ({"$or": ["metadata.place"]}, r"\$or"),
        ({"$or": [{}]}, r"\$or"),
        ({"$not": [{"metadata.day": 3}]}, r"\$not"),
        ({"$and": [{"metadata.day": n} for n in range(101)]}, "100"),
        ({f"metadata.{n}": 1 for n in range(101)}, "100"),
        (nested(9), "deep"),
        (nested(500), "deep"),
        ("metadata.place=bay", "mapping"),
        ([{"metadata.place": "bay"}], "mapping"),
        (7, "mapping"),
        ({"metadata.day": {"$gt": 10**5000, "$lt": [10**5000]}}, "metadata.day"),
    ],
    ids=lambda value: repr(value)[:40] if not isinstance(value, dict) else str(value.keys())[:40],
)
def test_what_is_refused(filters: object, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        parse_condition(filters)


def test_an_empty_mapping_is_no_condition() -> None:
    assert parse_condition({}) is None


def test_none_of_any_number_of_values() -> None:
    others = none_of("speaker", [f"agent_{number}" for number in range(2000)])
    assert not others.matches({"speaker": "agent_1999"})
    assert others.matches({"speaker": "agent_2000"})
    assert others.matches({})
