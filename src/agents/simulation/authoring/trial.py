"""What a process of ``tiermem check-world`` does: it runs the user's world, and tells what came.

A trial is a process of its own, so that it can have its own hash seed and be killed.
"""

import contextlib
import importlib.util
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ...bank.memory_bank import MemoryBank
from ...config.load import load_settings
from ...config.settings import Settings
from ...errors import TierMemError
from ..loop.loop import Loop
from ..loop.streams import Streams
from ..policies.cassette import Cassette
from ..runs.run import Run
from ..runs.scenario import first_memories, make_policy, make_world
from ..worlds import WORLDS
from .unseeded import watched

__all__ = ["Story", "main", "story", "ticks_to_break_at"]

Story = dict[str, Any]
"""What can be compared of a run: the records of its ticks, its memories, its last world."""


def main() -> None:
    """Do the task in the file that the command line names, and write what came of it."""
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    settings = load_settings(task["settings"])
    places = [Path(place) for place in task["places"]]
    # Standard output is for the numbers of ticks: what a world prints goes to standard error.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            result = _TASKS[task["do"]](settings, places, task)
        except TierMemError as error:
            result = {"error": str(error)}
    Path(task["result"]).write_text(json.dumps(result), encoding="utf-8")


def _twice(settings: Settings, places: list[Path], task: dict[str, Any]) -> dict[str, Any]:
    """Two runs in this process, and one whose world is made anew again and again."""
    anew = set(task["anew"])
    return {
        "first": story(settings, places),
        "second": story(settings, places),
        "anew": story(settings, places, anew),
    }


def _watch(settings: Settings, places: list[Path], task: dict[str, Any]) -> dict[str, Any]:
    """One run, and the lines of the user's code that no seed rules."""
    files = _installed(settings)
    with watched(lambda name: name in files or _is_below(name, places)) as found:
        first = story(settings, places)
    return {"first": first, "unseeded": sorted(found)}


def _run(settings: Settings, places: list[Path], task: dict[str, Any]) -> dict[str, Any]:
    """A run in a folder, which waits before its last tick: it is there to be killed."""
    last = settings.simulation.ticks
    with Run.create(Path(task["folder"]), settings, scenario=places[0]) as run:
        for record in run.advance(last - 1):
            print(record["tick"], file=sys.__stdout__, flush=True)
        sys.stdin.readline()
    return {}


def _resume(settings: Settings, places: list[Path], task: dict[str, Any]) -> dict[str, Any]:
    """The run that was killed, up to its end."""
    said: list[str] = []
    with Run.open(Path(task["folder"]), say=said.append) as run:
        begun = run.tick
        for _ in run.advance(settings.simulation.ticks):
            pass
        return {"first": _story_of(run.bank), "begun": begun, "said": said}


_TASKS: dict[str, Callable[[Settings, list[Path], dict[str, Any]], dict[str, Any]]] = {
    "twice": _twice,
    "watch": _watch,
    "run": _run,
    "resume": _resume,
}


def story(settings: Settings, places: list[Path], anew: Iterable[int] = ()) -> Story:
    """A run in memory; after each tick in ``anew``, the world and the policy are made anew."""
    breaks = set(anew)
    with MemoryBank.ephemeral(settings) as bank:
        loop = _loop(bank, settings, places)
        for tick in range(1, settings.simulation.ticks + 1):
            loop.tick()
            if tick in breaks:
                loop = _loop(bank, settings, places)
        return _story_of(bank)


def _loop(bank: MemoryBank, settings: Settings, places: list[Path]) -> Loop:
    world = make_world(settings, *places)
    policy = make_policy(settings, world, Cassette(Path("none"), replay=True), *places)
    loop = Loop(bank, world, policy, settings.simulation.agent_ids())
    loop.begin(first_memories(settings))
    return loop


def _story_of(bank: MemoryBank) -> Story:
    fields = ("tick", "metrics", "state_hash")
    return {
        "ticks": [{key: row[key] for key in fields} for row, _ in bank.ticks.records()],
        "memories": {
            agent: [[each.created_tick, each.content] for each in bank.agent(agent).all()]
            for agent in bank.agents()
        },
        "world": bank.ticks.state()["world"],
    }


def _installed(settings: Settings) -> set[str]:
    """The files of installed modules that the settings name."""
    names = (settings.simulation.world or "", settings.simulation.policy)
    modules = [WORLDS.get(name, name).partition(":")[0] for name in names if name]
    files = set()
    for module in modules:
        with contextlib.suppress(ImportError):  # it lies in one of the places
            spec = importlib.util.find_spec(module)
            files |= {spec.origin} if spec is not None and spec.origin else set()
    return files


def _is_below(name: str, places: list[Path]) -> bool:
    path = Path(name)
    return "site-packages" not in path.parts and any(map(path.is_relative_to, places))


def ticks_to_break_at(settings: Settings) -> list[int]:
    """Some ticks in which a world is made anew, drawn from the run's seed."""
    ticks = range(1, settings.simulation.ticks)
    streams = Streams(settings.seed, ())
    streams.begin(0)
    return sorted(streams.world.sample(ticks, min(5, len(ticks))))
