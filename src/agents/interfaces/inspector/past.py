"""The memory of one agent as it was after a tick: banks made of slices, a few at a time."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from ...bank.memory_bank import MemoryBank
from ...config.load import load_settings
from ...config.settings import Settings
from ...engine.open_bank import OpenBank
from ...memory.context import approximate_tokens
from ...storage.embedding.embedders import Embedder
from ...storage.guard import Guard
from ...storage.identity import prepare
from ...storage.journal.journal import Journal
from .reader import Reader

__all__ = ["PastBanks"]

_MOST_BANKS = 8
_MOST_MEMORIES = 200_000
"""Memories in all banks that are kept; the bank in use may be larger."""


class PastBanks:
    """Copies of a bank with the memories of one agent, as they were after a tick.

    ``settings`` are those of the bank's run; None for a bank without a run.
    """

    def __init__(self, reader: Reader, folder: Path, settings: Settings | None) -> None:
        self._reader = reader
        self._folder = folder
        self._given = settings
        self._lock = threading.RLock()
        self._banks: OrderedDict[tuple[str, int, bool], MemoryBank] = OrderedDict()
        self._sizes: dict[tuple[str, int, bool], int] = {}
        self._how: tuple[Settings, Guard, dict[str, object], bool] | None = None
        self._embedder: Embedder | None = None

    def close(self) -> None:
        """Close all banks."""
        with self._lock:
            while self._banks:
                self._banks.popitem()[1].close()

    @contextmanager
    def after(self, agent: str, tick: int, *, deciding: bool = False) -> Iterator[MemoryBank]:
        """The agent's memory after ``tick``; inside, no other thread uses it.

        ``deciding`` moves the clock on by one: the moment in which the agent decides in the next
        tick.
        """
        key = (agent, tick, deciding)
        with self._lock:
            bank = self._banks.pop(key, None)
            if bank is None:
                bank = self._made(agent, tick)
                if deciding:
                    bank.advance(tick + 1)
                self._sizes[key] = bank.agent(agent).count()
            self._banks[key] = bank
            while len(self._banks) > 1 and (
                len(self._banks) > _MOST_BANKS or self._total() > _MOST_MEMORIES
            ):
                old, first = self._banks.popitem(last=False)
                del self._sizes[old]
                first.close()
            with bank.parts.observing():
                yield bank

    def _total(self) -> int:
        return sum(self._sizes.values())

    def remember_query(self, bank: MemoryBank, query: str) -> None:
        """Give a bank the vector of a query that the run's bank keeps, if it does."""
        if getattr(bank.parts.embedder.embedder, "reproducible", False):
            return
        journal = Journal(None, seen=self._folder / "journal.db")
        try:
            kept = journal.embeddings([hashlib.sha256(query.encode()).digest()])
        finally:
            journal.leave()
        if kept:
            bank.parts.ledger.journal.save_embeddings(kept)

    def _made(self, agent: str, tick: int) -> MemoryBank:
        settings, guard, identity, is_whole = self._opening()
        if not is_whole:  # it began at a checkpoint, and has no events from before
            return MemoryBank.at(self._folder, tick, self._given)
        slices = self._reader.slices
        place = slices.places.get(agent)
        events, vectors = (
            slices.past(place, tick) if place is not None else (f'[["tick",{tick}]]', b"")
        )
        journal = Journal(None)
        try:
            has_purged = place is not None and bool(slices.purged.get(place))
            journal.set(bank=identity, rebuild_shelf=True, store=None, purged=has_purged or None)
            journal.append(tick, events, vectors, {})
            self._embedder = prepare(journal, settings, self._embedder, guard.embedder())
            parts = OpenBank(None, journal, settings, self._embedder, approximate_tokens, None)
            parts.guard = guard
        except BaseException:
            journal.close()
            raise
        return MemoryBank(parts)

    def _opening(self) -> tuple[Settings, Guard, dict[str, object], bool]:
        """Settings, guard and identity of the bank, and whether its history is whole."""
        if self._how is None:
            journal = Journal(None, seen=self._folder / "journal.db")
            try:
                identity = journal.get("bank")
                is_whole = not journal.base
            finally:
                journal.leave()
            load = partial(load_settings, self._given)
            guard = Guard(self._folder, identity, load(base=identity["settings"]), load())
            settings = guard.without_files()
            settings = replace(settings, clock=replace(settings.clock, mode="ticks"))
            self._how = settings, guard, identity, is_whole
        return self._how
