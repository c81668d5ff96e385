"""The profile memorysync: the lines of MemorySync's page on tiers, as they are written."""

from collections.abc import Iterator
from typing import Any

import pytest

from agents import MemoryBank, tools
from agents.bank.agent_memory import AgentMemory
from agents.errors import InvalidInput
from agents.tools.checking import validator_of
from agents.tools.profiles import table_of

DAY = 1440
"""A day has so many minutes, and the profile's bank so many ticks."""


@pytest.fixture
def bank() -> Iterator[MemoryBank]:
    """A bank whose time stands still: minutes and dates are counted from 1970."""
    with MemoryBank.ephemeral(profile="memorysync", clock={"mode": "ticks"}) as bank:
        yield bank


@pytest.fixture
def ann(bank: MemoryBank) -> AgentMemory:
    return bank.agent("ann")


def added(memory: AgentMemory, text: str = "something", **arguments: object) -> dict[str, Any]:
    return memory.call("memory_add", text=text, **arguments)


def found(memory: AgentMemory, **arguments: object) -> list[str]:
    return [each["text"] for each in memory.call("memory_query", **arguments)["memories"]]


def refusal(memory: AgentMemory, operation: str, **arguments: object) -> str:
    failure = tools.call(memory, operation, arguments).failure
    assert failure is not None
    return failure.message


def test_a_row_has_the_keys_of_the_document(ann: AgentMemory) -> None:
    row = added(
        ann, "Budget approved", source="email", tags=["urgent", "budget"],
        metadata={"department": "finance"}, ttl_minutes=7 * DAY,
        project_id="p1", environment="production",
    )  # fmt: skip
    assert row == {
        "id": row["memory_id"], "memory_id": row["memory_id"], "text": "Budget approved",
        "tier": "hot", "retention_status": "active", "tags": ["budget", "urgent"],
        "source": "email", "project_id": "p1", "environment": "production",
        "created_at": "1970-01-01T00:00:00.000+00:00",
        "expires_at": "1970-01-08T00:00:00.000+00:00",
        "usage_count": 0, "decay_score": 1.0, "metadata": {"department": "finance"},
    }  # fmt: skip
    (again,) = ann.call("memory_query", query="Budget approved")["memories"]
    assert again.pop("score") == 1.0
    assert again == row
    assert ann.call("memory_get", memory_id=row["memory_id"])["memory"]["usage_count"] == 1


def test_what_is_not_said_is_null(ann: AgentMemory) -> None:
    row = added(ann)
    for name in ("source", "project_id", "environment", "expires_at"):
        assert row[name] is None
    table = table_of("memorysync")
    assert list(validator_of(table["memory_add"].result).iter_errors(row)) == []
    result = ann.call("memory_query")
    assert list(validator_of(table["memory_query"].result).iter_errors(result)) == []


@pytest.mark.parametrize(
    ("lifetime", "tier"),
    [
        ({}, "hot"),
        ({"ttl_minutes": 1}, "cold"),
        ({"ttl_minutes": DAY - 1}, "cold"),
        ({"ttl_minutes": DAY}, "warm"),
        ({"ttl_minutes": 7 * DAY}, "hot"),
        ({"expires_at": "1970-01-01T00:30:00Z"}, "cold"),
        ({"expires_at": "1970-01-04"}, "warm"),
        ({"expires_at": "2026-05-12T14:22:00+00:00"}, "hot"),
        ({"ttl_minutes": 5, "tier": "hot"}, "hot"),
    ],
)
def test_the_lifetime_says_the_first_tier(
    ann: AgentMemory, lifetime: dict[str, Any], tier: str
) -> None:
    assert added(ann, **lifetime)["tier"] == tier


def test_a_memory_is_gone_when_its_minutes_are_over(bank: MemoryBank, ann: AgentMemory) -> None:
    added(ann, "brief", ttl_minutes=5)
    added(ann, "until six", expires_at="1970-01-01T00:05:30Z")
    bank.pass_time(4)
    assert sorted(found(ann, tier="cold")) == ["brief", "until six"]
    bank.pass_time(5)
    assert found(ann, tier="cold") == ["until six"]  # a part of a minute counts as one
    bank.pass_time(6)
    assert found(ann, tier="cold") == []


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("1970-01-02T01:00:00+02:00", "1970-01-01T23:00:00.000+00:00"),
        ("1970-01-02T01:00:00", "1970-01-02T01:00:00.000+00:00"),
        ("1970-01-02T01:00:00.001Z", "1970-01-02T01:01:00.000+00:00"),
        ("19700102T010000Z", "1970-01-02T01:00:00.000+00:00"),
        ("9999-12-31T23:59:00Z", "9999-12-31T23:59:00.000+00:00"),
    ],
)
def test_a_date_is_the_first_minute_that_is_not_before_it(
    ann: AgentMemory, written: str, read: str
) -> None:
    assert added(ann, expires_at=written)["expires_at"] == read


