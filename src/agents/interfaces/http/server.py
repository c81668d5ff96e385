"""Serving over HTTP until it is asked to stop: a bank, MCP, or the inspector's page."""

import asyncio
import signal
import socket
from collections.abc import Callable
from types import FrameType

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ...bank.async_bank import AsyncMemoryBank, keep_time
from ...bank.memory_bank import MemoryBank
from ...errors import ConfigError
from .access import Names, TokenDoor
from .limits import DEFAULT, Limits, backlog, most_connections
from .problems import MEDIA_TYPE, Problem
from .service import Service

_GRACE = 5.0
"""Seconds to stop, beyond the longest request."""


def listen(
    host: str, port: int, *, hint: str = "choose others with --host and --port"
) -> socket.socket:
    """A socket that takes connections from now on; ``hint`` is for one that can't be had."""
    try:
        family, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.create_server((str(where[0]), port), family=family, backlog=backlog())
    except (OSError, UnicodeError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"can't listen on {host} port {port}: {reason}", hint=hint) from None
    # Head and body of an answer are written apart, and the body would wait 40 ms.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def address(host: str, sock: socket.socket) -> str:
    """The URL of the socket."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{sock.getsockname()[1]}"


def serve(
    bank: MemoryBank,
    door: TokenDoor,
    names: Names,
    sock: socket.socket,
    *,
    limits: Limits = DEFAULT,
    asked_to_stop: Callable[[], bool],
) -> None:
    """Answer requests until ``asked_to_stop`` is true; then finish the open requests.

    When it returns, nothing uses the bank, which can be closed. A second signal gives up the open
    requests and raises KeyboardInterrupt; an operation of the bank may still run then.
    """
    shared = AsyncMemoryBank(bank)
    service = Service(shared, door, names, limits)
    run(service, sock, limits, asked_to_stop, grace=limits.seconds + _GRACE, bank=shared)


def run(
    app: ASGIApp,
    sock: socket.socket,
    limits: Limits,
    asked_to_stop: Callable[[], bool],
    *,
    grace: float,
    bank: AsyncMemoryBank | None = None,
    when_stopping: Callable[[], None] = lambda: None,
) -> None:
    """Serve an application; open requests have ``grace`` seconds when it stops.

    The time passes in the ``bank``, if the application uses one. ``when_stopping`` is called before
    the open requests are waited for.

    uvicorn's ``limit_concurrency`` is not used: it refuses the newest client, in plain text, while
    idle connections keep their places.
    """
    config = uvicorn.Config(
        app,
        http=type("Connection", (_Connection,), {"limits": limits}),
        backlog=backlog(),
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=int(grace),
    )
    server = _Server(config, bank, asked_to_stop, when_stopping)
    try:
        server.run([sock])
    finally:
        if bank is not None and not server.is_urgent:
            asyncio.run(bank.run(lambda _: None))  # waits for all that was begun


class _Server(uvicorn.Server):
    """uvicorn, which a second signal of either kind ends at once.

    At its end, uvicorn raises the signals again for the handlers of the caller, which are those of
    :func:`~agents.interfaces.cli.progress.stopping`: a second signal is a KeyboardInterrupt.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        bank: AsyncMemoryBank | None,
        asked_to_stop: Callable[[], bool],
        when_stopping: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._bank = bank
        self._asked_to_stop = asked_to_stop
        self._when_stopping = when_stopping
        self.is_urgent = False
        """Whether a second signal came."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.is_urgent = self.should_exit
        super().handle_exit(signal.SIGTERM, frame)  # a second SIGINT would skip the lifespan

    async def main_loop(self) -> None:
        keeping = None if self._bank is None else asyncio.create_task(keep_time(self._bank))
        try:
            await super().main_loop()
        finally:
            if keeping is not None:
                keeping.cancel()

    async def on_tick(self, counter: int) -> bool:
        self.should_exit = self.should_exit or self._asked_to_stop()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._when_stopping()
        hurry = asyncio.create_task(self._hurry())
        try:
            await super().shutdown(sockets)
        finally:
            hurry.cancel()

    async def _hurry(self) -> None:
        """After a second signal, cancel the open requests, so that their senders get an answer."""
        while not self.is_urgent:
            await asyncio.sleep(0.05)
        for task in list(self.server_state.tasks):
            task.cancel()
        await asyncio.sleep(0.1)
        for connection in list(self.server_state.connections):
            connection.transport.abort()  # a client that reads a long answer slowly


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
