"""What one client may not do to the others: take every turn, every connection, or all the room."""

import concurrent.futures
import contextlib
import re
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from http_service import (
    EAGER,
    JSON,
    Served,
    child,
    client,
    eventually,
    head,
    is_problem,
    occupied,
    served,
)

from agents import MemoryBank
from agents.interfaces import tokens
from agents.interfaces.http.limits import Shares
from embedders import Directions
from waiting import LONG

MIB = 1024 * 1024


# Turns


def test_a_share_is_a_quarter_and_all_of_them_are_the_whole() -> None:
    shares = Shares(8)
    assert [shares.take("a") for _ in range(3)] == [True, True, False]
    assert all(shares.take(key) for key in "bcd" for _ in range(2))
    assert not shares.take("e")
    shares.give_back("a")
    assert shares.take("e")
    assert not shares.take("a")


class Recording(Directions):
    """Remembers what it embedded, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        return super().embed(texts)


def test_a_client_waits_for_one_request_of_another_and_not_for_all(tmp_path: Path) -> None:
    embedder = Recording()
    with (
        served(tmp_path / "bank", embedder=embedder) as service,
        service.agent("alice") as alice,
        service.agent("bob") as bob,
        concurrent.futures.ThreadPoolExecutor(10) as pool,
    ):
        with occupied(service.bank):
            for number in range(8):
                pool.submit(alice.post, "/memory", json={"content": f"alice {number}"})
            time.sleep(0.5)
            said = pool.submit(bob.post, "/memory", json={"content": "bob"})
            time.sleep(0.3)
        assert said.result().status_code == 201
        assert "bob" in embedder.texts[:2]
        eventually(lambda: len(embedder.texts) == 9)


class Work:
    """Counts the characters of the lines of notes that are looked at."""

    def __init__(self) -> None:
        self.characters = 0

    def __call__(self, text: str, /) -> int:
        self.characters += len(text)
        return -(-len(text) // 4)


class Measured(Recording):
    """Remembers as well how much work was done before each text."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self.work = work
        self.before: dict[str, int] = {}

    def embed(self, texts: Sequence[str]) -> Any:
        self.before |= dict.fromkeys(texts, self.work.characters)
        return super().embed(texts)


@pytest.mark.slow
def test_a_client_waits_for_one_cut_of_anothers_note_and_not_for_all(tmp_path: Path) -> None:
    """One token appends single characters to a long note of the kind that is cut most slowly.

    Each append cuts the note as a whole, and four of them wait.
    """
    work = Work()
    embedder = Measured(work)
    with (
        served(tmp_path / "bank", embedder=embedder, count_tokens=work) as service,
        service.agent("alice") as alice,
        service.agent("bob") as bob,
        concurrent.futures.ThreadPoolExecutor(10) as pool,
    ):
        note = service.bank.agent("alice").notes
        note.write("MEMORY.md", "---\r\nkey: 1\r\n```\r\n" + "words of a note\r\n" * 15_000)
        note.append("x", "MEMORY.md")
        for number in range(3):
            with occupied(service.bank):
                start, seen = work.characters, len(embedder.texts)
                more = {"path": "MEMORY.md", "text": "x"}
                appended = [pool.submit(alice.post, "/notes", json=more) for _ in range(4)]
                time.sleep(0.3)
                said = pool.submit(bob.post, "/memory", json={"content": f"bob {number}"})
                time.sleep(0.3)
            assert said.result().status_code == 201
            assert f"bob {number}" in embedder.texts[seen : seen + 2]
            assert embedder.before[f"bob {number}"] - start < 2 * len(note.read())  # one cut
            assert {each.result().status_code for each in appended} == {200}
        assert note.read().endswith("words of a note\r\n" + "x\n" * 13)


