"""The store itself: LangGraph's operations, batch by batch; for async graphs, of many tasks."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from datetime import UTC, datetime
from numbers import Integral
from typing import Any
from weakref import WeakMethod

from langgraph.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)
from langgraph.store.base.batch import AsyncBatchedBaseStore

from ..bank.async_bank import INSIDE, AsyncMemoryBank
from ..bank.memory_bank import MemoryBank
from ..errors import BankError, EmbedderError, InvalidInput, StoreError
from ..memory.records import Memory, shown
from ..storage.files import OneWriter
from .embedder import LangChainEmbedder
from .items import TTL, Items, Now, TierOf, Times, Writing, are_fields
from .searches import Found, check_filter, count_uses, namespaces, search


def wall_time() -> datetime:
    """The time of the wall clock."""
    return datetime.now(UTC)


class TierMemStore(BaseStore):
    """A bank as the store of a LangGraph graph, and of LangMem.

    A namespace is an agent of the bank, an item a memory with a key: ``bank.agent("users.ann")``
    has the items of ``("users", "ann")``. To put an item again supersedes the memory, and
    ``history(key)`` still has the former versions. To delete an item deletes all of them; they can
    be restored within ``retention.grace``. A value comes back as JSON: its keys in alphabetical
    order, its tuples as lists.

    A batch is one search and one commit. Its reads see the store as it was before the batch; of
    several puts on one key, the last one counts. If one operation is refused, nothing is stored.

    ``fields`` are the paths of the texts that searches compare; by default, the whole value. Give
    the bank a :class:`LangChainEmbedder` to compare them with a model of LangChain. ``tier`` is a
    function of namespace, key and value that returns an item's tier, or None to keep the tier that
    it has: a search gives pinned items first, and adds the boost of a tier to the order, not to
    ``score``. ``ttl`` is LangGraph's: minutes become ticks of the bank's clock, rounded up.

    ``now`` gives the time for ``created_at`` and ``updated_at``, which are stored with the item.
    With None, in a run, and for memories that other code stored, they are when the tick began: by
    the wall clock that the bank follows, or with tick 0 at the beginning of 1970.
    """

    supports_ttl = True

    def __init__(
        self,
        bank: MemoryBank,
        *,
        fields: Sequence[str] | None = None,
        tier: TierOf | None = None,
        ttl: TTLConfig | None = None,
        now: Now | None = wall_time,
    ) -> None:
        if not isinstance(bank, MemoryBank):
            raise InvalidInput(
                f"TierMemStore takes an open MemoryBank, not {shown(bank)}",
                hint="use MemoryBank.open(folder); AsyncTierMemStore takes an AsyncMemoryBank",
            )
        check_options(fields, tier, now)
        self.bank = bank
        self.ttl_config = ttl
        self.fields = ["$"] if fields is None else list(fields)
        self._now = now
        self._items = Items(bank)
        self._writing = Writing(self._items, self.fields, tier)

    def __repr__(self) -> str:
        return f"<TierMemStore of {self.bank!r}>"

    @property
    def embeddings(self) -> Any:
        """The LangChain model of the bank's embedder; None for any other embedder."""
        embedder = self.bank.engine.embedder.embedder
        return embedder.embeddings if isinstance(embedder, LangChainEmbedder) else None

    @property
    def index_config(self) -> dict[str, Any]:
        """What searches compare, in the form of LangGraph's ``IndexConfig``."""
        dims = self.bank.engine.embedder.dims
        return {"dims": dims, "embed": self.embeddings, "fields": self.fields}

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """The result of each operation, in their order."""
        asked = list(ops)
        for op in asked:
            _check(op)
        puts = [op for op in asked if isinstance(op, PutOp)]
        with self.bank.engine.using():
            if self.bank.settings.clock.mode == "wall":
                self._writing.embed([op for op in puts if op.ttl is not None])
                self.bank.follow_clock()
            pages = search(self._items, [op for op in asked if isinstance(op, SearchOp)])
            results, read = self._read(asked, pages)
            if puts or any(TTL in memory.metadata for memory in read):
                with self.bank.transaction():  # a batch that is refused uses nothing
                    count_uses(self._items, pages)
                    self._writing.keep_alive(read)
                    self._writing.put(puts, Times(self.bank, self._now))
            else:
                count_uses(self._items, pages)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """:meth:`batch` in a thread, so that the event loop goes on."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(
        self, ops: Sequence[Op], found: Iterable[list[Found]]
    ) -> tuple[list[Result], list[Memory]]:
        """The result of each operation, and the memories of items whose lifetimes begin anew."""
        items, times = self._items, Times(self.bank, self._now)
        pages = iter(found)
        results: list[Result] = []
        read: list[Memory] = []
        for op in ops:
            result: Result = None
            if isinstance(op, SearchOp):
                page = next(pages)
                result = [items.found(*each, times) for each in page]
                read += [each.memory for each in page if op.refresh_ttl]
            elif isinstance(op, ListNamespacesOp):
                result = namespaces(items, op)
            elif isinstance(op, GetOp):
                memory = items.live(items.agent_of(op.namespace), items.key_of(op.key))
                if memory is not None:
                    result = items.item(memory, times)
                    read += [memory] if op.refresh_ttl else []
            results.append(result)
        return results, read


def check_options(fields: object, tier: object, now: object) -> None:
    """Raise an error that names what is wrong with the options of a store."""
    if fields is not None and not are_fields(fields):
        raise InvalidInput(
            f"fields is a list of paths into a value, not {shown(fields)}", hint='use ["text"]'
        )
    if tier is not None and not callable(tier):
        raise InvalidInput(
            f"tier is a function of namespace, key and value, not {shown(tier)}",
            hint="use lambda namespace, key, value: … to return a tier",
        )
    if now is not None and not callable(now):
        raise InvalidInput(
            f"now is a function that returns the time, not {shown(now)}",
            hint="use lambda: datetime.now(UTC), or None for the dates of the bank's ticks",
        )


def _check(op: Op) -> None:
    """Raise an error that names what is wrong with an operation."""
    if not isinstance(op, GetOp | SearchOp | PutOp | ListNamespacesOp):
        raise InvalidInput(f"{shown(op)} is not an operation of a store")
    validate_op_namespace(op)
    if isinstance(op, SearchOp):
        check_filter(op.filter)
        if op.query is not None and not isinstance(op.query, str):
            raise InvalidInput(f"a query is text, not {shown(op.query)}", hint="or leave it out")
    if isinstance(op, SearchOp | ListNamespacesOp):
        for number in (op.limit, op.offset):
            if not isinstance(number, Integral) or number < 0:
                raise InvalidInput(
                    f"limit and offset are whole numbers from 0 on, not {shown(number)}"
                )
    if isinstance(op, PutOp) and not op.namespace:
        raise InvalidInput("an item needs a namespace", hint="use a tuple such as ('users', 'ann')")


# For async graphs: operations that wait at the same time become one batch


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
        answering = answer()
        if answering is None:
            return
        if alive := [one for one in waiting if not one[0].done()]:
            await answering(alive)
        del answering, waiting, alive
