"""What a page looks at: one run or two, a bank, or a sweep; and the table of its answers."""

import threading
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import Any, Self

from ...errors import BankNotFound, RunError, TierMemError
from ...version import __version__
from . import agent_view, comparing, life_view, run_view, sweeps
from .inspected import Inspected
from .parameters import CantTell, NotThere, Parameters

_MOST_OTHERS = 3
"""What else stays open for pages that look at it; what was asked for longest ago is closed."""
_MOST_NAMED = 3
"""Folders that a hint names."""
Topic = tuple[str, str]
"""The run of a sweep and the experiment; empty for none."""
_BASE: Topic = ("", "")


class _Look:
    """The folders that one page looks at."""

    def __init__(self, around: str | None = None) -> None:
        self.runs: list[Inspected] = []
        self.around = around
        """The name of the run with which the experiment was made; or None."""
        self.parting: comparing.Parting | None = None

    def open(self, folders: Sequence[Path]) -> Self:
        """Open folders, or none of them."""
        try:
            for folder in folders:
                self.add(folder)
        except BaseException:
            self.close()
            raise
        return self

    def add(self, folder: Path) -> Inspected:
        """Open one more run."""
        try:
            run = Inspected(folder)
        except BankNotFound:
            raise _nothing_in(folder) from None
        if self.runs and not (run.is_run and self.runs[0].is_run):
            run.close()
            raise RunError("only runs are compared, and one of the two is a bank")
        self.runs.append(run)
        if len(self.runs) > 1:
            self.parting = comparing.Parting(*self.runs[:2])
        return run

    def replace_other(self, folder: Path) -> None:
        """Open a second run in the place of the one that is there, which stays if that fails."""
        others = self.runs[1:]
        del self.runs[1:]
        try:
            self.add(folder).start()
        except BaseException:
            self.runs += others
            raise
        for each in others:
            each.close()

    def start(self) -> None:
        """Begin to read."""
        for run in self.runs:
            run.start()

    def close(self) -> None:
        """Close what is open."""
        while self.runs:
            self.runs.pop().close()


class Inspection:
    """The folders that pages look at.

    Each page of a sweep may look at another run of it: a request names its ``cell``, and the
    ``effect`` if it is about an experiment. One that names neither is about what was opened last.
    """

    def __init__(
        self, folders: Sequence[Path], *, allow_branch: bool = False, allow_ask: bool = False
    ) -> None:
        self.sweep: Path | None = None
        self.allow_branch = allow_branch
        self.allow_ask = allow_ask
        self.left: RunError | None = None
        """What became of a branch that was stopped."""
        self._stopped = threading.Event()
        self._at = _BASE
        """What was opened last."""
        self._looks: dict[Topic, _Look] = {}
        """The one that was asked for last is at the end."""
        first = folders[0]
        if sweeps.is_sweep(first):
            if len(folders) > 1:
                raise RunError("a sweep is not compared with another", hint="name one folder")
            sweeps.sweep(first)
            self.sweep = first
        self._looks[_BASE] = _Look().open([] if self.sweep else folders)

    @property
    def runs(self) -> list[Inspected]:
        """The runs that were opened last."""
        return self._look(self._at).runs

    def start(self) -> Self:
        """Begin to read."""
        self._looks[_BASE].start()
        return self

    def close(self) -> None:
        """Close what is open."""
        while self._looks:
            self._looks.popitem()[1].close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()

    # What a page looks at

    def _topic(self, given: Parameters) -> Topic:
        """What a request is about."""
        if given.is_given("cell") or given.is_given("effect"):
            return given.text("cell", ""), given.text("effect", "")
        return self._at

    def _look(self, topic: Topic) -> _Look:
        """What a topic is about; it is opened, if it is not open."""
        found = self._looks.pop(topic, None)
        if found is None:
            found = self._opened(topic)
            found.start()
        self._looks[topic] = found
        others = [each for each in self._looks if each not in (_BASE, self._at, topic)]
        for each in others[: max(0, len(others) - _MOST_OTHERS)]:
            self._looks.pop(each).close()
        return found

    def _opened(self, topic: Topic) -> _Look:
        cell, effect = topic
        if effect:
            run = _numbered(self._look((cell, "")).runs, 0)
            return _Look(run.name).open(sweeps.arms_of(run, effect))
        if self.sweep is None:
            raise CantTell("this is not a sweep", hint="tiermem inspect the folder of a sweep")
        return _Look().open([sweeps.run_of(self.sweep, cell)])

    def about(self, given: Parameters) -> dict[str, Any]:
        """What there is to look at."""
        topic = self._topic(given)
        look = self._look(topic)
        runs = [run.about() for run in look.runs]
        sweep = None if self.sweep is None else self.sweep.resolve().name
        kind, name = "sweep", sweep or ""
        if runs:
            kind, name = ("run" if look.runs[0].is_run else "bank"), runs[0]["name"]
        return {
            "kind": kind,
            "name": name,
            "runs": runs,
            "sweep": sweep,
            "around": look.around,
            "cell": topic[0],
            "effect": topic[1],
            "allow_branch": self.allow_branch,
            "allow_ask": self.allow_ask,
            "version": __version__,
        }

    def run(self, given: Parameters) -> Inspected:
        """The run that a request names."""
        return _numbered(self._look(self._topic(given)).runs, given.whole("run", 0))

    def compare(self, given: Parameters, sides: Sequence[Any] | None = None) -> dict[str, Any]:
        """Two runs side by side; ``sides`` are the answers about each, where they are known."""
        look = self._look(self._topic(given))
        if look.parting is None or len(look.runs) < 2:
            raise CantTell("only one run is open", hint="tiermem inspect RUN RUN2")
        return comparing.compare(look.runs[:2], look.parting, given, sides)

    def points(self, given: Parameters) -> dict[str, Any]:
        """The sweep as a grid."""
        if self.sweep is None:
            raise CantTell("this is not a sweep", hint="tiermem inspect the folder of a sweep")
        return sweeps.sweep(self.sweep)

    def open(self, given: Parameters) -> dict[str, Any]:
        """Look at a run of a sweep, at both arms of an experiment, or at neither.

        What was open before does not matter, and stays open for pages that look at it.
        """
        topic = given.text("name", ""), given.text("effect", "")
        self._look(topic)
        self._at = topic
        return {"ok": True}

    def branched(self, given: Parameters) -> dict[str, Any]:
        """Make a branch and run it; its folder."""
        run = self.run(given)
        try:
            return {"out": str(comparing.branched(run, given, self._stopped.is_set))}
        except RunError as error:
            if self._stopped.is_set():
                self.left = error
            raise

    def asked(self, given: Parameters) -> dict[str, Any]:
        """What an agent answers, as it was after a tick."""
        return agent_view.asked_of(self.run(given), given)

    def stop(self) -> None:
        """Let a branch that is run end after its tick."""
        self._stopped.set()

    def add_branch(self, out: str, given: Parameters) -> dict[str, Any]:
        """A branch becomes the second run of the comparison."""
        self._look(self._topic(given)).replace_other(Path(out))
        return {"out": out, "run": 1}

    def compare_with(self, given: Parameters) -> dict[str, Any]:
        """A run beside the first one becomes the second run of the comparison."""
        look = self._look(self._topic(given))
        look.replace_other(comparing.neighbour(_numbered(look.runs, 0), given.text("name")))
        return {"run": 1}

    def answer(self, name: str, given: Mapping[str, str]) -> dict[str, Any]:
        """The answer to a question of the page."""
        return ANSWERS[name](self, Parameters(given))


