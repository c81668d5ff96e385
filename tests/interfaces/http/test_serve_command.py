"""The command that serves a bank, as a process of its own."""

import builtins
import concurrent.futures
import json
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import http_service
import httpx
import pytest
from http_service import child, client, eventually, is_problem

import warm_children
from agents import MemoryBank
from agents.interfaces import tokens
from openai_server import OpenAIServer
from waiting import LONG, exit_code, until

pytestmark = pytest.mark.slow_after(1)

Command = Callable[..., Any]

OFFLINE = ("--set", "storage.sync=manual")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}).close()
    return tmp_path / "bank"


# Starting


def test_it_says_where_it_listens_and_for_whom(folder: Path) -> None:
    for agent in ("alice", "bob", "alice"):
        token = tokens.create(folder, agent).token
    with child(folder) as server:
        assert server.line.startswith(f"serving {folder} on http://127.0.0.1:")
        assert server.line.endswith(" for alice, bob (3 tokens)\n")
        with client(server.url, token) as alice, client(server.url) as nobody:
            assert alice.get("/status").status_code == 200
            is_problem(nobody.get("/status"), 401)
        assert server.stop()[0] == 0


def test_without_tokens_it_serves_one_agent_to_this_machine(tmp_path: Path) -> None:
    with child(tmp_path / "new", "--create", "--agent", "alice", *OFFLINE) as server:
        assert "for alice (no token needed on this machine)" in server.line
        with client(server.url) as alice:
            identifier = alice.post("/memory", json={"content": "hello"}).json()["id"]
        server.stop()
    with MemoryBank.at(tmp_path / "new") as bank:
        assert bank.agent("alice").get(identifier).content == "hello"


def test_settings_go_on_top_of_the_banks(folder: Path) -> None:
    setting = ("--set", "memory.max_content_bytes=10")
    with child(folder, "-a", "alice", *setting) as server, client(server.url) as alice:
        is_problem(alice.post("/memory", json={"content": "x" * 11}), 422, "InvalidContent")


def test_notes_are_indexed_while_it_serves(folder: Path) -> None:
    soon = ("--set", "notes.watch_debounce=0")
    with child(folder, "-a", "alice", *OFFLINE, *soon) as server, client(server.url) as alice:
        note = folder / "notes" / "alice" / "MEMORY.md"
        note.parent.mkdir(parents=True)
        note.write_text("the dragon sleeps at noon\n")

        def is_found() -> bool:  # it looks at no file
            found = alice.post("/memory/query", json={"query": "dragon"}).json()["results"]
            return [each["kind"] for each in found] == ["note"]

        until("the service finds the note", is_found)
        assert server.stop()[0] == 0


def test_the_rate_can_be_set(folder: Path) -> None:
    with child(folder, "-a", "alice", "--rate", "0.1") as server, client(server.url) as alice:
        assert 429 in [alice.get("/status").status_code for _ in range(12)]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ([], ["has no token", "tiermem token create", "--agent"]),
        (["--host", "0.0.0.0", "--agent", "alice"], ["can be reached by others", "no token"]),
        (["--host", "192.0.2.1"], ["can be reached by others"]),
        (["--agent", "*"], ["is not an agent id"]),
        (["--agent", "alice", "--set", "memory.max_pined=3"], ["did you mean memory.max_pinned?"]),
        (["--agent", "alice", "--preset", "lifetme"], ["did you mean lifetime?"]),
        (["--agent", "alice", "--allow-origin", "*"], ["--allow-origin '*'", "https://app.example"]),
        (["-a", "alice", "--allow-origin", "https://a.example/page"], ["not the origin of a page"]),
        *(
            (["-a", "alice", option, value], [option])
            for option in ("--timeout", "--rate")
            for value in ("inf", "nan", "1e400", "-inf", "0", "86400000")
        ),
    ],
)  # fmt: skip
def test_it_refuses_to_start_and_says_why(
    tiermem: Command, folder: Path, options: list[str], parts: list[str]
) -> None:
    assert tiermem("serve", folder, "--port", "0", *options).is_one_error(2, *parts)


def test_it_takes_no_agent_where_there_are_tokens(tiermem: Command, folder: Path) -> None:
    tokens.create(folder, "alice")
    assert tiermem("serve", folder, "--agent", "alice").is_one_error(2, "has tokens")


def test_where_every_token_was_revoked_it_says_how_to_go_on(tiermem: Command, folder: Path) -> None:
    tokens.create(folder, "alice")
    tokens.revoke(folder, "alice")
    for options in ([], ["--agent", "alice"]):
        done = tiermem("serve", folder, "--port", "0", *options)
        assert done.is_one_error(2, "was revoked", "tiermem token create", "delete", "tokens.json")


