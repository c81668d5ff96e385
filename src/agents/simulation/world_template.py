"""The files of a new world: a world, a policy, a scenario and a test that run as they are."""

import importlib.util
import keyword
from collections.abc import Mapping
from pathlib import Path

from ..errors import InvalidInput, RunError

_WORLD = '''\
"""NAME: travellers hear once where the well is, and get thirsty long after."""

from tiermem.simulation import Action, InvalidAction, Observation

PLACES = ("north", "south", "east", "west")


class CLASS:
    """The world. Its keyword arguments are the scenario's world_options."""

    actions = {"go": "go to a place: place"}  # what a language model can do here

    def __init__(self, *, thirst: int = 10):
        self.thirst = thirst

    def setup(self, rng, agent_ids):
        self.rng, self.tick, self.drinks = rng, 1, 0  # the run's first tick is tick 1
        self.well = rng.choice(PLACES)  # setup() draws it again when a run is resumed

    def observe(self, agent_id):
        if self.tick == 1:
            return Observation(f"The well is in the {self.well}", tier="pinned")
        if self.tick % self.thirst:
            wind = self.rng.stream("wind", agent_id)  # it shifts nobody else's draws
            return f"Sand, and the wind from the {wind.choice(PLACES)}"
        return Observation("I am thirsty. Where do I go?", facts={"thirsty": True})

    def apply(self, agent_id, action):
        if action.name != "go" or action.arguments.get("place") not in PLACES:
            raise InvalidAction(f"the only action is go, with a place: {', '.join(PLACES)}")
        self.drinks += action.arguments["place"] == self.well
        return f"I went {action.arguments['place']}"

    def end_tick(self):
        self.tick += 1

    def metrics(self):
        return {"drinks": self.drinks}

    def get_state(self):
        return {"tick": self.tick, "drinks": self.drinks}

    def set_state(self, state):
        self.tick, self.drinks = state["tick"], state["drinks"]


class CLASSPolicy:
    """How agents decide. What an agent knows is what comes to its mind: memories."""

    def decide(self, observation, memories, rng):
        if not observation.facts.get("thirsty"):
            return []
        known = [hit.memory.content for hit in memories if "well is in" in hit.memory.content]
        place = known[0].split()[-1] if known else rng.choice(PLACES)
        return [Action("go", {"place": place})]
'''
_SCENARIO = """\
# tiermem run NAME.yaml
seed: 7
simulation:
  world: NAME:CLASS
  world_options: {thirst: 10}
  policy: NAME:CLASSPolicy
  agents: [alice, bob]
  ticks: 100
"""
_TEST = '''\
"""Tests of the world NAME: run them with pytest. `tiermem world check NAME:CLASS` tries more."""

from NAME import CLASS, CLASSPolicy
from tiermem import MemoryBank
from tiermem.simulation import Loop


def play(ticks, seed=7):
    with MemoryBank.ephemeral(seed=seed) as bank:
        loop = Loop(bank, CLASS(), CLASSPolicy(), ["alice", "bob"])
        loop.begin()
        return [loop.tick() for _ in range(ticks)]


def test_nobody_forgets_where_the_well_is():
    assert play(40)[-1]["metrics"] == {"drinks": 8}  # two agents, thirsty in ticks 10, 20, 30, 40


def test_the_same_seed_gives_the_same_run():
    assert play(20) == play(20)
'''
_FILES: Mapping[str, str] = {
    "NAME.py": _WORLD,
    "NAME.yaml": _SCENARIO,
    "test_NAME.py": _TEST,
}


def new_world(name: str, folder: Path) -> list[Path]:
    """Write a world, its scenario and its test into ``folder``, and give their paths.

    If one of the files exists already, nothing is written.
    """
    _check_name(name)
    texts = {
        folder / file.replace("NAME", name): text.replace("NAME", name).replace(
            "CLASS", class_name(name)
        )
        for file, text in _FILES.items()
    }
    for path in texts:
        if path.exists() or path.is_symlink():
            raise RunError(f"{path} exists already", hint="choose another name, or another folder")
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    try:
        for path, text in texts.items():
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    return written


def _check_name(name: str) -> None:
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        raise InvalidInput(
            f"{name!r:.60} can't be the name of a module",
            hint="use letters, digits and _, such as night_market",
        )
    if name.startswith("test_") or importlib.util.find_spec(name) is not None:
        raise InvalidInput(
            f"{name!r:.60} would hide another module of that name", hint="choose another name"
        )


def class_name(name: str) -> str:
    """The name of a module's world: ``NightMarket`` for ``night_market``."""
    made = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    return made if made.isidentifier() else f"World{made}"
