"""Commands on a session of an agent: its status, searches, recalls, spills and end."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank

Command = Callable[..., Any]


@pytest.fixture
def crew(tmp_path: Path) -> Path:
    """Alice's sessions talk and 7 have three memories each, of which two are hot."""
    folder = tmp_path / "crew"
    own = {"initial": "hot", "session_max_facts": 2}
    with MemoryBank.open(folder, store={"provider": "none"}, temperature=own) as bank:
        alice = bank.agent("alice")
        for session in ("talk", 7):
            for n in (10, 20, 30):
                alice.add(f"the budget of {session} is ${n}K", session=session)
    return folder


def hot(folder: Path, session: str) -> list[str]:
    with MemoryBank.at(folder) as bank:
        own = bank.agent("alice").all(temperature="hot", session=session)
        return [memory.content[-5:] for memory in own]


def test_a_status_of_a_session_has_its_limits(tiermem: Command, crew: Path) -> None:
    of_talk = "status", crew, "-a", "alice", "--session", "talk"
    shown = json.loads(tiermem(*of_talk, "--json").out)
    assert (shown["session"], shown["hot_max_facts"]) == ("talk", 2)
    assert [each["items"] for each in shown["temperatures"].values()] == [2, 0, 1]
    assert "the session talk of alice" in tiermem(*of_talk).out


def test_a_search_and_a_context_are_of_a_session_alone(tiermem: Command, crew: Path) -> None:
    asked = "search", crew, "-a", "alice", "budget", "--session", "7", "--json"
    for more, number in (((), 2), (("--context",), 2), (("--include-cold",), 3)):
        found = json.loads(tiermem(*asked, *more).out)["results"]
        assert [each["metadata"]["session"] for each in found] == [7] * number


def test_a_session_recalls_spills_and_ends(tiermem: Command, crew: Path) -> None:
    def called(name: str, **arguments: Any) -> Any:
        given = json.dumps({"session": "talk", **arguments})
        return json.loads(tiermem("call", crew, name, given, "-a", "alice").out)

    found = called("memory_recall", query="the budget of talk is $10K", limit=1)
    assert found["promoted"] == [found["results"][0]["id"]]
    assert (len(hot(crew, "talk")), len(hot(crew, "7"))) == (2, 2)
    assert len(called("memory_spill", count=1)["moved"]) == 1
    done = tiermem("compact", crew, "-a", "alice", "--session", "talk").out
    assert "moved 0 to hot, 1 to warm, 0 to cold" in done
    assert (hot(crew, "talk"), len(hot(crew, "7"))) == ([], 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["status", "--session", "talk"], "a session is one agent's"),
        (["status", "-a", "alice", "--session", "talk", "--tiers"], "has no --tiers"),
        (["compact", "--session", "talk"], "a session is one agent's"),
        (["compact", "-a", "alice", "--session", "talk", "--prune"], "is not pruned"),
    ],
)
def test_what_is_no_session_is_refused(
    tiermem: Command, crew: Path, arguments: list[str], said: str
) -> None:
    done = tiermem(arguments[0], crew, *arguments[1:])
    assert done.code in (1, 2)
    assert said in done.err
    assert len(hot(crew, "talk")) == len(hot(crew, "7")) == 2