def test_it_trusts_no_tokens_that_others_can_change(tiermem: Command, folder: Path) -> None:
    tokens.create(folder, "alice")
    (folder / "tokens.json").chmod(0o666)
    assert tiermem("serve", folder).is_one_error(1, "chmod 600")


def test_it_makes_no_bank_unless_told(tiermem: Command, tmp_path: Path) -> None:
    assert tiermem("serve", "nowhere", "-a", "alice").is_one_error(1, "there is no bank in nowhere")
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_named(tiermem: Command, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = tiermem("serve", folder, "-a", "alice", "--port", port)
        assert done.is_one_error(2, f"can't listen on 127.0.0.1 port {port}", "--port")


def test_a_bank_in_use_is_named(tiermem: Command, folder: Path) -> None:
    with MemoryBank.open(folder):
        assert tiermem("serve", folder, "-a", "a", "--port", "0").is_one_error(1, "is open in")


def test_what_is_not_installed_is_named(
    tiermem: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.startswith("tiermem.interfaces.http")]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def without_uvicorn(name: str, *arguments: Any) -> Any:
        if name.split(".")[0] == "uvicorn":
            raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_uvicorn)
    done = tiermem("serve", folder, "-a", "alice")
    assert done.is_one_error(2, "needs the package uvicorn", "pip install 'tiermem[http]'")


# Running


def test_the_log_has_requests_and_no_text_of_memories(folder: Path) -> None:
    token = tokens.create(folder, "alice", name="laptop").token
    with child(folder, *OFFLINE) as server:
        with client(server.url, token) as alice:
            made = alice.post("/memory", json={"content": "the word is xyzzy"}).json()
            alice.post("/memory/search", json={"query": "xyzzy"})
            alice.get(f"/memory/{made['id']}")
            alice.get("/xyzzy?q=xyzzy")
            alice.post("/memory", json={"content": "xyzzy", "xyzzy": "xyzzy"})
        code, log = server.stop()
    assert code == 0
    assert "laptop POST /memory 201" in log
    assert "laptop GET /memory/{memory_id} 200" in log
    assert "xyzzy" not in log
    assert token not in log
    assert "Traceback" not in log


def test_it_can_be_quiet(folder: Path) -> None:
    with child(folder, "-a", "alice", "--quiet", *OFFLINE) as server:
        with client(server.url) as alice:
            alice.get("/status")
        assert server.stop() == (0, "")


# Stopping


class Writer(threading.Thread):
    """Stores memories as fast as it can, and remembers which were acknowledged."""

    def __init__(self, url: str, token: str, number: int) -> None:
        super().__init__()
        self._client = client(url, token)
        self._number = number
        self.kept: dict[str, str] = {}
        self.problems: list[str] = []

    def run(self) -> None:
        with self._client as http:
            for count in range(100_000):
                content = f"writer {self._number} wrote number {count}"
                try:
                    answer = http.post("/memory", json={"content": content})
                except httpx.TransportError:  # it has stopped
                    return
                if answer.status_code == 201:
                    self.kept[answer.json()["id"]] = content
                elif answer.status_code != 503:
                    self.problems.append(answer.text)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_while_others_write_it_loses_nothing(folder: Path, how: int) -> None:
    names = ["alice", "bob", "carol"]
    made = [tokens.create(folder, name).token for name in names]
    with child(folder, "--quiet", "--rate", "100000", *OFFLINE) as server:
        writers = [Writer(server.url, token, n) for n, token in enumerate(made)]
        for writer in writers:
            writer.start()
        eventually(lambda: all(len(writer.kept) > 10 for writer in writers))
        code, log = server.stop(how)
        for writer in writers:
            writer.join(LONG)
    assert code == 0
    assert "Traceback" not in log
    assert [problem for writer in writers for problem in writer.problems] == []
    with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
        for name, writer in zip(names, writers, strict=True):
            for identifier, content in writer.kept.items():
                assert bank.agent(name).get(identifier).content == content


def test_a_request_that_was_begun_is_finished(folder: Path) -> None:
    with child(folder, "-a", "alice", *OFFLINE) as server:
        port = int(server.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=LONG) as sock:
            body = json.dumps({"content": "in the last minute"}).encode()
            head = (
                "POST /memory HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
            )
            sock.sendall(head.encode())
            assert sock.recv(65536).startswith(b"HTTP/1.1 100")  # it reads the body now
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            sock.sendall(body)
            assert sock.recv(65536).startswith(b"HTTP/1.1 201")
        assert exit_code(server.process) == 0
    with MemoryBank.at(folder) as bank:
        assert [each.content for each in bank.agent("alice").all()] == ["in the last minute"]


