"""The progress of a long task: a bar on a terminal or in a notebook, else a line now and then."""

import importlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from html import escape
from types import FrameType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.text import Text

from ...memory.context import one_line

_SECONDS_BETWEEN_LINES = 5.0
_SECONDS_BETWEEN_BARS = 0.1


class _Bar(Protocol):
    """What is drawn of tasks: Rich's bar, or a notebook's."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def add_task(self, description: str, *, total: float, **fields: Any) -> TaskID: ...
    def update(self, task_id: TaskID, *, completed: float, total: float, **fields: Any) -> None: ...


def is_watched() -> bool:
    """Whether there is a terminal or a notebook that shows a bar."""
    return Console(stderr=True).is_terminal or is_notebook()


def is_notebook() -> bool:
    """Whether a notebook shows what this process displays."""
    return Console().is_jupyter


class Screen:
    """Progress on standard error, so that standard output holds results alone."""

    def __init__(self, *, quiet: bool) -> None:
        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.quiet = quiet
        self._bar: _Bar | None = None
        self._tasks: dict[str, TaskID] = {}
        self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        if not self.quiet and is_notebook():
            self._bar = _CellBar()
        elif not self.quiet and self.console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),  # on 80 columns, the time left has a place
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                _TimeLeft(),
                console=self.console,
                transient=True,
            )
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, line: str, *, is_error: bool = False) -> None:
        """Print a line; characters that could draw on a terminal are escaped.

        A quiet screen prints errors alone.
        """
        if is_error or not self.quiet:
            self.console.print(Text(one_line(line)))

    def meter(self, name: str, unit: str, start: int | None = None) -> Callable[[int, int], None]:
        """A function that shows progress; its arguments are the amount done and the total.

        With a ``start``, the time counts from now; without it, from the first call. A call after
        the end begins anew.
        """
        pace = Pace(start)

        def show(done: int, total: int) -> None:
            rate = pace.step(done, total)
            speed = "" if rate is None else f"{_digits(rate)} {unit}/s"
            if self._bar is not None:
                if name not in self._tasks:
                    self._tasks[name] = self._bar.add_task(
                        name, total=total, completed=done, rate=speed, pace=pace
                    )
                self._bar.update(self._tasks[name], completed=done, total=total, rate=speed)
            elif done == total or time.monotonic() - self._last_line > _SECONDS_BETWEEN_LINES:
                self._last_line = time.monotonic()
                how = ", ".join(filter(None, (speed, pace.left())))
                self.say(f"{name} {done:,}/{total:,}" + (f" ({how})" if how else ""))

        return show


def _digits(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


class _TimeLeft(ProgressColumn):
    """The time left by the pace since the start: Rich's forgets steps of half a minute ago."""

    def render(self, task: Task) -> Text:
        pace: Pace = task.fields["pace"]
        return Text(pace.left(), "cyan")


class _CellBar:
    """Bars below a notebook's cell, gone at the end. Rich's own would need ipywidgets."""

    def __init__(self) -> None:
        self._names: list[tuple[str, Pace]] = []
        self._bars: list[str] = []
        self._drawn = 0.0

    def start(self) -> None:
        display: Any = importlib.import_module("IPython.display")
        self._html = display.HTML
        self._place = display.display(display.HTML(""), display_id=True)

    def stop(self) -> None:
        self._place.update(self._html(""))

    def add_task(self, description: str, *, total: float, **fields: Any) -> TaskID:
        self._names.append((description, fields["pace"]))
        self._bars.append("")
        return TaskID(len(self._bars) - 1)

    def update(self, task_id: TaskID, *, completed: float, total: float, **fields: Any) -> None:
        name, pace = self._names[task_id]
        words = " · ".join(filter(None, (fields["rate"], pace.left())))
        self._bars[task_id] = (
            f'<div>{escape(name)} <progress value="{completed:g}" max="{total:g}"></progress> '
            f"{completed:,.0f}/{total:,.0f} {escape(words)}</div>"
        )
        now = time.monotonic()
        if now - self._drawn > _SECONDS_BETWEEN_BARS:
            self._drawn = now
            self._place.update(self._html("".join(self._bars)))


@contextmanager
def writing(unit: str = "rows") -> Iterator[Callable[[int, int], None]]:
    """A bar for files that are written anew; nothing where there is no terminal."""
    with Screen(quiet=not sys.stderr.isatty()) as screen:
        yield screen.meter(f"writing {unit}", unit)


class Pace:
    """The speed of a task, which may be repeated, and the time that is left of it."""

    def __init__(self, start: int | None) -> None:
        self._first = start
        self._began = time.monotonic()
        self._last = start or 0
        self._is_over = False
        self._ends: float | None = None

    def step(self, done: int, total: int) -> float | None:
        """Units a second since the start of this repetition; None before there is any progress."""
        now = time.monotonic()
        if self._first is None or self._is_over or done < self._last:
            self._first, self._began = done, now
        self._last, self._is_over = done, done >= total
        self._ends = None
        if done <= self._first:
            return None
        rate = (done - self._first) / max(now - self._began, 1e-9)
        if not self._is_over:
            self._ends = now + (total - done) / rate
        return rate

    def left(self) -> str:
        """The time that is left now, if the task goes on at its pace; empty if nobody can tell."""
        if self._ends is None:
            return ""
        seconds = max(0.0, self._ends - time.monotonic())
        if seconds < 90:
            return f"{seconds:.0f} s left"
        minutes = seconds / 60
        return f"{minutes:.0f} min left" if minutes < 90 else f"{minutes / 60:.1f} h left"


def stopping(
    words: str = "", *, ctrl_c_alone: bool = False
) -> AbstractContextManager[Callable[[], bool]]:
    """Whether Ctrl-C or SIGTERM came, which says ``words``; a second one is KeyboardInterrupt."""
    heeded = (signal.SIGINT,) if ctrl_c_alone else (signal.SIGINT, signal.SIGTERM)
    return _noticing(heeded, patience=1, words=words)


def interrupts() -> AbstractContextManager[Callable[[], bool]]:
    """Whether Ctrl-C came, which also raises KeyboardInterrupt at once.

    The exception may get lost: Python ignores an exception while it cleans up an object.
    """
    return _noticing((signal.SIGINT,), patience=0)


@contextmanager
def _noticing(
    numbers: tuple[signal.Signals, ...], patience: int, words: str = ""
) -> Iterator[Callable[[], bool]]:
    """Whether one of the signals came; after ``patience`` signals, one more interrupts."""
    came: list[int] = []

    def notice(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if len(came) > patience:
            raise KeyboardInterrupt
        if words and len(came) == 1:  # past Python's streams, which the signal may have cut short
            with suppress(OSError):
                os.write(2, f"\n{words}\n".encode())

    before = {number: signal.signal(number, notice) for number in numbers}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
