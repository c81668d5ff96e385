"""The profile memorysync over HTTP: requests as the document has them, and a clock that goes on."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from http_service import Served, child, client, is_problem, served

from agents import MemoryBank
from agents.interfaces import tokens
from agents.memory.scopes import Scope

BODY = """{
"query": "last quarter goals",
"tier": "cold",
"limit": 10
}"""
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def service(tmp_path: Path) -> object:
    with served(tmp_path / "bank", profile="memorysync") as running:
        yield running


def test_the_body_of_the_document_is_answered(service: Served) -> None:
    with service.agent("ann") as ann:
        stored = ann.post("/memory/add", json={"text": "last quarter goals", "ttl_minutes": 30})
        assert stored.status_code == 201
        assert (stored.json()["tier"], stored.json()["retention_status"]) == ("cold", "active")
        assert ann.post("/memory/add", json={"content": "last quarter goals, hot"}).is_success
        (row,) = ann.post("/memory/query", content=BODY, headers=JSON).json()["memories"]
        assert row["memory_id"] == stored.json()["memory_id"]
        assert ann.get(f"/memory/{row['id']}").json()["memory"]["usage_count"] == 1
        changed = {"retention_status": "archived"}
        assert ann.patch(f"/memory/{row['id']}", json=changed).json()["tier"] == "cold"
        assert ann.post("/memory/query", content=BODY, headers=JSON).json()["memories"] == []


def test_a_date_is_of_the_clock_on_the_wall(service: Served) -> None:
    now = datetime.now(UTC)
    with service.agent("ann") as ann:
        for days, tier in ((0.5, "cold"), (3, "warm"), (30, "hot")):
            until = (now + timedelta(days=days)).isoformat()
            row = ann.post("/memory/add", json={"text": "x", "expires_at": until}).json()
            assert row["tier"] == tier
            late = datetime.fromisoformat(row["expires_at"]) - datetime.fromisoformat(until)
            assert timedelta(0) <= late < timedelta(minutes=1)
            age = datetime.fromisoformat(row["created_at"]) - now
            assert abs(age) < timedelta(minutes=2)
        over = (now - timedelta(hours=1)).isoformat()
        refused = ann.post("/memory/add", json={"text": "x", "expires_at": over})
        assert is_problem(refused, 422, "InvalidInput")
        assert "is over: it is 2" in refused.json()["detail"]


def test_the_token_says_the_project_and_the_body_no_other(service: Served) -> None:
    scope = Scope("acme", "production")
    made = tokens.create(service.folder, None, scope=scope)
    with service.client(made.token, **{"X-End-User-ID": "user 42"}) as acme:
        row = acme.post("/memory/add", json={"text": "x", "project_id": "acme"}).json()
        assert (row["project_id"], row["environment"]) == ("acme", "production")
        for path, given in (("/memory/add", {"text": "x"}), ("/memory/query", {"query": "x"})):
            other = acme.post(path, json={**given, "project_id": "globex"})
            assert is_problem(other, 422, "InvalidInput")
            assert "project_id is acme here, not 'globex'" in other.json()["detail"]
    with service.client(tokens.create(service.folder, None, scope=Scope("globex")).token) as globex:
        asked = {"query": "x", "project_id": "globex", "tier": ["hot", "warm", "cold"]}
        for user in ("user 42", "ann"):
            answer = globex.post("/memory/query", json=asked, headers={"X-End-User-ID": user})
            assert answer.json()["memories"] == []


@pytest.mark.slow
def test_a_bank_that_was_served_with_the_profile_has_it_after_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    with child(folder, "--create", "--agent", "ann", "--profile", "memorysync") as running:
        with client(running.url) as ann:
            given = {"text": "last quarter goals", "ttl_minutes": 30, "source": "email"}
            row = ann.post("/memory/add", json=given).json()
        running.process.kill()
    with child(folder, "--agent", "ann") as running, client(running.url) as ann:
        (again,) = ann.post("/memory/query", content=BODY, headers=JSON).json()["memories"]
        assert {**again, "score": 1} == {**row, "score": 1}
        running.stop()
    with MemoryBank.open(folder) as bank:
        (found,) = bank.agent("ann").call("memory_query", source="email", tier="cold")["memories"]
        assert found["expires_at"] == row["expires_at"]
