"""``mem0.AsyncMemory`` over a bank: the methods of :class:`Memory` as coroutines."""

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from os import PathLike
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from ...bank.async_bank import AsyncMemoryBank
from ...bank.memory_bank import MemoryBank
from .memory import Memory

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    method: Callable[Concatenate[Memory, P], T],
) -> "Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, T]]":
    """The method as a coroutine, with the same arguments, result and documentation."""

    @functools.wraps(method)
    async def awaited(self: "AsyncMemory", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.bank.run(lambda _: method(self.memory, *args, **kwargs))

    # Programs look behind a wrapper whether it is async, and would find the method that is not.
    vars(awaited).update(__signature__=inspect.signature(method))
    del vars(awaited)["__wrapped__"]
    return awaited


class AsyncMemory:
    """:class:`Memory` for asyncio: calls happen one after the other, in the bank's own thread."""

    def __init__(
        self,
        bank: MemoryBank | str | PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        """The arguments are those of :class:`Memory`."""
        self.memory = Memory(bank, **options)
        """The same memories, for callers that do not wait."""
        self.bank = AsyncMemoryBank(self.memory.bank)
        """The bank that keeps the memories."""

    @classmethod
    def from_config(
        cls,
        config_dict: Mapping[str, Any],
        folder: str | PathLike[str] | None = None,
        *,
        infer: bool = True,
        **settings: Any,
    ) -> Self:
        """:meth:`Memory.from_config`."""
        made = Memory.from_config(config_dict, folder, **settings)
        instructions = config_dict.get("custom_instructions")
        return cls(made.bank, instructions=instructions, infer=infer, closes=True)

    add = _awaited(Memory.add)
    get = _awaited(Memory.get)
    get_all = _awaited(Memory.get_all)
    search = _awaited(Memory.search)
    history = _awaited(Memory.history)
    update = _awaited(Memory.update)
    delete = _awaited(Memory.delete)
    delete_all = _awaited(Memory.delete_all)
    reset = _awaited(Memory.reset)
    chat = _awaited(Memory.chat)

    def close(self) -> None:
        """Close the bank, unless it was given open."""
        self.memory.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        if self.memory.closes:
            await self.bank.__aexit__(*error)  # it closes the bank even if this is cancelled
