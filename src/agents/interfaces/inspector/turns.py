"""Requests come first: the thread that reads a journal waits while one is answered."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LONGEST = 0.5
"""Seconds that the reading waits at most: requests that never end do not stop it."""


class Turns:
    """Python runs one thread at a time, and changes between two of them slowly.

    A request that asks a database 200 times beside a busy thread would wait 200 times.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._answering = 0

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Inside, the reading waits."""
        self._add(1)
        try:
            yield
        finally:
            self._add(-1)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Inside, a request waits for the reading."""
        with self._changed:
            own = min(1, self._answering)
        self._add(-own)
        try:
            yield
        finally:
            self._add(own)

    def after_requests(self) -> None:
        """Wait until no request is answered, but not for long."""
        if self._answering:
            with self._changed:
                self._changed.wait_for(lambda: not self._answering, _LONGEST)

    def _add(self, number: int) -> None:
        with self._changed:
            self._answering += number
            self._changed.notify_all()
