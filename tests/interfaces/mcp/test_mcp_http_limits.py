"""What holds for ``tiermem mcp --http`` beside what holds at any door."""

import contextlib
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import httpx
import pytest
from http_service import is_problem
from mcp_clients import MANUAL, bank_in, serving, serving_here, texts
from mcp_versions import IS_FIRST

from agents import AgentMemory, MemoryBank, tools
from agents.interfaces import tokens
from agents.interfaces.http.limits import Limits
from agents.tools import OPERATIONS
from waiting import LONG, exit_code

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
EAGER = Limits(rate=100_000.0)


def client(url: str, token: str | None = None) -> httpx.Client:
    own = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=url, headers={**HEADERS, **own}, timeout=LONG, trust_env=False)


def called(name: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


@contextlib.contextmanager
def half_sent(url: str, token: str) -> Iterator[socket.socket]:
    """A request whose body does not come."""
    where = httpx.URL(url)
    lines = [f"{name}: {value}" for name, value in HEADERS.items()]
    lines += [f"Host: {where.netloc.decode()}", f"Authorization: Bearer {token}"]
    head = "\r\n".join(["POST /mcp HTTP/1.1", *lines, "Content-Length: 1000", "", "{"])
    with socket.create_connection((where.host, where.port or 0), timeout=LONG) as line:
        with contextlib.suppress(ConnectionError):
            line.sendall(head.encode())
        yield line


def answer(line: socket.socket) -> httpx.Response:
    """What is answered on a connection, which may be reset after the answer."""
    with line.makefile("rb") as said:
        status = int(said.readline().split()[1])
        headers = httpx.Headers([each.split(": ", 1) for each in _lines(said)])
        return httpx.Response(
            status, headers=headers, content=said.read(int(headers["content-length"]))
        )


def _lines(said: BinaryIO) -> Iterator[str]:
    while line := said.readline().decode().strip():
        yield line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return bank_in(tmp_path / "bank")


def test_bodies_that_do_not_come_keep_nobody_else_out(folder: Path) -> None:
    """One token, all the connections there are, and again as soon as one is free."""
    reader, token = tokens.create(folder, "bob", "read").token, tokens.create(folder, "alice").token
    limits = EAGER._replace(connections=40)
    with serving_here(folder, limits) as (url, _), contextlib.ExitStack() as last:
        lines = [last.enter_context(half_sent(url, reader)) for _ in range(40)]
        assert select.select(lines, [], [], LONG)[0], "nobody was refused"
        alice = last.enter_context(client(url, token))
        for _ in range(40):
            line = last.enter_context(half_sent(url, reader))
            assert is_problem(answer(line), 503, "Busy")
        assert alice.post("/mcp", json=PING).status_code == 200


@pytest.mark.slow
def test_an_operation_that_takes_too_long_is_not_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = threading.Event()

    def slow(memory: AgentMemory, arguments: dict[str, Any]) -> dict[str, Any]:
        assert may_end.wait(LONG)
        return {}

    status = OPERATIONS["memory_status"]._replace(run=slow)
    monkeypatch.setitem(tools.OPERATIONS, "memory_status", status)
    limits = EAGER._replace(seconds=0.5)
    with serving_here(folder, limits, "alice") as (url, _), client(url) as alice:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        call = called("memory_status")
        assert is_problem(alice.post("/mcp", json=call), 503, "TookTooLong")
        call["params"]["_meta"] = meta
        named = {"Mcp-Method": "tools/call", "Mcp-Name": "memory_status"}
        modern = {"MCP-Protocol-Version": "2026-07-28", **named}
        answered = None if IS_FIRST else alice.post("/mcp", json=call, headers=modern)
        may_end.set()
        assert answered is None or is_problem(answered, 503, "TookTooLong")


def test_no_request_opens_a_stream_that_would_stay(folder: Path) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    modern = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
    listen = {**PING, "method": "subscriptions/listen", "params": {"_meta": meta}}
    with serving_here(folder, EAGER, "alice") as (url, _), client(url) as alice:
        assert "error" in alice.post("/mcp", json=listen, headers=modern).json()
        assert is_problem(alice.get("/mcp"), 405, "NoSuchMethod")


def test_what_is_not_here_is_told_so(folder: Path) -> None:
    with serving_here(folder, EAGER, "alice") as (url, _), client(url) as alice:
        for path in ("/", "/mcp/x", "/metrics"):
            assert is_problem(alice.post(path, json=PING), 404, "NoSuchPath")
        for method in ("GET", "DELETE", "PUT", "HEAD", "OPTIONS"):
            refused = alice.request(method, "/mcp")
            assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


def test_text_that_is_not_unicode_is_answered_by_its_id(folder: Path) -> None:
    call = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":%s}'
    with serving_here(folder, EAGER, "alice") as (url, _), client(url) as alice:
        for text in (b"x\\ud800", b"x\xff"):
            params = b'{"name":"store_memory","arguments":{"content":"%s"}}' % text
            refused = alice.post("/mcp", content=call % params)
            assert refused.status_code == 400
            assert (refused.json()["id"], refused.json()["error"]["code"]) == (7, -32602)


# Only reading


def test_a_token_that_reads_leaves_no_trace(folder: Path) -> None:
    reader, writer = (
        tokens.create(folder, "alice", "read").token,
        tokens.create(folder, "alice").token,
    )
    asked: list[dict[str, Any]] = [
        called("memory_search", query="where is the well?"),
        called("memory_query", query="the road"),
        {**PING, "method": "prompts/get",
         "params": {"name": "recall", "arguments": {"query": "the north"}}},
        {**PING, "method": "resources/read", "params": {"uri": "memory://context"}},
    ]  # fmt: skip
    with serving_here(folder, EAGER) as (url, bank), client(url, reader) as alice:
        before = bank.state_hash()
        for message in asked * 5:
            assert "xanadu" in alice.post("/mcp", json=message).text
        assert bank.state_hash() == before
        with client(url, writer) as other:
            assert "xanadu" in other.post("/mcp", json=asked[0]).text
        assert bank.state_hash() != before


# The end


@pytest.mark.slow
def test_who_is_asking_when_it_stops_is_told_so(folder: Path) -> None:
    token = tokens.create(folder, "alice").token
    with (
        serving(folder, "--set", "storage.sync=manual") as (url, process),
        half_sent(url, token) as line,
    ):
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        assert is_problem(answer(line), 503, "Stopping")
        assert exit_code(process) == 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    MemoryBank.open(folder, storage=MANUAL).close()
    assert "NEVER speak of xanadu" in texts(folder)
