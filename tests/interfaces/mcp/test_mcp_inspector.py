"""The MCP inspector's command line, as a client that others wrote: `make inspector` runs it.

It needs Node and, the first time, the npm registry; so it is skipped unless TIERMEM_INSPECTOR=1.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp_clients import bank_in, serving, texts

from agents.interfaces import tokens
from agents.tools import OPERATIONS
from agents.tools.operations import allows
from waiting import LONG

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.environ.get("TIERMEM_INSPECTOR") != "1", reason="make inspector runs it: it needs Node"
    ),
]

INSPECTOR = ("npx", "--yes", "@modelcontextprotocol/inspector@2.12.0", "--cli")
TIERMEM = str(Path(sys.executable).with_name("tiermem"))
QUIET = ("--set", "storage.sync=manual")
IS_ERROR = 5
"""What the inspector exits with where a tool's result is an error."""
Ask = Callable[..., Any]


def inspected(server: tuple[str, ...], method: str, *options: str, code: int = 0) -> Any:
    """What the inspector prints about a server, as JSON."""
    patience = ("--connect-timeout", str(round(LONG * 1000)))  # of the inspector: 15 s
    command = [*INSPECTOR, *server, *patience, "--method", method, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * LONG)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture(params=["stdio", "http"])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ask]:
    """Asks a server for alice, who may write, by a method and its arguments."""
    folder = bank_in(tmp_path / "bank")
    if request.param == "stdio":
        server = (TIERMEM, "mcp", str(folder), "--agent", "alice", *QUIET)
        yield partial(inspected, server)
        return
    bearer = f"Authorization: Bearer {tokens.create(folder, 'alice').token}"
    with serving(folder, *QUIET) as (url, _):
        server = (url, "--transport", "http", "--header", bearer)
        yield partial(inspected, server)


def test_the_inspector_lists_what_there_is(ask: Ask) -> None:
    offered = [name for name, each in OPERATIONS.items() if allows("write", each.permission)]
    assert [each["name"] for each in ask("tools/list")["tools"]] == offered
    assert [each["name"] for each in ask("prompts/list")["prompts"]] == ["flush", "recall"]
    assert [each["uri"] for each in ask("resources/list")["resources"]] == [
        "memory://context",
        "memory://status",
        "memory://notes/MEMORY.md",
        "memory://notes/memory/a%20day.md",
    ]


def test_the_inspector_stores_and_finds_a_memory(ask: Ask, tmp_path: Path) -> None:
    text = "The ferry to Kythera leaves at noon"
    call = ("tools/call", "--tool-name")
    stored = ask(*call, "store_memory", "--tool-arg", f"content={text}", "--tool-arg", "tier=low")
    assert stored["structuredContent"]["tier"] == "low"
    found = ask(*call, "memory_search", "--tool-arg", "query=when does the ferry leave?")
    assert text in [each["snippet"] for each in found["structuredContent"]["results"]]
    refused = ask(*call, "pin_memory", "--tool-arg", "memory_id=none", code=IS_ERROR)
    assert refused["content"][0]["text"].startswith("MemoryNotFound: ")
    assert texts(tmp_path / "bank")[-1] == text
