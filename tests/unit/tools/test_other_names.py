"""Arguments under the names that other clients give them."""

from typing import Any

import pytest

from agents import AgentMemory, tools
from agents.tools import OPERATIONS


@pytest.fixture
def alice(make_bank: Any) -> AgentMemory:
    memory: AgentMemory = make_bank().agent("alice")
    return memory


def done(memory: AgentMemory, operation: str, **arguments: Any) -> dict[str, Any]:
    outcome = tools.call(memory, operation, arguments)
    assert outcome.failure is None, outcome.failure
    assert outcome.result is not None
    return outcome.result


def refusal(memory: AgentMemory, operation: str, **arguments: Any) -> str:
    failure = tools.call(memory, operation, arguments).failure
    assert failure is not None
    assert failure.type == "InvalidInput"
    return failure.message


def test_session_id_and_type_are_session_and_kind(alice: AgentMemory) -> None:
    added = done(alice, "memory_add", content="tea <1 0>", sessionId="s1", type="preference")
    assert (added["metadata"], added["kind"]) == ({"session": "s1"}, "preference")
    found = done(alice, "memory_recall", query="<1 0>", type="preference", minRelevance=0.1)
    assert [each["id"] for each in found["results"]] == [added["id"]]
    assert done(alice, "memory_query", type="decision")["results"] == []


def test_one_server_serves_several_sessions_of_its_agent(alice: AgentMemory) -> None:
    for session in ("s1", "s2"):
        for temperature in ("warm", "cold"):
            text = f"{temperature} tea of {session} <1 0>"
            done(alice, "memory_add", content=text, sessionId=session, temperature=temperature)
    alice.add("tea of no session <1 0>")
    recalled = done(alice, "memory_recall", query="<1 0>", sessionId="s1", includeCold=True)
    texts = {each["content"] for each in recalled["results"]}
    assert texts == {"warm tea of s1 <1 0>", "cold tea of s1 <1 0>"}
    warm = done(alice, "memory_query", query="<1 0>", sessionId="s2", tier="warm")["results"]
    assert [each["content"] for each in warm] == ["warm tea of s2 <1 0>"]
    both = {"filters": {"metadata.session": "s1"}, "session": "s2"}
    assert done(alice, "memory_query", query="<1 0>", **both)["results"] == []
    assert len(done(alice, "memory_query", session="s2", temperature="cold")["results"]) == 1


def test_a_session_has_a_status_spills_and_an_end(alice: AgentMemory) -> None:
    for session in ("s1", "s2"):
        for n in range(2):
            text = f"tea {n} of {session}"
            done(alice, "memory_add", content=text, sessionId=session, temperature="hot")
    status = done(alice, "memory_status", sessionId="s1")
    assert (status["session"], status["temperatures"]["hot"]["items"]) == ("s1", 2)
    moved = done(alice, "memory_spill", sessionId="s1", count=100_000)["moved"]
    assert list(moved.values()) == ["cold", "cold"]
    assert done(alice, "memory_compact", sessionId="s2")["warm"] == 2
    assert done(alice, "memory_status")["temperatures"]["warm"]["items"] == 2
    assert "session" not in done(alice, "memory_status")


def test_include_cold_is_understood(alice: AgentMemory) -> None:
    alice.add("tea <1 0>", temperature="cold")
    assert done(alice, "memory_recall", query="<1 0>", includeCold=False)["results"] == []
    assert len(done(alice, "memory_recall", query="<1 0>", includeCold=True)["results"]) == 1


def test_auto_promote_is_understood(alice: AgentMemory) -> None:
    alice.add("tea <1 0>", temperature="cold")
    found = done(alice, "memory_recall", query="<1 0>", autoPromote=False)
    assert [each["temperature"] for each in found["results"]] == ["cold"]
    assert found["promoted"] == []


def test_a_temperature_in_the_place_of_a_tier_is_a_temperature(alice: AgentMemory) -> None:
    cold = alice.add("tea <1 0>", temperature="cold")
    alice.add("coffee <1 0>")
    found = done(alice, "memory_query", query="<1 0>", tier="cold", limit=10)["results"]
    assert [each["id"] for each in found] == [cold.id]
    both = done(alice, "memory_query", query="<1 0>", tier=["warm", "cold"])["results"]
    assert len(both) == 2
    assert done(alice, "memory_add", content="x", tier="hot")["temperature"] == "hot"
    assert done(alice, "memory_update", memoryId=cold.id, tier="warm")["temperature"] == "warm"


