"""Who is let in: by which token, under which name, and to whose memories."""

import itertools
import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from http_service import Served, is_problem, served
from starlette.requests import Request

from agents.errors import ConfigError
from agents.interfaces import tokens
from agents.interfaces.http.access import Names, TokenDoor
from agents.interfaces.http.endpoints import ENDPOINTS, PAGES, Endpoint
from agents.interfaces.http.problems import Problem
from examples import some
from waiting import LONG


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("http") / "bank") as running:
        yield running


@pytest.fixture(scope="module")
def token(service: Served) -> str:
    return tokens.create(service.folder, "alice").token


def example(endpoint: Endpoint, identifier: str) -> tuple[str, str, dict[str, Any]]:
    """Method, path and the rest of a request that would work with a memory of this id."""
    arguments = {**endpoint.operation.example}
    path = endpoint.path.format(**{**arguments, "memory_id": identifier})
    rest = {key: value for key, value in arguments.items() if key not in endpoint.in_path}
    return endpoint.method, path, {"json": rest} if endpoint.has_body else {"params": rest}


# Tokens


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_nothing_is_done_without_a_token(endpoint: Endpoint, service: Served, token: str) -> None:
    memory = service.bank.agent("alice").add("something")
    method, path, rest = example(endpoint, memory.id)
    before = service.bank.state_hash()
    wrong = [
        None, "", "Bearer", f"Bearer {token}x", f"Bearer {token[:-1]}", f"Basic {token}",
        token, "Bearer tm_" + "A" * 43, f"Bearer {token} {token}", "Bearer alice", "Bearer *",
    ]  # fmt: skip
    with service.client() as client:
        for value in wrong:
            headers = {} if value is None else {"Authorization": value}
            refused = client.request(method, path, headers=headers, **rest)
            is_problem(refused, 401, "Unauthorized")
            assert refused.headers["www-authenticate"].startswith('Bearer realm="tiermem"')
        twice = [("Authorization", f"Bearer {token}")] * 2
        is_problem(client.request(method, path, headers=twice, **rest), 401)
    assert service.bank.state_hash() == before


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_a_token_that_reads_can_do_what_reads_alone(endpoint: Endpoint, service: Served) -> None:
    memory = service.bank.agent("reader").add("something")
    method, path, rest = example(endpoint, memory.id)
    before = service.bank.state_hash()
    with service.agent("reader", "read") as client:
        answer = client.request(method, path, **rest)
    if endpoint.operation.permission != "read":
        is_problem(answer, 403, "ReadOnly")
    else:
        assert answer.status_code == endpoint.status
    assert service.bank.state_hash() == before


def test_pages_about_the_bank_need_a_token(service: Served, token: str) -> None:
    with service.client() as anybody, service.client(token) as alice:
        for page in PAGES:
            assert alice.get(page.path).status_code == 200
            assert anybody.get(page.path).status_code == (401 if page.permission else 200)


def test_the_word_bearer_may_be_written_in_any_case(service: Served, token: str) -> None:
    with service.client() as client:
        for word in ("bearer", "BEARER", "Bearer "):
            headers = {"Authorization": f"{word} {token}"}
            assert client.get("/status", headers=headers).status_code == 200


def test_a_damaged_file_of_tokens_lets_nobody_in(tmp_path: Path) -> None:
    with served(tmp_path / "bank") as service, service.agent("alice") as alice:
        (tmp_path / "bank/tokens.json").write_text("{}")
        answer = alice.get("/status")
        is_problem(answer, 500, "InternalError")
        assert str(tmp_path) not in answer.text


def test_without_tokens_all_are_the_one_agent_until_there_is_one(tmp_path: Path) -> None:
    with served(tmp_path / "bank", agent_id="alice") as service, service.client() as anybody:
        anybody.post("/memory", json={"content": "hello"})
        assert service.bank.agents() == ["alice"]
        with service.agent("bob") as bob:
            is_problem(anybody.post("/memory", json={"content": "hello"}), 401)
            assert bob.post("/memory", json={"content": "hello"}).status_code == 201
        assert service.bank.agent("alice").count() == 1


def test_to_revoke_the_last_token_opens_the_door_to_nobody(tmp_path: Path) -> None:
    with served(tmp_path / "bank", agent_id="alice") as service, service.client() as anybody:
        assert anybody.get("/status").status_code == 200
        tokens.create(service.folder, "bob")
        tokens.revoke(service.folder, "bob")
        is_problem(anybody.get("/status"), 401)
        (service.folder / tokens.FILE).unlink()  # holds from the next start on
        is_problem(anybody.get("/status"), 401)


