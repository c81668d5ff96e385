"""An error at every step of a call: before and after each function that the call calls."""

import signal
import sys
from collections.abc import Callable, Set
from types import CodeType, FrameType
from typing import Any

__all__ = ["Steps", "interrupt", "lines_of", "run_out_of_memory", "steps_of"]


def interrupt() -> None:
    """Press Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


def run_out_of_memory() -> None:
    raise MemoryError


class Steps:
    """In its block, lets a fault happen at a step, maybe after a KeyboardInterrupt.

    A step is the start or the end of a function: ours, Python's, or one written in C. ``line`` is
    the line, counted over all functions, before which the KeyboardInterrupt comes. The steps are
    counted from there on. With ``of``, only the steps of functions of this code are counted.
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
        if self._of and frame.f_code not in self._of:
            return
        self.steps += 1
        if self.steps == self._step:
            own = argument.__qualname__ if event.startswith("c_") else ""
            self._note(f"{self._fault.__name__} at {event} {own}", frame)
            self._fault()

    def _on_line(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename == __file__:
            return None
        if event == "line":
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
