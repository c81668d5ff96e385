"""The share of a service that each client has: requests a second, connections, turns, room."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from weakref import WeakValueDictionary

from starlette.datastructures import Headers

from ..tokens import Grant
from .access import EVERYBODY, Door
from .connection import most_connections
from .limits import Buckets, Limits, Shares
from .problems import Problem


class Allowance:
    """Counts the use of each client, by token or by address, and refuses a client that is over.

    A refusal has these ``headers``.
    """

    def __init__(self, limits: Limits, headers: Mapping[str, str] | None = None) -> None:
        self._rate = limits.rate
        self._headers = dict(headers or {})
        # Two sets of buckets, because each forgets its oldest: addresses must not displace tokens.
        self._tokens = Buckets(limits.rate, 2 * limits.rate)
        self._addresses = Buckets(limits.rate, 2 * limits.rate)
        self._begun = Shares(most_connections(limits.connections))
        self._turns = Shares(limits.concurrent)
        self._lines: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Where the requests of a client wait for each other."""
        self._bodies = Shares(limits.bodies * limits.body_bytes)

    def admit(self, door: Door, headers: Headers, address: str) -> tuple[Grant, str]:
        """What a request's token allows, and the client whose share the request takes."""
        grant = None
        try:
            grant = door.grant(headers)
        finally:  # a request without a token counts for its address, and may be over the rate
            if grant is None or grant.name == EVERYBODY:
                key = address
                self.count(address)
            else:
                key = f"token {grant.name}"
                self._count(self._tokens, grant.name)
        return grant, key

    def count(self, address: str) -> None:
        """Count a request without a token; 429 if the address is over the rate."""
        self._count(self._addresses, address)

    def begun(self, key: str) -> AbstractContextManager[None]:
        """A request takes a connection."""
        return self._share(self._begun, key)

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """A request takes a turn, after the requests that its client sent before.

        The bank does one thing at a time. So of each client one request waits for the bank, and
        however long a client's requests take, another client waits for one of them.
        """
        with self._share(self._turns, key):
            line = self._lines.setdefault(key, asyncio.Lock())
            async with line:
                yield

    @contextmanager
    def room(self, key: str) -> Iterator[Callable[[int], None]]:
        """A request keeps its body: the function counts each part, until the block ends."""
        kept = 0

        def keep(size: int) -> None:
            nonlocal kept
            if not self._bodies.take(key, size):
                raise self._busy("too much is being sent, or too much by you")
            kept += size

        try:
            yield keep
        finally:
            self._bodies.give_back(key, kept)

    def _count(self, buckets: Buckets, key: str) -> None:
        seconds = buckets.wait(key)
        if seconds:
            detail = f"more than {self._rate:g} requests a second; come back in {seconds} s"
            raise Problem(429, "TooMany", detail, {"Retry-After": str(seconds), **self._headers})

    @contextmanager
    def _share(self, shares: Shares, key: str) -> Iterator[None]:
        if not shares.take(key):
            raise self._busy("too many requests are being answered, or too many of yours")
        try:
            yield
        finally:
            shares.give_back(key)

    def _busy(self, detail: str) -> Problem:
        text = f"{detail}; come back in a second"
        return Problem(503, "Busy", text, {"Retry-After": "1", **self._headers})
