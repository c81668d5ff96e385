"""``tiermem mcp --http``: tokens, names, and that no agent reaches another's memory."""

import itertools
import json
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx
import pytest
from mcp_clients import bank_in, over_http, serving, serving_here, text_of, texts
from mcp_versions import MCPError

from agents import MemoryBank
from agents.interfaces import tokens
from agents.memory.scopes import Scope
from agents.tools import OPERATIONS
from examples import some
from waiting import LONG, exit_code

QUIET = ("--set", "storage.sync=manual")
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
META = (
    '{"io.modelcontextprotocol/protocolVersion": "2026-07-28",'
    ' "io.modelcontextprotocol/clientCapabilities": {}}'
)
CALL = (
    '{"jsonrpc": "2.0", "id": 1, "method": "tools/call",'
    ' "params": {"name": "%s", "arguments": %s, "_meta": ' + META + "}}"
)


def named(version: str, tool: str) -> dict[str, str]:
    """Headers with which a call of a tool is one, in both eras of the protocol."""
    return {"MCP_Protocol_Version": version, "Mcp_Method": "tools/call", "Mcp_Name": tool}


class Served(NamedTuple):
    """A bank with a token for each of two agents, and one that only reads, served."""

    url: str
    folder: Path
    alice: str
    bob: str
    reader: str

    http: httpx.Client

    def post(self, token: str | None, content: str | bytes | None = None, **more: str) -> Any:
        headers = {**HEADERS, **{name.replace("_", "-"): value for name, value in more.items()}}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        body = json.dumps(message) if content is None else content
        return self.http.post(self.url, content=body, headers=headers)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = bank_in(tmp_path_factory.mktemp("served") / "bank")
    created = [
        tokens.create(folder, agent, permission).token
        for agent, permission in (("alice", "tell"), ("bob", "tell"), ("alice", "read"))
    ]
    eager = ("--rate", 100_000)  # a test asks more often than an agent
    with serving(folder, *eager, *QUIET) as (url, process), httpx.Client(timeout=LONG) as http:
        yield Served(url, folder, *created, http)
        process.send_signal(signal.SIGTERM)
        assert exit_code(process) == 0
        assert process.stderr is not None
        said = process.stderr.read().decode()
        assert "Traceback" not in said, said
        assert "xanadu" not in said
        assert "zembla" not in said


# Who comes in


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_token_says_whose_memory_it_is(served: Served, mode: str) -> None:
    async def main() -> None:
        for token, own, others in (
            (served.alice, "xanadu", "zembla"),
            (served.bob, "zembla", "xanadu"),
        ):
            async with over_http(served.url, token, mode=mode) as client:
                listed = [each.name for each in (await client.list_tools()).tools]
                assert listed == [
                    n for n, each in OPERATIONS.items() if each.permission != "advance"
                ]
                found = text_of(await client.call_tool("memory_search", {"query": "the north"}))
                found += str(await client.read_resource("memory://context"))
                found += str(await client.read_resource("memory://notes/MEMORY.md"))
                found += str(await client.get_prompt("recall", {"query": "the well"}))
                assert found.count(own) > 3
                assert others not in found

    anyio.run(main)


def test_a_token_that_reads_may_only_read(served: Served) -> None:
    before = texts(served.folder)

    async def main() -> None:
        async with over_http(served.url, served.reader) as client:
            listed = [each.name for each in (await client.list_tools()).tools]
            assert listed == [n for n, each in OPERATIONS.items() if each.permission == "read"]
            for name, operation in OPERATIONS.items():
                result = await client.call_tool(name, operation.example)
                assert ("NotAllowed" in text_of(result)) == (name not in listed)

    anyio.run(main)
    assert texts(served.folder) == before


# Isolation


