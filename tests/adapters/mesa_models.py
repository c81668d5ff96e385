"""Models for the tests of the Mesa adapter. They run with every version from 3.3 on."""

import multiprocessing
import sys

from banks import ROOT

_started_by = multiprocessing.get_start_method(allow_none=True)
import mesa  # noqa: E402

# Mesa's batch runner sets the start method of the whole process.
multiprocessing.set_start_method(_started_by, force=True)

from tiermem.mesa import Memories  # noqa: E402

sys.path.append(str(ROOT / "simulations/mesa"))

QUICK = {"storage": {"sync": "manual"}}


class Walker(mesa.Agent):
    """Remembers whom it meets, and greets those whom it knows."""

    def step(self) -> None:
        others = [agent for agent in self.model.agents if agent is not self]
        if not others:
            return
        other = self.random.choice(others)
        known = {hit.memory.metadata.get("who") for hit in self.memory.recalled}
        name = other.memory.agent_id
        self.model.greetings += name in known
        self.memory.record_observation(f"I see {name}.")
        self.memory.add(f"I met {name} in the street.", metadata={"who": name})


class Town(mesa.Model):
    """Walkers meet at random. ``births`` says how many come with each step."""

    def __init__(self, n=4, seed=3, folder=None, births=0, **options):
        super().__init__(rng=seed)
        self.births = births
        self.greetings = 0
        options = {**QUICK, "metrics": {"greetings": "greetings"}, **options}
        self.memories = Memories(self, folder, **options)
        for agent in Walker.create_agents(self, n):
            agent.memory.add("I live here.", tier="pinned")
        self.datacollector = mesa.DataCollector(
            model_reporters=self.memories.reporters(),
            agent_reporters={"kept": lambda agent: agent.memory.kept.count()},
        )

    def step(self) -> None:
        with self.memories.step():
            self.memories.recall("Whom did I meet?")
            self.agents.shuffle_do("step")
            Walker.create_agents(self, self.births)
        self.datacollector.collect(self)


def walked(steps: int = 3, **options: object) -> Town:
    """A town after some steps."""
    town = Town(**options)
    for _ in range(steps):
        town.step()
    return town


class BatchTown(Town):
    """A town for ``batch_run``: each run has a folder of its own, named by its numbers."""

    def __init__(self, n=3, first=1, base="", rng=None):
        folder = (lambda seed: f"{base}/n{n}-{seed}") if base else None
        super().__init__(n=n, seed=first if rng is None else rng, folder=folder)
