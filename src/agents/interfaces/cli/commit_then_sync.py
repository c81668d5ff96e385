"""Commands that store memories report them before mem0's store, which is slow, catches up."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from ...errors import TierMemError
from .. import failures
from .signals import drop_output

if TYPE_CHECKING:
    from ...bank.memory_bank import MemoryBank

__all__ = ["storing"]

_KEPT = "the memories are stored; mem0's store catches up when the bank is opened again"
_FAILURES = (TierMemError, OSError, KeyboardInterrupt)


class _Unheard(TierMemError):
    """The memories are stored, but the report could not be printed."""


@contextmanager
def storing(bank: "MemoryBank", tell: Callable[[], None]) -> Iterator[None]:
    """Commit the memories that the block adds, ``tell`` of them, then let mem0's store catch up.

    After the commit the memories are in the journal: repeating the command would store them twice.
    So a failure of mem0's store is reported, and is no error. Ctrl-C still ends the command, and
    the user learns that the memories are stored.
    """
    head = bank.parts.ledger.journal.head
    late: BaseException | None = None
    try:
        with bank.transaction():
            yield
    except _FAILURES as error:
        if bank.parts.ledger.journal.head == head:
            raise
        late = error  # with storage.sync: commit, the store is written in the commit
    try:
        _printed(tell)
        if late is None:
            _sync(bank)
    except _Unheard:
        raise
    except _FAILURES as error:
        late = error
    if late is not None:
        bank.close(sync=False)  # writing the store would fail, or take long, again
        _say_late(late)


def _printed(tell: Callable[[], None]) -> None:
    try:
        tell()
    except OSError as error:
        drop_output()
        raise _Unheard(
            f"the memories are stored, but that can't be printed: {error}",
            hint="don't repeat it: that would store them twice",
        ) from error


def _say_late(error: BaseException) -> None:
    """Report a failure after the commit; raise Ctrl-C again."""
    if isinstance(error, KeyboardInterrupt):
        error.args = (_KEPT,)
        raise error
    why, hint = str(error), ""
    if isinstance(error, TierMemError):
        why, hint = error.why, error.hint
    failures.report((_KEPT, why, hint or "tiermem doctor may know more"))


def _sync(bank: "MemoryBank") -> None:
    if bank.settings.storage.sync == "manual":
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        bank.sync()
        return
    with console.status("writing to mem0's store"):
        bank.sync()
