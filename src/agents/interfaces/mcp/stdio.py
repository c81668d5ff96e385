"""MCP over standard input and output."""

import json
import os
import select
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import anyio
import anyio.lowlevel
from mcp.server import Server
from mcp.server.stdio import stdio_server

from ...bank.async_bank import AsyncMemoryBank, keep_time
from ..http.limits import DEFAULT
from .sdk import parsed, types

_LONGEST = DEFAULT.body_bytes
"""The most bytes of a message, as over HTTP."""
_PAUSE = 0.1
"""Seconds between two looks at whether to stop."""
_SECONDS_TO_ANSWER = 30.0
"""The time to answer the open requests after the input has ended."""
_CANCELLED = "notifications/cancelled"
"""The notification of a client that it wants no answer."""


@contextmanager
def wire() -> Iterator[tuple[int, int]]:
    """Standard input and output for the protocol alone, as two files.

    Inside the block, standard input is empty for all other code, and its prints go to standard
    error.
    """
    sys.stdout.flush()
    with ExitStack() as last, open(os.devnull, "rb") as nothing:
        incoming, outgoing = os.dup(0), os.dup(1)
        for number, private in ((0, incoming), (1, outgoing)):
            last.callback(os.close, private)
            last.callback(os.dup2, private, number)
        last.callback(sys.stdout.flush)
        os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
        yield incoming, outgoing


def serve(
    server: Server[Any],
    bank: AsyncMemoryBank,
    incoming: int,
    outgoing: int,
    asked_to_stop: Callable[[], bool],
) -> None:
    """Serve until the input ends, the output is closed, or ``asked_to_stop`` is true.

    Requests that came before the end of the input are answered first.
    """
    anyio.run(_serve, server, bank, incoming, outgoing, asked_to_stop)


async def _serve(
    server: Server[Any],
    bank: AsyncMemoryBank,
    incoming: int,
    outgoing: int,
    asked_to_stop: Callable[[], bool],
) -> None:
    wire: Any = _Wire(incoming, outgoing)  # the SDK uses no other method of a file
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_stop, asked_to_stop, group.cancel_scope)
            group.start_soon(keep_time, bank)
            async with stdio_server(wire, wire) as (messages, answers):
                await server.run(messages, answers, server.create_initialization_options())
            group.cancel_scope.cancel()
    except* BrokenPipeError:
        pass  # the client is gone


async def _stop(asked_to_stop: Callable[[], bool], scope: anyio.CancelScope) -> None:
    while not asked_to_stop():
        await anyio.sleep(_PAUSE)
    scope.cancel()


class _Wire:
    """The lines from the client and to the client, which the SDK reads and writes as a file.

    The SDK's own streams wait in a thread that can't be ended. The SDK also drops a line that is no
    message, and gives up open requests when the input ends. So this class answers a line that is no
    message, and ends the input when all requests are answered.
    """

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._writing = anyio.Lock()
        self._open: Counter[types.RequestId] = Counter()
        self._is_settled = anyio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for line in _lines(self._incoming):
            try:
                message = parsed(line)
            except ValueError:
                await self.write(f"{json.dumps(refusal(line))}\n")
                continue
            if isinstance(message, types.JSONRPCRequest):
                self._open[message.id] += 1
            elif isinstance(message, types.JSONRPCNotification) and message.method == _CANCELLED:
                self._settle((message.params or {}).get("requestId"))
            yield line
        with anyio.move_on_after(_SECONDS_TO_ANSWER):
            while self._open.total():
                self._is_settled = anyio.Event()
                await self._is_settled.wait()

    async def write(self, text: str) -> None:
        """Write the whole text; the write can be cancelled while the client does not read."""
        async with self._writing:
            left = memoryview(text.encode())
            while left:
                with suppress(PermissionError):
                    await anyio.wait_writable(self._outgoing)
                left = left[os.write(self._outgoing, left[: select.PIPE_BUF]) :]  # never waits
        self._settle(json.loads(text).get("id"))

    async def flush(self) -> None:
        """Do nothing: ``write`` has written everything."""

    def _settle(self, number: object) -> None:
        if isinstance(number, str | int) and self._open[number]:
            self._open[number] -= 1
        self._is_settled.set()


def refusal(line: bytes) -> dict[str, Any]:
    """The answer to a line that is not a message; it has the line's id, if that is readable."""
    number, code, why = None, types.PARSE_ERROR, "this is not a JSON-RPC message"
    with suppress(ValueError, RecursionError):
        given = json.loads(line.decode("utf-8", "replace"))
        if isinstance(given, dict) and _is_id(given.get("id")):
            number, code = given["id"], types.INVALID_PARAMS
            why += ", or a text in it is not Unicode: not UTF-8, or with a lone surrogate"
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": why}}


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return all(not "\ud800" <= letter <= "\udfff" for letter in value)
    return isinstance(value, int) and not isinstance(value, bool)


async def _lines(file: int) -> AsyncIterator[bytes]:
    """The lines of a file; waiting for a line can be cancelled, unlike in a thread."""
    rest = b""
    while part := await _part(file):
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line
        if len(rest) > _LONGEST:
            rest = b"\0"  # no JSON begins so: a line that is too long is not a message
    if rest:
        yield rest


async def _part(file: int) -> bytes:
    await anyio.lowlevel.checkpoint()
    with suppress(PermissionError):  # a file on disk is always ready
        await anyio.wait_readable(file)
    return os.read(file, 1 << 16)
