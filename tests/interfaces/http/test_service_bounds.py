"""What a service keeps of its clients has a bound, however many come and go."""

import asyncio
import gc
import json
from pathlib import Path

import httpx
import pytest
from http_service import EAGER, JSON
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp_clients import serving_here

from agents import AsyncMemoryBank, MemoryBank
from agents.interfaces import tokens
from agents.interfaces.http.access import Names, TokenDoor
from agents.interfaces.http.limits import Buckets, Shares
from agents.interfaces.http.service import Service
from waiting import until

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def test_the_rates_of_the_newest_clients_are_kept() -> None:
    buckets = Buckets(rate=1, burst=1)
    for number in range(10_000):
        buckets.wait(f"10.0.{number // 256}.{number % 256}")
    assert len(buckets) == 4096
    assert buckets.wait("10.0.39.15") > 0  # it came last, and is still known


def test_a_client_that_gave_all_back_is_forgotten() -> None:
    shares = Shares(100)
    for number in range(1_000):
        assert shares.take(f"client {number}", 20)
        assert not shares.take(f"client {number}", 20)
        assert not shares.take(f"another {number}", 90)
        shares.give_back(f"client {number}", 20)
        shares.give_back(f"idle {number}", 0)
    assert len(shares) == 0


def test_strange_requests_make_no_new_counters(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
        token = tokens.create(folder, "alice").token
        service = Service(AsyncMemoryBank(bank), TokenDoor(folder), Names("127.0.0.1"), EAGER)

        async def ask() -> None:
            headers = {**JSON, "Authorization": f"Bearer {token}"}
            transport = httpx.ASGITransport(app=service)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1", headers=headers
            ) as client:
                for number in range(40):
                    await client.get(f"/nowhere/{number}")
                    await client.request(f"VERB{number}", "/memory")
                    await client.get(f"/memory/no-memory-{number}")
                    await client.post("/memory", content=f"[{number}")
                    await client.get("/status", headers={"Authorization": f"Bearer {number}"})

        asyncio.run(ask())
        gate = service._gate
        assert sum(gate.answered.values()) == 200
        assert len(gate.answered) <= 5
        for shares in (gate._allowance._begun, gate._allowance._turns, gate._allowance._bodies):
            assert len(shares) == 0
        assert not gate._allowance._lines


def test_metrics_are_as_many_with_many_tokens_and_agents(tmp_path: Path) -> None:
    """They are counted by operation and status, never by token, agent, address or memory."""
    folder = tmp_path / "bank"
    with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
        service = Service(AsyncMemoryBank(bank), TokenDoor(folder), Names("127.0.0.1"), EAGER)
        made = [tokens.create(folder, f"agent_{number}").token for number in range(30)]

        async def ask(token: str, number: int) -> set[str]:
            headers = {**JSON, "Authorization": f"Bearer {token}"}
            transport = httpx.ASGITransport(app=service, client=(f"10.0.0.{number}", 4000 + number))
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1", headers=headers
            ) as client:
                own = await client.post("/memory", json={"content": f"memory {number}"})
                await client.get(f"/memory/{own.json()['id']}")
                await client.post("/memory/recall", json={"query": f"what was {number}"})
                note = {"path": f"memory/{number}.md", "text": "a line"}
                await client.post("/notes", json=note)
                await client.get("/status")
                said = (await client.get("/metrics")).text.splitlines()
            return {line.rpartition(" ")[0] for line in said if not line.startswith("#")}

        async def ask_all() -> list[set[str]]:
            return [await ask(token, number) for number, token in enumerate(made)]

        first, second, *others = asyncio.run(ask_all())
        assert first < second  # it counts the first look at the metrics
        assert all(each == second for each in others)
        assert len(service._gate.answered) == 6
        kept = {
            name: value for name, value in vars(bank.engine.metrics).items() if value is not None
        }
        assert all(isinstance(value, int | float) for value in kept.values())
        assert service._gate.answered["memory_recall", 200] == 30


@pytest.mark.long
def test_sessions_of_mcp_that_are_left_are_not_kept(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    with MemoryBank.open(folder, storage={"sync": "manual"}):
        token = tokens.create(folder, "alice").token
    headers = {
        **JSON,
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {token}",
    }
    with serving_here(folder, EAGER) as (url, _):
        with httpx.Client(headers=headers, timeout=60, trust_env=False) as client:
            for _ in range(40):
                answer = client.post(f"{url}/mcp", content=json.dumps(HELLO))
                assert "mcp-session-id" not in answer.headers
                assert answer.status_code == 200
        until("all sessions to be gone", lambda: not _transports())


def _transports() -> int:
    gc.collect()
    return sum(isinstance(each, StreamableHTTPServerTransport) for each in gc.get_objects())
