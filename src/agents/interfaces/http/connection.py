"""Connections that bring no request are closed, and ones that bring nonsense are told so."""

import asyncio
import resource
import socket

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .problems import MEDIA_TYPE, Problem

__all__ = ["backlog", "connections", "most_connections"]


class _Connection(H11Protocol):
    """uvicorn's connection; it waits for the head of a request for ever, which this does not."""

    head_seconds = 10.0
    answer_seconds = 30.0
    most = 1024

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Head and body are written apart, and the body would wait 40 ms for the client's word.
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unsent, self._moved = 0, self.loop.time()
        self._idle_since = self.loop.time()
        self._timer = self.loop.call_later(self.head_seconds, self._look)
        if len(self.connections) > self.most:
            self._make_room()

    def _make_room(self) -> None:
        """Close the connection that is idle for longest, so that idle ones keep nobody out."""
        others = (each for each in self.connections if isinstance(each, _Connection))
        idle = [each for each in others if each._is_idle and not each.transport.is_closing()]
        min(idle, key=lambda each: each._idle_since, default=self).transport.abort()

    @property
    def _is_idle(self) -> bool:
        is_done = self.cycle is None or self.cycle.response_complete
        return is_done and not self.transport.get_write_buffer_size()

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Close it if it brought no request for so long; bytes alone are none.

        uvicorn calls an answer complete when all of it waits to be sent: whoever still takes of it
        is not idle, however slow.
        """
        unsent, now = self.transport.get_write_buffer_size(), self.loop.time()
        if unsent != self._unsent:
            self._unsent, self._moved = unsent, now
        stalls = bool(unsent) and now - self._moved >= self.answer_seconds
        if stalls or (self._is_idle and now - self._idle_since >= self.head_seconds):
            self.transport.abort()
            return
        self._timer = self.loop.call_later(self.head_seconds, self._look)

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP gets an answer like everything else."""
        problem = Problem(400, "MalformedRequest", "this is not a request in HTTP/1.1")
        body = problem.body()
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def connections(
    head_seconds: float, most: int, answer_seconds: float = 30.0
) -> type[asyncio.Protocol]:
    """The class of connections with these limits."""
    limits = {
        "head_seconds": head_seconds,
        "answer_seconds": answer_seconds,
        "most": most_connections(most),
    }
    return type("Connection", (_Connection,), limits)


def most_connections(wanted: int) -> int:
    """As many, but half of the files that the process may open at most: a bank needs some."""
    return max(1, min(wanted, _files() // 2))


def backlog() -> int:
    """How many connections may wait, which asyncio accepts all at once: each is an open file."""
    return max(1, min(128, _files() // 8))


def _files() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft
