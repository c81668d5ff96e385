"""Time in a bank that is served over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from http_service import Served, child, eventually, is_problem, served

from agents import MemoryBank, Retention
from agents.interfaces import tokens
from wall_clock import WALL, WallClock


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    return WallClock(monkeypatch)


@pytest.fixture
def service(tmp_path: Path, wall: WallClock) -> Iterator[Served]:
    with served(tmp_path / "bank", clock=WALL) as running:
        yield running


def contents(client: httpx.Client) -> list[str]:
    answer = client.post("/memory/query", json={})
    return [each["content"] for each in answer.json()["results"]]


def test_a_ttl_expires_over_http(service: Served, wall: WallClock) -> None:
    with service.agent("alice") as alice, service.agent("bob", "read") as reader:
        alice.post("/memory", json={"content": "Fleeting", "ttl": 5})
        alice.post("/memory", json={"content": "Lasting"})
        wall.go(hours=4.9)
        assert contents(alice) == ["Lasting", "Fleeting"]
        wall.go(hours=0.2)
        assert contents(alice) == ["Lasting"]
        assert reader.get("/status").json()["tick"] == 5
        assert reader.get("/status").json()["clock"] == WALL


def test_reading_writes_only_when_the_tick_has_changed(service: Served, wall: WallClock) -> None:
    journal = service.bank.engine.journal
    with service.agent("alice", "read") as reader:
        before = journal.head
        for _ in range(3):
            contents(reader)
        assert journal.head == before
        wall.go(hours=1)
        for _ in range(3):
            contents(reader)
        assert journal.head == before + 1


@pytest.mark.slow
def test_time_passes_though_nobody_asks(tmp_path: Path, wall: WallClock) -> None:
    every_second = {"mode": "wall", "ticks_per_day": 86_400}
    with served(tmp_path / "bank", clock=every_second) as service:
        service.bank.agent("alice").add("Fleeting", ttl=60)
        wall.go(hours=1)
        eventually(lambda: service.bank.engine.ledger.totals.expired)
        assert service.bank.engine.ledger.totals.expired == 1
        assert service.bank.tick == 3600


def test_only_a_token_that_may_moves_the_clock(service: Served, wall: WallClock) -> None:
    asked = {"days": 1}
    with service.agent("alice") as alice, service.agent("bob", "read") as reader:
        refused = alice.post("/advance", json=asked)
        is_problem(refused, 403, "MayNotAdvance")
        why = "this request moves the clock of all agents, which this token may not do"
        assert refused.json()["detail"] == why
        is_problem(reader.post("/advance", json=asked), 403, "ReadOnly")
    assert service.bank.tick == 0
    with service.agent("carol", "advance") as carol:
        carol.post("/memory", json={"content": "Fleeting", "ttl": 5})
        done = carol.post("/advance", json=asked)
        assert done.status_code == 200
        assert (done.json()["tick"], done.json()["expired"]) == (24, 1)
        is_problem(carol.post("/advance", json={"to": 3}), 422, "InvalidInput")
        is_problem(carol.post("/advance", json={"to": 30, "by": 1}), 422, "InvalidInput")
        wall.go(hours=2)
        assert carol.get("/status").json()["tick"] == 26


def test_without_tokens_nobody_moves_the_clock(tmp_path: Path) -> None:
    with served(tmp_path / "bank", agent_id="alice") as service, service.client() as anybody:
        is_problem(anybody.post("/advance", json={"by": 1}), 403, "MayNotAdvance")


@pytest.mark.slow
def test_the_command_serves_a_bank_whose_time_passes(tmp_path: Path) -> None:
    """With the clock of this machine: what lives for a second is gone some time later."""
    folder = tmp_path / "bank"
    folder.mkdir()
    token = tokens.create(folder, "alice").token
    quick = ("--set", "clock.ticks_per_day=86400", "--set", "storage.sync=manual")
    with child(folder, "--create", *quick) as process:
        with httpx.Client(
            base_url=process.url, headers={"Authorization": f"Bearer {token}"}, trust_env=False
        ) as alice:
            alice.post("/memory", json={"content": "Lasting"}, timeout=300)
            alice.post("/memory", json={"content": "Fleeting", "ttl": 1}, timeout=300)
            eventually(lambda: contents(alice) == ["Lasting"])
        code, _ = process.stop()
        assert code == 0
    with MemoryBank.at(folder) as bank:
        assert bank.settings.clock.mode == "wall"
        assert bank.tick > 0
        (gone,) = bank.agent("alice").all(retention=Retention.DELETED)
        assert gone.content == "Fleeting"
