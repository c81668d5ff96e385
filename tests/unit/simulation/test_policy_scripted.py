"""The policy that follows a script."""

from random import Random
from typing import Any

import pytest

from agents.errors import ConfigError
from agents.memory.records import Hits
from agents.simulation.policies.scripted import Scripted
from agents.simulation.protocols import Action, Observation, Policy

WAVE = {"name": "wave", "arguments": {"to": "bob"}}
WAIT = {"name": "wait"}


def decided(script: Any, tick: int = 3, agent: str = "alice") -> list[Any]:
    seen = Observation("a street", agent_id=agent, tick=tick)
    return list(Scripted(script).decide(seen, Hits(), Random(0)))


def test_it_is_a_policy() -> None:
    assert isinstance(Scripted([]), Policy)


def test_an_entry_is_done_in_its_tick_by_its_agent_only() -> None:
    script = [{"tick": 3, "agent": "alice", "actions": [WAVE, WAIT]}]
    assert decided(script) == [Action("wave", {"to": "bob"}), Action("wait", {})]
    assert decided(script, tick=2) == []
    assert decided(script, agent="bob") == []


def test_an_entry_without_agent_is_for_all_and_entries_add_up_in_order() -> None:
    script = [
        {"tick": 3, "agent": "alice", "actions": [WAIT]},
        {"tick": 3, "actions": [WAVE]},
        {"tick": 3, "agent": "alice", "actions": [WAIT]},
    ]
    assert [action.name for action in decided(script)] == ["wait", "wave", "wait"]
    assert [action.name for action in decided(script, agent="bob")] == ["wave"]


def test_a_malformed_action_is_passed_on_for_the_loop_to_refuse() -> None:
    script = [{"tick": 3, "actions": [7, {"nom": "wave"}, WAIT]}]
    assert decided(script) == [7, {"nom": "wave"}, Action("wait", {})]


def test_whoever_changes_an_action_does_not_change_the_script() -> None:
    given = [{"tick": 3, "actions": [{"name": "give", "arguments": {"to": ["bob"]}}]}]
    policy = Scripted(given)
    seen = Observation("a street", agent_id="alice", tick=3)
    for _ in range(2):
        (action,) = policy.decide(seen, Hits(), Random(0))
        assert action.arguments == {"to": ["bob"]}
        action.arguments["to"].append("carol")
        given[0]["actions"].clear()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("wave", r"script\[1\]: 'wave' is not a mapping; an entry is"),
        ({"actions": []}, r"script\[1\]: tick is missing"),
        ({"tick": 3}, r"script\[1\]: actions is missing"),
        ({"tick": "3", "actions": []}, r"script\[1\]: tick '3' is not a whole number from 1 on"),
        ({"tick": True, "actions": []}, r"script\[1\]: tick True"),
        ({"tick": 0, "actions": []}, r"script\[1\]: tick 0"),
        ({"tick": 3, "agent": None, "actions": []}, r"script\[1\]: None is not an agent id"),
        ({"tick": 3, "agent": "*", "actions": []}, r"script\[1\]: '\*' is not an agent id"),
        ({"tick": 3, "actions": WAIT}, r"script\[1\]: actions .* is not a list"),
        ({"tick": 3, "actions": [], "who": 1}, r"no key 'who'; allowed: tick, agent, actions"),
    ],
)
def test_a_wrong_entry_is_named_with_what_is_allowed(entry: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Scripted([{"tick": 1, "actions": []}, entry])


@pytest.mark.parametrize("script", [{"tick": 3, "actions": []}, "wave", 7, None])
def test_a_script_is_a_list(script: Any) -> None:
    with pytest.raises(ConfigError, match="list of entries"):
        Scripted(script)