def begun(url: str) -> socket.socket:
    """A connection with a request of which the server waits for the body."""
    sock = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=LONG)
    lines = ("POST /memory HTTP/1.1", "Host: localhost", "Content-Type: application/json")
    more = ("Content-Length: 100", "Expect: 100-continue", "", "")
    sock.sendall("\r\n".join((*lines, *more)).encode())
    assert sock.recv(65536).startswith(b"HTTP/1.1 100")
    return sock


def test_a_second_signal_gives_up_what_was_begun_and_says_so(tmp_path: Path) -> None:
    with child(tmp_path / "bank", "--create", "-a", "alice") as server:
        with client(server.url) as alice:
            assert alice.post("/memory", json={"content": "hello"}).status_code == 201
        with begun(server.url) as sock:
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            code, log = server.stop()
            answer = sock.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 503")
    assert b"problem+json" in answer
    assert b"urn:tiermem:problem:Stopping" in answer
    assert code == 130
    assert "Traceback" not in log
    assert not (tmp_path / "bank/journal.db-wal").exists()  # the bank was closed nevertheless
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        assert [each.content for each in bank.agent("alice").all()] == ["hello"]
        assert bank.sync() == 1  # it did not take the time to write mem0's store


class Pensive(OpenAIServer):
    """An embedder that takes its time."""

    asked = threading.Event()
    release = threading.Event()

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if "What is the meaning of it all?" in body["input"]:
            self.asked.set()
            self.release.wait(2 * LONG)  # longer than a test waits for the server's end
        return super().answer(path, body)


@pytest.mark.slow
def test_a_second_signal_waits_for_no_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    with Pensive() as embedder, concurrent.futures.ThreadPoolExecutor() as pool:
        config = {"model": "m", "embedding_dims": 32, "openai_base_url": embedder.url}
        values = {"embedder": {"provider": "openai", "config": config}}
        file = tmp_path / "config.yaml"
        file.write_text(json.dumps(values))
        options = ("--create", "-a", "alice", "--config", file, *OFFLINE)
        with child(tmp_path / "bank", *options) as server, client(server.url) as alice:
            kept = alice.post("/memory", json={"content": "hello"}).json()["id"]
            slow = {"content": "What is the meaning of it all?"}
            answer = pool.submit(alice.post, "/memory", json=slow)
            assert embedder.asked.wait(LONG)
            server.process.send_signal(signal.SIGINT)
            time.sleep(0.5)
            code, log = server.stop(signal.SIGINT)
            is_problem(answer.result(), 503, "Stopping")
        embedder.release.set()
    assert code == 130
    assert "Traceback" not in log
    with MemoryBank.at(tmp_path / "bank") as bank:
        assert [each.id for each in bank.agent("alice").all()] == [kept]


def test_an_idle_connection_does_not_keep_it_from_stopping(folder: Path) -> None:
    with child(folder, "-a", "alice", *OFFLINE) as server, client(server.url) as alice:
        alice.get("/status")
        assert server.stop()[0] == 0


def test_mem0s_store_is_up_to_date_when_it_has_stopped(tmp_path: Path) -> None:
    with child(tmp_path / "bank", "--create", "-a", "alice") as server:
        with client(server.url) as alice:
            assert alice.post("/memory", json={"content": "hello"}).status_code == 201
        code, log = server.stop()
    assert (code, "Traceback" in log) == (0, False)
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        assert bank.sync() == 0


@pytest.mark.slow
def test_killed_it_still_has_what_it_acknowledged(folder: Path) -> None:
    with child(folder, "-a", "alice", "--quiet", "--rate", "100000", *OFFLINE) as server:
        with client(server.url) as alice, concurrent.futures.ThreadPoolExecutor(4) as pool:
            texts = [f"number {n}" for n in range(60)]
            answers = pool.map(lambda text: alice.post("/memory", json={"content": text}), texts)
            kept = [answer.json()["id"] for answer in answers]
        server.process.kill()
        server.process.wait()
    with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
        assert {bank.agent("alice").get(each).content for each in kept} == set(texts)


def test_help_names_what_matters() -> None:
    shown = warm_children.run(
        [*http_service.COMMAND, "serve", "--help"], capture_output=True, text=True, check=True,
        env={"COLUMNS": "200", "PATH": "/usr/bin"},
    ).stdout  # fmt: skip
    for option in ("--host", "--port", "--agent", "--allow-host", "--allow-origin", "--rate"):
        assert option in shown
