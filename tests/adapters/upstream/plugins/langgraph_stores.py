"""A plugin of pytest: banks take the place of LangGraph's stores before its tests are imported."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import langgraph.store.memory
import langgraph.store.sqlite.aio
from langgraph.store.base import TTLConfig

from tiermem import AsyncMemoryBank, MemoryBank
from tiermem.langgraph import AsyncTierMemStore, LangChainEmbedder, TierMemStore

MILLISECONDS = {"mode": "wall", "ticks_per_day": 86_400_000}


def opened(folder: str | None, index: dict[str, Any] | None, **settings: Any) -> MemoryBank:
    if index:
        settings["embedder"] = LangChainEmbedder(index["embed"], index["dims"], "theirs")
    if folder is None:
        return MemoryBank.ephemeral(preset="vector", **settings)
    return MemoryBank.open(folder, preset="vector", storage={"sync": "manual"}, **settings)


class InMemory(TierMemStore):
    """Takes the arguments of ``InMemoryStore``."""

    def __init__(self, *, index: dict[str, Any] | None = None) -> None:
        super().__init__(opened(None, index), fields=(index or {}).get("fields"))


class Sqlite(TierMemStore):
    """Takes the arguments of ``SqliteStore``."""

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, name: str, *, index: dict[str, Any] | None = None, ttl: TTLConfig | None = None
    ) -> Iterator[Sqlite]:
        with tempfile.TemporaryDirectory() as folder:
            where = None if name == ":memory:" else folder
            with opened(where, index, clock=MILLISECONDS) as bank:
                yield cls(bank, fields=(index or {}).get("text_fields"), ttl=ttl)

    def setup(self) -> None:
        """A bank needs none."""

    def sweep_ttl(self) -> int:
        """How many items the passing of time deleted; every batch lets time pass."""
        before = self.bank.metrics()["memory_expiration_count"]
        self.bank.follow_clock()
        return int(self.bank.metrics()["memory_expiration_count"] - before)

    def start_ttl_sweeper(self) -> None:
        """Every batch lets time pass."""

    stop_ttl_sweeper = start_ttl_sweeper


class AsyncSqlite(AsyncTierMemStore):
    """Takes the arguments of ``AsyncSqliteStore``."""

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls, name: str, *, index: dict[str, Any] | None = None, ttl: TTLConfig | None = None
    ) -> AsyncIterator[AsyncSqlite]:
        with tempfile.TemporaryDirectory() as folder:
            where = None if name == ":memory:" else folder
            with opened(where, index, clock=MILLISECONDS) as bank:
                fields = (index or {}).get("text_fields")
                store = cls(AsyncMemoryBank(bank), fields=fields, ttl=ttl)
                store.bank, store.index_config = bank, TierMemStore(bank).index_config
                yield store

    async def setup(self) -> None:
        """A bank needs none."""

    async def sweep_ttl(self) -> int:
        return Sqlite(self.bank).sweep_ttl()

    async def start_ttl_sweeper(self) -> None:
        """Every batch lets time pass."""

    stop_ttl_sweeper = start_ttl_sweeper


langgraph.store.memory.InMemoryStore = InMemory
langgraph.store.sqlite.SqliteStore = Sqlite
langgraph.store.sqlite.AsyncSqliteStore = langgraph.store.sqlite.aio.AsyncSqliteStore = AsyncSqlite
