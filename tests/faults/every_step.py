"""An error at every step of a call: before and after each function that the call calls."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["Steps", "interrupt", "lines_of", "run_out_of_memory", "steps_of"]


def interrupt() -> None:
    """Press Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


def run_out_of_memory() -> None:
    raise MemoryError


class Steps:
    """Lets a fault happen at a step. Before it, a KeyboardInterrupt may come that nothing holds.

    A step is the start or the end of a function: ours, Python's, or one written in C. ``line`` is
    the line, counted over all functions, before which the KeyboardInterrupt comes. The steps are
    counted from there on.
    """

    def __init__(
        self, step: int = 0, fault: Callable[[], None] = run_out_of_memory, *, line: int = 0
    ) -> None:
        self._step, self._fault, self._line = step, fault, line
        self._waits = line > 0
        self.steps = self.lines = 0
        self.where = ""
        """Where faults happened."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside, steps are counted and faults happen."""
        before, reported = sys.gettrace(), sys.unraisablehook
        sys.unraisablehook = lambda _: None  # what reports it must not get the next fault
        sys.settrace(self._on_line if self._line else before)
        sys.setprofile(self._on_step)
        try:
            yield
        finally:
            sys.setprofile(None)
            sys.settrace(before)
            sys.unraisablehook = reported

    def _on_step(self, frame: FrameType, event: str, argument: Any) -> None:
        if self._waits:
            return
        self.steps += 1
        if self.steps == self._step:
            own = argument.__qualname__ if event.startswith("c_") else ""
            self._note(f"{self._fault.__name__} at {event} {own}", frame)
            self._fault()

    def _on_line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self.lines += 1
            if self.lines == self._line:
                self._waits = False
                self._note("an interrupt", frame)
                raise KeyboardInterrupt
        return self._on_line

    def _note(self, what: str, frame: FrameType) -> None:
        self.where += f"{what} in {frame.f_code.co_qualname}:{frame.f_lineno}; "


def steps_of(call: Callable[[], object]) -> int:
    """How many steps a call has."""
    steps = Steps()
    with steps.running():
        call()
    return steps.steps


def lines_of(call: Callable[[], object]) -> int:
    """How many lines a call runs."""
    steps = Steps(line=sys.maxsize)
    with steps.running():
        call()
    return steps.lines
