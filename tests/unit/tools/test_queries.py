"""What goes with the query of memory_query only."""

from typing import Any

import pytest

from agents import AgentMemory, MemoryBank, tools


@pytest.fixture
def alice(bank: MemoryBank) -> AgentMemory:
    alice = bank.agent("alice")
    alice.add("north <1 0>")
    alice.add("south <1 3>")
    return alice


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"min_score": 0.9}, "min_score"),
        ({"min_score": 0.9, "query": " "}, "min_score"),
        ({"min_score": 0.9, "retention": "deleted"}, "min_score"),
        ({"include_groups": True}, "include_groups"),
        ({"include_groups": False, "include_superseded": True}, "include_superseded"),
    ],
)
def test_without_a_query_it_is_refused_by_its_name(
    alice: AgentMemory, arguments: dict[str, Any], name: str
) -> None:
    failure = tools.call(alice, "memory_query", arguments).failure
    assert failure is not None
    assert (failure.type, failure.message) == (
        "InvalidInput", f"{name} goes with a query; say what to search for",
    )  # fmt: skip


def test_what_asks_for_nothing_is_taken_without_a_query(alice: AgentMemory) -> None:
    given = {"min_score": 0, "include_groups": False, "include_superseded": False}
    result = tools.call(alice, "memory_query", given).result
    assert result is not None
    assert len(result["results"]) == 2


def test_a_query_has_a_least_score(alice: AgentMemory) -> None:
    result = tools.call(alice, "memory_query", {"query": "<1 0>", "min_score": 0.9}).result
    assert result is not None
    assert [each["content"] for each in result["results"]] == ["north <1 0>"]


@pytest.mark.parametrize(
    ("operation", "least"),
    [
        ("memory_query", "min_score"),
        ("memory_recall", "min_relevance"),
        ("memory_search", "min_score"),
    ],
)
def test_results_say_what_was_compared_with_the_least_score(operation: str, least: str) -> None:
    given = {"query": "gate", least: 0.9}
    with MemoryBank.ephemeral() as bank:
        alice = bank.agent("alice")
        alice.add("the gate was open all night and nobody came")
        result = tools.call(alice, operation, given).result
        assert result is not None
        (row,) = result["results"]
        assert row["match"] == 1.0 > row["score"]
        result = tools.call(alice, operation, {**given, least: 0}).result
        assert result is not None
        assert "match" not in result["results"][0]


def test_a_session_takes_no_level_of_the_filters(alice: AgentMemory) -> None:
    kept = alice.add("east <1 1>", metadata={"day": 3}, session="trip")
    filters: dict[str, Any] = {"metadata.day": 4}
    for _ in range(7):
        filters = {"$not": filters}
    given = {"session": "trip", "filters": filters}
    result = tools.call(alice, "memory_query", given).result
    assert result is not None
    assert [row["id"] for row in result["results"]] == [kept.id]
    both = {"session": "trip", "filters": {"metadata.session": "walk"}}
    result = tools.call(alice, "memory_query", both).result
    assert result is not None
    assert result["results"] == []


@pytest.mark.parametrize("session", [7, "7"])
def test_a_session_may_be_a_number(alice: AgentMemory, session: object) -> None:
    kept = alice.add("east <1 1>", session=session)
    alice.add("west <1 1>", session="07")
    result = tools.call(alice, "memory_query", {"session": "7"}).result
    assert result is not None
    assert [row["id"] for row in result["results"]] == [kept.id]
