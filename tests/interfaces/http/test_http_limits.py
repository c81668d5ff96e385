"""How much, how fast and how long: what a client may not do to the others."""

import asyncio
import contextlib
import http.client
import json
import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from http_service import EAGER, JSON, Served, eventually, head, is_problem, served
from starlette.types import Message

from agents import AsyncMemoryBank, MemoryBank
from agents.interfaces import tokens
from agents.interfaces.http.access import Names, TokenDoor
from agents.interfaces.http.limits import DEFAULT, Buckets
from agents.interfaces.http.service import Service
from waiting import LONG

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("http") / "bank") as running:
        yield running


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    limits = EAGER._replace(body_seconds=0.5, head_seconds=0.5)
    with served(tmp_path_factory.mktemp("http") / "bank", limits) as running:
        yield running


@pytest.fixture(scope="module")
def token(service: Served) -> str:
    return tokens.create(service.folder, "alice").token


@pytest.fixture
def alice(service: Served, token: str) -> Iterator[httpx.Client]:
    with service.client(token) as client:
        yield client


def raw(service: Served, *parts: bytes, seconds: float = LONG) -> bytes:
    """All that comes back for these bytes, until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=seconds) as sock:
        for part in parts:
            sock.sendall(part)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while part := sock.recv(65536):
                answer += part
        return answer


def is_healthy(service: Served) -> bool:
    with contextlib.suppress(httpx.TransportError), service.client() as client:
        return client.get("/health").status_code == 200
    return False


# Bodies


def test_the_largest_text_is_read_however_it_is_written_and_a_larger_body_is_not(
    tmp_path: Path,
) -> None:
    large = {"memory": {"max_content_bytes": MIB}, "embedder": {"provider": "none"}}
    with served(tmp_path / "bank", **large) as service, service.agent("alice") as alice:
        for text in ("\x01", "é", "🐉"):
            whole = text * (MIB // len(text.encode()))
            body = json.dumps({"content": whole}, ensure_ascii=True)
            answer = alice.post("/memory", content=body, headers=JSON)
            assert answer.status_code == 201, answer.text
        is_problem(alice.post("/memory", json={"content": "x" * 7 * MIB}), 413, "TooLarge")
        assert alice.get("/status").status_code == 200


def test_a_body_in_chunks_is_counted_as_it_comes(alice: httpx.Client) -> None:
    def endless(chunks: int) -> Iterator[bytes]:
        yield b'{"content": "'
        for _ in range(chunks):
            yield b"x" * 65536
        yield b'"}'

    is_problem(alice.post("/memory", content=endless(8), headers=JSON), 422, "InvalidContent")
    is_problem(alice.post("/memory", content=endless(120), headers=JSON), 413, "TooLarge")


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("length", ["7000000", "99999999999999999999", str(2**63)])
def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(
    service: Served, token: str, length: str
) -> None:
    answer = raw(service, head(token, f"Content-Length: {length}"))
    assert answer.startswith((b"HTTP/1.1 413", b"HTTP/1.1 400"))
    assert b"problem+json" in answer


def test_a_body_that_trickles_is_cut_off(impatient: Served) -> None:
    token = tokens.create(impatient.folder, "alice").token
    with socket.create_connection(("127.0.0.1", impatient.port), timeout=LONG) as sock:
        sock.sendall(head(token, "Transfer-Encoding: chunked"))
        with contextlib.suppress(OSError):
            for _ in range(int(LONG / 0.05)):
                sock.sendall(b"1\r\n \r\n")
                time.sleep(0.05)
            pytest.fail("it was not cut off")
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(65536).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize(
    "headers",
    [{}, {"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"},
     {"Content-Type": "application/json; charset=utf-16"},
     {"Content-Type": "application/json; x=y; charset=latin-1"},
     {"Content-Type": "application/json; charset=utf-8; charset=utf-16"},
     {"Content-Type": "application/jsonp"},
     {**JSON, "Content-Encoding": "gzip"}],
)  # fmt: skip
def test_a_body_that_is_not_plain_json_is_refused(
    alice: httpx.Client, headers: dict[str, str]
) -> None:
    is_problem(alice.post("/memory", content=b'{"content": "x"}', headers=headers), 415)


def test_the_type_of_json_may_have_parameters(alice: httpx.Client) -> None:
    for kind in ("application/json;charset=UTF-8", 'Application/JSON; charset="utf-8"',
                 "application/json; charset=utf-8; x=y", "application/json; boundary=x",
                 'application/json; x="a;charset=utf-16"', "application/json;"):  # fmt: skip
        done = alice.post("/memory", content=b'{"content": "x"}', headers={"Content-Type": kind})
        assert done.status_code == 201


@pytest.mark.parametrize(
    "body",
    [b"{", b"nope", b"\xff\xfe{", b'{"content": "\xff"}', b'\xef\xbb\xbf{"content": "x"}', b"{}{}",
     b"{'content': 'x'}", b'{"content": "x",}', b'{"content": "a\nb"}', b'{"content": NaN}',
     b'{"content": "x", "ttl": Infinity}', b'{"content": "x", "ttl": 1e999}',
     b'{"content": "x", "content": "y"}', b'{"content": "x", "metadata": {"a": 1, "a": 2}}',
     b'{"content": "x", "ttl": ' + b"9" * 10_000 + b"}", b"\0", b" ",
     '{"content": "x"}'.encode("utf-16"),
     b"[" * 100_000, b'{"a":' * 50_000, b"[" * 500 + b"]" * 500,
     b'{"content": "x", "metadata": ' + b'{"a":' * 80 + b"1" + b"}" * 81],
    ids=lambda body: repr(body[:30]),
)  # fmt: skip
def test_what_is_not_json_is_malformed(alice: httpx.Client, body: bytes) -> None:
    answer = alice.post("/memory", content=body, headers=JSON)
    is_problem(answer, 400, "MalformedJson")


def test_a_value_may_be_as_deep_as_in_every_way_in(alice: httpx.Client) -> None:
    def sent(levels: int) -> httpx.Response:
        body = b'{"content":"v","value":' + b'{"a":' * levels + b"1" + b"}" * (levels + 1)
        return alice.post("/memory", content=body, headers=JSON)

    assert sent(64).status_code == 201
    is_problem(sent(65), 400, "MalformedJson")


def test_brackets_in_a_text_are_no_nesting(alice: httpx.Client) -> None:
    assert alice.post("/memory", json={"content": "[{" * 500}).status_code == 201


# Connections


@pytest.mark.parametrize(
    "sent",
    [b"nonsense\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20,
     b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
     b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
     b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 1_000_000,
     b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
     b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
     b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n"],
    ids=lambda sent: repr(sent[:60]),
)  # fmt: skip
def test_what_is_not_http_is_told_so_and_closed(service: Served, sent: bytes) -> None:
    answer = raw(service, sent)
    assert answer.split(b"\r\n")[0].split()[1] in (b"400", b"501")
    assert b"problem+json" in answer


def test_a_connection_that_brings_no_request_is_closed(impatient: Served) -> None:
    assert raw(impatient) == b""
    assert raw(impatient, b"GET /health HTTP/1.1\r\nHost: loc") == b""


def test_a_head_that_trickles_is_cut_off(impatient: Served) -> None:
    with socket.create_connection(("127.0.0.1", impatient.port), timeout=LONG) as sock:
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(int(LONG / 0.05)):
                sock.sendall(b"X-A: b\r\n")
                time.sleep(0.05)
            pytest.fail("it was not cut off")


def test_connections_beyond_the_most_take_the_place_of_idle_ones(tmp_path: Path) -> None:
    with served(tmp_path / "bank", DEFAULT._replace(connections=3)) as service:
        made = [tokens.create(service.folder, agent).token for agent in ("alice", "bob", "carol")]
        with contextlib.ExitStack() as held:
            for sent in (b"", b"GET /heal", b""):
                sock = socket.create_connection(("127.0.0.1", service.port), timeout=LONG)
                held.enter_context(sock).sendall(sent)
            assert is_healthy(service)
            for token in made:  # these are busy: the newcomer has to go
                sock = socket.create_connection(("127.0.0.1", service.port), timeout=LONG)
                request = head(token, "Content-Length: 9", "Expect: 100-continue")
                held.enter_context(sock).sendall(request)
                assert sock.recv(12) == b"HTTP/1.1 100"  # the server waits for the body
            eventually(lambda: not is_healthy(service))
        eventually(lambda: is_healthy(service))


def test_who_was_answered_keeps_the_connection_when_strangers_take_all_others(
    tmp_path: Path,
) -> None:
    with served(tmp_path / "bank", DEFAULT._replace(connections=3)) as service:
        address = ("127.0.0.1", service.port)
        kept = http.client.HTTPConnection(*address, timeout=LONG)

        def ask() -> int:
            kept.request("GET", "/health")
            with kept.getresponse() as answer:
                answer.read()
                return answer.status

        with contextlib.closing(kept), contextlib.ExitStack() as held:
            assert ask() == 200
            strangers = []
            for _ in range(8):
                strangers.append(held.enter_context(socket.create_connection(address)))
                strangers[-1].sendall(b"GET /heal")
            assert select.select(strangers, [], [], LONG)[0], "no stranger was cut off"
            assert ask() == 200


# Rates

# One request, and the next after a hundred seconds, which no machine takes to ask again.
SLOW = DEFAULT._replace(rate=0.01)


def test_a_bucket_gives_a_burst_and_then_its_rate() -> None:
    now = 0.0
    buckets = Buckets(rate=10, burst=20, clock=lambda: now)
    assert [buckets.wait("a") for _ in range(21)] == [0] * 20 + [1]
    assert buckets.wait("b") == 0
    now = 0.5
    assert [buckets.wait("a") for _ in range(6)] == [0] * 5 + [1]
    now = 1000.0
    assert sum(buckets.wait("a") == 0 for _ in range(30)) == 20


def test_a_slow_rate_says_how_long_to_wait() -> None:
    buckets = Buckets(rate=0.1, burst=1, clock=lambda: 0.0)
    assert (buckets.wait("a"), buckets.wait("a")) == (0, 10)
    assert Buckets(rate=0.1, burst=0.2).wait("a") == 0


async def status_for(service: Service, address: str, path: str, token: str = "") -> int:
    """The status of the answer to a request from this address."""
    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode())]
    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(),
        "query_string": b"", "headers": headers, "client": (address, 1),
    }  # fmt: skip
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await service(scope, receive, send)
    return int(sent[0]["status"])


@pytest.mark.slow
def test_no_number_of_addresses_gives_a_token_more(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path, storage={"sync": "manual"}) as bank:
        service = Service(AsyncMemoryBank(bank), TokenDoor(tmp_path), Names("localhost"), SLOW)
        token = tokens.create(tmp_path, "alice").token

        async def flood() -> list[int]:
            first = await status_for(service, "::1", "/status", token)
            for number in range(5000):
                await status_for(service, f"2001:db8::{number:x}", "/nothing")
            return [first, await status_for(service, "::1", "/status", token)]

        assert asyncio.run(flood()) == [200, 429]


# Time


def test_a_client_that_leaves_in_the_middle_is_counted_and_disturbs_nobody(
    service: Served, token: str, alice: httpx.Client
) -> None:
    for length in ("5", "100"):
        with socket.create_connection(("127.0.0.1", service.port)) as sock:
            sock.sendall(head(token, f"Content-Length: {length}") + b'{"a"')
    assert alice.get("/status").status_code == 200
    left = 'tiermem_http_requests_total{operation="memory_add",status="499"} 2'
    eventually(lambda: left in alice.get("/metrics").text)
