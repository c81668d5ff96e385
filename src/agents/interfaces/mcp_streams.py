"""MCP over standard input and output."""

import os
import select
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, cast

import anyio
import anyio.lowlevel
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

__all__ = ["serve", "wire"]

_LONGEST = 4 << 20
"""Bytes that a message may have, as over HTTP."""
_PAUSE = 0.1
"""Seconds until it is looked again whether to stop."""


@contextmanager
def wire() -> Iterator[tuple[int, int]]:
    """Standard input and output for the protocol alone, as two files.

    Meanwhile nobody else reads from it, and what anybody prints goes to standard error.
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
    server: Server[Any], incoming: int, outgoing: int, asked_to_stop: Callable[[], bool]
) -> None:
    """Serve until the input ends, nobody reads the output, or ``asked_to_stop`` is true."""
    anyio.run(_serve, server, incoming, outgoing, asked_to_stop)


async def _serve(
    server: Server[Any], incoming: int, outgoing: int, asked_to_stop: Callable[[], bool]
) -> None:
    lines = cast("anyio.AsyncFile[str]", _Lines(incoming))
    answers = cast("anyio.AsyncFile[str]", _Answers(outgoing))
    sifted, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_stop, asked_to_stop, group.cancel_scope)
            async with stdio_server(lines, answers) as (read, write):
                group.start_soon(_sift, read, sifted, write)
                await server.run(messages, write, server.create_initialization_options())
            group.cancel_scope.cancel()
    except* BrokenPipeError:
        pass  # the client is gone


async def _stop(asked_to_stop: Callable[[], bool], scope: anyio.CancelScope) -> None:
    while not asked_to_stop():
        await anyio.sleep(_PAUSE)
    scope.cancel()


async def _sift(read: Any, sifted: Any, write: Any) -> None:
    """Pass messages on; what is none gets an error for an answer."""
    error = types.ErrorData(code=types.PARSE_ERROR, message="this line is no JSON-RPC message")
    refusal = SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=None, error=error))
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async with sifted:
            async for item in read:
                if isinstance(item, SessionMessage):
                    await sifted.send(item)
                else:
                    await write.send(refusal)


class _Lines:
    """The lines of a file. Waiting for one can be given up, as in a thread it could not."""

    def __init__(self, file: int) -> None:
        self._file = file

    async def __aiter__(self) -> AsyncIterator[str]:
        rest = b""
        while part := await self._part():
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                yield line.decode("utf-8", "replace")
            if len(rest) > _LONGEST:
                rest = b"\0"  # with which no JSON begins: what is too long is no message

    async def _part(self) -> bytes:
        await anyio.lowlevel.checkpoint()
        with suppress(PermissionError):  # a file on disk, which is always ready
            await anyio.wait_readable(self._file)
        return os.read(self._file, 1 << 16)


class _Answers:
    """A file to write to, which can be given up while nobody reads it."""

    def __init__(self, file: int) -> None:
        self._file = file

    async def write(self, text: str) -> None:
        left = memoryview(text.encode())
        while left:
            with suppress(PermissionError):
                await anyio.wait_writable(self._file)
            left = left[os.write(self._file, left[: select.PIPE_BUF]) :]  # so much never waits

    async def flush(self) -> None:
        """Nothing is held back."""
