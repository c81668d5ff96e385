"""Serving a bank until told to stop."""

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import uvicorn

from ...bank.memory_bank import MemoryBank
from ...errors import ConfigError
from .access import Door, Names
from .connection import backlog, connections
from .cors import Pages
from .limits import DEFAULT, Limits
from .service import Service

__all__ = ["Door", "Limits", "Names", "address", "listen", "serve"]

_GRACE = 5.0
"""Seconds beyond the longest request, when stopping."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_METHODS, _HEADERS = ("GET", "POST", "PATCH", "DELETE"), ("Authorization", "Content-Type")


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on."""
    try:
        family, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((str(where[0]), port), family=family, backlog=backlog())
    except (OSError, UnicodeError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"can't listen on {host} port {port}: {reason}",
            hint="choose others with --host and --port",
        ) from None


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
    service = Service(bank, door, names, limits)
    app: Any = Pages(service, names, _METHODS, _HEADERS) if names.origins else service
    config = uvicorn.Config(
        app,
        http=connections(limits.head_seconds, limits.connections, limits.seconds),
        backlog=backlog(),
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=int(limits.seconds + _GRACE),
    )
    server = _Server(config, asked_to_stop)
    try:
        server.run([sock])
    finally:
        service.close(at_once=server.is_urgent)


class _Server(uvicorn.Server):
    """uvicorn, but signals are the caller's: it would raise them again, and leave the bank open."""

    def __init__(self, config: uvicorn.Config, asked_to_stop: Callable[[], bool]) -> None:
        super().__init__(config)
        self._asked_to_stop = asked_to_stop
        self.is_urgent = False
        """Whether it is to end at once."""

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve; KeyboardInterrupt, if it was to end at once."""
        super().run(sockets)
        if self.is_urgent:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The caller's handlers are asked, and a KeyboardInterrupt of theirs is kept for later.

        It may be raised anywhere, and uvicorn takes one that is raised in a request for its fault.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}

        def ask(number: int, frame: FrameType | None) -> None:
            handler = before[signal.Signals(number)]
            try:
                if callable(handler):
                    handler(number, frame)
            except KeyboardInterrupt:
                self.is_urgent = True

        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, ask)
        try:
            yield
        finally:
            for number, handler in before.items():
                if callable(handler):
                    signal.signal(number, handler)

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._asked_to_stop() or self.is_urgent

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
