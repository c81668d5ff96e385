"""What holds at every door of a bank over HTTP: who is let in, and how much, how fast, how long."""

import concurrent.futures
import contextlib
import itertools
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from doors import DOORS, Door
from http_service import EAGER, Served, eventually, head, is_problem, occupied

from agents.interfaces import tokens
from agents.interfaces.http.limits import DEFAULT
from waiting import LONG

# One request, and the next after a hundred seconds, which no machine takes to ask again.
SLOW = DEFAULT._replace(rate=0.01)
UNKNOWN = "tm_" + "A" * 43


@pytest.fixture(scope="module", params=DOORS, ids=lambda door: door.name)
def door(request: pytest.FixtureRequest) -> Door:
    found: Door = request.param
    return found


@pytest.fixture(scope="module")
def service(door: Door, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with door.served(tmp_path_factory.mktemp(door.name) / "bank") as running:
        yield running


@pytest.fixture(scope="module")
def token(service: Served) -> str:
    return tokens.create(service.folder, "alice").token


# Tokens and names


@pytest.mark.parametrize(
    "header", [None, "Bearer", "Bearer tm_wrong", "Basic YTpi", f"Bearer {'x' * 9000}", "tm_\x7f"]
)
def test_without_a_token_of_the_bank_nobody_comes_in(
    door: Door, service: Served, token: str, header: str | None
) -> None:
    with service.client() as client:
        refused = door.status(client, **({} if header is None else {"Authorization": header}))
    is_problem(refused, 401, "Unauthorized")
    assert refused.headers["www-authenticate"].startswith('Bearer realm="tiermem"')


def test_a_token_holds_from_when_it_is_made_to_when_it_is_revoked(
    door: Door, service: Served
) -> None:
    token = tokens.create(service.folder, "carol", name="short-lived").token
    with service.client(token) as carol:
        assert door.status(carol).status_code == 200
        tokens.revoke(service.folder, "short-lived")
        is_problem(door.status(carol), 401)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "localhost.evil.example", "127.0.0.1.evil.example",
     "127.0.0.2:{port}", "user@localhost", "localhost:80:80", "[::1", "localhost/", "", "0.0.0.0"],
)  # fmt: skip
def test_a_request_meant_for_another_host_is_refused(
    door: Door, service: Served, token: str, host: str
) -> None:
    with service.client(token, Host=host.format(port=service.port)) as client:
        is_problem(door.status(client), 403, "WrongHost")
        for path in ("/health", "/", "/nothing"):
            is_problem(client.get(path), 403, "WrongHost")


@pytest.mark.parametrize("origins", [(), ("https://app.example",)])
def test_by_the_name_of_another_nothing_is_answered(
    door: Door, tmp_path: Path, origins: tuple[str, ...]
) -> None:
    page = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    tried = itertools.product(
        ("GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT"),
        ("/", door.path, f"{door.path}/", "/health", "/elsewhere"),
        ({}, page if origins else {}),
    )
    with (
        door.served(tmp_path / "bank", agent_id="alice", origins=origins) as service,
        service.client() as alice,
    ):
        for method, path, more in tried:
            refused = alice.request(method, path, headers={"Host": "evil.example", **more})
            assert refused.status_code == 403, (method, path)
            assert "location" not in refused.headers
            assert "evil" not in refused.text
            assert method == "HEAD" or is_problem(refused, 403, "WrongHost")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:{port}", "127.0.0.1", "127.0.0.1:9", "[::1]:{port}"]
)
def test_the_names_of_this_machine_are_served(
    door: Door, service: Served, token: str, host: str
) -> None:
    with service.client(token, Host=host.format(port=service.port)) as client:
        assert door.status(client).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["null", "http://evil.example", "http://localhost:1", "https://127.0.0.1", "file://", "",
     "http://127.0.0.1:{port}.evil.example"],
)  # fmt: skip
def test_a_page_of_another_origin_is_refused(
    door: Door, service: Served, token: str, origin: str
) -> None:
    with service.client(token, Origin=origin.format(port=service.port)) as client:
        is_problem(door.status(client), 403, "WrongOrigin")
        is_problem(door.post(client, door.stores("planted")), 403, "WrongOrigin")


