"""The store for async graphs: operations that wait at the same time become one batch."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from typing import Any
from weakref import WeakMethod

from langgraph.store.base import Op, PutOp, Result, SearchOp, TTLConfig
from langgraph.store.base.batch import AsyncBatchedBaseStore

from ...bank.async_bank import INSIDE, AsyncMemoryBank
from ...bank.memory_bank import MemoryBank
from ...errors import BankError, EmbedderError, InvalidInput, StoreError
from ...memory.records import shown
from ...storage.files import OneWriter
from .items import Now
from .store import TierMemStore, check_options, wall_time
from .writing import TierOf


class AsyncTierMemStore(OneWriter, AsyncBatchedBaseStore):
    """:class:`TierMemStore` over an ``AsyncMemoryBank``, made inside the event loop that uses it.

    What the tasks of the loop ask for at the same time is one batch: one search, one commit. If
    that batch is refused, each operation is done on its own, in their order: a wrong one fails for
    its caller alone. When the embedder fails twice on end, it is down, and not asked for the rest.
    The options are those of :class:`TierMemStore`. Inside a transaction of the bank, call
    ``abatch``: ``aput`` and its like wait for a task that is outside, and so for the end of the
    transaction.
    """

    supports_ttl = True

    def __init__(
        self,
        bank: AsyncMemoryBank,
        *,
        fields: Sequence[str] | None = None,
        tier: TierOf | None = None,
        ttl: TTLConfig | None = None,
        now: Now | None = wall_time,
    ) -> None:
        super().__init__()
        if not isinstance(bank, AsyncMemoryBank):
            raise InvalidInput(
                f"AsyncTierMemStore takes an open AsyncMemoryBank, not {shown(bank)}",
                hint="use await AsyncMemoryBank.open(folder); TierMemStore takes a MemoryBank",
            )
        check_options(fields, tier, now)
        self.ttl_config = ttl
        self._bank = bank
        self._fields = fields
        self._tier = tier
        self._now = now
        self._store: TierMemStore | None = None

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """All operations in one turn of the bank, as :meth:`TierMemStore.batch` does them."""
        return await self._bank.run(self._batch, list(ops))

    def _batch(self, bank: MemoryBank, ops: Sequence[Op]) -> list[Result]:
        if self._store is None:
            own, tier, ttl, now = self._fields, self._tier, self.ttl_config, self._now
            self._store = TierMemStore(bank, fields=own, tier=tier, ttl=ttl, now=now)
        return self._store.batch(ops)

    # Operations of several tasks

    def _ensure_task(self) -> None:
        """Start the task that does what waits, in the place of LangGraph's own."""
        if self._task is None or self._task.done():
            outside = copy_context()  # the task serves others, too, and longer than a transaction
            outside.run(INSIDE.set, None)
            serving = _serve(self._aqueue, WeakMethod(self._answer))
            self._task = self._loop.create_task(serving, context=outside)

    async def _answer(self, waiting: Sequence["_Waiting"]) -> None:
        """Do what waits, and give each caller its result or its error."""
        try:
            results = await self._bank.run(self._together, [op for _, op in waiting])
        except Exception as error:  # noqa: BLE001  # the callers raise it
            results = [error] * len(waiting)
        for (asked, _), result in zip(waiting, results, strict=True):
            if asked.done():  # its caller was cancelled
                continue
            if isinstance(result, StopIteration):  # a future can't hold it
                asked.set_exception(RuntimeError("an operation raised StopIteration"))
            elif isinstance(result, Exception):
                asked.set_exception(result)
            else:
                asked.set_result(result)

    def _together(self, bank: MemoryBank, ops: Sequence[Op]) -> "Sequence[Result | Exception]":
        """The result of each operation: of one batch or, if that is refused, of one batch each."""
        try:
            return self._batch(bank, ops)
        except BankError:  # it is the same for each operation
            raise
        except Exception as error:  # noqa: BLE001  # nothing of the batch was stored
            return [error] if len(ops) == 1 else self._one_by_one(bank, ops)

    def _one_by_one(self, bank: MemoryBank, ops: Iterable[Op]) -> "list[Result | Exception]":
        """The result of each operation alone; what is down is not asked for each of them."""
        results: list[Result | Exception] = []
        failed: list[Exception] = []  # the newest errors of the embedder, on end
        for op in ops:
            is_down = len(failed) == _DOWN and _embeds(op)
            result = failed[-1] if is_down else self._alone(bank, op)
            results.append(result)
            if isinstance(result, EmbedderError | StoreError):
                failed = [*failed, result][-_DOWN:]
            elif _embeds(op):
                failed = []
        return results

    def _alone(self, bank: MemoryBank, op: Op) -> Result | Exception:
        try:
            return self._batch(bank, [op])[0]
        except Exception as error:  # noqa: BLE001  # its caller raises it
            return error


_DOWN = 2
"""After this many failures on end the embedder is down; one may be due to a text."""


def _embeds(op: Op) -> bool:
    """Whether an operation needs the embedder, or asks the store of the bank."""
    return bool(
        op.value is not None if isinstance(op, PutOp) else isinstance(op, SearchOp) and op.query
    )


_Waiting = tuple[asyncio.Future[Any], Op]
"""An operation, and the future that its caller awaits."""


async def _serve(
    queue: asyncio.Queue[_Waiting], answer: WeakMethod[Callable[[Sequence[_Waiting]], Any]]
) -> None:
    """Do what waits, as long as the store is there; while nothing waits, it may go."""
    while True:
        waiting = [await queue.get()]
        while not queue.empty():
            waiting.append(queue.get_nowait())
        own = answer()
        if own is None:
            return
        if alive := [each for each in waiting if not each[0].done()]:
            await own(alive)
        del own, waiting, alive
