"""Connections that bring no request are closed; a request that is not HTTP gets an answer."""

import asyncio
import resource

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .limits import Limits
from .problems import MEDIA_TYPE, Problem

_PROBLEM = Problem(400, "MalformedRequest", "this is not a request in HTTP/1.1").body()
_MALFORMED = (
    f"HTTP/1.1 400 Bad Request\r\nContent-Type: {MEDIA_TYPE}\r\n"
    f"Content-Length: {len(_PROBLEM)}\r\nConnection: close\r\n\r\n"
).encode() + _PROBLEM


class _Connection(H11Protocol):
    """uvicorn's connection, with limits on how long it waits.

    uvicorn has no setting for the time that a head may take, for the connection that makes room for
    a new one, or for the answer to a malformed request.
    """

    limits: Limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._unsent, self.moved, self.was_answered = 0, self.loop.time(), False
        self._timer = self.loop.call_later(self.limits.head_seconds, self._look)
        if len(self.connections) > most_connections(self.limits.connections):
            self._make_room()

    def _make_room(self) -> None:
        """Close the connection that is idle for longest, or this one if none is idle.

        Connections that never brought a whole request go first: those of a client that keeps its
        connection and thinks for a while go last.
        """
        all_of_them = [each for each in self.connections if isinstance(each, _Connection)]
        idle = [
            each
            for each in all_of_them
            if each is not self and each.is_idle and not each.transport.is_closing()
        ]
        min(idle, key=lambda each: (each.was_answered, each.moved), default=self).transport.abort()

    @property
    def is_idle(self) -> bool:
        """Whether no request is open and the whole answer was sent, not only written."""
        is_done = self.cycle is None or self.cycle.response_complete
        return is_done and not self.transport.get_write_buffer_size()

    def on_response_complete(self) -> None:
        self.moved, self.was_answered = self.loop.time(), True
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Close it if it brought no request, or read nothing of its answer, for too long."""
        unsent, now = self.transport.get_write_buffer_size(), self.loop.time()
        if unsent != self._unsent:
            self._unsent, self.moved = unsent, now
        patience = self.limits.seconds if unsent else self.limits.head_seconds
        if (unsent or self.is_idle) and now - self.moved >= patience:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(self.limits.head_seconds, self._look)

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_MALFORMED)
        self.transport.close()


def connections(limits: Limits) -> type[asyncio.Protocol]:
    """The class of connections with these limits."""
    return type("Connection", (_Connection,), {"limits": limits})


def most_connections(wanted: int) -> int:
    """The wanted number, but at most half of the files that the process may open."""
    return max(1, min(wanted, _files() // 2))


def backlog() -> int:
    """The connections that may wait: asyncio accepts all at once, and each is an open file."""
    return max(1, min(128, _files() // 8))


def _files() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft
