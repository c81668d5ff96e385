"""How much a client may ask for."""

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import NamedTuple

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