def test_the_body_of_the_document_finds_what_is_cold(ann: AgentMemory) -> None:
    for tier in ("hot", "warm", "cold"):
        added(ann, f"last quarter goals, {tier}", tier=tier)
    body = {"query": "last quarter goals", "tier": "cold", "limit": 10}
    assert found(ann, **body) == ["last quarter goals, cold"]
    assert sorted(found(ann, query="last quarter goals, cold")) == [
        "last quarter goals, hot",
        "last quarter goals, warm",
    ]


def test_a_query_asks_for_project_environment_source_and_tags(ann: AgentMemory) -> None:
    for project in ("p1", "p2"):
        for source in ("email", "slack"):
            text = f"{project} by {source}"
            added(ann, text, source=source, project_id=project, tags=[source], environment="e")
    assert sorted(found(ann, query="by", project_id="p1")) == ["p1 by email", "p1 by slack"]
    assert found(ann, query="by", project_id="p1", source="email") == ["p1 by email"]
    assert found(ann, project_id="p2", tags="slack", environment="e") == ["p2 by slack"]
    assert found(ann, query="by", environment="staging") == []


def test_tier_and_retention_are_two_things(ann: AgentMemory) -> None:
    identifier = added(ann, tier="cold")["memory_id"]
    assert found(ann, tier="cold") == ["something"]
    for status in ("archived", "soft_deleted"):
        row = ann.call("memory_update", memory_id=identifier, retention_status=status)
        assert (row["tier"], row["retention_status"]) == ("cold", status)
        assert found(ann, tier=["hot", "warm", "cold"]) == []
        assert found(ann, retention_status=status) == ["something"]
    row = ann.call("memory_update", memory_id=identifier, retention_status="active", tier="warm")
    assert (row["tier"], row["memory_id"]) == ("warm", identifier)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ttl_minutes": 0}, "ttl_minutes 0 is less than the minimum of 1"),
        ({"ttl_minutes": "5"}, "ttl_minutes '5' is not of type 'integer'"),
        ({"ttl_minutes": 5, "expires_at": "1970-02-01"}, "expires_at and another argument mean"),
        ({"expires_at": "tomorrow"}, "expires_at 'tomorrow' is not a date; write it like 2026-05-"),
        ({"expires_at": "1970-01-01"}, "expires_at 1970-01-01 is over: it is 1970-01-01T00:00:00"),
        ({"expires_at": 5}, "expires_at 5 is not of type 'string'"),
        ({"tier": "pinned"}, "tier 'pinned' is not one of"),
        ({"tier": "frozen"}, "tier 'frozen' is not one of"),
        ({"ttl": 5}, "memory_add takes no argument 'ttl'; there are text, source, tags"),
        ({"source": "a", "metadata": {"source": "b"}}, "source and another argument mean the same"),
        ({"content": "x"}, "text and content mean the same"),
    ],
)
def test_what_is_wrong_is_said_with_the_names_of_the_document(
    ann: AgentMemory, arguments: dict[str, Any], message: str
) -> None:
    assert message in refusal(ann, "memory_add", text="x", **arguments)
    assert ann.count() == 0


def test_in_a_project_the_project_is_known_and_no_other_is_named(bank: MemoryBank) -> None:
    memory = bank.agent("ann", project="acme", environment="production")
    assert added(memory, "ours")["project_id"] == "acme"
    row = added(memory, "ours, too", project_id="acme", environment="production")
    assert (row["project_id"], row["environment"], row["metadata"]) == ("acme", "production", {})
    assert sorted(found(memory, project_id="acme")) == ["ours", "ours, too"]
    for operation in ("memory_add", "memory_query"):
        given = {"text": "x"} if operation == "memory_add" else {}
        for name, own in (("project_id", "acme"), ("environment", "production")):
            said = refusal(memory, operation, **given, **{name: "other"})
            assert f"{name} is {own} here, not 'other'" in said


def test_the_calls_of_python_take_the_names_of_the_document(bank: MemoryBank) -> None:
    ann: Any = bank.agent("ann")
    memory = ann.add("by mail", ttl_minutes=5, source="email", metadata={"x": 1}, tier="hot")
    assert (memory.expires_tick, dict(memory.metadata)) == (5, {"source": "email", "x": 1})
    assert [hit.memory for hit in ann.search("by mail", source="email", tier="hot")] == [memory]
    assert ann.search("by mail", source="slack") == []
    with pytest.raises(InvalidInput, match="expires_at and another argument mean the same"):
        ann.add("x", ttl_minutes=5, expires_at="1970-02-01")
    with pytest.raises(InvalidInput, match="ttl_minutes '5' is not a whole number"):
        ann.add("x", ttl_minutes="5")


def test_where_a_tick_is_longer_than_a_minute_minutes_are_rounded_up() -> None:
    with MemoryBank.ephemeral(
        profile="memorysync", clock={"mode": "ticks", "ticks_per_day": 24}
    ) as bank:
        for minutes, tick in ((1, 1), (60, 1), (61, 2)):
            row = added(bank.agent("ann"), ttl_minutes=minutes)
            assert row["expires_at"] == f"1970-01-01T{tick:02}:00:00.000+00:00"
