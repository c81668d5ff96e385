"""The memory of one agent as it was after a tick: banks made of slices, a few at a time."""

from bisect import insort
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from ...bank.memory_bank import MemoryBank
from ...config.load import load_settings
from ...config.settings import Settings
from ...engine.engine import Engine
from ...memory.context import approximate_tokens
from ...memory.records import Explanation
from ...storage.embedding import Embedder, keys_of
from ...storage.journal.journal import Journal, parsed
from ...storage.journal.tables import SnapshotRow
from ...storage.state import snapshots
from ...storage.state.snapshots import replay
from ...storage.trust import Guard, prepare
from .slices import Progress, Slices

_MOST_BANKS = 8
_MOST_MEMORIES = 100_000
"""Memories in all banks that are kept; the bank in use may be larger."""
_STEP = 25
"""Ticks between two stages of an agent."""
_MOST_BYTES = 32 << 20
"""Bytes of all stages that are kept."""


class _Stage(NamedTuple):
    """The state of an agent after a tick, from which later ticks are reached."""

    tick: int
    head: tuple[int, int, str]
    rows: list[SnapshotRow]
    shelf: Sequence[Sequence[Any]]
    size: int


class _Past(NamedTuple):
    """A bank with the memories of one agent, and where it stands."""

    agent: str
    tick: int
    deciding: bool
    commit: int
    """The last commit that was read when it was made."""
    bank: MemoryBank

    @property
    def place(self) -> tuple[int, bool]:
        return self.tick, self.deciding


class PastInMemory(NamedTuple):
    """What is kept: banks, the memories in all of them, and the bytes of stages."""

    banks: int
    memories: int
    bytes: int


