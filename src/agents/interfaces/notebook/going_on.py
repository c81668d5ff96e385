"""Runs a run to its end under the eyes of a person: with a bar, until Ctrl-C."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ...simulation.effects import Effect
from ...simulation.effects import effect as measure
from ...simulation.runs.run import Run
from ..cli.progress import Screen, is_watched, stopping

_STOPPING = "stopping after this tick; interrupt again to stop at once"
_GO_ON = (
    "the run stands after tick {tick} of {until}, and goes on with: "
    "import sys; run = sys.last_value.run; run.resume()"
)


def go_on(run: Run, progress: bool | None = None) -> None:
    """Run to the end of the settings, and write the results.

    ``progress`` is whether there is a bar; without it, there is one on a terminal and in a
    notebook. What ends the run before, be it an error or Ctrl-C, has it as its attribute ``run``.
    """
    until = run.settings.simulation.ticks
    try:
        with _screen(progress) as screen, _interrupts() as asked_to_stop:
            show = screen.meter("tick", "ticks", run.tick)
            for _ in run.advance(until):
                show(run.tick, until)
                if asked_to_stop() and run.tick < until:
                    raise KeyboardInterrupt
            run.progress = screen.meter("commits in mem0's store", "commits")
            run.finish(report=not run.is_temporary)
            run.sync()
            run.progress = None
    except BaseException as error:
        error.run = run  # type: ignore[attr-defined]
        error.add_note(_GO_ON.format(tick=run.tick, until=until))
        raise


def effect(run: Run, progress: bool | None, **arguments: Any) -> Effect:
    """What a change did, with a bar over its pairs."""
    with _screen(progress) as screen:
        return measure(run.folder, progress=screen.meter("pairs", "pairs"), **arguments)


def _screen(progress: bool | None) -> Screen:
    return Screen(quiet=not (is_watched() if progress is None else progress))


def say(line: str) -> None:
    """Tell what a person should know of a run, on standard error or below the cell."""
    Screen(quiet=False).say(line)


def _interrupts() -> AbstractContextManager[Callable[[], bool]]:
    """Whether Ctrl-C came; elsewhere than in the main thread, nobody hears of it."""
    if threading.current_thread() is not threading.main_thread():
        return nullcontext(lambda: False)
    return stopping(_STOPPING, ctrl_c_alone=True)
