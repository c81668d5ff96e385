"""The standard streams of the command line, and its clean end."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

_TERMINATED = 143


class _Terminated(KeyboardInterrupt):
    """SIGTERM came; code that cleans up after Ctrl-C cleans up after it, too."""


class Stopped(Exception):
    """Ctrl-C or SIGTERM, with its exit code; Typer does not tell which it was."""

    def __init__(self, stop: KeyboardInterrupt) -> None:
        super().__init__(str(stop))
        self.code = _TERMINATED if isinstance(stop, _Terminated) else INTERRUPTED


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end the block like Ctrl-C, which removes temporary files; a second one kills.

    A command that has to finish something first, such as a tick, handles both signals itself.
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


def deaf_to_ctrl_c() -> None:
    """From now on, Ctrl-C changes nothing; while Python ends, it would be a traceback."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def telling(state: Callable[[], str]) -> Iterator[None]:
    """If Ctrl-C or SIGTERM ends the block, tell the user the state that it leaves."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if not stop.args:
            stop.args = (state(),)
        raise


def open_streams() -> bool:
    """Open the standard streams that the parent process closed; False without standard output.

    A command needs standard output from the start: after it has stored something, a missing output
    would come too late. Reading a closed input fails, and output to a closed standard error is
    dropped. If a stream stayed closed, a file of the bank could get its number, and its output.
    """
    has_output = sys.stdout is not None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_WRONLY)  # the lowest free one: that of the stream
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, encoding="utf-8"))  # noqa: SIM115 - for good
    return has_output


def drop_output() -> None:
    """Drop output that can't be printed; else Python would try again at its end, and complain."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            device = os.open(os.devnull, os.O_WRONLY)
            os.dup2(device, sys.stdout.fileno())
            os.close(device)
