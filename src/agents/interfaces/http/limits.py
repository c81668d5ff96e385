"""How much a client may ask for, and its share of requests, connections, turns and room."""

import asyncio
import math
import resource
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import NamedTuple
from weakref import WeakValueDictionary

from starlette.requests import Request

from ..tokens import Grant
from .access import EVERYBODY, Door
from .problems import Problem

_KIB = 1024


class Limits(NamedTuple):
    """The limits of every request. The defaults suit agents, and a person at a browser."""

    body_bytes: int = 6 * 1024 * _KIB + 64 * _KIB
    """A memory or a note has at most 1 MiB, JSON may write each byte as six (``\\u0001``), and the
    other arguments need some room."""
    nesting: int = 65
    """Levels of arrays and objects inside each other."""
    rate: float = 100.0
    """Requests per second for each token; twice this number at once."""
    seconds: float = 30.0
    """The time to answer a request, and then the time for the client to read the answer."""
    body_seconds: float = 10.0
    """The time for a body to arrive."""
    head_seconds: float = 10.0
    """The time for a connection to bring a request; the connection ends after at most twice it."""
    concurrent: int = 64
    """Requests that run at the same time; one token has at most a quarter of them."""
    bodies: int = 16
    """Bodies of ``body_bytes`` that are kept at the same time; one token has at most a quarter."""
    connections: int = 1024
    """Open connections; fewer if the system allows few open files."""


DEFAULT = Limits()


class Buckets:
    """A token bucket for each key: ``burst`` requests at once, then ``rate`` a second.

    Only the ``most`` keys that were used last are kept.
    """

    def __init__(
        self,
        rate: float,
        burst: float,
        clock: Callable[[], float] = time.monotonic,
        most: int = 4096,
    ) -> None:
        self._rate = rate
        self._burst = max(1.0, burst)
        self._clock = clock
        self._most = most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """The level of each bucket, and when it was filled."""

    def __len__(self) -> int:
        """How many keys are kept."""
        return len(self._buckets)

    def wait(self, key: str) -> int:
        """Count a request and return 0, or return the seconds after which a request may pass."""
        now = self._clock()
        level, filled = self._buckets.pop(key, (self._burst, now))
        level = min(self._burst, level + (now - filled) * self._rate)
        may_pass = level >= 1
        self._buckets[key] = (level - may_pass, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0 if may_pass else max(1, math.ceil((1 - level) / self._rate))


class Shares:
    """An amount for all clients together, of which each key has at most a quarter."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._each = max(1, most // 4)
        self._taken: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many keys have something."""
        return len(self._taken)

    def take(self, key: str, amount: int = 1) -> bool:
        """Take an amount, if it is left; the caller gives it back later."""
        if self._taken[key] + amount > self._each or self._taken.total() + amount > self._most:
            return False
        self._taken[key] += amount
        return True

    def give_back(self, key: str, amount: int = 1) -> None:
        self._taken[key] -= amount
        if not self._taken[key]:
            del self._taken[key]


def most_connections(wanted: int) -> int:
    """The wanted number, but at most half of the files that the process may open."""
    return max(1, min(wanted, _files() // 2))


def backlog() -> int:
    """The connections that may wait: asyncio accepts all at once, and each is an open file."""
    return max(1, min(128, _files() // 8))


def _files() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft


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

    def admit(self, door: Door, request: Request, address: str) -> tuple[Grant, str]:
        """What a request's token allows, and the client whose share the request takes."""
        grant = None
        try:
            grant = door.grant(request)
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
