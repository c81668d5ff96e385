"""What the command line asks of its process: standard streams that exist, and a clean end."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Stopped", "drop_output", "open_streams", "telling", "terminable"]

_INTERRUPTED, _TERMINATED = 130, 143


class _Terminated(KeyboardInterrupt):
    """SIGTERM came. What cleans up after Ctrl-C cleans up after this as well."""


class Stopped(Exception):
    """Ctrl-C or SIGTERM, on its way to the exit code; Typer would not say which."""

    def __init__(self, stop: KeyboardInterrupt) -> None:
        super().__init__(str(stop))
        self.code = _TERMINATED if isinstance(stop, _Terminated) else _INTERRUPTED


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end the block like Ctrl-C, so that temporary files go; a second one kills.

    Commands that have something to finish first, such as a tick, take both signals over.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise _Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def telling(state: Callable[[], str]) -> Iterator[None]:
    """Let whoever stops the block know what state things are in."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if not stop.args:
            stop.args = (state(),)
        raise


def open_streams() -> bool:
    """Give the process the standard streams that its parent closed; whether it may go on.

    Without standard output it may not: a result that nobody gets is no success, and to find that
    out when something is stored would be late. To read from an input that was closed fails; what
    goes to a closed standard error is dropped. If a stream stayed closed, a file of the bank could
    get its number, and with it what is meant for the stream.
    """
    has_output = sys.stdout is not None
    if sys.stdin is None:
        sys.stdin = open(_device(os.O_WRONLY), encoding="utf-8")  # noqa: SIM115 - for good
    if sys.stdout is None:
        sys.stdout = open(_device(os.O_WRONLY), "w", encoding="utf-8")  # noqa: SIM115 - for good
    if sys.stderr is None:
        sys.stderr = open(_device(os.O_WRONLY), "w", encoding="utf-8")  # noqa: SIM115 - for good
    return has_output


def _device(flags: int) -> int:
    """The null device under the lowest free number, which is that of the missing stream."""
    number = os.open(os.devnull, flags)
    os.set_inheritable(number, True)
    return number


def drop_output() -> None:
    """Forget what could not be printed; or Python would try again at the end, and complain."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            device = os.open(os.devnull, os.O_WRONLY)
            os.dup2(device, sys.stdout.fileno())
            os.close(device)
