"""Whether charts are drawn: that takes longer than the run that a chart is of."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager

from agents.simulation.reports import plots

_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg=="
)
_draw = plots._drawn


def leave_out() -> None:
    """From now on a chart is laid out, and its PNG is one pixel."""
    plots._drawn = lambda canvas: _PIXEL


@contextmanager
def again() -> Iterator[None]:
    """Inside, charts are drawn as users see them."""
    plots._drawn = _draw
    try:
        yield
    finally:
        leave_out()
