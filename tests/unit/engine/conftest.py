"""Banks that a wall clock moves, which the test sets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank
from banks import MANUAL
from embedders import Directions
from wall_clock import WALL, WallClock

Opened = Callable[..., MemoryBank]


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    return WallClock(monkeypatch)


@pytest.fixture
def opened(tmp_path: Path, wall: WallClock) -> Opened:
    def opened(**options: Any) -> MemoryBank:
        given = {"clock": WALL, "storage": MANUAL, **options}
        return MemoryBank.open(tmp_path / "bank", embedder=Directions(), **given)

    return opened
