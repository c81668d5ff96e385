"""MCP over streamable HTTP, with the tokens, names and limits of the HTTP service."""

import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message

from ...bank.async_bank import AsyncMemoryBank
from ...bank.memory_bank import MemoryBank
from ..http.access import Names, TokenDoor
from ..http.bodies import check_type
from ..http.endpoints import HEALTH, ServicePage
from ..http.gate import Gate, Manner, Target, Visit
from ..http.limits import DEFAULT, Limits
from ..http.problems import encoded, private_paths
from ..http.server import run
from ..tokens import Grant
from . import sdk
from .server import Access, make_server
from .stdio import refusal

PATH = "/mcp"

_MCP = ServicePage("mcp", PATH, "Messages of MCP.", "read", method="POST")
_SECONDS_TO_FINISH = 5
_CLOSE = {"Connection": "close"}


def serve(
    bank: MemoryBank,
    door: TokenDoor,
    names: Names,
    sock: socket.socket,
    *,
    read_only: bool,
    limits: Limits = DEFAULT,
    asked_to_stop: Callable[[], bool],
) -> None:
    """Answer requests until ``asked_to_stop`` is true; then finish the open requests.

    When it returns, nothing uses the bank, which can be closed.
    """
    shared = AsyncMemoryBank(bank)
    private = private_paths(door.folder, bank.settings)
    server = make_server(partial(_access, shared, read_only), private, bank.settings.profile)
    manager = sdk.manager(server, limits.body_bytes)

    async def answer(visit: Visit) -> Response:
        async with gate.body(visit) as body:
            check_type(visit.headers)
            return _unreadable(body) or await _handled(manager, visit, body)

    gate = Gate(
        [Target(_MCP, answer), Target(HEALTH, _healthy)],
        door,
        names,
        limits,
        Manner(f"MCP is at {PATH}", methods=("POST",), headers=("*",), busy=_CLOSE),
        lifespan=lambda _: manager.run(),
    )
    run(gate, sock, limits, asked_to_stop, grace=_SECONDS_TO_FINISH, bank=shared)


def _access(bank: AsyncMemoryBank, read_only: bool, context: sdk.Context) -> Access:
    """What the token of this request allows."""
    request: Any = context.request
    grant: Grant = request.user
    return Access(bank.agent(grant.agent_id), "read" if read_only else grant.permission)


async def _healthy(visit: Visit) -> Response:
    return Response(encoded({"status": "ok"}), media_type="application/json")


async def _handled(manager: StreamableHTTPSessionManager, visit: Visit, body: bytes) -> Response:
    """The SDK's answer to a request with this body, as one response."""
    given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    response, parts = Response(status_code=0), bytearray()

    async def receive() -> Message:
        return given.pop() if given else await visit.receive()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            response.status_code, response.raw_headers = message["status"], message["headers"]
        else:
            parts.extend(message.get("body", b""))

    await manager.handle_request(visit.scope, receive, send)
    if not response.status_code:
        raise ClientDisconnect
    response.body = bytes(parts)
    return response


def _unreadable(body: bytes) -> Response | None:
    """A refusal with the id of the request; the SDK would refuse without the id."""
    try:
        sdk.parsed(body)
    except ValueError:
        return Response(encoded(refusal(body)), 400, media_type="application/json")
    return None
