"""Connections that bring no request are closed, and ones that bring nonsense are told so."""

import asyncio
import socket
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from agents.interfaces.http.problems import MEDIA_TYPE, Problem

__all__ = ["connections"]


class _Connection(H11Protocol):
    """uvicorn's connection; it waits for the head of a request for ever, which this does not."""

    head_seconds = 10.0
    most = 1024

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Head and body are written apart, and the body would wait 40 ms for the client's word.
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._seen: Any = None
        self._timer = self.loop.call_later(self.head_seconds, self._look)
        if len(self.connections) > self.most:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Close it if there was no request since the last look; bytes alone are none."""
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.cycle is self._seen:
            self.transport.abort()
            return
        self._seen = self.cycle
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


def connections(head_seconds: float, most: int) -> type[asyncio.Protocol]:
    """The class of connections with these limits."""
    return type("Connection", (_Connection,), {"head_seconds": head_seconds, "most": most})
