"""``tiermem mcp`` over standard streams, as a client starts it; and what the command refuses."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_clients import COMMAND, bank_in, child, over_streams, text_of, texts
from mcp_versions import Client

import waiting
import warm_children
from agents import MemoryBank
from agents.tools import OPERATIONS
from banks import ROOT
from waiting import LONG, exit_code

Command = Callable[..., Any]

HOWTO = ROOT / "docs" / "howto" / "mcp.md"
QUIET = ("--set", "storage.sync=manual")
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "a test", "version": "1"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return bank_in(tmp_path / "bank")


class Talk:
    """JSON-RPC by hand."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.input, self.output = process.stdin, process.stdout
        self.number = 0
        assert self.ask("initialize", HELLO)["result"]["serverInfo"]["name"] == "tiermem"
        self.line(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    def line(self, text: str | bytes) -> None:
        self.input.write((text if isinstance(text, bytes) else text.encode()) + b"\n")
        self.input.flush()

    def send(self, method: str, params: dict[str, Any]) -> None:
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.line(json.dumps(message))

    def answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.output.readline())
        return answer

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.send(method, params)
        answer = self.answer()
        assert answer["id"] == self.number
        return answer

    def store(self, content: str) -> None:
        """Store a memory, and wait until that is acknowledged."""
        answer = self.ask("tools/call", stored(content))
        assert answer["result"]["structuredContent"]["content"] == content


def stored(content: str) -> dict[str, Any]:
    return {"name": "store_memory", "arguments": {"content": content}}


def state(folder: Path) -> str:
    with MemoryBank.at(folder) as bank:
        return bank.state_hash()


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """The exit code, and what it said beside the protocol."""
    assert process.stderr is not None
    code = exit_code(process)
    return code, process.stderr.read()


# A session


@pytest.mark.slow
def test_a_client_starts_it_as_the_howto_says_and_uses_everything(tmp_path: Path) -> None:
    page = HOWTO.read_text()
    given = json.loads(page.split("```json")[1].split("```")[0])["mcpServers"]["memory"]
    assert given["command"] == "tiermem"
    command, named, who, agent, *options = given["args"]
    assert (command, who) == ("mcp", "--agent")
    folder = tmp_path / Path(named).name
    with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
        bank.agent("bob").add("I listen")
        bank.group("guild", members=[agent, "bob"])

    async def main() -> None:
        started = over_streams(folder, *options, *QUIET, "--advance", agent=agent)
        async with Client(started, mode="legacy") as client:
            assert client.server_info.name == "tiermem"
            listed = (await client.list_tools()).tools
            assert [tool.name for tool in listed] == list(OPERATIONS)
            first = await client.call_tool("store_memory", {"content": "Löwe\u2028"})
            for name, operation in OPERATIONS.items():
                arguments = dict(operation.example)
                if "memory_id" in arguments:
                    arguments["memory_id"] = first.structured_content["id"]
                result = await client.call_tool(name, arguments)  # the client checks the schema
                if name in ("memory_update", "memory_tell", "memory_retract"):  # of a forgotten one
                    assert "has no memory" in text_of(result)
                else:
                    assert not result.is_error, text_of(result)
            uris = [each.uri for each in (await client.list_resources()).resources]
            notes = ["memory://notes/MEMORY.md", "memory://notes/memory/trade.md"]
            assert uris == ["memory://context", "memory://status", *notes]
            (note,) = (await client.read_resource(uris[2])).contents
            assert note.text == "Never trade fish with Bob again.\n"  # type: ignore[union-attr]
            assert len((await client.get_prompt("flush")).messages) == 1
            templates = (await client.list_resource_templates()).resource_templates
            prompts = (await client.list_prompts()).prompts
            for name in (*uris[:2], templates[0].uri_template, *(p.name for p in prompts)):
                assert f"`{name}`" in page
            offered = re.findall(r"`(\w+)`", page.partition("`--tell` adds")[2].partition(".")[0])
            assert sorted(offered) == sorted(
                name
                for name, each in OPERATIONS.items()
                if each.permission not in ("read", "write")
            )

    anyio.run(main)
    assert "NEVER transfer to agent_X (scammer)" in texts(folder)


@pytest.mark.slow
def test_read_only_offers_only_what_reads(folder: Path) -> None:
    async def main() -> None:
        async with Client(over_streams(folder, "--read-only", *QUIET)) as client:
            for tool in (await client.list_tools()).tools:
                assert tool.annotations is not None
                assert tool.annotations.read_only_hint
            refused = await client.call_tool("store_memory", {"content": "x"})
            assert text_of(refused).startswith("NotAllowed: store_memory changes the memory")
            for _ in range(20):
                found = await client.call_tool("memory_search", {"query": "where is the well?"})
                assert "xanadu" in text_of(found)
            await client.get_prompt("recall", {"query": "the well"})

    before = state(folder)
    anyio.run(main)
    assert state(folder) == before


@pytest.mark.slow
def test_notes_are_indexed_while_it_serves(folder: Path) -> None:
    soon = ("--set", "notes.watch_debounce=0")
    with child(folder, "--agent", "alice", *QUIET, *soon) as process:
        talk = Talk(process)
        (folder / "notes/alice/memory/new.md").write_text("the dragon sleeps at noon\n")
        query = {"name": "memory_query", "arguments": {"query": "dragon", "min_score": 0.4}}

        def is_found() -> bool:  # it looks at no file
            return "dragon sleeps" in str(talk.ask("tools/call", query))

        waiting.until("the server finds the note", is_found)
        process.send_signal(signal.SIGTERM)
        assert ended(process) == (0, b"")


# The end


def test_a_signal_closes_the_bank_and_loses_nothing(folder: Path) -> None:
    with child(folder, "--agent", "alice", *QUIET) as process:
        talk = Talk(process)
        for n in range(5):
            talk.store(f"fact {n}")
        process.send_signal(signal.SIGTERM)
        assert ended(process) == (0, b"")
    assert texts(folder)[-5:] == [f"fact {n}" for n in range(5)]
    MemoryBank.open(folder, storage={"sync": "manual"}).close()  # nobody has it open any more


def asked_at_once(
    folder: Path,
    messages: list[dict[str, Any]],
    last: bytes = b"\n",
    command: tuple[str, ...] = COMMAND,
) -> list[Any]:
    """What is answered to messages that all came before the input ended."""
    notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    hello = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": HELLO}
    lines = [json.dumps(each).encode() for each in (hello, notice, *messages)]
    with child(folder, "--agent", "alice", *QUIET, command=command) as process:
        said, _ = waiting.ended(process, b"\n".join(lines) + last)
        assert process.returncode == 0
    hello_answer, *others = map(json.loads, said.splitlines())
    assert hello_answer["id"] == "hello"
    return others


def test_its_end_does_not_wait_for_mem0s_store(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    MemoryBank.open(folder).close()
    with child(folder, "--agent", "alice", "--set", "storage.sync=close") as process:
        Talk(process).store("fact")
        process.send_signal(signal.SIGTERM)
        assert ended(process) == (0, b"")
    assert "fact" in texts(folder)
    assert not (folder / "chroma").exists()


def test_all_that_was_asked_before_the_input_ended_is_done_and_answered(folder: Path) -> None:
    wanted = [f"fact {n}" for n in range(50)]
    calls = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": stored(text)}
        for number, text in enumerate(wanted)
    ]
    answers = asked_at_once(folder, calls)
    told = {each["id"]: each["result"]["structuredContent"]["content"] for each in answers}
    assert told == dict(enumerate(wanted))
    assert texts(folder)[-50:] == wanted


@pytest.mark.slow
def test_a_last_line_without_an_end_is_a_message(folder: Path) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": stored("the last word")}
    (answer,) = asked_at_once(folder, [call], last=b"")
    assert answer["result"]["structuredContent"]["content"] == "the last word"
    assert texts(folder)[-1] == "the last word"


# It would wait for answers longer than a test waits for its end.
PATIENT = (
    sys.executable,
    "-c",
    "import agents.interfaces.mcp.stdio as streams\n"
    f"streams._SECONDS_TO_ANSWER = {2 * LONG}\n"
    "from agents.interfaces.cli.app import main; main()",
    "mcp",
)


@pytest.mark.slow
def test_the_end_does_not_wait_for_a_request_that_was_cancelled(folder: Path) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": stored("perhaps")}
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    asked_at_once(folder, [call, cancel], command=PATIENT)


@pytest.mark.slow
def test_a_client_that_is_gone_ends_it_and_loses_nothing(folder: Path) -> None:
    with child(folder, "--agent", "alice", *QUIET) as process:
        talk = Talk(process)
        talk.store("acknowledged")
        for n in range(20):
            talk.send("tools/call", stored(f"perhaps {n} " + "x" * 9000))
        talk.output.close()  # it dies in the middle, and reads no answer
        talk.input.close()
        code, said = ended(process)
        assert (code, b"Traceback" in said) == (0, False)
    kept = texts(folder)
    assert "acknowledged" in kept
    perhaps = [int(text.split()[1]) for text in kept if text.startswith("perhaps")]
    assert perhaps == sorted(set(perhaps))  # a call that nobody waits for is done once, or not


@pytest.mark.slow
def test_a_client_that_reads_no_answers_can_still_end_it(folder: Path) -> None:
    with child(folder, "--agent", "alice", *QUIET) as process:
        talk = Talk(process)
        for n in range(12):
            talk.store(f"fact {n} " + "y" * 16_000)
        for _ in range(3):  # of which each answer is more than the pipe holds
            talk.send("tools/call", {"name": "memory_query", "arguments": {"limit": 100}})
        process.send_signal(signal.SIGTERM)
        assert ended(process)[0] == 0
    assert len(texts(folder)) > 12


@pytest.mark.slow
def test_killed_it_loses_nothing_acknowledged(folder: Path) -> None:
    with child(folder, "--agent", "alice", *QUIET) as process:
        talk = Talk(process)
        talk.store("acknowledged")
        process.kill()
        exit_code(process)
    assert "acknowledged" in texts(folder)


# What is not a message


def test_lines_that_are_no_messages_are_answered_with_errors(folder: Path) -> None:
    with child(folder, "--agent", "alice", *QUIET) as process:
        talk = Talk(process)
        call = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":%s}'
        lines: list[str | bytes] = [
            "hello",
            "",
            "[]",
            '{"jsonrpc":"2.0"}',
            b"\xff\xfe\x00",
            "[" * 100_000,
            "x" * (5 << 20),
        ]
        for line in lines:
            talk.line(line)
            answer = talk.answer()
            assert answer["id"] is None
            assert answer["error"] == {
                "code": -32700,
                "message": "this is not a JSON-RPC message",
            }
        for params in ("7", "null", '{"name":7}', '{"name":"pin_memory","arguments":[]}'):
            talk.line(call % params)
            answer = talk.answer()
            assert (answer["id"], answer["error"]["code"]) == (9, -32602), answer
        talk.store("still there")
        talk.input.close()
        assert ended(process)[0] == 0


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("text", [b"x\\ud800", b"x\\uDFFFy", b"x\xff"])
def test_a_request_with_text_that_is_not_unicode_is_answered_by_its_id(
    folder: Path, text: bytes
) -> None:
    before = texts(folder)
    with child(folder, "--agent", "alice", *QUIET) as process:
        talk = Talk(process)
        for number in (b"9", b'"nine"'):
            params = b'{"name":"store_memory","arguments":{"content":"%s"}}' % text
            call = b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":%s}'
            talk.line(call % (number, params))
            answer = talk.answer()
            assert (answer["id"], answer["error"]["code"]) == (json.loads(number), -32602)
            assert "is not Unicode" in answer["error"]["message"]
        talk.line(b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}')
        assert talk.answer()["id"] is None  # which can't be said
    assert texts(folder) == before


def test_nothing_but_the_protocol_is_on_standard_output(folder: Path) -> None:
    """What a library prints while the bank is opened and served goes to standard error."""
    noisy = (
        "import os, sys; from agents import tools; from agents.bank import opening\n"
        "from agents.interfaces.cli.app import main\n"
        "was = opening.Opening.in_folder\n"
        "def noise(text): print(text); sys.stdout.flush(); os.system(f'echo {text}'); return {}\n"
        "def opened(*a, **k): noise('opening'); return was(*a, **k)\n"
        "opening.Opening.in_folder = opened\n"
        "status = tools.OPERATIONS['memory_status']\n"
        "changed = status._replace(run=lambda *_: noise('calling'))\n"
        "tools.OPERATIONS['memory_status'] = changed\n"
        "main()\n"
    )
    command = [sys.executable, "-c", noisy, "mcp", str(folder), "-a", "alice", *QUIET]
    pipe = subprocess.PIPE
    with warm_children.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        talk = Talk(process)
        answer = talk.ask("tools/call", {"name": "memory_status"})
        assert answer["result"]["structuredContent"] == {}
        talk.input.close()
        code, said = ended(process)
        assert (code, talk.output.read()) == (0, b"")
        assert said.split() == [b"opening"] * 2 + [b"calling"] * 2


# Mistakes


def test_a_mistake_in_the_command_is_one_clear_error(tiermem: Command, folder: Path) -> None:
    for arguments, code, said in (
        ((folder,), 2, "do: give --agent"),
        ((folder, "--http"), 2, "or let all be one agent with --agent"),
        ((folder, "-a", "*"), 2, "'*' is not an agent id"),
        ((folder, "-a", "alice", "--port", 1), 2, "--port goes with --http"),
        ((folder, "-a", "alice", "--host", "::1"), 2, "--host goes with --http"),
        ((folder, "-a", "alice", "--rate", 5), 2, "--rate goes with --http"),
        ((folder, "-a", "alice", "--http", "--rate", "nan"), 2, "for '--rate'"),
        ((folder, "-a", "alice", "--http", "--host", "0.0.0.0"), 2, "has no token"),
        ((folder, "-a", "alice", "--http", "--host", "example.org"), 2, "has no token"),
        ((folder, "-a", "alice", "--http", "--host", "127.0.0.1\0"), 2, "has no token"),
        (("nowhere", "-a", "alice"), 1, "there is no bank in nowhere"),
        (("nowhere", "-a", "alice", "--http"), 1, "--create makes one"),
        ((folder, "-a", "alice", "--http", "--set", "memory.max_pin=3"), 2, "max_pinned?"),
    ):
        tiermem("mcp", *arguments).is_one_error(code, said)
    assert not Path("nowhere").exists()


def test_a_bank_in_use_says_by_whom(tiermem: Command, folder: Path) -> None:
    with MemoryBank.open(folder, storage={"sync": "manual"}):
        done = tiermem("mcp", folder, "-a", "alice", "--http", "--port", 0)
        assert done.is_one_error(1, str(os.getpid()))


def test_without_the_library_it_says_what_to_install(
    tiermem: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = tiermem("mcp", folder, "--agent", "alice")
    assert done.is_one_error(2, "pip install 'tiermem[mcp]'")
