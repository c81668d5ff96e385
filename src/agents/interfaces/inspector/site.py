"""What a page looks at: one run or two, a bank, or a sweep; and the table of its answers."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from ...errors import RunError, TierMemError
from ...storage.embedding.embedders import OfflineEmbedder
from ...version import __version__
from . import agent_view, comparing, effects, life_view, population, search_view, sweeps, tick_view
from .inspected import Inspected
from .parameters import CantTell, NotThere, Parameters

__all__ = ["ANSWERS", "Site", "failure"]


class Site:
    """The folders that one page looks at."""

    def __init__(self, folders: Sequence[Path], *, allow_branch: bool = False) -> None:
        self.sweep: Path | None = None
        self.allow_branch = allow_branch
        self.runs: list[Inspected] = []
        self._around: list[Path] = []
        """The folders that were open before the arms of an experiment with a run."""
        self._cell = self._effect = ""
        """The run of the sweep and the experiment that are open."""
        self._parting: comparing.Parting | None = None
        first = folders[0]
        if sweeps.is_sweep(first):
            if len(folders) > 1:
                raise RunError("a sweep is not compared with another", hint="name one folder")
            sweeps.sweep(first)
            self.sweep = first
            return
        try:
            for folder in folders:
                self._open(folder)
        except BaseException:
            self.close()
            raise

    def start(self) -> Self:
        """Begin to read.

        The offline embedder is loaded first: it takes longer than a request may, and no other
        thread goes on meanwhile.
        """
        OfflineEmbedder().embed([""])
        for run in self.runs:
            run.start()
        return self

    def close(self) -> None:
        """Close what is open."""
        while self.runs:
            self.runs.pop().close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _open(self, folder: Path) -> Inspected:
        run = Inspected(folder)
        if self.runs and not (run.is_run and self.runs[0].is_run):
            run.close()
            raise RunError("only runs are compared, and one of the two is a bank")
        self.runs.append(run)
        if len(self.runs) > 1:
            self._parting = comparing.Parting(*self.runs[:2])
        return run

    def about(self, given: Parameters) -> dict[str, Any]:
        """What there is to look at."""
        runs = [run.about() for run in self.runs]
        sweep = None if self.sweep is None else self.sweep.resolve().name
        kind, name = "sweep", sweep or ""
        if self.runs:
            kind, name = ("run" if self.runs[0].is_run else "bank"), runs[0]["name"]
        return {
            "kind": kind,
            "name": name,
            "runs": runs,
            "sweep": sweep,
            "around": self._around[0].resolve().name if self._around else None,
            "cell": self._cell,
            "effect": self._effect,
            "allow_branch": self.allow_branch,
            "version": __version__,
        }

    def run(self, given: Parameters) -> Inspected:
        """The run that a request names."""
        number = given.whole("run", 0)
        if number >= len(self.runs):
            raise NotThere(f"there is no run {number}", hint="see api/about")
        return self.runs[number]

    def compare(self, given: Parameters, sides: Sequence[Any] | None = None) -> dict[str, Any]:
        """Two runs side by side; ``sides`` are the answers about each, where they are known."""
        if self._parting is None or len(self.runs) < 2:
            raise CantTell("only one run is open", hint="tiermem inspect RUN RUN2")
        return comparing.compare(self.runs[:2], self._parting, given, sides)

    def points(self, given: Parameters) -> dict[str, Any]:
        """The sweep as a grid."""
        if self.sweep is None:
            raise CantTell("this is no sweep", hint="tiermem inspect the folder of a sweep")
        return sweeps.sweep(self.sweep)

    def open(self, given: Parameters) -> dict[str, Any]:
        """Look at a run of a sweep, at both arms of an experiment, or at neither.

        What was open before does not matter: two pages that ask leave one of both open.
        """
        cell, effect = given.text("name", ""), given.text("effect", "")
        if cell and self.sweep is None:
            raise CantTell("this is no sweep", hint="tiermem inspect the folder of a sweep")
        if self._around and (cell, effect) != (self._cell, self._effect):
            self._show(self._around)
            self._around, self._effect = [], ""
        if cell != self._cell and self.sweep is not None:
            self._show([sweeps.run_of(self.sweep, cell)] if cell else [])
            self._cell = cell
        if effect != self._effect:
            run = self.run(Parameters({}))
            around = [each.folder for each in self.runs]
            self._show(effects.arms_of(run, effect))
            self._around, self._effect = around, effect
        return {"ok": True}

    def _show(self, folders: Sequence[Path]) -> None:
        """Look at other folders from now on; at the same ones, if these can't be opened."""
        before, self.runs = self.runs, []
        try:
            for folder in folders:
                self._open(folder)
        except BaseException:
            self.close()
            self.runs = before
            raise
        self.start()
        while before:
            before.pop().close()

    def branched(self, given: Parameters) -> dict[str, Any]:
        """Make a branch and run it; its folder."""
        return {"out": str(comparing.branched(self.run(given), given))}

    def add_branch(self, out: str) -> dict[str, Any]:
        """A branch becomes the second run of the comparison."""
        while len(self.runs) > 1:
            self.runs.pop().close()
        self._open(Path(out)).start()
        return {"out": out, "run": 1}

    def answer(self, name: str, given: Mapping[str, str]) -> dict[str, Any]:
        """The answer to a question of the page."""
        with ExitStack() as turns:
            for run in self.runs:
                turns.enter_context(run.reader.slices.turns.answering())
            return ANSWERS[name](self, Parameters(given))


def _of_run(
    function: Callable[[Inspected, Parameters], dict[str, Any]],
) -> Callable[[Site, Parameters], dict[str, Any]]:
    return lambda site, given: function(site.run(given), given)


ANSWERS: Mapping[str, Callable[[Site, Parameters], dict[str, Any]]] = {
    "about": Site.about,
    "series": _of_run(lambda run, _: run.series()),
    "heat": _of_run(tick_view.heat),
    "tick": _of_run(tick_view.happened),
    "agent": _of_run(agent_view.agent_at),
    "memories": _of_run(agent_view.memories),
    "explain": _of_run(agent_view.explain),
    "memory": _of_run(life_view.memory),
    "population": _of_run(population.population),
    "compare": Site.compare,
    "branch": _of_run(comparing.planned),
    "search": _of_run(search_view.search),
    "effects": _of_run(effects.effects),
    "sweep": Site.points,
    "open": Site.open,
    "follow": _of_run(lambda run, _: run.follow()),
}


def failure(error: TierMemError) -> dict[str, Any]:
    """An error, as the page reads it."""
    return {"error": {"type": type(error).__name__, "message": error.why, "hint": error.hint or ""}}