def test_a_file_without_tokens_keeps_the_door_shut_after_a_start(tmp_path: Path) -> None:
    tokens.create(tmp_path, "bob")
    tokens.revoke(tmp_path, "bob")
    request = Request({"type": "http", "headers": []})
    with pytest.raises(Problem):
        TokenDoor(tmp_path, "alice").grant(request)
    (tmp_path / tokens.FILE).unlink()
    assert TokenDoor(tmp_path, "alice").grant(request).agent_id == "alice"


def test_a_token_that_only_reads_changes_nothing_however_often(tmp_path: Path) -> None:
    with served(tmp_path / "bank") as service, service.agent("alice", "read") as reader:
        agent = service.bank.agent("alice")
        memory = agent.add("The parser is done")
        agent.notes.append("The parser was easy", "MEMORY.md")
        with service.agent("alice") as writer:
            writer.post("/memory/search", json={"query": "parser"})  # notes are indexed
        before = service.bank.state_hash()
        for _ in range(20):
            for path in ("/memory/query", "/memory/search"):
                found = reader.post(path, json={"query": "parser"}).json()["results"]
                assert found
        assert reader.get(f"/memory/{memory.id}").json()["access_count"] == 1
        assert service.bank.state_hash() == before
        with service.agent("alice") as writer:
            writer.post("/memory/query", json={"query": "parser"})
        assert service.bank.state_hash() != before


# Two agents


SECRETS = {"alice": "plugh-4711 is where alice hides", "bob": "xyzzy-0815 is what bob hides"}


