"""The work that every contestant gets: the same texts, the same vectors, in the same order."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from time import perf_counter, thread_time

import numpy as np
from numpy.typing import NDArray

DIMS = 256
LIMIT = 5
STORES_PER_TICK = 2
TABLE_ROWS = 65_536
BATCH = 5000

Item = tuple[str, str, str]
"""Agent, text, tier."""
Request = tuple[str, str]
"""Agent, query."""


class TableEmbedder:
    """Vectors made beforehand: a text ends with ``#row`` and its vector is that row of the table.

    Rows repeat after ``rows``, which is always more than one agent has, so no agent sees a vector
    twice. What this takes is apart from what is measured: :meth:`clock` stands still meanwhile.
    """

    name = "benchmark/table"
    dims = DIMS
    reproducible = True

    def __init__(self, rows: int = TABLE_ROWS) -> None:
        table = np.random.default_rng(0).normal(size=(rows, DIMS)).astype(np.float32)
        # A shared direction: texts of one language are never quite unrelated.
        table += 0.5
        self.table = table / np.linalg.norm(table, axis=1, keepdims=True)
        self._lock = Lock()
        self._spent = 0.0

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """One unit vector per text."""
        with self._apart():
            return self._rows(texts)

    def lists(self, texts: Sequence[str]) -> list[list[float]]:
        """The same vectors as lists of Python numbers, as most interfaces want them."""
        with self._apart():
            vectors: list[list[float]] = self._rows(texts).tolist()
            return vectors

    def clock(self) -> float:
        """Seconds that went by, without those in which vectors were looked up."""
        return perf_counter() - self._spent

    def _rows(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.array([int(text.rpartition("#")[2]) for text in texts], np.intp)
        vectors: NDArray[np.float32] = self.table[rows % len(self.table)]
        return vectors

    @contextmanager
    def _apart(self) -> Iterator[None]:
        # A thread's own time: LangGraph embeds in threads, which wait for each other.
        start = thread_time()
        yield
        with self._lock:
            self._spent += thread_time() - start


@dataclass(frozen=True)
class Workload:
    """Agents with memories, and what they ask and store in each tick."""

    agents: int
    memories: int

    def seed(self, agents: Sequence[int]) -> list[Item]:
        """What these agents remember before the first tick: mostly normal, one pinned."""
        tiers = {0: "pinned", 1: "critical", 2: "important"}
        return [
            (f"agent_{agent:05d}", _memory(agent, n, 0), tiers.get(n, "normal"))
            for agent in agents
            for n in range(self.memories)
        ]

    def requests(self, tick: int, agents: Sequence[int]) -> list[Request]:
        """One question of each of these agents."""
        return [(f"agent_{agent:05d}", _question(agent, tick)) for agent in agents]

    def items(self, tick: int, agents: Sequence[int]) -> list[Item]:
        """The new memories of these agents."""
        first = self.memories + tick * STORES_PER_TICK
        return [
            (f"agent_{agent:05d}", _memory(agent, first + n, tick), "normal")
            for agent in agents
            for n in range(STORES_PER_TICK)
        ]


def _memory(agent: int, number: int, tick: int) -> str:
    other = (agent * 7 + number * 13) % 1000
    return f"tick {tick}: agent_{other:05d} offered grain at {number % 97} #{_row(agent, number)}"


def _question(agent: int, tick: int) -> str:
    return f"tick {tick}: who offered grain, and at what price? #{_row(agent, 30_000 + tick)}"


def _row(agent: int, number: int) -> int:
    return agent * 7919 + number


def batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Parts that every store takes in one call."""
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
