"""What runs the tick loop: TierMem, the machine's limit, and what a peer has to offer."""

import json
import os
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
from workload import DIMS, LIMIT, Item, Request, TableEmbedder, batches


class Split(NamedTuple):
    """Where the seconds of a tick went."""

    search: float
    store: float
    commit: float = 0.0


class Contestant(Protocol):
    """One way to remember; lives in a process of its own."""

    title: str
    durable: bool
    stores_in_batches: bool
    """False: each memory is a call, so fewer calls measure the same thing."""

    def __init__(self, folder: Path, embedder: TableEmbedder) -> None: ...

    def seed(self, items: list[Item]) -> None:
        """Store before the clock runs; in the fastest way there is."""

    def tick(self, tick: int, requests: list[Request], items: list[Item]) -> Split:
        """One tick's searches and stores."""


class TierMem:
    """This module, with its default settings."""

    title = "TierMem"
    durable = True
    stores_in_batches = True

    def __init__(self, folder: Path, embedder: TableEmbedder) -> None:
        from tiermem import MemoryBank

        self.bank = MemoryBank.open(folder / "bank", embedder=embedder, preset="vector")
        self._clock = embedder.clock

    def seed(self, items: list[Item]) -> None:
        for part in batches(items):
            self.bank.add_many(part)

    def tick(self, tick: int, requests: list[Request], items: list[Item]) -> Split:
        start = self._clock()
        with self.bank.transaction():
            self.bank.advance(tick)
            self.bank.search_many(requests, LIMIT)
            searched = self._clock()
            self.bank.add_many(items)
            stored = self._clock()
        return Split(searched - start, stored - searched, self._clock() - stored)

    def search(self, requests: list[Request]) -> float:
        """The seconds that these searches take alone."""
        start = self._clock()
        self.bank.search_many(requests, LIMIT)
        return self._clock() - start


class MachineLimit:
    """What any exact and durable memory has to do: read, multiply, write to disk. It ranks nothing.

    The vectors are bytes, as TierMem keeps them, so that a quarter is read; the bytes written are
    the vectors and texts of the tick, in one append with one fsync.
    """

    title = "the machine's limit"
    durable = True
    stores_in_batches = True

    _CHUNK = 512

    def __init__(self, folder: Path, embedder: TableEmbedder) -> None:
        self._file = os.open(folder / "appended", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self._embedder = embedder
        self._vectors: dict[str, np.ndarray[Any, np.dtype[np.int8]]] = {}
        self._sizes: dict[str, int] = {}

    def seed(self, items: list[Item]) -> None:
        self._append(items, self._bytes(items))

    def tick(self, tick: int, requests: list[Request], items: list[Item]) -> Split:
        queries = self._embedder.embed([query for _, query in requests])
        scratch = np.empty((self._CHUNK, DIMS), np.float32)
        products = np.empty(self._CHUNK, np.float32)
        blocks = [(self._vectors[agent], self._sizes[agent]) for agent, _ in requests]
        start = perf_counter()
        for (vectors, size), query in zip(blocks, queries, strict=True):
            for first in range(0, size, self._CHUNK):
                rows = min(self._CHUNK, size - first)
                wide = scratch[:rows]
                np.copyto(wide, vectors[first : first + rows])
                np.dot(wide, query, out=products[:rows])
        searched = perf_counter()
        vectors = self._bytes(items)
        data = vectors.tobytes() + json.dumps(items, separators=(",", ":")).encode()
        writing = perf_counter()
        os.write(self._file, data)
        os.fsync(self._file)
        commit = perf_counter() - writing
        self._append(items, vectors)
        return Split(searched - start, 0.0, commit)

    def _bytes(self, items: list[Item]) -> np.ndarray[Any, np.dtype[np.int8]]:
        whole = [
            np.rint(self._embedder.embed([text for _, text, _ in part]) * 400).astype(np.int8)
            for part in batches(items)
        ]
        return np.concatenate(whole)

    def _append(self, items: list[Item], vectors: np.ndarray[Any, np.dtype[np.int8]]) -> None:
        for (agent, _, _), vector in zip(items, vectors, strict=True):
            size = self._sizes.get(agent, 0)
            block = self._vectors.get(agent)
            if block is None or size == len(block):
                grown = np.empty((size + max(8, size // 8), DIMS), np.int8)
                if block is not None:
                    grown[:size] = block
                block = self._vectors[agent] = grown
            block[size] = vector
            self._sizes[agent] = size + 1
