"""Waiting for a process that is about to end."""

import time
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")
_SECONDS = 20


def wait_for(
    attempt: Callable[[], _Result], error: type[Exception], seconds: float = _SECONDS
) -> _Result:
    """Try again while ``error`` is raised: its reason is a process that ends with its driver."""
    until = time.monotonic() + seconds
    while True:
        try:
            return attempt()
        except error:
            if time.monotonic() > until:
                raise
        time.sleep(0.05)
