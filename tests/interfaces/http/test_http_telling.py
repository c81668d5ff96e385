"""Telling, trust and groups over HTTP: only a token that may tell reaches other agents."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from http_service import Served, is_problem, served


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "bank") as running:
        running.bank.agent("bob").add("bob's own secret")
        yield running


def test_a_token_that_may_tell_tells(service: Served) -> None:
    with service.agent("alice", "tell") as alice, service.agent("bob") as bob:
        own = alice.post("/memory", json={"content": "agent_X cheats"}).json()["id"]
        told = alice.post(f"/memory/{own}/tell", json={"to": ["bob"], "note": "I saw it"})
        assert told.json() == {"told": [{"agent": "bob", "is_new": True}]}
        found = bob.post("/memory/query", json={"query": "agent_X"}).json()["results"]
        assert found[0]["content"] == "agent_X cheats"
        assert found[0]["metadata"]["told_note"] == "I saw it"
        done = alice.post(f"/memory/{own}/retract", json={"correction": "agent_X is honest"})
        assert done.json() == {"corrected": 1}
        now = bob.post("/memory/query", json={"query": "agent_X", "limit": 1}).json()["results"]
        assert now[0]["content"] == "agent_X is honest"


def test_a_token_that_writes_reaches_nobody_else(service: Served) -> None:
    service.bank.group("guild", ["alice"])
    with service.agent("alice") as alice:
        own = alice.post("/memory", json={"content": "agent_X cheats"}).json()["id"]
        for path, given in (
            (f"/memory/{own}/tell", {"to": ["bob"]}),
            (f"/memory/{own}/retract", {}),
            ("/group/guild/post", {"content": "hello"}),
        ):
            assert is_problem(alice.post(path, json=given), 403)
        assert alice.post("/trust", json={"teller": "bob", "trust": 0.5}).json()["trust"] == 0.5
    assert service.bank.agent("bob").count() == 1


def test_a_client_makes_no_new_agents_and_reads_nobody(service: Served) -> None:
    secret = service.bank.agent("bob").all()[0].id
    with service.agent("alice", "tell") as alice:
        own = alice.post("/memory", json={"content": "agent_X cheats"}).json()["id"]
        for to in ("carol", "*", ".guild", "alice"):
            assert is_problem(alice.post(f"/memory/{own}/tell", json={"to": [to]}), 422)
        assert is_problem(alice.post(f"/memory/{secret}/tell", json={"to": ["bob"]}), 404)
        pinned = {"to": ["bob"], "as_tier": "pinned"}
        assert is_problem(alice.post(f"/memory/{own}/tell", json=pinned), 422)
    assert service.bank.agents() == ["alice", "bob"]


def test_members_write_to_a_board_and_find_it(service: Served) -> None:
    service.bank.group("guild", ["alice", "bob"])
    with service.agent("alice", "tell") as alice, service.agent("bob") as bob:
        posted = alice.post("/group/guild/post", json={"content": "meet at noon"})
        assert posted.status_code == 201
        asked = {"query": "noon", "include_groups": True, "limit": 1}
        (found,) = bob.post("/memory/query", json=asked).json()["results"]
        assert (found["content"], found["metadata"]["speaker"]) == ("meet at noon", "alice")
        assert bob.post("/group/guild/leave", json={}).json() == {"groups": []}
        (found,) = bob.post("/memory/query", json=asked).json()["results"]
        assert found["content"] == "bob's own secret"
        assert is_problem(bob.post("/group/guild/leave", json={}), 422)