def test_a_page_of_the_service_itself_may_ask(door: Door, service: Served, token: str) -> None:
    with service.client(token, Origin=service.url) as client:
        assert door.status(client).status_code == 200


def test_a_page_of_an_allowed_origin_may_ask(door: Door, tmp_path: Path) -> None:
    page = {"Origin": "https://app.example"}
    asks = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": door.header,
    }
    with (
        door.served(tmp_path / "bank", origins=("https://app.example",)) as service,
        service.agent("alice") as alice,
    ):
        first = alice.options(door.path, headers={**page, **asks})
        assert first.status_code == 200
        assert door.header in first.headers["access-control-allow-headers"].lower()
        told = door.status(alice, **page)
        assert told.headers["access-control-allow-origin"] == "https://app.example"
        is_problem(door.status(alice, Origin="https://evil.example"), 403, "WrongOrigin")


def test_what_is_not_here_is_told_so(door: Door, service: Served, token: str) -> None:
    with service.client(token) as alice:
        paths = (f"{door.path}/", door.path.upper(), "/health/", "/elsewhere")
        for path in paths:
            is_problem(alice.post(path, content=door.stores("x")), 404, "NoSuchPath")
        refused = alice.put(door.path)
        is_problem(refused, 405, "NoSuchMethod")
        assert "POST" in refused.headers["allow"]
        is_problem(alice.post("/health"), 405, "NoSuchMethod")
        is_problem(
            door.post(alice, door.stores("x"), **{"Content-Type": "text/plain"}), 415, "NotJson"
        )


# Rates


def test_who_asks_too_often_is_told_when_to_come_back(door: Door, tmp_path: Path) -> None:
    with (
        door.served(tmp_path / "bank", SLOW) as service,
        service.agent("alice") as alice,
        service.agent("bob") as bob,
    ):
        answers = [door.status(alice) for _ in range(3)]
        assert [each.status_code for each in answers] == [200, 429, 429]
        is_problem(answers[-1], 429, "TooMany")
        assert 1 < int(answers[-1].headers["retry-after"]) <= 100
        assert door.status(bob).status_code == 200  # whose turn it is


def test_who_has_no_token_of_the_bank_can_not_try_many(door: Door, tmp_path: Path) -> None:
    with door.served(tmp_path / "bank", SLOW) as service, service.agent("alice") as alice:
        with service.client(UNKNOWN) as stranger:
            answers = [door.status(stranger) for _ in range(3)]
            assert [each.status_code for each in answers] == [401, 429, 429]
            is_problem(answers[-1], 429, "TooMany")
        assert door.status(alice).status_code == 200


def test_whoever_watches_over_it_is_answered_when_others_ask_too_often(
    door: Door, tmp_path: Path
) -> None:
    with door.served(tmp_path / "bank", SLOW) as service:
        tokens.create(service.folder, "alice")
        with service.client(UNKNOWN) as nobody:
            eventually(lambda: door.status(nobody).status_code == 429)
            for _ in range(20):
                told = nobody.get("/health")
                assert (told.status_code, told.json()) == (200, {"status": "ok"})
                assert told.headers["cache-control"] == "no-store"
            assert nobody.head("/health").status_code == 200


def test_paths_and_methods_that_are_not_there_count_as_well(door: Door, tmp_path: Path) -> None:
    with door.served(tmp_path / "bank", SLOW) as service:
        with service.client() as nobody:
            assert {nobody.get("/nothing").status_code for _ in range(3)} == {404, 429}
            assert 429 in {nobody.put(door.path).status_code for _ in range(4)}
        with service.agent("alice") as alice:
            assert door.status(alice).status_code == 200


# Turns and time


