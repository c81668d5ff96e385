"""Serving a bank until told to stop."""

import asyncio
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from ...bank.async_bank import AsyncMemoryBank
from ...bank.memory_bank import MemoryBank
from ...errors import ConfigError
from .access import Door, Names
from .connection import backlog, connections
from .limits import DEFAULT, Limits
from .service import Service

__all__ = ["Door", "Limits", "Names", "address", "listen", "run", "serve"]

_GRACE = 5.0
"""Seconds beyond the longest request, when stopping."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on."""
    try:
        family, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.create_server((str(where[0]), port), family=family, backlog=backlog())
    except (OSError, UnicodeError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"can't listen on {host} port {port}: {reason}",
            hint="choose others with --host and --port",
        ) from None
    # For each connection: head and body are written apart, and the body would wait 40 ms.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def address(host: str, sock: socket.socket) -> str:
    """Where the socket listens, as a client writes it."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{sock.getsockname()[1]}"


def serve(
    bank: MemoryBank,
    door: Door,
    names: Names,
    sock: socket.socket,
    *,
    limits: Limits = DEFAULT,
    asked_to_stop: Callable[[], bool],
) -> None:
    """Answer until ``asked_to_stop`` is true; then finish what was begun.

    When it returns, nothing uses the bank any more, and it can be closed. A second signal is a
    KeyboardInterrupt, when all that was begun has been given up; an operation may still be running.
    """
    shared = AsyncMemoryBank(bank)
    service = Service(shared, door, names, limits)
    run(service, shared, sock, limits, asked_to_stop, grace=limits.seconds + _GRACE)


def run(
    app: ASGIApp,
    bank: AsyncMemoryBank,
    sock: socket.socket,
    limits: Limits,
    asked_to_stop: Callable[[], bool],
    *,
    grace: float,
) -> None:
    """Serve an application that uses a bank; a request has ``grace`` seconds to end when stopping.

    uvicorn's ``limit_concurrency`` is not used: it turns away whoever comes last, in plain text,
    while connections that ask for nothing keep their places.
    """
    config = uvicorn.Config(
        app,
        http=connections(limits),
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
    server = _Server(config, asked_to_stop)
    try:
        server.run([sock])
    finally:
        if not server.is_urgent:
            asyncio.run(bank.run(lambda _: None))  # its turn comes after all that was begun


class _Server(uvicorn.Server):
    """uvicorn, which a second signal of either kind ends at once.

    When it has ended, uvicorn raises the signals again for the caller's handlers, which are those
    of :func:`~agents.interfaces.cli.progress.stopping`: a second signal is a KeyboardInterrupt.
    """

    def __init__(self, config: uvicorn.Config, asked_to_stop: Callable[[], bool]) -> None:
        super().__init__(config)
        self._asked_to_stop = asked_to_stop
        self.is_urgent = False
        """Whether it is to end at once."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.is_urgent = self.should_exit
        super().handle_exit(signal.SIGTERM, frame)  # a second SIGINT would leave out the lifespan

    async def on_tick(self, counter: int) -> bool:
        self.should_exit = self.should_exit or self._asked_to_stop()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        hurry = asyncio.create_task(self._hurry())
        try:
            await super().shutdown(sockets)
        finally:
            hurry.cancel()

    async def _hurry(self) -> None:
        """Once it is urgent, give up what was begun, and let its senders know."""
        while not self.is_urgent:
            await asyncio.sleep(0.05)
        for task in list(self.server_state.tasks):
            task.cancel()
        await asyncio.sleep(0.1)
        for connection in list(self.server_state.connections):
            connection.transport.abort()  # who takes a long answer slowly
