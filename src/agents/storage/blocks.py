"""A block that is over when its ``with`` statement is, also where ``__exit__`` never began.

An error may come at the very call of ``__exit__``: another thread can raise one here. Nothing then
ends the block. An object can notice that it dies, but the traceback of the error keeps the frame of
``__exit__``, and that frame keeps its object, for as long as the program keeps the error; a
notebook keeps the last one. So a ``with`` statement gets no method to call, but an :class:`_End`.
No frame has it: it dies when the statement is left.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import ref

__all__ = ["Block"]


class _End(partial[None]):
    """What a ``with`` statement holds, and calls at its end."""

    def __del__(self) -> None:
        block: Block = self.args[0]
        if block.is_open:
            block.abandon()


class _Ending:
    """``__exit__`` of a :class:`Block`."""

    def __get__(self, block: "Block | None", owner: "type[Block]") -> Callable[..., None]:
        if block is None:  # an ExitStack asks the class, and holds the block itself
            return owner.leave
        if block.is_open:  # somebody else holds it
            return partial(owner.leave, block)
        end = _End(owner.leave, block)
        block.holder = ref(end)
        return end


class Block:
    """A block of a ``with`` statement.

    A subclass has ``__enter__``, which sets :attr:`is_open`, :meth:`leave` and :meth:`abandon`.
    """

    is_open = False
    holder: Callable[[], object] = staticmethod(lambda: None)
    """Gives the end that a statement holds, or None."""
    __exit__ = _Ending()

    def held(self) -> Callable[[], object]:
        """Gives what holds this block from now on, and None when nothing will end it any more."""
        return ref(self) if self.holder() is None else self.holder

    def leave(self, kind: type[BaseException] | None, *error: Any) -> None:
        """Do what ``__exit__`` does, and end :attr:`is_open`."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Give the block up, which is open: nothing holds it any more."""
        raise NotImplementedError

    def __del__(self) -> None:
        if self.is_open:
            self.abandon()
