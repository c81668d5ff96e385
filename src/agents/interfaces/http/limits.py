"""How much a client may ask for."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["DEFAULT", "Buckets", "Limits"]

_KIB = 1024


class Limits(NamedTuple):
    """What holds for every request. The defaults suit agents, and a person at a browser."""

    body_bytes: int = 1024 * _KIB + 64 * _KIB
    """The largest text that a memory may be, and what JSON puts around it."""
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
    """Requests at the same time."""
    connections: int = 1024
    threads: int = 4
    """The bank lets one in at a time; the others read and write JSON meanwhile."""


DEFAULT = Limits()


class _Bucket:
    __slots__ = ("filled", "level")

    def __init__(self, level: float, filled: float) -> None:
        self.level = level
        self.filled = filled


class Buckets:
    """A token bucket for each key: ``burst`` at once, and then ``rate`` a second."""

    def __init__(
        self,
        rate: float,
        burst: float,
        clock: Callable[[], float] = time.monotonic,
        most: int = 4096,
    ) -> None:
        self._rate = rate
        self._burst = burst
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
