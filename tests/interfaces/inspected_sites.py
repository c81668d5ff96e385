"""Runs for the tests of the inspector, and a way to ask for its answers."""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from agents.config.load import load_settings
from agents.interfaces.http.server import address, listen
from agents.interfaces.inspector.inspection import Inspection
from agents.interfaces.inspector.parameters import Reading
from agents.interfaces.inspector.server import Inspector, new_token, serve
from agents.simulation.runs.run import Run
from waiting import LONG

SIMULATIONS = Path(__file__).parents[2] / "simulations"


def make_run(folder: Path, world: str, ticks: int, **simulation: object) -> Path:
    """A finished run of a built-in world."""
    settings = {
        "seed": 5,
        "storage": {"sync": "manual"},
        "temperature": {"hot_max_facts": 2},
        "simulation": {"world": world, "agents": 5, "ticks": ticks, **simulation},
    }
    with Run.create(folder, load_settings(settings)) as run:
        for _ in run.advance(ticks):
            pass
    return folder


_WELLS = '''
from tiermem.simulation import Action, Ask, Observation, Remark

class Wells:
    """All share a board; bob hears of the north well in tick 1."""
    def setup(self, rng, agent_ids):
        self.tick = 1
    def groups(self):
        return {"guild": ["ann", "bob"]}
    def observe(self, agent_id):
        told = self.tick == 1 and agent_id == "bob"
        heard = [Remark("the north well is dry", speaker="ann")] if told else []
        return Observation("A new day.", query="birthday cake", heard=heard)
    def apply(self, agent_id, action):
        return "I drank"
    def end_tick(self):
        self.tick += 1
    def metrics(self):
        return {}
    def get_state(self):
        return {"tick": self.tick}
    def set_state(self, state):
        self.tick = state["tick"]

class Asks:
    """Ann posts in tick 2; both ask before they go."""
    def decide(self, observation, memories, rng):
        if not observation.answers:
            return [Ask("is the north well dry?", 2, groups=True)]
        actions = [Action("go", {"where": "south"})]
        if observation.tick == 2 and observation.agent_id == "ann":
            content = "the old well is dry"
            actions.append(Action("post_to_group", {"group": "guild", "content": content}))
        return actions
'''


def make_wells(place: Path) -> Path:
    """A run of 4 ticks in which two agents have a query of their own, ask, and share a board."""
    (place / "wells.py").write_text(_WELLS)
    world = {"world": "wells:Wells", "policy": "wells:Asks", "agents": ["ann", "bob"], "ticks": 4}
    values = {"seed": 7, "storage": {"sync": "manual"}, "simulation": world}
    with Run.create(place / "wells", load_settings(values), scenario=place) as run:
        for _ in run.advance(4):
            pass
    return place / "wells"


def ask(site: Inspection, name: str, /, **given: object) -> dict[str, Any]:
    """An answer; a question that comes too early is asked again, as the page does."""
    end = time.monotonic() + LONG
    texts: Mapping[str, str] = {key: str(value) for key, value in given.items()}
    while True:
        try:
            return site.answer(name, texts)
        except Reading:
            assert time.monotonic() < end
            time.sleep(0.02)


@contextlib.contextmanager
def looked_at(*folders: Path, **options: bool) -> Iterator[Inspection]:
    """A site over these folders."""
    with Inspection(folders, **options) as site:
        yield site


class Door(NamedTuple):
    """A page that is served, and a client of it."""

    url: str
    token: str
    client: httpx.Client

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.client.get(f"/{self.token}/{path}", **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.client.post(f"/{self.token}/{path}", **options)


@contextlib.contextmanager
def opened(folder: Path, **options: bool) -> Iterator[Door]:
    """The page over a folder, served by uvicorn in a thread."""
    token, stop = new_token(), threading.Event()
    with listen("127.0.0.1", 0) as sock, looked_at(folder, **options) as site:
        url = address("127.0.0.1", sock)
        page = Inspector(site, token, "127.0.0.1")
        thread = threading.Thread(target=serve, args=(page, sock, stop.is_set))
        thread.start()
        try:
            with httpx.Client(base_url=url, timeout=LONG, trust_env=False) as client:
                yield Door(url, token, client)
        finally:
            stop.set()
            thread.join()