def _numbered(runs: Sequence[Inspected], number: int) -> Inspected:
    if number >= len(runs):
        raise NotThere(f"there is no run {number}", hint="see api/about")
    return runs[number]


def _of_run(
    function: Callable[[Inspected, Parameters], dict[str, Any]],
) -> Callable[[Inspection, Parameters], dict[str, Any]]:
    return lambda inspection, given: function(inspection.run(given), given)


ANSWERS: Mapping[str, Callable[[Inspection, Parameters], dict[str, Any]]] = {
    "about": Inspection.about,
    "series": _of_run(lambda run, _: run.series()),
    "costs": _of_run(run_view.costs),
    "heat": _of_run(run_view.heat),
    "numbers": _of_run(run_view.numbers),
    "tick": _of_run(run_view.happened),
    "agent": _of_run(agent_view.agent_at),
    "memories": _of_run(agent_view.memories),
    "explain": _of_run(agent_view.explain),
    "memory": _of_run(life_view.memory),
    "population": _of_run(run_view.population),
    "compare": Inspection.compare,
    "beside": _of_run(comparing.neighbours),
    "with": Inspection.compare_with,
    "branch": _of_run(comparing.planned),
    "search": _of_run(run_view.search),
    "effects": _of_run(sweeps.effects),
    "sweep": Inspection.points,
    "open": Inspection.open,
    "follow": _of_run(lambda run, _: run.follow()),
}


def failure(error: TierMemError) -> dict[str, Any]:
    """An error, as the page reads it."""
    return {"error": {"type": type(error).__name__, "message": error.why, "hint": error.hint or ""}}


# What to say of a folder that has nothing to look at


def _nothing_in(folder: Path) -> RunError:
    """The error for a folder that is not a run, a bank or a sweep."""
    if (folder / "run.json").exists():
        return RunError(
            f"the run in {folder} has no bank: {folder / 'bank'} is missing",
            hint="put it back from a copy, or make the run anew with tiermem run",
        )
    if not folder.exists():
        return RunError(f"there is no folder {folder}", hint=_hint(folder.parent, folder.name))
    return RunError(f"there is no run, bank or sweep in {folder}", hint=_hint(folder, ""))


def _hint(place: Path, name: str) -> str:
    """The folders in a place that can be looked at; first those with a similar name."""
    try:
        found = sorted(each.name for each in place.iterdir() if _has_something(each))
    except OSError:
        found = []
    if not found:
        return "check the path; tiermem run SCENARIO makes a run, and says where"
    near = get_close_matches(name, found, _MOST_NAMED)
    near += [each for each in found if each not in near]
    named = ", ".join(quote(str(place / each)) for each in near[:_MOST_NAMED])
    more = f" and {len(near) - _MOST_NAMED} more" if len(near) > _MOST_NAMED else ""
    return f"here {'is' if len(near) == 1 else 'are'} {named}{more}"


def _has_something(folder: Path) -> bool:
    return (
        (folder / "run.json").is_file()
        or (folder / "journal.db").is_file()
        or sweeps.is_sweep(folder)
    )
