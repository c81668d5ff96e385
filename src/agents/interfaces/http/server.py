"""Serving a bank over HTTP until it is asked to stop."""

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
from ..timer import keep_time
from .access import Door, Names
from .connection import backlog, connections
from .limits import DEFAULT, Limits
from .service import Service

__all__ = ["Door", "Limits", "Names", "address", "listen", "run", "serve"]

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
    door: Door,
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
    """Serve an application that uses a bank; open requests have ``grace`` seconds when it stops.

    uvicorn's ``limit_concurrency`` is not used: it refuses the newest client, in plain text, while
    idle connections keep their places.
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
    server = _Server(config, bank, asked_to_stop)
    try:
        server.run([sock])
    finally:
        if not server.is_urgent:
            asyncio.run(bank.run(lambda _: None))  # waits for all that was begun


class _Server(uvicorn.Server):
    """uvicorn, which a second signal of either kind ends at once.

    At its end, uvicorn raises the signals again for the handlers of the caller, which are those of
    :func:`~agents.interfaces.cli.progress.stopping`: a second signal is a KeyboardInterrupt.
    """

    def __init__(
        self, config: uvicorn.Config, bank: AsyncMemoryBank, asked_to_stop: Callable[[], bool]
    ) -> None:
        super().__init__(config)
        self._bank = bank
        self._asked_to_stop = asked_to_stop
        self.is_urgent = False
        """Whether a second signal came."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.is_urgent = self.should_exit
        super().handle_exit(signal.SIGTERM, frame)  # a second SIGINT would skip the lifespan

    async def main_loop(self) -> None:
        keeping = asyncio.create_task(keep_time(self._bank))
        try:
            await super().main_loop()
        finally:
            keeping.cancel()

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
        """After a second signal, cancel the open requests, so that their senders get an answer."""
        while not self.is_urgent:
            await asyncio.sleep(0.05)
        for task in list(self.server_state.tasks):
            task.cancel()
        await asyncio.sleep(0.1)
        for connection in list(self.server_state.connections):
            connection.transport.abort()  # a client that reads a long answer slowly
