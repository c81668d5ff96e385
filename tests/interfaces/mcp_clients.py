"""What tests of MCP share: the command as a process of its own, and clients of it."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from mcp import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_versions import AsyncClient, Client

from agents import MemoryBank
from agents.interfaces.http.access import Names, TokenDoor
from agents.interfaces.http.limits import DEFAULT, Limits
from agents.interfaces.http.server import address, listen
from agents.interfaces.mcp import http as mcp_http
from waiting import LONG
from warm_children import Popen

MANUAL = {"sync": "manual"}
COMMAND = (sys.executable, "-c", "from agents.interfaces.cli.app import main; main()", "mcp")


def bank_in(folder: Path) -> Path:
    """A bank of two agents, each with memories and a note that the other must not see."""
    with MemoryBank.open(folder, storage=MANUAL) as bank:
        for name, secret in (("alice", "xanadu"), ("bob", "zembla")):
            agent = bank.agent(name)
            agent.add(f"NEVER speak of {secret}", "pinned")
            agent.add(f"The road to {secret} is long", temperature="hot")
            agent.add(f"The {secret} well is in the north")
            agent.add(f"Once there was snow in {secret}", temperature="cold")
            agent.notes.write("MEMORY.md", f"# Places\n\nThe gate of {secret} is blue.\n")
            agent.notes.write("memory/a day.md", f"Rain over {secret}.\n")
    return folder


def over_streams(folder: Path, *options: object, agent: str = "alice") -> StdioServerParameters:
    """The command, for the SDK's client to start."""
    arguments = [*COMMAND[1:], str(folder), "--agent", agent, *map(str, options)]
    return StdioServerParameters(command=COMMAND[0], args=arguments, env=dict(os.environ))


@contextlib.asynccontextmanager
async def over_http(url: str, token: str | None = None, **options: Any) -> AsyncIterator[Client]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        AsyncClient(headers=headers, timeout=LONG) as http,
        Client(streamable_http_client(url, http_client=http), **options) as client,
    ):
        yield client


@contextlib.contextmanager
def child(
    folder: Path, *options: object, command: tuple[str, ...] = COMMAND
) -> Iterator[subprocess.Popen[bytes]]:
    """The command, to be spoken to by hand; killed in the end if it still runs."""
    with Popen(
        [*command, str(folder), *map(str, options)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def serving(folder: Path, *options: object) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The command with ``--http`` on some port: its address, and the process."""
    with child(folder, "--http", "--port", 0, *options) as process:
        assert process.stderr is not None
        said = process.stderr.readline().decode()
        if not said.startswith(f"serving {folder} on http://"):
            process.kill()  # the rest ends with it
            raise AssertionError(said + process.stderr.read().decode())
        yield said.split()[3], process


@contextlib.contextmanager
def serving_here(
    folder: Path, limits: Limits = DEFAULT, agent: str | None = None, **names: Any
) -> Iterator[tuple[str, MemoryBank]]:
    """The bank served by a thread of the test, which can set limits: its address, and the bank."""
    stop = threading.Event()
    with MemoryBank.open(folder, storage=MANUAL) as bank, listen("127.0.0.1", 0) as sock:
        url = address("127.0.0.1", sock)
        given = (bank, TokenDoor(folder, agent), Names("127.0.0.1", **names), sock)
        more = {"read_only": False, "limits": limits, "asked_to_stop": stop.is_set}
        thread = threading.Thread(target=mcp_http.serve, args=given, kwargs=more)
        thread.start()
        try:
            yield url, bank
        finally:
            stop.set()
            thread.join(LONG)
            assert not thread.is_alive(), "the service did not stop when it was asked to"


def texts(folder: Path, agent: str = "alice") -> list[str]:
    """What an agent remembers, as the journal has it."""
    with MemoryBank.at(folder) as bank:
        return [memory.content for memory in bank.agent(agent).all()]


def text_of(result: Any) -> str:
    (content,) = result.content
    text: str = content.text
    return text
