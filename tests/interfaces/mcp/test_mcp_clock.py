"""Time in a bank that is served to MCP clients."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_clients import over_http, over_streams, serving_here, text_of
from mcp_versions import Client

from agents import MemoryBank, Retention
from agents.bank.async_bank import AsyncMemoryBank
from agents.interfaces import tokens
from agents.interfaces.mcp.server import Access, make_server
from agents.tools.operations import Permission
from wall_clock import WALL, WallClock


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    return WallClock(monkeypatch)


async def contents(client: Client) -> list[str]:
    found: Any = (await client.call_tool("memory_query", {})).structured_content
    return [each["content"] for each in found["results"]]


def with_client(work: Any, permission: Permission = "write") -> None:
    async def main() -> None:
        with MemoryBank.ephemeral(clock=WALL, embedder={"provider": "none"}) as bank:
            access = Access(AsyncMemoryBank(bank).agent("alice"), permission)
            async with Client(make_server(lambda _: access)) as client:
                await work(client, bank)

    anyio.run(main)


def test_a_ttl_expires_over_mcp(wall: WallClock) -> None:
    async def work(client: Client, bank: MemoryBank) -> None:
        await client.call_tool("memory_add", {"content": "Fleeting", "ttl": 5})
        await client.call_tool("memory_add", {"content": "Lasting", "temperature": "hot"})
        assert await contents(client) == ["Lasting", "Fleeting"]
        wall.go(hours=5)
        assert await contents(client) == ["Lasting"]

    with_client(work)


def test_resources_are_as_of_now(wall: WallClock) -> None:
    async def work(client: Client, bank: MemoryBank) -> None:
        await client.call_tool(
            "memory_add", {"content": "Fleeting", "ttl": 5, "temperature": "hot"}
        )
        assert "Fleeting" in str(await client.read_resource("memory://context"))
        wall.go(hours=5)
        assert "Fleeting" not in str(await client.read_resource("memory://context"))
        assert bank.tick == 5

    with_client(work)


@pytest.mark.parametrize("permission", ["read", "write"])
def test_an_agent_can_not_move_the_clock(permission: Permission, wall: WallClock) -> None:
    async def work(client: Client, bank: MemoryBank) -> None:
        assert "memory_advance" not in [each.name for each in (await client.list_tools()).tools]
        result = await client.call_tool("memory_advance", {"days": 1})
        assert result.is_error
        assert text_of(result).startswith("NotAllowed: memory_advance")
        assert bank.tick == 0

    with_client(work, permission)


def test_an_agent_moves_it_if_the_owner_allows_it(wall: WallClock) -> None:
    async def work(client: Client, bank: MemoryBank) -> None:
        assert "memory_advance" in [each.name for each in (await client.list_tools()).tools]
        result: Any = await client.call_tool("memory_advance", {"days": 1})
        assert result.structured_content["tick"] == bank.tick == 24

    with_client(work, "advance")


def test_over_http_the_token_decides(tmp_path: Path) -> None:
    MemoryBank.open(tmp_path / "bank", embedder={"provider": "none"}).close()
    plain = tokens.create(tmp_path / "bank", "alice").token
    may = tokens.create(tmp_path / "bank", "bob", "advance").token

    async def main(url: str, bank: MemoryBank) -> None:
        async with over_http(url, plain) as client:
            refused = await client.call_tool("memory_advance", {"by": 3})
            assert "NotAllowed" in text_of(refused)
        assert bank.tick == 0
        async with over_http(url, may) as client:
            await client.call_tool("memory_advance", {"by": 3})
        assert bank.tick == 3

    with serving_here(tmp_path / "bank") as (url, bank):
        anyio.run(main, f"{url}/mcp", bank)


@pytest.mark.slow
def test_the_command_serves_a_bank_whose_time_passes(tmp_path: Path) -> None:
    """With the clock of this machine: it passes unasked, and ends what lives for a second."""
    quick = ("--create", "--set", "clock.ticks_per_day=86400", "--set", "storage.sync=manual")

    def tick() -> int:
        with MemoryBank.at(tmp_path / "bank") as copy:
            return copy.tick

    async def main() -> None:
        async with Client(over_streams(tmp_path / "bank", *quick)) as client:
            await client.call_tool("memory_status", {})
            before = tick()
            with anyio.fail_after(300):
                while tick() == before:
                    await anyio.sleep(0.1)
            await client.call_tool("memory_add", {"content": "Lasting"})
            await client.call_tool("memory_add", {"content": "Fleeting", "ttl": 1})
            with anyio.fail_after(300):
                while await contents(client) != ["Lasting"]:
                    await anyio.sleep(0.1)

    anyio.run(main)
    with MemoryBank.at(tmp_path / "bank") as bank:
        assert bank.settings.clock.mode == "wall"
        (gone,) = bank.agent("alice").all(retention=Retention.DELETED)
        assert gone.content == "Fleeting"
