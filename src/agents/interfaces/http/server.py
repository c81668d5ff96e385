"""Serving a bank until told to stop."""

import contextlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.middleware.cors import CORSMiddleware

from agents.bank import MemoryBank
from agents.errors import ConfigError
from agents.interfaces.http.access import Door, Names
from agents.interfaces.http.connection import connections
from agents.interfaces.http.limits import DEFAULT, Limits
from agents.interfaces.http.service import Service

__all__ = ["Limits", "address", "listen", "serve"]

_GRACE = 5.0
"""Seconds beyond the longest request, when stopping."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on."""
    try:
        family, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((str(where[0]), port), family=family, backlog=512)
    except (OSError, UnicodeError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"can't listen on {host} port {port}: {reason}; choose others with --host and --port"
        ) from None


def address(host: str, sock: socket.socket) -> str:
    """Where the socket listens, as a client writes it."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{sock.getsockname()[1]}"


def serve(
    bank: MemoryBank,
    folder: Path,
    sock: socket.socket,
    host: str,
    *,
    agent_id: str | None = None,
    hosts: tuple[str, ...] = (),
    origins: tuple[str, ...] = (),
    limits: Limits = DEFAULT,
    asked_to_stop: Callable[[], bool],
) -> None:
    """Answer until ``asked_to_stop`` is true; then finish what was begun.

    When it returns, nothing uses the bank any more, and it can be closed.
    """
    service = Service(bank, Door(folder, agent_id), Names(host, hosts, origins), limits)
    app: Any = service
    if origins:
        methods, headers = ["GET", "POST", "PATCH", "DELETE"], ["Authorization", "Content-Type"]
        app = CORSMiddleware(
            service, allow_origins=origins, allow_methods=methods, allow_headers=headers
        )
    config = uvicorn.Config(
        app,
        http=connections(limits.head_seconds, limits.connections),
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=int(limits.seconds + _GRACE),
    )
    try:
        _Server(config, asked_to_stop).run([sock])
    finally:
        service.close()


class _Server(uvicorn.Server):
    """uvicorn, but signals are the caller's: it would raise them again, and leave the bank open."""

    def __init__(self, config: uvicorn.Config, asked_to_stop: Callable[[], bool]) -> None:
        super().__init__(config)
        self._asked_to_stop = asked_to_stop

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._asked_to_stop()
