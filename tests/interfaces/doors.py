"""The doors of a bank over HTTP: its operations, and MCP. One gate stands before both."""

import contextlib
import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from http_service import EAGER, JSON, Served, served

from agents.interfaces.http import server
from agents.interfaces.http.limits import Limits
from agents.interfaces.mcp import http as mcp_http

_MCP_HEADERS = {"Accept": "application/json, text/event-stream", **JSON}


class Door(NamedTuple):
    """How to ask at a door for the little that both know."""

    name: str
    path: str
    """Where memories are stored."""
    serve: Any
    header: str
    """A header that a page of another origin may send."""

    def served(
        self, folder: Path, limits: Limits = EAGER, agent_id: str | None = None, **options: Any
    ) -> contextlib.AbstractContextManager[Served]:
        """The bank in a folder, behind this door."""
        return served(folder, limits, agent_id, serve=self.serve, **options)

    def status(self, client: httpx.Client, **headers: str) -> httpx.Response:
        """A question that needs a token and the bank."""
        if self.name == "http":
            return client.get("/status", headers=headers)
        body = _call("memory_status", {})
        return client.post(self.path, content=body, headers={**_MCP_HEADERS, **headers})

    def stores(self, content: str) -> bytes:
        """The body that stores a memory."""
        arguments = {"content": content}
        return (
            json.dumps(arguments).encode()
            if self.name == "http"
            else _call("store_memory", arguments)
        )

    def post(self, client: httpx.Client, body: Any, **headers: str) -> httpx.Response:
        """The answer to a body."""
        return client.post(self.path, content=body, headers={**_MCP_HEADERS, **headers})


def _call(tool: str, arguments: dict[str, object]) -> bytes:
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(message).encode()


DOORS = (
    Door("http", "/memory", server.serve, "content-type"),
    Door("mcp", "/mcp", partial(mcp_http.serve, read_only=False), "mcp-name"),
)
