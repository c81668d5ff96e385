"""Clients of a served bank, over HTTP and over MCP: writers, and readers of what they wrote."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from http_load import Answer
from recall import texts

KEPT = 200
"""Memories that a writer keeps; it purges the oldest of more, so that the bank stays as large."""
_WRITES = {"memory_add": 60, "memory_search": 10, "memory_compact": 1, "memory_update": 5}
_READS = {
    "memory_search": 30,
    "memory_query": 30,
    "memory_get": 25,
    "memory_recall": 10,
    "memory_status": 5,
}
FAILED = 599
"""The status where MCP or the connection failed, and no operation was refused."""


class Said(NamedTuple):
    """The status of an answer and its JSON."""

    status: int
    result: Any


class Way(Protocol):
    """How a client calls an operation."""

    async def call(self, name: str, arguments: dict[str, Any]) -> Said:
        """The answer of the server."""


class OverHttp:
    """One connection of HTTP/1.1, which is opened again if the server closed it."""

    def __init__(self, url: str, token: str) -> None:
        where = urlsplit(url)
        self._host, self._port = where.hostname, where.port
        self._head = (
            f"Host: {where.netloc}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\n"
        )
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, name: str, arguments: dict[str, Any]) -> Said:
        from tiermem.tools import OPERATIONS

        route = OPERATIONS[name].route
        path, left = route.path, dict(arguments)
        if "{memory_id}" in path:
            path = path.format(memory_id=left.pop("memory_id"))
        if route.method in ("GET", "DELETE"):
            query = "&".join(f"{key}={json.dumps(value)}" for key, value in left.items())
            path, body = f"{path}?{query}" if query else path, b""
        else:
            body = json.dumps(left).encode()
        return await self.ask(route.method, path, body)

    async def ask(self, method: str, path: str, body: bytes = b"") -> Said:
        """Send a request; once more if the server had closed the idle connection."""
        head = f"{method} {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
        for is_last in (self._streams is None, True):
            try:
                return await self._sent(head.encode() + body)
            except (ConnectionError, asyncio.IncompleteReadError):
                self.close()
                if is_last:
                    raise
        raise AssertionError

    async def _sent(self, request: bytes) -> Said:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        writer.write(request)
        said = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(said.partition("content-length: ")[2].partition("\r\n")[0])
        return Said(int(said[9:12]), json.loads(await reader.readexactly(length)))

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class OverMcp:
    """The client of the MCP SDK."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def call(self, name: str, arguments: dict[str, Any]) -> Said:
        from mcp.shared.exceptions import MCPError

        try:
            result = await self._client.call_tool(name, arguments)
        except MCPError as error:
            return Said(FAILED, str(error))
        if not result.is_error:
            return Said(200, result.structured_content)
        text = result.content[0].text
        kind = text.partition(":")[0]
        status = 500 if kind == "InternalError" else 404 if kind == "MemoryNotFound" else 400
        return Said(status, text)


@asynccontextmanager
async def way_to(url: str, token: str, *, by_mcp: bool) -> AsyncIterator[Way]:
    """A connected client."""
    if not by_mcp:
        over_http = OverHttp(url, token)
        yield over_http
        over_http.close()
        return
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield OverMcp(client)


async def fill(way: Way) -> None:
    """Ask with so many words that the server's cache of words is full."""
    for number in range(25):
        words = " ".join(f"q{number}x{place}" for place in range(1000))
        await way.call("memory_search", {"query": words})


class Agent:
    """What the clients of an agent know of its memories."""

    def __init__(self, name: str, *, by_mcp: bool) -> None:
        self.name = name
        self.by_mcp = by_mcp
        self.kept: dict[str, str] = {}
        """The text of each memory that was acknowledged, oldest first."""
        self.purged: list[str] = []
        """The memories whose purge was acknowledged."""


class Client:
    """Asks as fast as it is answered, as a writer or as a reader."""

    def __init__(self, agent: Agent, url: str, token: str, seed: int, *, writes: bool) -> None:
        self.agent = agent
        self._url, self._token = url, token
        self._random = random.Random(seed)
        self._texts = texts(2000, seed)
        self._kinds = _WRITES if writes else _READS
        self._writes = writes
        self._serial = 0
        self.answers: list[Answer] = []
        self.statuses: Counter[int] = Counter()
        self.first_errors: list[str] = []

    async def run(self, until: float, counted_from: float) -> None:
        """Ask until then; a connection that fails is counted, and made again."""
        while perf_counter() < until:
            try:
                async with way_to(self._url, self._token, by_mcp=self.agent.by_mcp) as way:
                    await self._ask(way, until, counted_from)
            except Exception as error:  # noqa: BLE001  # counted, and it ends the load in failure
                self._failed("the connection", _cause(error))

    async def _ask(self, way: Way, until: float, counted_from: float) -> None:
        while perf_counter() < until:
            if self._writes and len(self.agent.kept) > KEPT:
                await self._one(way, "memory_forget", counted_from)
            name = self._random.choices(list(self._kinds), list(self._kinds.values()))[0]
            await self._one(way, name, counted_from)

    def _failed(self, what: str, said: str, status: int = FAILED) -> None:
        self.statuses[status] += 1
        if len(self.first_errors) < 3:
            self.first_errors.append(f"{what}: {said:.200}")

    async def _one(self, way: Way, name: str, counted_from: float) -> None:
        arguments = self._arguments(name)
        began = perf_counter()
        said = await way.call(name, arguments)
        if began >= counted_from:
            way = "MCP" if self.agent.by_mcp else "HTTP"
            taken = perf_counter() - began
            self.answers.append(Answer(f"{way} {name}", said.status, taken))
        if said.status >= 500:
            self._failed(name, f"{said.status} {said.result}", said.status)
            return
        self.statuses[said.status] += 1
        if said.status < 300:
            self._acknowledged(name, arguments, said.result)

    def _arguments(self, name: str) -> dict[str, Any]:
        text = self._random.choice(self._texts)
        if name == "memory_add":
            self._serial += 1  # every memory has a word that no memory had before
            return {"content": f"{text} w{id(self) % 9973}x{self._serial}"}
        if name == "memory_forget":
            return {"memory_id": next(iter(self.agent.kept)), "purge": True}
        if name in ("memory_get", "memory_update"):
            known = list(self.agent.kept)[-50:]
            chosen = self._random.choice(known) if known else "none"
            tier = {"tier": self._random.choice(("critical", "normal", "low"))}
            return {"memory_id": chosen, **(tier if name == "memory_update" else {})}
        if name in ("memory_compact", "memory_status"):
            return {}
        return {"query": text[: self._random.randrange(20, 80)]}

    def _acknowledged(self, name: str, arguments: dict[str, Any], result: Any) -> None:
        if name == "memory_add":
            self.agent.kept[result["id"]] = arguments["content"]
        elif name == "memory_forget":
            del self.agent.kept[arguments["memory_id"]]
            self.agent.purged.append(arguments["memory_id"])


def _cause(error: BaseException) -> str:
    """The first error inside groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
