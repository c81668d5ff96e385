"""A worker: the cells that one process has, and what the driver may ask of them."""

import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ...config.load import load_settings
from ...config.settings import Settings
from ...engine.engine import Engine
from ...errors import BankLocked, TierMemError
from ..loop.standing import Standing
from ..policies.cassette import Cassette
from ..protocols import Policy
from . import wire
from .cell import Cell
from .log import Frames
from .splitting import CASSETTE, cell_folder
from .waiting import wait_for

MakePolicy = Callable[[Path, Settings, Cassette], Policy]
"""Makes the policy of a run, whose folder and settings these are."""


class Worker:
    """Answers messages; a message is a call, its arguments, and a part for each cell."""

    def __init__(self, make_policy: MakePolicy) -> None:
        self._make_policy = make_policy
        self._cells: dict[int, Cell] = {}

    def answer(self, message: bytes) -> bytes:
        """The answer to a message. An error is an answer, too."""
        (call, *arguments), parts = wire.unpacked(message)
        try:
            value, back = getattr(self, f"_{call}")(*arguments, *parts)
            return wire.packed({"value": value}, back)
        except TierMemError as error:
            return _told(type(error).__name__, error.why, vars(error).get("hint", ""))
        except Exception as error:  # noqa: BLE001 - told to the driver, which raises it
            why = f"a worker failed: {error!r}\n{traceback.format_exc()}"
            return _told("SimulationError", why, "")

    def _open(
        self, run: str, plain: dict[str, Any], rules: list[Any], offline: bool, cells: list[int]
    ) -> tuple[Any, list[bytes]]:
        """Open the cells; the tick of each, and the states of its agents."""
        settings, folder = load_settings(plain), Path(run)
        shards = folder / "shards"
        first: Engine | None = None
        for cell in cells:
            own = cell_folder(shards, cell)
            policy = self._make_policy(folder, settings, Cassette(own / CASSETTE, offline))
            # A worker of a driver that was killed may be about to end.
            opened = wait_for(
                partial(
                    Cell, own, settings, policy, Standing(rules), first and first.embedder.embedder
                ),
                BankLocked,
            )
            parts = opened.bank.engine
            first = first or parts  # what one cell has learned of words, all know
            parts.embedder, parts.search.reader = first.embedder, first.search.reader
            self._cells[cell] = opened
        return [[each.bank.tick, each.states()] for each in self._cells.values()], []

    def _again(
        self, cell: int, tick: int, boards: list[Any], *frames: bytes
    ) -> tuple[Any, list[bytes]]:
        """Do a tick again in a cell that is behind; the states that changed."""
        return self._cells[cell].again(tick, boards, Frames(*frames)), []

    def _decide(self, tick: int, *seen: bytes) -> tuple[Any, list[bytes]]:
        cells = self._cells.values()
        return None, [each.decide(tick, own) for each, own in zip(cells, seen, strict=True)]

    def _record(self, boards: list[Any], *deeds: bytes) -> tuple[Any, list[bytes]]:
        cells = self._cells.values()
        return [each.record(boards, own) for each, own in zip(cells, deeds, strict=True)], []

    def _commit(self) -> tuple[Any, list[bytes]]:
        return [each.commit() for each in self._cells.values()], []

    def _checkpoint(self, folder: str) -> tuple[Any, list[bytes]]:
        """Write a checkpoint of each cell."""
        for cell, own in self._cells.items():
            own.bank.checkpoint(Path(folder) / f"cell-{cell:02}.tmck", {"cell": cell})
        return None, []

    def _close(self) -> tuple[Any, list[bytes]]:
        """Close the cells, between two ticks."""
        while self._cells:
            self._cells.popitem()[1].close()
        return None, []


def _told(error: str, why: str, hint: str) -> bytes:
    return wire.packed({"error": error, "why": why, "hint": hint}, [])
