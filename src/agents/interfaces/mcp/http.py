"""MCP over streamable HTTP, by the rules of the HTTP service: the same tokens, names and limits."""

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...bank.memory_bank import MemoryBank
from ...errors import TierMemError
from ..http.access import Door, Names, origin_form
from ..http.allowance import Allowance
from ..http.bodies import check_type, read_body
from ..http.connection import backlog, connections
from ..http.cors import Pages
from ..http.limits import DEFAULT, Limits
from ..http.problems import ALWAYS, Problem, encoded
from ..http.server import _Server
from ..tokens import Grant
from .server import Access, Context, make_server
from .stdio import refusal

__all__ = ["PATH", "serve"]

logger = logging.getLogger(__name__)

PATH = "/mcp"

_HEALTH = "/health"
_METHODS = {PATH: ("POST",), _HEALTH: ("GET", "HEAD")}
_GRANT = "tiermem.grant"
"""Where a request's scope has what its token allows."""
_SECONDS_TO_FINISH = 5
_CLOSE = {"Connection": "close"}


def serve(
    bank: MemoryBank,
    door: Door,
    names: Names,
    sock: socket.socket,
    *,
    read_only: bool,
    limits: Limits = DEFAULT,
    asked_to_stop: Callable[[], bool],
) -> None:
    """Answer until ``asked_to_stop`` is true; then finish what was begun.

    When it returns, nothing uses the bank any more, and it can be closed.
    """
    # Each request stands for itself: there is no session to get into with another token. And each
    # answer is whole, so that none is a stream that would have to stay open for long.
    manager = StreamableHTTPSessionManager(
        make_server(partial(_access, bank, read_only)),
        json_response=True,
        stateless=True,
        max_request_body_size=limits.body_bytes,
    )
    app: ASGIApp = _Guard(manager, door, names, limits)
    if names.origins:
        app = Pages(app, names, ("POST",), ("*",))
    config = uvicorn.Config(
        app,
        http=connections(limits.head_seconds, limits.connections, limits.seconds),
        backlog=backlog(),
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_SECONDS_TO_FINISH,
    )
    _Server(config, asked_to_stop).run([sock])


def _access(bank: MemoryBank, read_only: bool, context: Context) -> Access:
    """What the token of this very request allows."""
    request: Any = context.request
    grant: Grant = request.scope[_GRANT]
    return Access(bank.agent(grant.agent_id), grant.permission == "write" and not read_only)


class _Guard:
    """Lets requests in, each with what its token allows, and no more of them than it may send."""

    def __init__(
        self, manager: StreamableHTTPSessionManager, door: Door, names: Names, limits: Limits
    ) -> None:
        self._manager = manager
        self._door = door
        self._names = names
        self._limits = limits
        self._allowance = Allowance(limits, _CLOSE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        answer = _Answer(send)
        try:
            async with asyncio.timeout(self._limits.seconds):
                await self._let_in(origin_form(scope), receive, answer)
            return
        except ClientDisconnect:
            return
        except Problem as found:
            problem = found
        except TimeoutError:
            detail = "it took too long, and may or may not have been done; look before you repeat"
            problem = Problem(503, "TookTooLong", detail, _CLOSE)
        except asyncio.CancelledError:  # by the server, which stops and does not wait any longer
            detail = "the service stops; it may or may not have been done: look before you repeat"
            problem = Problem(503, "Stopping", detail, _CLOSE)
        except TierMemError as error:
            logger.error("%s", error)
            problem = Problem.internal()
        except Exception:  # whatever it is, the client is told nothing of it, and the log all
            logger.exception("a request failed")
            problem = Problem.internal()
        if not answer.has_begun:
            await problem.response()(scope, receive, answer)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()  # that it begins
        async with self._manager.run():
            await send({"type": "lifespan.startup.complete"})
            await receive()  # that it ends
        await send({"type": "lifespan.shutdown.complete"})

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, address = Headers(scope=scope), (scope.get("client") or ("",))[0]
        self._names.check(headers)
        self._find(scope, address)
        if scope["path"] == _HEALTH:  # not counted: whoever watches asks when others ask too often
            response = Response(encoded({"status": "ok"}), media_type="application/json")
            await response(scope, receive, send)
            return
        scope[_GRANT], key = self._allowance.admit(self._door, headers, address)
        # A body that trickles takes a connection and room for what came of it, but nobody's turn.
        with self._allowance.begun(key), self._allowance.room(key) as keep:
            body = await read_body(headers, receive, self._limits, keep)
            check_type(headers)
            if refused := _unreadable(body):
                await refused(scope, receive, send)
                return
            with self._allowance.turn(key):
                await self._manager.handle_request(scope, _again(body, receive), send)

    def _find(self, scope: Scope, address: str) -> None:
        """404 or 405 for what is not here."""
        methods = _METHODS.get(scope["path"])
        if methods and scope["method"] in methods:
            return
        self._allowance.count(address)
        if not methods:
            raise Problem(404, "NoSuchPath", f"there is nothing at this path; MCP is at {PATH}")
        allowed = ", ".join(methods)
        raise Problem(405, "NoSuchMethod", f"this path takes {allowed}", {"Allow": allowed})


class _Answer:
    """Sends an answer, with what every answer says, and knows whether it was begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            MutableHeaders(scope=message).update(ALWAYS)
        await self._send(message)


def _unreadable(body: bytes) -> Response | None:
    """An answer by the id of a request that the SDK would refuse without it."""
    try:
        types.jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValueError:
        refused = refusal(body)
        if refused.id is not None:
            text = refused.model_dump_json(by_alias=True, exclude_unset=True)
            return Response(text, 400, media_type="application/json")
    return None


def _again(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read, and then whatever else comes."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def given() -> Message:
        return messages.pop() if messages else await receive()

    return given
