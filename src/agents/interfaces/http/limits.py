"""How much a client may ask for."""

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["DEFAULT", "Buckets", "Limits", "Shares"]

_KIB = 1024


class Limits(NamedTuple):
    """What holds for every request. The defaults suit agents, and a person at a browser."""

    body_bytes: int = 6 * 1024 * _KIB + 64 * _KIB
    """A memory or a note may be 1 MiB, JSON may write each byte of it as six (``\\u0001``), and the
    other arguments need some room."""
    nesting: int = 32
    """How deep arrays and objects may lie in each other."""
    rate: float = 100.0
    """Requests per second and token; twice as many at once."""
    seconds: float = 30.0
    """Until a request must be answered, and again until the answer must be taken."""
    body_seconds: float = 10.0
    """Until all of a request's body must have come."""
    head_seconds: float = 10.0
    """Until a connection must have brought a request; it is cut after twice that at most."""
    concurrent: int = 64
    """Requests that are being done at the same time, a quarter of them for one token."""
    bodies: int = 16
    """So many of the largest bodies are kept at the same time, a quarter of them for one token."""
    connections: int = 1024
    """At most; fewer where the system allows few open files."""


DEFAULT = Limits()


class _Bucket:
    __slots__ = ("filled", "level")

    def __init__(self, level: float, filled: float) -> None:
        self.level = level
        self.filled = filled


class Buckets:
    """A token bucket for each key: ``burst`` at once, but at least one, then ``rate`` a second."""

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
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def wait(self, key: str) -> int:
        """0 if one more may pass now, which then counts; else the seconds after which it may."""
        now = self._clock()
        bucket = self._buckets.pop(key, None) or _Bucket(self._burst, now)
        self._buckets[key] = bucket  # the last to be dropped
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        bucket.level = min(self._burst, bucket.level + (now - bucket.filled) * self._rate)
        bucket.filled = now
        if bucket.level >= 1:
            bucket.level -= 1
            return 0
        return max(1, math.ceil((1 - bucket.level) / self._rate))


class Shares:
    """So much for all together, of which each key has a quarter at most: the rest is for others."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._each = max(1, most // 4)
        self._taken: Counter[str] = Counter()

    def take(self, key: str, amount: int = 1) -> bool:
        """Whether there was as much left; what was taken is to be given back."""
        if self._taken[key] + amount > self._each or self._taken.total() + amount > self._most:
            return False
        self._taken[key] += amount
        return True

    def give_back(self, key: str, amount: int = 1) -> None:
        """Let others have it."""
        self._taken[key] -= amount
        if not self._taken[key]:  # whoever left is not kept in mind
            del self._taken[key]
