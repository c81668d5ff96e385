"""Commands that store: what is stored is told before mem0's store, which is slow, catches up."""

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
    """Nobody got the word that something is stored."""


@contextmanager
def storing(bank: "MemoryBank", tell: Callable[[], None]) -> Iterator[None]:
    """Store what is added inside, in one commit; ``tell`` of it; then let mem0's store catch up.

    From the commit on the memories are in the journal, so whoever tries again stores them twice.
    That mem0's store can't be written is therefore told, and no error. Ctrl-C still ends the
    command; it is told that they are stored.
    """
    head = bank.parts.ledger.journal.head
    late: BaseException | None = None
    try:
        with bank.transaction():
            yield
    except _FAILURES as error:
        if bank.parts.ledger.journal.head == head:
            raise
        late = error  # storage.sync is commit: the store is part of it
    try:
        _printed(tell)
        if late is None:
            _sync(bank)
    except _Unheard:
        raise
    except _FAILURES as error:
        late = error
    if late is not None:
        bank.close(sync=False)  # that would fail, or take long, once more
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
    """Tell of what came after the commit; what stops the command goes on."""
    if isinstance(error, KeyboardInterrupt):
        error.args = (_KEPT,)  # what is said of a command that was stopped
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