def test_a_limit_of_the_search_of_notes_is_understood(alice: AgentMemory) -> None:
    for text in ("a", "b", "c"):
        alice.add(f"{text} <1 0>")
    assert len(done(alice, "memory_search", query="<1 0>", limit=2)["results"]) == 2


def test_null_under_another_name_means_that_it_is_not_given(alice: AgentMemory) -> None:
    assert done(alice, "memory_add", content="x", sessionId=None)["metadata"] == {}


@pytest.mark.parametrize(
    ("operation", "arguments", "parts"),
    [
        ("store_memory", {"sessionId": "s"}, ["'sessionId'", "session is", "memory_add"]),
        ("store_memory", {"content": "x", "type": "fact"}, ["'type'", "kind is", "memory_add"]),
        (
            "memory_search",
            {"query": "x", "autoPromote": True},
            ["auto_promote is", "memory_recall"],
        ),
        ("memory_search", {"query": "x", "tier": "cold"}, ["temperature is", "memory_query"]),
        ("store_memory", {"content": "x", "tier": "cold"}, ["temperature is", "memory_add"]),
        ("memory_search", {"query": "x", "tier": "pinned"}, ["tier is", "memory_query"]),
    ],
)
def test_what_an_operation_does_not_take_is_told_by_its_name_here(
    alice: AgentMemory, operation: str, arguments: dict[str, Any], parts: list[str]
) -> None:
    message = refusal(alice, operation, **arguments)
    for part in parts:
        assert part in message
    assert "did you mean" not in message


@pytest.mark.parametrize(
    ("operation", "arguments", "wrong"),
    [
        ("store_memory", {"content": "x", "tier": "hot"}, "store_memory: tier 'hot'"),
        ("memory_tell", {"memory_id": "x", "to": ["bob"], "as_tier": "hot"}, "as_tier 'hot'"),
        ("memory_add", {"content": "x", "tier": "lukewarm"}, "memory_add: tier 'lukewarm'"),
        ("memory_query", {"tier": "lukewarm"}, "memory_query: tier 'lukewarm'"),
        ("memory_query", {"tier": ["pinned", "cold"]}, "memory_query: tier.1 'cold'"),
        ("memory_query", {"tier": 7}, "memory_query: tier 7"),
    ],
)
def test_what_is_no_tier_is_told_with_the_tiers_and_the_temperatures(
    alice: AgentMemory, operation: str, arguments: dict[str, Any], wrong: str
) -> None:
    message = tools.call(alice, operation, arguments, "tell").to_dict()["error"]["message"]
    assert f"{wrong} is not one of [" in message
    assert "'critical', 'important', 'normal', 'low']" in message
    assert "hot, warm and cold are temperatures" in message


@pytest.mark.parametrize("operation", ["store_memory", "memory_search"])
def test_a_refusal_names_no_argument_that_nobody_gave(alice: AgentMemory, operation: str) -> None:
    given = {"content": "x"} if operation == "store_memory" else {"query": "x"}
    message = refusal(alice, operation, **given, tier="hot")
    assert "no argument 'temperature'" not in message
    assert "tier" in message.split(";")[0]


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("memory_add", {"content": "x", "session": "a", "sessionId": "b"}),
        ("memory_add", {"content": "x", "sessionId": "a", "session_id": "a"}),
        ("memory_query", {"tier": "cold", "temperature": "warm"}),
        ("memory_search", {"query": "x", "limit": 1, "max_results": 2}),
    ],
)
def test_two_names_of_one_argument_are_refused(
    alice: AgentMemory, operation: str, arguments: dict[str, Any]
) -> None:
    assert "mean the same" in refusal(alice, operation, **arguments)
    assert alice.all() == []


def test_a_mixture_of_tiers_and_temperatures_is_refused(alice: AgentMemory) -> None:
    assert "cold" in refusal(alice, "memory_query", tier=["pinned", "cold"])


@pytest.mark.parametrize(
    "name", [name for name, each in OPERATIONS.items() if each.permission in ("read", "write")]
)
def test_no_name_reaches_another_agent(alice: AgentMemory, name: str) -> None:
    given = dict(OPERATIONS[name].example)
    for other in ("agent", "agentId", "agent_id", "userId", "user_id", "owner"):
        assert f"takes no argument '{other}'" in refusal(alice, name, **given, **{other: "bob"})


def test_a_mistyped_name_still_gets_the_nearest_one(alice: AgentMemory) -> None:
    assert "did you mean content?" in refusal(alice, "store_memory", contnet="x")
