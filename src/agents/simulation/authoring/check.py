"""Tries a world and its policy for real: does the same seed give the same run, whatever happens?"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from ...config.load import load_settings
from ...config.settings import Settings
from ...errors import ConfigError, SimulationError
from ..runs.run import check_scenario
from .trial import Story, ticks_to_break_at

__all__ = ["Findings", "check_world"]

_CHILD = "from tiermem.simulation.authoring.trial import main; main()"
_HASH_SEEDS = ("1", "2")


class Findings(NamedTuple):
    """What was tried and held, and what is wrong, in lines for a person."""

    tried: list[str]
    problems: list[str]


def check_world(settings: Settings, place: Path) -> Findings:
    """Try the world that the settings name; its module is in the folder ``place``, or installed.

    Every trial is a process of its own. An error of the world itself is :class:`SimulationError`.
    """
    if settings.simulation.policy == "llm":
        raise ConfigError(
            "simulation.policy is llm, and a model's replies can't be tried again",
            hint="check the world with rules, a script or a class of your own as --policy",
        )
    if settings.simulation.ticks < 2:
        raise ConfigError(
            "one tick is too few to stop and go on", hint="give two ticks or more: --ticks"
        )
    place = place.absolute()
    # mem0's store says nothing about a world.
    settings = load_settings(settings, overrides={"storage.sync": "manual"})
    check_scenario(settings, [place])
    with tempfile.TemporaryDirectory(prefix="tiermem-check-") as scratch:
        return _Check(settings, place, Path(scratch)).done()


class _Check:
    """One check, with a folder for its trials."""

    def __init__(self, settings: Settings, place: Path, scratch: Path) -> None:
        self._settings, self._place, self._scratch = settings, place, scratch
        self._ticks = settings.simulation.ticks
        self._found = Findings([], [])

    def done(self) -> Findings:
        watch = self._trial("watch", _HASH_SEEDS[1])
        anew = ticks_to_break_at(self._settings)
        twice = self._trial("twice", _HASH_SEEDS[0], anew=anew)
        first = twice["first"]
        self._unseeded(watch["unseeded"])
        is_same = self._same(
            first,
            twice["second"],
            f"the same seed twice in one process, {self._ticks} ticks",
            "the second run of the same seed in one process is another",
        )
        if not is_same:
            self._found.problems.append(
                "not tried, because no two runs are the same: other hash seeds, a state that goes "
                "round, a kill"
            )
            return self._found
        self._same(
            first,
            watch["first"],
            "PYTHONHASHSEED 1 and 2, in two processes",
            "with another PYTHONHASHSEED, in another process, the run is another: does the order "
            "of a set decide?",
        )
        ticks = ", ".join(map(str, anew))
        self._same(
            first,
            twice["anew"],
            f"get_state() and set_state() of a new world after ticks {ticks}",
            f"with the world made anew by set_state() after ticks {ticks}, the run is another: "
            "does get_state() leave something out?",
        )
        self._kill(first, after=anew[len(anew) // 2])
        return self._found

    def _unseeded(self, calls: list[tuple[str, int, str]]) -> None:
        if not calls:
            self._found.tried.append("no call of a clock or of unseeded randomness in its code")
        for file, line, what in calls:
            path = Path(file)
            name = path.relative_to(self._place) if path.is_relative_to(self._place) else path
            self._found.problems.append(f"{name}, line {line}: {what}")

    def _same(self, first: Story, other: Story, tried: str, problem: str) -> bool:
        difference = _difference(first, other)
        if difference is None:
            self._found.tried.append(tried)
        else:
            self._found.problems.append(f"{problem} ({difference})")
        return difference is None

    def _kill(self, first: Story, after: int) -> None:
        """Kill a run in a folder once ``after`` is over, and go on with it in another process."""
        folder = str(self._scratch / "run")
        with self._started("run", folder=folder) as child:
            for line in child.stdout or ():
                if int(line) >= after:
                    child.kill()
                    break
            code = child.wait()
        if code != -signal.SIGKILL:
            raise SimulationError(self._why("run", code))
        resumed = self._trial("resume", folder=folder)
        begun = resumed["begun"]
        self._same(
            first,
            resumed["first"],
            f"killed with SIGKILL after tick {begun}, and resumed",
            f"killed with SIGKILL after tick {begun} and resumed, the run is another: does "
            "get_state() leave something out?",
        )

    def _trial(self, do: str, hash_seed: str = _HASH_SEEDS[0], **more: Any) -> dict[str, Any]:
        with self._started(do, hash_seed, **more) as child:
            child.communicate()
        path = self._scratch / f"{do}.json"
        result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        if result is None or "error" in result:
            raise SimulationError(self._why(do, child.returncode))
        return dict(result)

    def _started(
        self, do: str, hash_seed: str = _HASH_SEEDS[0], **more: Any
    ) -> "subprocess.Popen[str]":
        task = {
            "do": do,
            "settings": self._settings.to_dict(),
            "places": [str(self._place)],
            "result": str(self._scratch / f"{do}.json"),
            **more,
        }
        path = self._scratch / f"{do}.task"
        path.write_text(json.dumps(task), encoding="utf-8")
        with (self._scratch / f"{do}.err").open("w") as errors:
            return subprocess.Popen(
                [sys.executable, "-c", _CHILD, str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONHASHSEED": hash_seed},
            )

    def _why(self, do: str, code: int) -> str:
        """What a trial that failed said last."""
        path = self._scratch / f"{do}.json"
        if path.exists():
            return str(json.loads(path.read_text(encoding="utf-8"))["error"])
        lines = (self._scratch / f"{do}.err").read_text(errors="replace").strip().splitlines()
        return f"a process of the check ended with {code}: {lines[-1] if lines else 'no word'}"


def _difference(first: Story, other: Story) -> str | None:
    """Where two stories part: the first tick, with a metric or a memory; or the last world."""
    for one, two in zip(first["ticks"], other["ticks"], strict=True):
        if one != two:
            what = _unlike("metric ", one["metrics"], two["metrics"])
            memory = _unlike_memory(first["memories"], other["memories"], one["tick"])
            return f"tick {one['tick']}: {memory or what or 'the memories have other places'}"
    where = _unlike("", first["world"], other["world"])
    return f"after the last tick, the state of the world: {where}" if where else None


def _unlike_memory(one: dict[str, Any], two: dict[str, Any], tick: int) -> str | None:
    for agent in one:
        texts = [
            [text for made, text in memories.get(agent, ()) if made == tick]
            for memories in (one, two)
        ]
        if texts[0] != texts[1]:
            return _unlike(f"memory of {agent} ", *texts)
    return None


def _unlike(where: str, one: Any, two: Any) -> str | None:
    """The first place in which two JSON values differ, and what is there."""
    if type(one) is type(two) and isinstance(one, dict | list) and len(one) == len(two):
        keys = one if isinstance(one, dict) else range(len(one))
        for key in keys:
            if isinstance(one, dict) and key not in two:
                return f"{where}{key} is missing in one"
            found = _unlike(
                f"{where}{key}" if not where or where[-1] == " " else f"{where}.{key}",
                one[key],
                two[key],
            )
            if found:
                return found
        return None
    return None if one == two else f"{where} is {one!r:.80}, and {two!r:.80}"
