"""The profile ctx-sys: the four tools, the tests and the examples of F8.2, as written there."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agents import MemoryBank, tools
from agents.config.load import load_settings

TOOLS = json.loads("""[
{"name": "memory_add", "description": "Add item to hot memory", "inputSchema": {
  "type": "object",
  "properties": {
    "sessionId": {"type": "string"},
    "content": {"type": "string"},
    "type": {"type": "string", "enum": ["message", "fact", "decision", "entity", "context"]}
  },
  "required": ["sessionId", "content", "type"]
}},
{"name": "memory_recall", "description": "Recall relevant items from cold storage", "inputSchema": {
  "type": "object",
  "properties": {
    "sessionId": {"type": "string"},
    "query": {"type": "string", "description": "What to search for"},
    "limit": {"type": "number", "default": 3},
    "autoPromote": {"type": "boolean", "default": true}
  },
  "required": ["sessionId", "query"]
}},
{"name": "memory_spill", "description": "Force spill hot memory to cold storage", "inputSchema": {
  "type": "object",
  "properties": {
    "sessionId": {"type": "string"},
    "count": {"type": "number", "description": "Number of items to spill"}
  },
  "required": ["sessionId"]
}},
{"name": "memory_status", "description": "Get memory tier status and suggestions", "inputSchema": {
  "type": "object",
  "properties": {"sessionId": {"type": "string"}},
  "required": ["sessionId"]
}}
]""")
CONFIG = """\
# ctx-sys.yaml
agent:
  memory:
    hotTokenLimit: 4000
    warmAccessThreshold: 3
    promoteThreshold: 0.85
    maxColdItems: 1000
    autoSpillEnabled: true
    autoPromoteEnabled: true
"""
ITEM = {
    "id", "sessionId", "content", "type", "tier", "tokens", "accessCount", "relevanceScore",
    "lastAccessedAt", "createdAt", "metadata",
}  # fmt: skip


class Manager:
    """The document's class, over the operations of the profile."""

    def __init__(self, **memory: object) -> None:
        config = {"agent": {"memory": memory}} if memory else None
        self.bank = MemoryBank.ephemeral(config, profile="ctx-sys", store=None)
        self._agent = self.bank.agent("assistant")

    def call(self, name: str, session: str, **arguments: Any) -> dict[str, Any]:
        return self._agent.call(name, sessionId=session, **arguments)

    def add(self, session: str, content: str, kind: str) -> dict[str, Any]:
        return self.call("memory_add", session, content=content, type=kind)

    def hot(self, session: str) -> list[str]:
        """The document's getHot: the newest first."""
        newest = self._agent.session(session).all(temperature="hot")[::-1]
        return [memory.content for memory in newest]


Manage = Callable[..., Manager]


@pytest.fixture
def manage() -> Iterator[Manage]:
    made: list[Manager] = []

    def manage(**memory: object) -> Manager:
        made.append(Manager(**memory))
        return made[-1]

    yield manage
    for each in made:
        each.bank.close()


def test_the_tools_are_the_documents_to_the_letter() -> None:
    made = [
        {"name": each["name"], "description": each["description"], "inputSchema": schema}
        for each in tools.anthropic_schemas(profile="ctx-sys")
        if (schema := each["input_schema"])
    ]
    assert json.dumps(made) == json.dumps(TOOLS)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool["name"])
def test_every_tool_needs_a_session(manage: Manage, tool: dict[str, Any]) -> None:
    given = {"content": "x", "type": "fact", "query": "x"}
    given = {
        name: value for name, value in given.items() if name in tool["inputSchema"]["properties"]
    }
    failure = tools.call(manage().bank.agent("a"), tool["name"], given).failure
    assert failure is not None
    assert "'sessionId' is a required property" in failure.message


def test_the_config_is_taken_as_written_and_is_the_default(tmp_path: Any) -> None:
    file = tmp_path / "ctx-sys.yaml"
    file.write_text(CONFIG)
    loaded = load_settings(file, overrides={"profile": "ctx-sys"})
    assert loaded == load_settings({"profile": "ctx-sys"})
    temperature = loaded.temperature
    assert (temperature.session_max_tokens, temperature.max_cold_items) == (4000, 1000)
    assert (temperature.warm_access_threshold, temperature.promote_threshold) == (4, 0.85)
    assert (temperature.auto_spill, temperature.auto_promote) == (True, True)


def test_a_new_item_is_hot_with_relevance_1_and_has_the_documents_keys(manage: Manage) -> None:
    item = manage().add("session-1", "The budget is $50K", "fact")
    assert item.keys() == ITEM
    assert item["lastAccessedAt"] == item["createdAt"]
    told = {key: item[key] for key in ("sessionId", "type", "tier", "accessCount", "metadata")}
    assert told == {
        "sessionId": "session-1", "type": "fact", "tier": "hot", "accessCount": 0, "metadata": {},
    }  # fmt: skip
    assert (item["relevanceScore"], item["tokens"]) == (1.0, 6)


def test_a_recall_takes_the_mean_of_the_relevance_and_of_its_score(manage: Manage) -> None:
    manager = manage()
    manager.add("s", "The budget is $50K and everybody agreed to it after long talks", "fact")
    manager.call("memory_spill", "s")
    (item,) = manager.call("memory_recall", "s", query="$50K", autoPromote=False)["items"]
    assert (item["tier"], item["accessCount"]) == ("cold", 1)
    assert 0.5 < item["relevanceScore"] < 1.0


