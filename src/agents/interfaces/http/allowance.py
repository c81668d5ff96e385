"""How much of a service each client has: requests a second, connections, turns, and room."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from starlette.datastructures import Headers

from ..tokens import Grant
from .access import EVERYBODY, Door
from .connection import most_connections
from .limits import Buckets, Limits, Shares
from .problems import Problem

__all__ = ["Allowance"]


class Allowance:
    """Counts what clients take, by token, or without one by address; refuses what is too much.

    A refusal has these ``headers``.
    """

    def __init__(self, limits: Limits, headers: Mapping[str, str] | None = None) -> None:
        self._rate = limits.rate
        self._headers = dict(headers or {})
        # Apart, so that no number of addresses makes a token's bucket be forgotten.
        self._tokens = Buckets(limits.rate, 2 * limits.rate)
        self._addresses = Buckets(limits.rate, 2 * limits.rate)
        self._begun = Shares(most_connections(limits.connections))
        self._turns = Shares(limits.concurrent)
        self._bodies = Shares(limits.bodies * limits.body_bytes)

    def admit(self, door: Door, headers: Headers, address: str) -> tuple[Grant, str]:
        """What a request's token allows, and whose share of the service it takes."""
        grant = None
        try:
            grant = door.grant(headers)
        finally:  # who has no token is counted by address, and stopped before being told so
            if grant is None or grant.name == EVERYBODY:
                key = address
                self.count(address)
            else:
                key = f"token {grant.name}"
                self._count(self._tokens, grant.name)
        return grant, key

    def count(self, address: str) -> None:
        """A request without a token; 429 if there are too many."""
        self._count(self._addresses, address)

    def begun(self, key: str) -> AbstractContextManager[None]:
        """A request is on its way: it takes a connection."""
        return self._share(self._begun, key)

    def turn(self, key: str) -> AbstractContextManager[None]:
        """A request is being done."""
        return self._share(self._turns, key)

    @contextmanager
    def room(self, key: str) -> Iterator[Callable[[int], None]]:
        """Lets a body be kept part by part, for as long as it is needed."""
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