class PastBanks:
    """Copies of a bank with the memories of one agent, as they were after a tick.

    ``settings`` are those of the bank's run; None for a bank without a run.
    """

    def __init__(self, slices: Slices, folder: Path, settings: Settings | None) -> None:
        self._slices = slices
        self._folder = folder
        self._given = settings
        self._banks: list[_Past] = []
        """The one that was used last is at the end."""
        self._stages: dict[str, list[_Stage]] = {}
        """By agent, oldest first; the agent that was used last is at the end."""
        self._version = (0, 0)
        self._place: tuple[object, ...] = ()
        """Where the bank stands that is in use."""
        self._explained: tuple[tuple[object, ...], list[Explanation]] | None = None
        self._how: tuple[Settings, Guard, dict[str, object], bool] | None = None
        self._embedder: Embedder | None = None

    def close(self) -> None:
        """Close all banks."""
        self._forget(list(self._banks))
        self._stages.clear()
        self._explained = None

    @contextmanager
    def after(self, agent: str, tick: int, *, deciding: bool = False) -> Iterator[MemoryBank]:
        """The agent's memory after ``tick``; it may be used inside.

        ``deciding`` moves the clock on by one: the moment in which the agent decides in the next
        tick.
        """
        progress = self._slices.progress()
        if self._version != progress[:2]:  # memories were purged, or the run went back
            self.close()
            self._version = progress[:2]
        self._forget([each for each in self._banks if each.agent == agent and self._is_old(each)])
        past = self._taken(agent, tick, deciding, progress)
        self._banks.append(past)
        while len(self._banks) > 1 and (
            len(self._banks) > _MOST_BANKS or self._size() > _MOST_MEMORIES
        ):
            self._forget(self._banks[:1])
        self._place = (agent, tick, deciding, past.commit, self._version)
        with past.bank.engine.observing():
            yield past.bank

    def explained(self, bank: MemoryBank, agent: str, query: str) -> list[Explanation]:
        """What a context for a query has, and why it lacks the rest; inside :meth:`after`.

        The last answer is kept: the views of a decision ask the same.
        """
        asked = (*self._place, query)
        if self._explained is None or self._explained[0] != asked:
            self._remember_query(bank, query)
            self._explained = asked, bank.agent(agent).explain(query, context=True)
        return self._explained[1]

    def _remember_query(self, bank: MemoryBank, query: str) -> None:
        """Give a bank the vector of a query that the run's bank keeps, if it does."""
        if getattr(bank.engine.embedder.embedder, "reproducible", False):
            return
        journal = Journal(None, seen=self._folder / "journal.db")
        try:
            kept = journal.embeddings(keys_of(query))
        finally:
            journal.leave()
        if kept:
            bank.engine.journal.save_embeddings(kept)

    # Banks

    def kept(self) -> PastInMemory:
        """What is in memory of the past."""
        return PastInMemory(len(self._banks), self._size(), self._stage_bytes())

    def _size(self) -> int:
        return sum(len(each.bank.engine.state) for each in self._banks)

    def _forget(self, banks: list[_Past]) -> None:
        for each in banks:
            self._banks.remove(each)
            each.bank.close()

    def _is_old(self, past: _Past) -> bool:
        """Whether its tick went on since: a bank whose tick stands still gets memories in it."""
        items = self._slices.items_in(self._slices.place(past.agent), past.tick)
        return any(item.commit > past.commit for item in items)

    def _taken(self, agent: str, tick: int, deciding: bool, progress: Progress) -> _Past:
        """A bank that stands there: one that is kept, one that is moved on, or a new one."""
        wanted = tick, deciding
        there = [each for each in self._banks if each.agent == agent and each.place <= wanted]
        nearest = max(there, key=lambda each: each.place, default=None)
        is_whole = self._opening()[3]
        if nearest and nearest.place == wanted:
            self._banks.remove(nearest)
            return nearest
        if nearest and is_whole and tick - nearest.tick < _STEP:
            self._banks.remove(nearest)
            bank = nearest.bank
            if tick > nearest.tick:
                self._move(bank, agent, nearest.tick, tick)
        elif is_whole:
            bank = self._made(agent, tick)
        else:  # the journal began at a checkpoint, and has no events from before
            bank = MemoryBank.at(self._folder, tick, self._given)
        if deciding:
            bank.advance(tick + 1)
        return _Past(agent, tick, deciding, progress.number, bank)

    def _made(self, agent: str, tick: int) -> MemoryBank:
        """A new bank, from the last stage before a tick; stages are made on the way."""
        stages = self._stages.pop(agent, [])
        self._stages[agent] = stages
        stage = next((each for each in reversed(stages) if each.tick <= tick), None)
        bank, at = self._opened(stage), stage.tick if stage else -1
        while tick - at > _STEP:
            following = (at // _STEP + 1) * _STEP
            self._move(bank, agent, at, following)
            at = following
            insort(stages, _staged(bank, at), key=lambda each: each.tick)
            self._limit_stages()
        if tick > at:
            self._move(bank, agent, at, tick)
        return bank

    def _limit_stages(self) -> None:
        """Forget stages of the agents that were used longest ago, then the oldest ones."""
        total = self._stage_bytes()
        for agent, stages in list(self._stages.items()):
            while stages and total > _MOST_BYTES:
                total -= stages.pop(0).size
            if not stages and agent != next(reversed(self._stages)):
                del self._stages[agent]

    def _stage_bytes(self) -> int:
        return sum(each.size for stages in self._stages.values() for each in stages)

    def _opened(self, stage: _Stage | None) -> MemoryBank:
        settings, guard, identity, _ = self._opening()
        journal = Journal(None)
        try:
            if stage is None:
                journal.set(bank=identity, store=None, purged=True)
            else:
                own = {"bank": identity, "store": None, "purged": True}
                journal.adopt(stage.head, stage.rows, (), {}, stage.shelf, **own)
            identity, embedder = prepare(
                journal, identity, settings, self._embedder, guard.embedder()
            )
            self._embedder = embedder
            parts = Engine(None, journal, identity, settings, embedder, approximate_tokens, None)
            parts.guard = guard
        except BaseException:
            journal.close()
            raise
        return MemoryBank(parts)

    def _move(self, bank: MemoryBank, agent: str, before: int, tick: int) -> None:
        """Let a bank go through the agent's events after one tick and up to another."""
        events, vectors = self._slices.between(self._slices.place(agent), before, tick)
        events.append(["tick", tick])
        text = orjson.dumps(events).decode()
        ledger = bank.engine.ledger
        state, journal = ledger.state, ledger.journal
        numbers = np.frombuffer(vectors, np.int8).reshape(-1, state.dims)
        state.shelf.commit = journal.head + 1
        replay(state, parsed(events, state.table.shared_metadata.keep), numbers)
        changes = state.shelf.changes() if state.shelf.pending else None
        total = state.shelf_sum() if changes else 0
        journal.append(tick, text, vectors, {}, None, changes, total)
        state.shelf.clear()
        state.shelf.commit = journal.head + 1

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


def _staged(bank: MemoryBank, at: int) -> _Stage:
    """The state of a bank, from which another bank begins."""
    ledger = bank.engine.ledger
    journal = ledger.journal
    blocks = ledger.state.blocks
    rows = [snapshots.pack(blocks.peek(agent)) for agent in blocks]
    shelf = list(journal.shelf.all_now())
    size = sum(len(part) for row in rows for part in row[2:6])
    size += sum(len(part) for row in shelf for part in row if isinstance(part, str | bytes))
    return _Stage(at, (journal.head, journal.tick, journal.hash.hex()), rows, shelf, size)
