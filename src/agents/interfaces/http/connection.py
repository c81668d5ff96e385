"""Connections that bring no request are closed, and ones that bring nonsense are told so."""

import asyncio
import resource

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .limits import Limits
from .problems import MEDIA_TYPE, Problem

__all__ = ["backlog", "connections", "most_connections"]

_PROBLEM = Problem(400, "MalformedRequest", "this is not a request in HTTP/1.1").body()
_MALFORMED = (
    f"HTTP/1.1 400 Bad Request\r\nContent-Type: {MEDIA_TYPE}\r\n"
    f"Content-Length: {len(_PROBLEM)}\r\nConnection: close\r\n\r\n"
).encode() + _PROBLEM


class _Connection(H11Protocol):
    """uvicorn's connection, which would wait for ever for a head, or for a client to read.

    No setting of uvicorn says how long a head may take, which connection makes room for a new one,
    or how nonsense is answered.
    """

    limits: Limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._unsent, self._moved = 0, self.loop.time()
        self._timer = self.loop.call_later(self.limits.head_seconds, self._look)
        if len(self.connections) > most_connections(self.limits.connections):
            self._make_room()

    def _make_room(self) -> None:
        """Close the connection that is idle for longest, so that idle ones keep nobody out."""
        others = (each for each in self.connections if isinstance(each, _Connection))
        idle = [each for each in others if each._is_idle and not each.transport.is_closing()]
        min(idle, key=lambda each: each._moved, default=self).transport.abort()

    @property
    def _is_idle(self) -> bool:
        """uvicorn calls an answer complete when all of it waits to be sent; the client does not."""
        is_done = self.cycle is None or self.cycle.response_complete
        return is_done and not self.transport.get_write_buffer_size()

    def on_response_complete(self) -> None:
        self._moved = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Close it if for too long it brought no request, or took nothing of its answer."""
        unsent, now = self.transport.get_write_buffer_size(), self.loop.time()
        if unsent != self._unsent:
            self._unsent, self._moved = unsent, now
        patience = self.limits.seconds if unsent else self.limits.head_seconds
        if (unsent or self._is_idle) and now - self._moved >= patience:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(self.limits.head_seconds, self._look)

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP gets an answer like everything else."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_MALFORMED)
        self.transport.close()


def connections(limits: Limits) -> type[asyncio.Protocol]:
    """The class of connections with these limits."""
    return type("Connection", (_Connection,), {"limits": limits})


def most_connections(wanted: int) -> int:
    """As many, but half of the files that the process may open at most: a bank needs some."""
    return max(1, min(wanted, _files() // 2))


def backlog() -> int:
    """How many connections may wait, which asyncio accepts all at once: each is an open file."""
    return max(1, min(128, _files() // 8))


def _files() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft
