"""An error at every step of a call: before and after each function that the call calls."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

__all__ = ["Hung", "Steps", "at_most", "interrupt", "lines_of", "run_out_of_memory", "steps_of"]


class Hung(BaseException):
    """A call did not come back; the text names it. No code takes it for an error of its own."""


@contextmanager
def at_most(seconds: float, what: Callable[[], str]) -> Iterator[None]:
    """Raise :class:`Hung` if the block does not end, whether it spins or waits for a lock.

    A bank lets most signals wait while it changes. This one it does not.
    """

    def tell(*_: object) -> None:
        raise Hung(f"{what()} did not come back within {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, tell)
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(seconds, signal.pthread_kill, (main, signal.SIGVTALRM))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGVTALRM, before)


def interrupt() -> None:
    """Press Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


def run_out_of_memory() -> None:
    raise MemoryError


class Steps:
    """In its block, lets a fault happen at a step, maybe after a KeyboardInterrupt.

    A step is the start or the end of a function: ours, Python's, or one written in C. ``line`` is
    the line, counted over all functions, before which the KeyboardInterrupt comes. The steps are
    counted from there on. With ``of``, only the lines and steps of this code are counted.
    """

    def __init__(
        self,
        step: int = 0,
        fault: Callable[[], None] = run_out_of_memory,
        *,
        line: int = 0,
        of: Set[CodeType] = frozenset(),
    ) -> None:
        self._step, self._fault, self._line, self._of = step, fault, line, of
        self._waits = line > 0
        self.steps = self.lines = 0
        self.places: list[tuple[CodeType, int, str]] = []
        """With ``of``, where each line or step was that was counted."""
        self.where = ""
        """Where faults happened."""

    def __enter__(self) -> None:
        """From now on, steps are counted and faults happen."""
        self._before = sys.gettrace(), sys.unraisablehook
        sys.unraisablehook = lambda _: None  # what reports it must not get the next fault
        sys.settrace(self._on_line if self._line else self._before[0])
        sys.setprofile(self._on_step)

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)
        sys.settrace(self._before[0])
        sys.unraisablehook = self._before[1]

    def _on_step(self, frame: FrameType, event: str, argument: Any) -> None:
        if self._waits or frame.f_code.co_filename == __file__:
            return
        if self._of:
            if frame.f_code not in self._of:
                return
            self.places.append((frame.f_code, frame.f_lineno, event))
        self.steps += 1
        if self.steps == self._step:
            own = argument.__qualname__ if event.startswith("c_") else ""
            self._note(f"{self._fault.__name__} at {event} {own}", frame)
            self._fault()

    def _on_line(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename == __file__ or (self._of and frame.f_code not in self._of):
            return None
        if event == "line":
            if self._of:
                self.places.append((frame.f_code, frame.f_lineno, event))
            self.lines += 1
            if self.lines == self._line:
                self._waits = False
                self._note("an interrupt", frame)
                raise KeyboardInterrupt
        return self._on_line

    def _note(self, what: str, frame: FrameType) -> None:
        self.where += f"{what} in {frame.f_code.co_qualname}:{frame.f_lineno}; "


def steps_of(call: Callable[[], object], of: Set[CodeType] = frozenset()) -> int:
    """How many steps a call has."""
    steps = Steps(of=of)
    with steps:
        call()
    return steps.steps


def lines_of(call: Callable[[], object]) -> int:
    """How many lines a call runs."""
    steps = Steps(line=sys.maxsize)
    with steps:
        call()
    return steps.lines