def test_a_spill_takes_four_the_oldest_first_and_says_where_they_went(manage: Manage) -> None:
    manager = manage()
    ids = [manager.add("s", f"Message {number}", "message")["id"] for number in range(6)]
    manager.add("other", "Message", "message")
    assert manager.call("memory_spill", "s") == {
        "spilledCount": 4, "spilledIds": ids[:4], "targetTier": "cold",
    }  # fmt: skip
    assert manager.call("memory_spill", "s", count=1)["spilledIds"] == [ids[4]]
    assert manager.hot("other") == ["Message"]


@pytest.mark.parametrize(("accesses", "tier"), [(3, "cold"), (4, "warm")])
def test_more_than_three_accesses_spill_to_warm(manage: Manage, accesses: int, tier: str) -> None:
    manager = manage()
    manager.add("s", "Important fact", "fact")
    manager.call("memory_spill", "s")
    for number in range(1, accesses + 1):
        is_last = number == accesses
        manager.call("memory_recall", "s", query="important fact", autoPromote=is_last)
    assert manager.hot("s") == ["Important fact"]
    assert manager.call("memory_spill", "s")["targetTier"] == tier


def test_a_recall_is_in_cold_storage_of_its_session_alone(manage: Manage) -> None:
    manager = manage()
    manager.add("session-1", "The budget is $50K", "fact")
    assert manager.call("memory_recall", "session-1", query="budget")["items"] == []
    manager.call("memory_spill", "session-1")
    assert manager.call("memory_recall", "session-2", query="budget")["items"] == []
    found = manager.call("memory_recall", "session-1", query="budget")
    (item,) = found["items"]
    assert found["promoted"] == [item["id"]] == list(found["relevanceScores"])
    assert found["relevanceScores"][item["id"]] >= 0.85
    assert (item["tier"], item["relevanceScore"]) == ("hot", 1.0)


# The document's three tests; its limit of 4,000 tokens would hold the first test's 20 messages


def test_it_should_auto_spill_when_hot_memory_exceeds_limit(manage: Manage) -> None:
    manager = manage(hotTokenLimit=100)
    for i in range(20):
        manager.add("session-1", f"Message {i} with some content", "message")
    status = manager.call("memory_status", "session-1")
    assert status["hot"]["tokens"] <= status["hot"]["limit"]
    assert status["cold"]["items"] > 0


def test_it_should_recall_from_cold_storage(manage: Manage) -> None:
    manager = manage()
    manager.add("session-1", "The budget is $50K", "fact")
    manager.call("memory_spill", "session-1")
    result = manager.call("memory_recall", "session-1", query="what was the budget?")
    assert "$50K" in result["items"][0]["content"]


def test_it_should_promote_frequently_accessed_items(manage: Manage) -> None:
    manager = manage()
    manager.add("session-1", "Important fact", "fact")
    manager.call("memory_spill", "session-1")
    for _ in range(5):
        manager.call("memory_recall", "session-1", query="important fact")
    assert "Important fact" in manager.hot("session-1")


# The document's examples


def turn(number: int, tokens: int, said: str) -> str:
    """A turn whose line in a context takes these tokens, of four characters each."""
    text = f"Turn {number}: {said} "
    return (text + "We go on with the plan for the proposal. " * 40)[: 4 * tokens - 6] + "end"


def test_example_1_turn_2_comes_back_when_it_is_asked_for(manage: Manage) -> None:
    manager = manage(hotTokenLimit=1200)
    tokens: Callable[[int], int] = {1: 150, 2: 250}.get  # type: ignore[assignment]

    def say(number: int, said: str) -> None:
        text = turn(number, tokens(number) or 200, said)
        assert manager.add("s", text, "message")["tokens"] == (tokens(number) or 200)

    def hot_turns() -> list[int]:
        return [int(text.split()[1].rstrip(":")) for text in manager.hot("s")][::-1]

    said = {1: "Hello.", 2: "The client gave us a $50K budget for the first year."}
    for number in range(1, 7):
        say(number, said.get(number, "The next part is about the team and the dates."))
    assert hot_turns() == [1, 2, 3, 4, 5, 6]
    assert manager.call("memory_status", "s")["hot"]["tokens"] == 1200
    say(7, "And now the risks.")
    assert hot_turns() == [3, 4, 5, 6, 7]
    status = manager.call("memory_status", "s")
    assert (status["hot"]["tokens"], status["cold"]["items"]) == (1000, 2)
    for number in range(8, 30):
        say(number, "More about the team and the dates.")
    found = manager.call("memory_recall", "s", query="budget discussed")
    best = found["items"][0]
    assert best["content"].startswith("Turn 2: The client gave us a $50K budget")
    assert found["promoted"] == [best["id"]]
    assert found["relevanceScores"][best["id"]] >= 0.85
    assert 2 in hot_turns()


def test_example_2_the_status_has_the_documents_keys(manage: Manage) -> None:
    manager = manage(hotTokenLimit=100)
    for number in range(8):
        manager.add("session-123", turn(number, 12, "x"), "message")
    status = manager.call("memory_status", "session-123")
    (suggestion,) = status.pop("suggestions")
    assert status == {
        "sessionId": "session-123",
        "hot": {"items": 8, "tokens": 96, "limit": 100, "utilizationPercent": 96.0},
        "warm": {"items": 0, "tokens": 0},
        "cold": {"items": 0, "tokens": 0},
    }
    assert suggestion["type"] == "spill"
    assert suggestion["reason"].startswith("hot holds 96 of 100 tokens")
    assert suggestion.keys() == {"type", "reason", "itemIds"}
