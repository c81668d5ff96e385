"""A wall clock that tests set."""

import pytest

from agents.engine import clock

_MS_PER_HOUR = 3_600_000

WALL = {"mode": "wall", "ticks_per_day": 24}
"""A tick an hour."""


class WallClock:
    """Shows what a test says, to banks in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ms = 1_800_000_000_000
        monkeypatch.setattr(clock, "now_ms", lambda: self.ms)

    def go(self, *, hours: float = 0, days: float = 0) -> None:
        """Time passes, or the clock is set back."""
        self.ms += round((hours + 24 * days) * _MS_PER_HOUR)
