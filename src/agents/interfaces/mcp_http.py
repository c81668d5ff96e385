"""MCP over streamable HTTP, by the rules of the HTTP service: the same tokens, names and limits."""

import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agents.bank import MemoryBank
from agents.errors import TierMemError
from agents.interfaces.http.access import Door, Names
from agents.interfaces.http.connection import connections
from agents.interfaces.http.limits import DEFAULT
from agents.interfaces.http.problems import MEDIA_TYPE, Problem
from agents.interfaces.http.server import _Server
from agents.interfaces.mcp_server import Access, Context, make_server
from agents.interfaces.tokens import Grant

__all__ = ["PATH", "serve"]

logger = logging.getLogger(__name__)

PATH = "/mcp"

_GRANT = "tiermem.grant"
"""Where a request's scope has what its token allows."""
_SECONDS_TO_FINISH = 5


def serve(
    bank: MemoryBank,
    door: Door,
    names: Names,
    sock: socket.socket,
    *,
    read_only: bool,
    origins: tuple[str, ...] = (),
    asked_to_stop: Callable[[], bool],
) -> None:
    """Answer until ``asked_to_stop`` is true; then finish what was begun.

    When it returns, nothing uses the bank any more, and it can be closed.
    """
    # Each request stands for itself: there is no session to get into with another token.
    manager = StreamableHTTPSessionManager(
        make_server(partial(_access, bank, read_only)), json_response=True, stateless=True
    )
    guarded = _Guard(StreamableHTTPASGIApp(manager), door, names)
    cors: Any = Middleware(
        CORSMiddleware, allow_origins=origins, allow_methods=["POST"], allow_headers=["*"]
    )
    app = Starlette(
        routes=[Route(PATH, guarded, methods=["POST"])],
        middleware=[cors] if origins else [],
        lifespan=lambda _: manager.run(),
    )
    logging.getLogger("mcp.server.streamable_http").addFilter(_is_worth_telling)
    config = uvicorn.Config(
        app,
        http=connections(DEFAULT.head_seconds, DEFAULT.connections),
        loop="asyncio",
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_SECONDS_TO_FINISH,
    )
    _Server(config, asked_to_stop).run([sock])


def _is_worth_telling(record: logging.LogRecord) -> bool:
    """Whether it is more than a client that went away while it was asking."""
    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))


def _access(bank: MemoryBank, read_only: bool, context: Context) -> Access:
    """What the token of this very request allows."""
    request: Any = context.request
    grant: Grant = request.scope[_GRANT]
    return Access(bank.agent(grant.agent_id), grant.permission == "write" and not read_only)


class _Guard:
    """Lets requests in, each with what its token allows."""

    def __init__(self, app: ASGIApp, door: Door, names: Names) -> None:
        self._app = app
        self._door = door
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        try:
            self._names.check(headers)
            scope[_GRANT] = self._door.grant(headers)
        except Problem as problem:
            await _told(problem)(scope, receive, send)
        except TierMemError as error:
            logger.error("%s", error)
            await _told(Problem.internal())(scope, receive, send)
        else:
            with suppress(ClientDisconnect):
                await self._app(scope, receive, send)


def _told(problem: Problem) -> Response:
    return Response(problem.body(), problem.status, problem.headers, MEDIA_TYPE)
