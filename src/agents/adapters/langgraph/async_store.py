"""The store for async graphs: operations that wait at the same time become one batch."""

from collections.abc import Iterable
from typing import Any

from langgraph.store.base import Op, Result, TTLConfig
from langgraph.store.base.batch import AsyncBatchedBaseStore

from ...bank.async_bank import AsyncMemoryBank
from ...bank.memory_bank import MemoryBank
from .store import TierMemStore

__all__ = ["AsyncTierMemStore"]


class AsyncTierMemStore(AsyncBatchedBaseStore):
    """:class:`TierMemStore` over an ``AsyncMemoryBank``, made inside the event loop that uses it.

    What the tasks of the loop ask for at the same time is one batch: one search, one commit. The
    options are those of :class:`TierMemStore`. Inside a transaction of the bank, call ``abatch``:
    ``aput`` and its like wait for a task that is outside, and so for the end of the transaction.
    """

    supports_ttl = True

    def __init__(
        self, bank: AsyncMemoryBank, *, ttl: TTLConfig | None = None, **options: Any
    ) -> None:
        super().__init__()
        self.ttl_config = ttl
        self._bank = bank
        self._options = options
        self._store: TierMemStore | None = None

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """All operations in one turn of the bank, as :meth:`TierMemStore.batch` does them."""
        return await self._bank.run(self._batch, list(ops))

    def _batch(self, bank: MemoryBank, ops: list[Op]) -> list[Result]:
        if self._store is None:
            self._store = TierMemStore(bank, ttl=self.ttl_config, **self._options)
        return self._store.batch(ops)
