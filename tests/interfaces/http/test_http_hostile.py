"""Whatever an argument is, the answer is a 4xx that says why, or the operation was done."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from http_service import JSON, Served, is_problem, served

from agents.interfaces.http.bodies import parse
from agents.interfaces.http.endpoints import ENDPOINTS, Endpoint
from agents.interfaces.http.problems import Problem
from examples import some

pytestmark = pytest.mark.slow_after(1)

TEXTS = [
    "", " ", "\t\n", "\0", "a\0b", "\ud800", "a\udfff", "\ufeff", "\u202e", "\U0010ffff", "é" * 70,
    "x" * 20_000, "x" * 300_000, "*", "%", "?", "$where", "{{7*7}}", "${jndi:ldap://x}", "a,b",
    "'; DROP TABLE events; --", '" OR 1=1 --', "<script>alert(1)</script>", "../../etc/passwd",
    "/etc/passwd", "..\\..\\windows", "memory/../../x.md", "C:\\x", "file:///etc/passwd",
    "MEMORY.md\0.txt", ".hidden", "memory/.md", "con.md", "-rf", "\x1b[2J", "\r\nSet-Cookie: a=b",
    "null", "true", "NaN", "1e309", "🐉" * 30, "\u0000", "\u2028", "ﷺ" * 100,
]  # fmt: skip
VALUES: list[Any] = [
    *TEXTS, None, True, False, 0, -1, 1, 3.0, 1.5, -0.0, 2**31, 2**53, 2**63, 2**64, -(2**70),
    10**300, 1e308, 5e-324, [], [None], [[]], {}, {"a": None}, [1, "a", None, {}], ["x"] * 2000,
    {"$ne": None}, {"__class__": "x"}, [["a"] * 20] * 20, {str(n): n for n in range(100)},
    {"tier": "pinned"}, {"agent_id": "bob"}, {"": ""}, {"a": {"b": {"c": {}}}}, ["\ud800"], ["a\0"],
    {"\ud800": 1}, {"a": "\ud800"}, {"a": 10**300}, [10**300], ["pinned", "pinned"], ["*"],
]  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("http") / "bank") as running:
        yield running


def answered(client: httpx.Client, endpoint: Endpoint, path: str, body: object) -> httpx.Response:
    """The answer, which is the operation's or an error that the sender can do something about."""
    if endpoint.has_body:
        content = json.dumps(body).encode()
        answer = client.request(endpoint.method, path, content=content, headers=JSON)
    else:
        answer = client.request(endpoint.method, path, params=body)  # type: ignore[arg-type]
    if answer.status_code != endpoint.status:
        assert answer.status_code in (404, 409, 422), (endpoint.name, body, answer.text)
        is_problem(answer, answer.status_code)
        assert len(answer.content) < 10_000
    return answer


@pytest.mark.long_after(10)
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_no_argument_breaks_an_operation(
    endpoint: Endpoint, service: Served, caplog: pytest.LogCaptureFixture
) -> None:
    agent = f"victim_of_{endpoint.name}"
    with service.agent(agent, "advance") as client:
        good = dict(endpoint.operation.example)
        memory = service.bank.agent(agent).add("something to work on")
        service.bank.group(agent, members=[agent])
        path = endpoint.path.format(memory_id=memory.id, group=agent)
        body = {key: value for key, value in good.items() if key not in endpoint.in_path}
        turn = ENDPOINTS.index(endpoint)
        names = endpoint.given["properties"] if endpoint.has_body else ()
        for number, name in enumerate(names, start=turn):
            for value in some(VALUES, number):
                answered(client, endpoint, path, {**body, name: value})
        if endpoint.has_body:
            for value in some(VALUES, turn):
                answered(client, endpoint, path, value)
        for name in ("extra", "agent_id", "__proto__", "\ud800", ""):
            if endpoint.has_body:
                answer = answered(client, endpoint, path, {**body, name: "x"})
                is_problem(answer, 422, "InvalidInput")
        for text in some(TEXTS, turn):
            if endpoint.in_path and text.isprintable() and 0 < len(text) < 5_000:
                wrong = endpoint.path.format_map(dict.fromkeys(endpoint.in_path, quote(text, "")))
                answered(client, endpoint, wrong, body)
            if not endpoint.has_body and "\ud800" not in text and "\udfff" not in text:
                answered(client, endpoint, path, {"purge": text[:5_000]})
        assert client.get("/status").status_code == 200
    assert "Traceback" not in caplog.text


def test_what_was_stored_of_it_is_text_and_nothing_else(service: Served) -> None:
    with service.agent("collector") as client:
        for text in TEXTS:
            done = client.post("/memory", content=json.dumps({"content": text}), headers=JSON)
            if done.status_code == 201:
                assert client.get(f"/memory/{done.json()['id']}").json()["content"] == text
        kept = client.post("/memory/query", json={"limit": 1000}).json()["results"]
        assert len(kept) > 20


def test_a_number_that_is_too_long_is_told_so_and_not_how_python_would_take_it() -> None:
    with pytest.raises(Problem, match=r"not JSON: a number is too long$"):
        parse(b'{"limit": %s}' % (b"9" * 5000), 32)