def attempts(other: str, ids: list[str], own: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every tool, with all that might reach the other agent's memory."""
    names = ("agent_id", "agent", "user_id", "run_id", "owner", "bank", "_agent", "filters")
    paths = (
        f"../{other}/MEMORY.md", f"memory/../../{other}/MEMORY.md", f"notes/{other}/MEMORY.md",
        f"/{other}/MEMORY.md", f"..%2f{other}%2fMEMORY.md", f"..\\{other}\\MEMORY.md",
        f"extra/../{other}/MEMORY.md", f"memory/{other}.md", f"{other}/MEMORY.md\0.md",
    )  # fmt: skip
    for name, operation in OPERATIONS.items():
        places, example = operation.arguments["properties"], operation.example
        for place in names:
            for value in (other, {"agent_id": other}):
                yield name, {**example, place: value}
        if "memory_id" in places:
            rest = {} if name == "memory_get" else example
            spelled = [f(each) for each in ids for f in (str, str.upper, lambda i: f"{i} ")]
            for each in [*spelled, f"{other}:1", f"{other}/1", "*", f"{own}' OR 1=1"]:
                yield name, {**rest, "memory_id": each}
                if name == "memory_forget":
                    yield name, {"memory_id": each, "purge": True}
                if name == "memory_update":
                    yield name, {"memory_id": each, "tier": "pinned", "temperature": "hot"}
        if "ids" in places:
            yield from ((name, {"ids": [own, each]}) for each in ids)
        if "path" in places:
            rest = {key: value for key, value in example.items() if key == "text"}
            yield from ((name, {**rest, "path": path}) for path in paths)
        if "metadata" in places:
            yield from ((name, {**example, "metadata": {key: other}}) for key in names)
        if "query" in places:
            for query in ("NEVER speak of", "the gate is blue", other, f"agent_id:{other}", "*"):
                yield name, {"query": query}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("own", ["alice", "bob"])
def test_no_attempt_reaches_the_others_memory(served: Served, own: str) -> None:
    other, secret = ("bob", "zembla") if own == "alice" else ("alice", "xanadu")
    token = served.alice if own == "alice" else served.bob
    before = memories(served.folder, other)
    mine = memories(served.folder, own)[0][0]
    tried = list(attempts(other, [each[0] for each in before], mine))
    uris = [f"memory://notes/{path}" for path in (
        f"../{other}/MEMORY.md", f"%2e%2e%2f{other}%2fMEMORY.md", f"{other}/MEMORY.md",
    )]  # fmt: skip

    async def main() -> None:
        async with over_http(served.url, token) as client:
            for name, arguments in some(tried, len(own)):
                result = await client.call_tool(name, arguments)
                assert secret not in result.model_dump_json(), (name, arguments)
                assert "InternalError" not in text_of(result)
                if set(arguments) & {"agent_id", "agent", "user_id", "owner", "bank"}:
                    assert result.is_error, (name, arguments)
                if any(each[0] in str(arguments) for each in before):
                    assert "MemoryNotFound" in text_of(result), (name, arguments)
            for uri in uris:
                with pytest.raises(MCPError) as caught:
                    await client.read_resource(uri)
                assert secret not in str(caught.value)

    assert len(tried) > 400  # twice
    anyio.run(main)
    assert memories(served.folder, other) == before


def test_a_token_of_a_project_reaches_its_agents_alone_over_mcp(tmp_path: Path) -> None:
    with serving_here(tmp_path / "bank") as (url, bank), httpx.Client(trust_env=False) as http:
        alpha, beta = (
            bank.agent("ann", project=project).add(f"The code of {project} is here").id
            for project in ("alpha", "beta")
        )
        made = tokens.create(tmp_path / "bank", None, "tell", scope=Scope("alpha"))

        def called(tool: str, arguments: str, **more: str) -> str:
            own = {"Authorization": f"Bearer {made.token}", **named("2025-06-18", tool), **more}
            headers = {name.replace("_", "-"): value for name, value in own.items()}
            return http.post(
                f"{url}/mcp", content=CALL % (tool, arguments), headers=HEADERS | headers
            ).text

        asked = '{"query": "The code", "limit": 9}'
        found = called("memory_query", asked, X_End_User_ID="ann")
        assert alpha in found
        assert beta not in found
        for name in ("ann", "@@beta@@ann", "beta/ann", "*"):
            said = called("memory_get", f'{{"memory_id": "{beta}"}}', X_End_User_ID=name)
            assert "MemoryNotFound" in said
            assert "The code of beta" not in said
        assert "NoAgent" in called("memory_query", asked)


def test_a_tool_speaks_for_the_agent_of_the_token_alone(served: Served) -> None:
    """Telling as another, forging a source, and reading on along a chain are all refused."""
    (mine, *_), (theirs, *_) = (memories(served.folder, name) for name in ("alice", "bob"))

    async def main() -> None:
        async with over_http(served.url, served.alice) as alice:
            for name in ("agent_id", "sender", "from", "source", "speaker"):
                for tool, given in (
                    ("memory_tell", {"memory_id": mine[0], "to": ["bob"]}),
                    ("memory_retract", {"memory_id": mine[0]}),
                    ("memory_trust", {"teller": "bob", "trust": 0}),
                    ("group_post", {"group": "guild", "content": "I am bob"}),
                    ("group_leave", {"group": "guild"}),
                ):
                    result = await alice.call_tool(tool, {**given, name: "bob"})
                    assert result.is_error, (tool, name)
            forged = {"memory_source": '["bob", 0, "x", "bob", "x", 1]'}
            added = {"content": "bob said so", "metadata": forged}
            assert (await alice.call_tool("memory_add", added)).is_error
            told = await alice.call_tool("memory_tell", {"memory_id": mine[0], "to": ["bob"]})
            assert not told.is_error
            assert theirs[0] not in told.model_dump_json()
        async with over_http(served.url, served.bob) as bob:
            for tool in ("memory_get", "memory_tell", "memory_retract"):
                given = {
                    "memory_id": mine[0],
                    **({"to": ["alice"]} if tool == "memory_tell" else {}),
                }
                assert "MemoryNotFound" in text_of(await bob.call_tool(tool, given)), tool

    anyio.run(main)
    with MemoryBank.at(served.folder) as bank:
        told = [each for each in bank.agent("bob").all() if each.source is not None]
        assert [(each.source.teller, each.speaker) for each in told] == [("alice", "alice")]


def memories(folder: Path, agent: str) -> list[tuple[object, ...]]:
    with MemoryBank.at(folder) as bank:
        return [
            (each.id, each.content, each.tier, each.temperature, each.retention)
            for each in bank.agent(agent).all()
        ]


def test_headers_and_meta_say_nothing_about_the_agent(served: Served) -> None:
    params = {"name": "memory_query", "arguments": {}, "_meta": {"agent_id": "bob"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    more = {"X_Agent": "bob", "Mcp_Session_Id": "bob", "X_Forwarded_User": "bob", "Cookie": "a=bob"}
    answer = served.post(served.alice, json.dumps(message), **more)
    assert "xanadu" in answer.text
    assert "zembla" not in answer.text


# Whatever comes


@pytest.mark.slow
def test_no_body_breaks_the_server(served: Served) -> None:
    values = ['"\\ud800"', '"\\u0000"', "1e999", "1" * 5000, '"%s"' % ("x" * 2_000_000)]
    values += [f"{'[' * depth}{']' * depth}" for depth in (100, 900, 5_000, 100_000)]
    for version, (name, operation), value in itertools.product(
        ("2025-06-18", "2026-07-28"), OPERATIONS.items(), values
    ):
        place = next(iter(operation.arguments["properties"]), "x")
        body = CALL % (name, f'{{"{place}": {value}}}')
        answer = served.post(served.alice, body, **named(version, name))
        assert "error" in answer.json() or answer.json()["result"]["isError"]
        assert "InternalError" not in answer.text
        assert len(answer.text) < 5_000


def test_what_is_no_request_is_refused(served: Served) -> None:
    bodies: list[str | bytes] = ["", "null", "[]", "{", "7", b'"\xed\xa0\x80"', "[" * 100_000]
    bodies += [CALL % ("memory_status", "7"), CALL % ("\\ud800", "{}"), f"[{CALL % ('a', '{}')}]"]
    for body, version in itertools.product(bodies, ("2025-06-18", "2026-07-28", "1999", "\x7f")):
        answer = served.post(served.alice, body, **named(version, "memory_status"))
        assert answer.status_code in (200, 400), (answer, body[:80])
        assert "error" in answer.json() or answer.json()["result"]["isError"], body[:80]
    assert served.post(served.alice, "x" * (7 << 20)).status_code == 413
    assert served.http.get(served.url, headers=HEADERS).status_code == 405
    assert served.post(served.alice).status_code == 200


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_clients_that_vanish_in_the_middle_leave_it_whole(served: Served, version: str) -> None:
    url = httpx.URL(served.url)
    body = CALL % ("store_memory", json.dumps({"content": version}))
    own = {"Authorization": f"Bearer {served.alice}", "Host": url.netloc.decode()}
    headers = {**HEADERS, **own, **named(version, "store_memory")}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = "\r\n".join(["POST /mcp HTTP/1.1", *lines, f"Content-Length: {len(body)}", "", ""])
    whole = (head + body).encode()
    for length in (*range(0, len(whole), 40), *[len(whole)] * 10):
        with socket.create_connection((url.host, url.port or 0)) as line:
            line.sendall(whole[:length])
    for _ in range(600):  # it may still be busy with what the vanished asked for
        answer = served.post(served.alice)
        if answer.status_code != 503:
            break
        time.sleep(0.1)
    assert answer.status_code == 200
    assert texts(served.folder).count(version) <= 10


# Without tokens, and the end


def test_without_tokens_all_are_the_one_agent_until_there_is_one(tmp_path: Path) -> None:
    folder = bank_in(tmp_path / "bank")

    async def store(url: str) -> None:
        async with over_http(url) as client:
            await client.call_tool("store_memory", {"content": "acknowledged"})
            assert "xanadu" in str(await client.read_resource("memory://context"))

    with serving(folder, "--agent", "alice", *QUIET) as (url, process):
        anyio.run(store, url)
        headers = {"Authorization": f"Bearer {tokens.create(folder, 'alice').token}", **HEADERS}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert httpx.post(url, json=message, headers=HEADERS).status_code == 401
        assert httpx.post(url, json=message, headers=headers).status_code == 200
        process.send_signal(signal.SIGINT)
        assert exit_code(process) == 0
        assert process.stdout is not None
        assert process.stdout.read() == b""
    assert "acknowledged" in texts(folder)


@pytest.mark.slow
def test_what_was_answered_before_the_end_is_kept(tmp_path: Path) -> None:
    folder = bank_in(tmp_path / "bank")
    acknowledged: list[str] = []

    async def storing(http: httpx.AsyncClient, url: str, start: int) -> None:
        for number in itertools.count(start, 4):
            content = f"fact {number}"
            params = {"name": "store_memory", "arguments": {"content": content}}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            try:
                answer = await http.post(url, json=message, headers=HEADERS)
            except httpx.HTTPError:
                return
            if "result" in answer.json():
                acknowledged.append(answer.json()["result"]["structuredContent"]["content"])

    async def main() -> None:
        with serving(folder, "--agent", "alice", *QUIET) as (url, process):
            async with httpx.AsyncClient() as http, anyio.create_task_group() as group:
                for start in range(4):
                    group.start_soon(storing, http, url, start)
                while len(acknowledged) < 20:
                    await anyio.sleep(0.01)
                process.send_signal(signal.SIGTERM)
            assert exit_code(process) == 0

    anyio.run(main)
    assert set(acknowledged) <= set(texts(folder))


def test_a_port_in_use_is_one_clear_error(tiermem: Any, served: Served, tmp_path: Path) -> None:
    port = httpx.URL(served.url).port
    done = tiermem("mcp", tmp_path / "new", "--create", "-a", "alice", "--http", "--port", port)
    assert done.is_one_error(2, f"can't listen on 127.0.0.1 port {port}")
    assert not (tmp_path / "new").exists()
