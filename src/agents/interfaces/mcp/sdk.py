"""What differs between the versions 1 and 2 of the official MCP package, in one place."""

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared import exceptions

_IS_FIRST = not hasattr(exceptions, "MCPError")
"""Whether the package is of version 1, whose names are in camel case."""

if TYPE_CHECKING or not _IS_FIRST:
    import mcp_types as types
else:
    from mcp import types

__all__ = ["Context", "Handler", "build", "error", "make", "manager", "parsed", "types"]

_T = TypeVar("_T")

Context = Any
"""The request that is answered; ``context.request`` is the request of HTTP."""
Handler = Callable[[Context, Any], Awaitable[Any]]


def build(kind: Callable[..., _T], **fields: object) -> _T:
    """A value of the protocol, from fields in snake case."""
    return kind(**{_camel(name): own for name, own in fields.items()} if _IS_FIRST else fields)


def error(code: int, message: str) -> Exception:
    """An error that the client of a request gets."""
    if _IS_FIRST:
        made: Exception = vars(exceptions)["McpError"](
            build(types.ErrorData, code=code, message=message)
        )
        return made
    return exceptions.MCPError(code, message)


def parsed(line: bytes) -> Any:
    """The message of JSON-RPC that a line is; :class:`ValueError` if it is none."""
    if _IS_FIRST:
        try:  # version 1 reads messages in this way, too, and drops an infinite number
            json.loads(line, parse_float=_finite, parse_constant=_finite)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error
        return vars(types)["JSONRPCMessage"].model_validate_json(line).root
    return types.jsonrpc_message_adapter.validate_json(line, by_name=False)


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text!r:.20} is not finite")
    return number


def make(
    name: str,
    handlers: Mapping[str, Handler],
    input_schema: Callable[[str], dict[str, Any] | None],
    **about: str,
) -> Server[Any]:
    """A server; ``handlers`` are by the name of the request, such as ``list_tools``."""
    if not _IS_FIRST:
        named: dict[str, Any] = {f"on_{each}": handler for each, handler in handlers.items()}
        return Server(name, get_tool_input_schema=input_schema, **named, **_taken(Server, about))
    server: Any = Server(name, **_taken(Server, about))
    for each, handler in handlers.items():
        request = vars(types)[f"{_camel(each, str.upper)}Request"]
        server.request_handlers[request] = _answering(server, handler)
    return cast("Server[Any]", server)


def _answering(server: Any, handler: Handler) -> Callable[[Any], Awaitable[Any]]:
    async def answer(request: Any) -> Any:
        return vars(types)["ServerResult"](await handler(server.request_context, request.params))

    return answer


def manager(server: Server[Any], body_bytes: int) -> StreamableHTTPSessionManager:
    """Answers requests over HTTP, each on its own.

    Without sessions, no token can enter the session of another. And each answer is whole: no
    stream has to stay open.
    """
    most = _taken(StreamableHTTPSessionManager, {"max_request_body_size": body_bytes})
    return StreamableHTTPSessionManager(server, json_response=True, stateless=True, **most)


def _taken(kind: Callable[..., object], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that this version knows."""
    known = inspect.signature(kind).parameters
    return {name: own for name, own in options.items() if name in known}


def _camel(name: str, first: Callable[[str], str] = str.lower) -> str:
    text = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    return first(text[:1]) + text[1:]