def attempts(other: list[str], rng: random.Random) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every operation on every id of another agent, as it is and disguised, and then mixed."""
    for endpoint, identifier in itertools.product(ENDPOINTS, other):
        yield example(endpoint, identifier)
        disguised = [
            identifier.upper(), f"%20{identifier}", f"{identifier}%00", identifier[:-1],
            f"..%2F{identifier}", identifier.replace("-", ""), f"{identifier}%0a",
        ]  # fmt: skip
        for name in disguised if endpoint.in_path else ():
            yield example(endpoint, name)
        if "ids" in endpoint.given["properties"]:
            yield endpoint.method, endpoint.path, {"json": {"ids": other}}
            yield endpoint.method, endpoint.path, {"json": {"ids": [identifier]}}
        if endpoint.name == "memory_get":
            for path in ("MEMORY.md", "../bob/MEMORY.md", "../alice/MEMORY.md", "/etc/passwd"):
                yield endpoint.method, endpoint.path, {"json": {"path": path}}
            yield endpoint.method, endpoint.path, {"json": {"memory_id": identifier}}
    words = ["plugh-4711", "xyzzy-0815", "hides", "alice", "bob", "", "*"]
    for _ in range(150):
        path = rng.choice(["/memory/search", "/memory/query", "/memory/recall"])
        yield "POST", path, {"json": {"query": " ".join(rng.sample(words, 2))}}
    for name in ("agent", "agent_id", "user_id", "owner"):
        for path in ("/memory/query", "/memory/search", "/memory/recall"):
            yield "POST", path, {"json": {"query": "hides", name: "bob"}}
            yield "POST", f"{path}?{name}=bob", {"json": {"query": "hides"},
                                                 "headers": {f"X-{name}": "bob"}}  # fmt: skip


@pytest.mark.slow
def test_no_attempt_of_one_agent_reaches_another(tmp_path: Path) -> None:
    rng, tried = random.Random(7), 0
    with served(tmp_path / "bank") as service:
        own: dict[str, list[str]] = {}
        for name, secret in SECRETS.items():
            memory = service.bank.agent(name)
            tiers = ("pinned", "critical", "normal")
            own[name] = [memory.add(f"{secret}, part {tier}", tier).id for tier in tiers]
            own[name].append(memory.add(f"{secret}, long ago", temperature="cold").id)
            own[name].append(
                memory.update(memory.add(f"{secret}, archived").id, retention="archived").id
            )
            deleted = memory.add(f"{secret}, deleted")
            memory.delete(deleted.id)
            own[name].append(deleted.id)
            memory.notes.append(f"{secret}, in a note", "MEMORY.md")
        for intruder, victim in (("alice", "bob"), ("bob", "alice")):
            theirs = service.bank.agent(victim).all()
            status = service.bank.status(victim).to_dict()
            word = SECRETS[victim].split()[0]
            with service.agent(intruder, "tell") as client:
                every = list(attempts(own[victim], rng))
                tried += len(every)
                for method, path, rest in some(every, tried):
                    answer = client.request(method, path, **rest)
                    assert answer.status_code < 500, (method, path, rest)
                    asked = str(rest) + path
                    assert word in asked or word not in answer.text, (method, path, rest)
                    assert f"what {victim} hides" not in answer.text
                    assert f"where {victim} hides" not in answer.text
                    if answer.status_code == 200:
                        assert not any(each in answer.text for each in own[victim])
            assert service.bank.agent(victim).all() == theirs
            assert service.bank.status(victim).to_dict() == status
    assert tried >= 500


# Names


def test_more_names_and_origins_can_be_allowed(tmp_path: Path) -> None:
    page = "https://app.example"
    with (
        served(tmp_path / "bank", hosts=("memory.lan",), origins=(page,)) as service,
        service.agent("alice") as alice,
    ):
        assert alice.get("/status", headers={"Host": "memory.lan:80"}).status_code == 200
        answer = alice.get("/status", headers={"Origin": page})
        assert answer.headers["access-control-allow-origin"] == page
        is_problem(alice.get("/status", headers={"Origin": "https://other.example"}), 403)


PREFLIGHT = {
    "Origin": "https://app.example",
    "Access-Control-Request-Method": "PATCH",
    "Access-Control-Request-Headers": "authorization,content-type",
}


@pytest.mark.parametrize(
    "written", ["https://app.example", "https://app.example/", "HTTPS://App.Example",
                "https://app.example:443"],
)  # fmt: skip
def test_an_origin_is_allowed_however_it_is_written(tmp_path: Path, written: str) -> None:
    with (
        served(tmp_path / "bank", origins=(written,)) as service,
        service.agent("alice") as alice,
    ):
        for answer in (
            alice.options("/memory/x", headers=PREFLIGHT),
            alice.get("/status", headers={"Origin": "https://app.example"}),
        ):
            assert answer.status_code == 200
            assert answer.headers["access-control-allow-origin"] == "https://app.example"


def test_a_preflight_that_is_refused_says_why(tmp_path: Path) -> None:
    with (
        served(tmp_path / "bank", origins=("https://app.example",)) as service,
        service.client() as client,
    ):

        def asked(**headers: str) -> httpx.Response:
            answer = client.options("/memory/x", headers={**PREFLIGHT, **headers})
            assert "access-control-allow-origin" not in answer.headers
            return answer

        is_problem(asked(Origin="https://other.example"), 403, "WrongOrigin")
        is_problem(asked(Host="evil.example"), 403, "WrongHost")
        is_problem(asked(**{"Access-Control-Request-Method": "PUT"}), 403, "WrongPreflight")
        is_problem(asked(**{"Access-Control-Request-Headers": "x-evil"}), 403, "WrongPreflight")


@pytest.mark.parametrize(
    "text", ["*", "null", "", "app.example", "https://app.example/page", "https://", "https://*.a",
             "https://app.example:port", "https://me@app.example", "https://a.example,https://b"],
)  # fmt: skip
def test_what_is_no_origin_is_refused_at_the_start(text: str) -> None:
    with pytest.raises(ConfigError, match="is not the origin of a page"):
        Names("127.0.0.1", origins=(text,))


def test_a_target_may_name_the_service_instead_of_the_host_header(
    service: Served, token: str
) -> None:
    def asked(target: str, host: str) -> bytes:
        with socket.create_connection(("127.0.0.1", service.port), timeout=LONG) as sock:
            head = f"GET {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
            sock.sendall(f"{head}Connection: close\r\n\r\n".encode())
            return sock.makefile("rb").read()

    for target in ("http://localhost/health", f"HTTP://127.0.0.1:{service.port}/status",
                   "http://localhost", "http://localhost?x"):  # fmt: skip
        assert asked(target, "localhost").startswith(b"HTTP/1.1 200"), target
    assert b"WrongHost" in asked("http://evil.example/health", "localhost")
    assert b"WrongHost" in asked("http://me@localhost/health", "localhost")
    assert asked("http://localhost/health", "evil.example").startswith(b"HTTP/1.1 200")
    assert b"NoSuchPath" in asked("http://localhost/nothing", "localhost")
