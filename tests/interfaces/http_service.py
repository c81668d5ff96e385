"""A bank that is served: in a thread of the test for most, by the real command where it matters."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from agents import MemoryBank
from agents.interfaces import tokens
from agents.interfaces.http import server
from agents.interfaces.http.access import Names, TokenDoor
from agents.interfaces.http.limits import Limits
from waiting import LONG, ended, until
from warm_children import Popen

COMMAND = [str(Path(sys.executable).with_name("tiermem"))]
MANUAL = {"sync": "manual"}
JSON = {"Content-Type": "application/json"}

# A test asks more often than a person does.
EAGER = Limits(rate=100_000.0)


class Served(NamedTuple):
    """A bank, and where it is served."""

    url: str
    folder: Path
    bank: MemoryBank

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def client(self, token: str | None = None, **headers: str) -> httpx.Client:
        return client(self.url, token, **headers)

    def agent(self, agent_id: str, permission: str = "write") -> httpx.Client:
        """A client with a new token of an agent."""
        return self.client(tokens.create(self.folder, agent_id, permission).token)


def client(url: str, token: str | None = None, **headers: str) -> httpx.Client:
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    return httpx.Client(base_url=url, headers=headers, timeout=LONG, trust_env=False)


@contextlib.contextmanager
def served(
    folder: Path, limits: Limits = EAGER, agent_id: str | None = None, **options: Any
) -> Iterator[Served]:
    """The bank in ``folder``, made if there is none, served by uvicorn in a thread.

    ``serve`` is the door: the operations over HTTP, or MCP.
    """
    serve = options.pop("serve", server.serve)
    allowed = [options.pop(key, ()) for key in ("hosts", "origins")]
    door, names = TokenDoor(folder, agent_id), Names("127.0.0.1", *allowed)
    options.setdefault("storage", MANUAL)
    stop = threading.Event()
    with MemoryBank.open(folder, **options) as bank, server.listen("127.0.0.1", 0) as sock:
        url = server.address("127.0.0.1", sock)
        thread = threading.Thread(
            target=serve,
            args=(bank, door, names, sock),
            kwargs={"limits": limits, "asked_to_stop": stop.is_set},
        )
        thread.start()
        try:
            yield Served(url, folder, bank)
        finally:
            stop.set()
            thread.join(LONG)
            assert not thread.is_alive(), "the service did not stop when it was asked to"


class Child(NamedTuple):
    """``tiermem serve`` in a process of its own."""

    process: "subprocess.Popen[str]"
    line: str
    """What it said when it began to serve."""

    @property
    def url(self) -> str:
        return next(word for word in self.line.split() if word.startswith("http://"))

    def stop(self, how: int = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code, and what it logged."""
        self.process.send_signal(how)
        _, err = ended(self.process)
        return self.process.returncode, err


@contextlib.contextmanager
def child(folder: Path, *options: object, files: int | None = None) -> Iterator[Child]:
    """``tiermem serve`` on a port of its own, killed if it still runs at the end.

    It may open so many ``files``.
    """
    command = [*COMMAND, "serve", str(folder), "--port", "0", *map(str, options)]
    if files is not None:
        command = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh", *command]
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    with Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            assert line, ended(process)[1]
            yield Child(process, line)
        finally:
            if process.poll() is None:
                process.kill()


def head(token: str, *lines: str, path: str = "/memory") -> bytes:
    """The head of a request with a body of JSON."""
    common = ("Host: localhost", f"Authorization: Bearer {token}", "Content-Type: application/json")
    return "\r\n".join((f"POST {path} HTTP/1.1", *common, *lines, "", "")).encode()


@contextlib.contextmanager
def occupied(bank: MemoryBank) -> Iterator[None]:
    """Inside, whatever needs the bank has to wait."""
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with bank.engine.using():
            held.set()
            release.wait(LONG)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(LONG)
    try:
        yield
    finally:
        release.set()
        holder.join()


def eventually(check: Callable[[], object]) -> None:
    """Wait until it is so: a busy machine takes its time."""
    until("what the test is about to check", check)


def is_problem(response: httpx.Response, status: int, kind: str | None = None) -> bool:
    """It is an error as every error is told, of this status."""
    assert response.status_code == status, (response.status_code, response.text[:300])
    assert response.headers["content-type"] == "application/problem+json"
    said = response.json()
    assert said.keys() == {"type", "title", "status", "detail"}
    assert said["status"] == status
    assert said["type"].startswith("urn:tiermem:problem:")
    assert kind is None or said["type"].endswith(f":{kind}"), said
    assert "Traceback" not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "no-store"
    return True
