"""Who may look: a token, a host and an origin; and what the answers allow a browser."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Command
from inspected_sites import Door, opened

from agents.interfaces.http.server import listen
from agents.interfaces.inspector.inspection import ANSWERS
from waiting import LONG


@pytest.fixture(scope="module")
def door(market: Path) -> Iterator[Door]:
    with opened(market) as each:
        yield each


def test_the_page_and_its_answers_are_below_the_token(door: Door) -> None:
    page = door.get("")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert door.get("api/about").json()["kind"] == "run"
    script = door.get("main.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"


def test_an_address_with_the_token_as_jupyter_writes_it_leads_to_the_page(door: Door) -> None:
    found = door.client.get(f"/?token={door.token}")
    assert (found.status_code, found.headers["location"]) == (303, f"/{door.token}/")
    found = door.client.get(f"/{door.token}")
    assert (found.status_code, found.headers["location"]) == (303, f"/{door.token}/")


@pytest.mark.parametrize("name", ["", "x", "%00", "..", "é", "%F0%9F%98%80", "a" * 5000])
def test_another_token_opens_nothing(door: Door, name: str) -> None:
    for path in (f"/{name}/", f"/{name}/api/about", f"/?token={name}", f"/{name}/main.js"):
        found = door.client.get(f"{door.url}{path}")
        assert found.status_code == 403, path
        assert door.token not in found.text


def test_a_refusal_is_a_page_for_a_browser_and_json_for_a_program(door: Door) -> None:
    accept = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for path, status, said in (
        ("/wrong/", 403, "each start of tiermem inspect has a new address"),
        (f"/{door.token}/nothing.html", 404, "there is no page of this name"),
        (f"/{door.token}/api/agent?agent=<b>&tick=1", 404, "has no agent &#x27;&lt;b&gt;&#x27;"),
    ):
        page = door.client.get(f"{door.url}{path}", headers=accept)
        assert (page.status_code, page.headers["content-type"]) == (
            status, "text/html; charset=utf-8",
        )  # fmt: skip
        assert said in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "error" in door.client.get(f"{door.url}{path}").json()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::2]:80"])
def test_another_host_is_refused(door: Door, host: str) -> None:
    assert door.get("api/about", headers={"Host": host}).status_code == 403
    assert door.get("api/about", headers={"Host": "localhost:1"}).status_code == 200


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}])
def test_a_refusal_names_no_option_that_inspect_lacks(door: Door, headers: dict[str, str]) -> None:
    message = door.get("api/about", headers=headers).json()["error"]["message"]
    assert "--" not in message
    assert "the address that tiermem inspect printed" in message


def test_a_port_in_use_is_refused_with_the_option_that_inspect_has(
    market: Path, tiermem: Command
) -> None:
    with listen("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        done = tiermem("inspect", market, "--port", str(port))
    assert done.is_one_error(2, f"port {port}", "--port")
    assert "--host" not in done.err


def test_pages_of_other_origins_are_refused(door: Door) -> None:
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1"):
        assert door.get("api/about", headers={"Origin": origin}).status_code == 403, origin
    assert door.get("api/about", headers={"Origin": door.url}).status_code == 200


def test_every_answer_has_a_strict_policy(door: Door) -> None:
    for path in ("", "main.js", "api/about", "api/nothing", "nothing.js"):
        headers = door.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


@pytest.mark.parametrize(
    "path",
    ["../server.py", "..%2fserver.py", "page/index.html", "vendor/../main.js", "%2e%2e/site.py",
     "main.js%00", "MAIN.JS", "vendor/LICENSE-htm.txt", "types.d.ts", "/etc/passwd", "views"],
)  # fmt: skip
def test_only_the_pages_files_are_served(door: Door, path: str) -> None:
    with socket.create_connection(("127.0.0.1", int(door.url.rpartition(":")[2]))) as raw:
        raw.settimeout(LONG)
        head = f"GET /{door.token}/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        raw.sendall(head.encode())
        answer = b""
        while part := raw.recv(65536):
            answer += part
    assert answer.split()[1] in (b"404", b"400", b"403"), answer[:200]
    assert b"import " not in answer


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_but_looking_is_allowed(door: Door, method: str) -> None:
    for path in ("api/about", "api/branch", ""):
        found = door.client.request(method, f"/{door.token}/{path}")
        assert found.status_code in (403, 405), (method, path)


_HOSTILE = (
    "",
    "-1",
    "1e9",
    "9" * 15,
    "9" * 400,
    "NaN",
    "\x00",
    "*",
    "agent_00' OR 1=1 --",
    "../../etc/passwd",
    "<img src=x onerror=alert(1)>",
    "\u202eabc",
    "\ud800".encode("utf-8", "surrogatepass"),
    "💥" * 3000,
    "[[[[" * 2000,
    '[{"agent": 1}]',
    '{"a": NaN}',
)


_KEYS = {
    "series": ("run",),
    "heat": ("of", "offset", "limit"),
    "numbers": ("of", "tick"),
    "tick": ("tick", "agent", "offset"),
    "agent": ("agent", "tick"),
    "memories": ("offset",),
    "explain": ("query", "when", "offset"),
    "memory": ("id",),
    "population": ("tick", "limit"),
    "compare": ("agent",),
    "beside": ("run",),
    "with": ("name",),
    "branch": ("edits", "options", "out"),
    "search": ("q",),
    "sweep": ("name",),
    "effects": ("run",),
    "open": ("name", "effect"),
    "follow": ("after",),
    "about": ("run",),
    "costs": ("run",),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_hostile_parameters_get_an_error_and_no_fault(door: Door, name: str) -> None:
    good = {"agent": "agent_00", "tick": "3", "of": "loss", "q": "cloth", "query": "cloth"}
    for key in _KEYS[name]:
        for value in _HOSTILE:
            found = door.get(f"api/{name}", params={**good, key: value})
            assert found.status_code in (200, 202, 400, 404, 409), (key, value, found.text)
            if found.status_code >= 400:
                error = json.loads(found.text)["error"]
                assert error["message"]
                assert "Traceback" not in found.text