def test_one_token_has_no_more_than_a_quarter_of_the_turns(door: Door, tmp_path: Path) -> None:
    limits = EAGER._replace(concurrent=8)
    with (
        door.served(tmp_path / "bank", limits) as service,
        service.agent("alice") as alice,
        service.agent("bob") as bob,
        concurrent.futures.ThreadPoolExecutor() as pool,
    ):
        with occupied(service.bank):
            asked = [pool.submit(door.status, alice) for _ in range(6)]
            eventually(lambda: sum(each.done() for each in asked) == 4)
            for each in (each for each in asked if each.done()):
                is_problem(each.result(), 503, "Busy")
                assert each.result().headers["retry-after"] == "1"
            others = [pool.submit(door.status, bob) for _ in range(2)]
            time.sleep(0.3)
            assert not any(each.done() for each in others)
            assert alice.get("/health").status_code == 200
        assert [each.result().status_code for each in others] == [200, 200]
        assert sorted(each.result().status_code for each in asked) == [200] * 2 + [503] * 4
        assert door.status(alice).status_code == 200


@pytest.mark.slow
def test_what_takes_too_long_is_given_up_and_others_are_served(door: Door, tmp_path: Path) -> None:
    limits = EAGER._replace(seconds=3.0)
    with door.served(tmp_path / "bank", limits) as service, service.agent("alice") as alice:
        with occupied(service.bank), concurrent.futures.ThreadPoolExecutor() as pool:
            slow = pool.submit(door.post, alice, door.stores("too late"))
            with service.client() as other:
                assert other.get("/health").status_code == 200
            is_problem(slow.result(), 503, "TookTooLong")
        eventually(lambda: door.status(alice).status_code == 200)


# Bodies


def test_a_body_that_is_too_large_is_refused(door: Door, tmp_path: Path) -> None:
    limits = EAGER._replace(body_bytes=2000)
    with door.served(tmp_path / "bank", limits) as service, service.agent("alice") as alice:
        large = door.stores("x" * 3000)
        is_problem(door.post(alice, large), 413, "TooLarge")
        parts = (large[start : start + 500] for start in range(0, len(large), 500))
        is_problem(door.post(alice, parts), 413, "TooLarge")
        assert door.post(alice, door.stores("x")).status_code in (200, 201)
        assert [each.content for each in service.bank.agent("alice").all()] == ["x"]


def test_a_body_that_does_not_come_is_not_waited_for(door: Door, tmp_path: Path) -> None:
    with door.served(tmp_path / "bank", EAGER._replace(body_seconds=0.3)) as service:
        token = tokens.create(service.folder, "alice", "write").token
        with socket.create_connection(("127.0.0.1", service.port), timeout=LONG) as sock:
            sock.sendall(head(token, "Content-Length: 100", path=door.path) + b"{")
            answer = sock.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"connection: close" in answer
    assert b"problem:TooSlow" in answer


def test_a_body_that_trickles_takes_nobodys_turn(door: Door, tmp_path: Path) -> None:
    with door.served(tmp_path / "bank", EAGER._replace(concurrent=4)) as service:
        token = tokens.create(service.folder, "alice").token
        with _half_sent(door, service, token), service.client(token) as alice:
            assert {door.status(alice).status_code for _ in range(5)} == {200}


def test_bodies_of_one_token_that_trickle_leave_connections_to_others(
    door: Door, tmp_path: Path
) -> None:
    with door.served(tmp_path / "bank", EAGER._replace(connections=16)) as service:
        token = tokens.create(service.folder, "alice").token

        def refused(agent: httpx.Client) -> bool:
            try:
                answer = door.status(agent)
            except httpx.TransportError:  # the requests before it have no answer yet
                return False
            return answer.status_code == 503 and is_problem(answer, 503, "Busy")

        with (
            _half_sent(door, service, token),
            service.client(token) as alice,
            service.agent("bob") as bob,
        ):
            eventually(lambda: refused(alice))
            assert door.status(bob).status_code == 200


@contextlib.contextmanager
def _half_sent(door: Door, service: Served, token: str) -> Iterator[None]:
    """Twenty requests whose bodies do not come."""
    with contextlib.ExitStack() as held:
        for _ in range(20):
            sock = socket.create_connection(("127.0.0.1", service.port), timeout=LONG)
            request = head(token, "Content-Length: 100", path=door.path) + b"{"
            with contextlib.suppress(ConnectionError):
                held.enter_context(sock).sendall(request)
        yield