def test_bodies_take_no_more_room_than_there_is(tmp_path: Path) -> None:
    limits = EAGER._replace(body_bytes=MIB, bodies=4)
    with served(tmp_path / "bank", limits) as service:
        token = tokens.create(service.folder, "alice").token
        large = b'{"content": "' + b"x" * (MIB - 1000)
        with contextlib.ExitStack() as held:
            sock = socket.create_connection(("127.0.0.1", service.port))
            held.enter_context(sock).sendall(head(token, f"Content-Length: {MIB}") + large)

            def refused(agent: httpx.Client) -> bool:
                answer = agent.post("/memory", content=large + b'"}', headers=JSON)
                return answer.status_code == 503 and is_problem(answer, 503, "Busy")

            with service.client(token) as alice, service.agent("bob") as bob:
                eventually(lambda: refused(alice))
                assert alice.get("/status").status_code == 200
                assert not refused(bob)
        with service.client(token) as alice:
            eventually(lambda: not refused(alice))


# Connections


@pytest.mark.long
def test_idle_connections_leave_the_bank_the_files_it_needs(tmp_path: Path) -> None:
    MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}).close()
    token = tokens.create(tmp_path / "bank", "alice").token
    with child(tmp_path / "bank", "--quiet", files=256) as server, contextlib.ExitStack() as held:
        port = int(server.url.rpartition(":")[2])
        assert httpx.get(f"{server.url}/health").status_code == 200
        for _ in range(400):
            sock = socket.create_connection(("127.0.0.1", port), timeout=LONG)
            held.enter_context(sock)
        with client(server.url, token) as alice:
            note = {"text": "during the flood", "path": "memory/flood.md"}
            assert alice.post("/notes", json=note).status_code == 200
            assert alice.post("/memory", json={"content": "during the flood"}).status_code == 201
            assert alice.post("/memory/recall", json={"query": "flood"}).status_code == 200
        held.close()
        with client(server.url, token) as alice:
            assert alice.get("/status").status_code == 200
        assert server.stop() == (0, "")


# Answers


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A bank with 14 MB of memories of alice, and a service that waits for nobody."""
    options = {"memory": {"max_content_bytes": MIB}, "embedder": {"provider": "none"}}
    limits = EAGER._replace(head_seconds=0.3, seconds=2.0)
    with served(tmp_path_factory.mktemp("http") / "bank", limits, **options) as running:
        for number in range(14):
            running.bank.agent("alice").add(f"{number} " + "x" * (MIB - 10))
        yield running


def begun(service: Served) -> socket.socket:
    """A connection on which all that alice remembers was asked for."""
    token = tokens.create(service.folder, "alice").token
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    sock.settimeout(LONG)
    sock.connect(("127.0.0.1", service.port))
    body = b'{"limit": 100}'
    sock.sendall(head(token, f"Content-Length: {len(body)}", path="/memory/query") + body)
    return sock


@pytest.mark.slow
def test_a_long_answer_may_be_read_slowly(library: Served) -> None:
    while True:
        is_whole, seconds, pause = read_slowly(library)
        if is_whole or pause < 0.5:  # else a busy machine let the reader wait: try again
            break
    assert is_whole
    assert seconds > 2.0


def read_slowly(library: Served) -> tuple[bool, float, float]:
    """Whether a slow reader got the whole answer, how long it read, and its longest pause."""
    with begun(library) as sock:
        answer = bytearray(sock.recv(65536))
        whole = int(re.search(rb"content-length: (\d+)", answer)[1])  # type: ignore[index]
        assert whole > 14_000_000
        began = last = time.monotonic()
        pause = 0.0
        while len(answer) < whole and (part := sock.recv(65536)):
            answer += part
            time.sleep(0.02)
            pause, last = max(pause, time.monotonic() - last), time.monotonic()
        return len(answer) > whole, time.monotonic() - began, pause


@pytest.mark.slow
def test_an_answer_that_nobody_reads_is_cut_off(library: Served) -> None:
    with begun(library) as sock:
        time.sleep(4.0)
        read = 0
        with contextlib.suppress(ConnectionResetError):
            while part := sock.recv(MIB):
                read += len(part)
        assert read < 14_000_000
