"""Nine of Mesa's own examples with memory: an agent that remembers to rest does nothing."""

import inspect
import random
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import mesa_models  # noqa: F401 - imports Mesa without its start method
from mesa import Model
from mesa.experimental.devs import ABMSimulator

from tiermem.mesa import Memories

REST = "Stay at home and rest."
SKY = "The sky is blue."
WATCHED = 3
"""So many agents remember what they see."""


class Example(NamedTuple):
    """A model of Mesa's, made small; what its agents do; and a number that describes it."""

    model: str
    options: Mapping[str, Any]
    acts: tuple[str, ...]
    metric: Callable[[Any], float]


def places(model: Any) -> float:
    """Where the agents are, in one number."""
    return sum(
        agent.unique_id * (agent.cell.coordinate[0] + 100 * agent.cell.coordinate[1])
        for agent in model.agents
    )


EXAMPLES = {
    "boids": Example(
        "basic.boid_flockers:BoidFlockers", {"population_size": 8, "width": 20, "height": 20},
        ("step",), lambda model: float(sum(agent.position.sum() for agent in model.agents)),
    ),
    "boltzmann": Example(
        "basic.boltzmann_wealth_model:BoltzmannWealth", {"n": 8, "width": 3, "height": 3},
        ("step",), lambda model: sum(each.wealth * each.unique_id for each in model.agents),
    ),
    "life": Example(
        "basic.conways_game_of_life:ConwaysGameOfLife",
        {"width": 5, "height": 5, "initial_fraction_alive": 0.5},
        ("determine_state", "assume_state"),
        lambda model: sum(each.state * each.unique_id for each in model.agents),
    ),
    "schelling": Example(
        "basic.schelling:Schelling", {"width": 5, "height": 5, "homophily": 0.7}, ("step",), places
    ),
    "virus": Example(
        "basic.virus_on_network:VirusOnNetwork", {"num_nodes": 10, "initial_outbreak_size": 3},
        ("step",), lambda model: sum(each.state.value * each.unique_id for each in model.agents),
    ),
    "rebellion": Example(
        "advanced.epstein_civil_violence:EpsteinCivilViolence", {"width": 6, "height": 6},
        ("step",), places,
    ),
    "prisoners": Example(
        "advanced.pd_grid:PdGrid", {"width": 4, "height": 4}, ("step",),
        lambda model: float(sum(each.score for each in model.agents)),
    ),
    "sugarscape": Example(
        "advanced.sugarscape_g1mt:SugarscapeG1mt", {"initial_population": 8},
        ("move",), lambda model: float(sum(each.sugar for each in model.agents
                                           if hasattr(each, "sugar"))),
    ),
    "wolves": Example(
        "advanced.wolf_sheep:WolfSheep",
        {"width": 8, "height": 8, "initial_sheep": 8, "initial_wolves": 1}, ("step",), places,
    ),
}  # fmt: skip


def make(example: Example, seed: int) -> Model:
    """The example's model; its first agent remembers to rest, and the sky."""
    module, _, name = example.model.partition(":")
    base = getattr(import_module(f"mesa.examples.{module}.model"), name)
    seeded = "seed" if "seed" in inspect.signature(base).parameters else "rng"

    class Remembering(base):  # type: ignore[misc,valid-type]
        def step(self) -> None:
            with self.memories.step():
                watched = list(self.agents)[:WATCHED]
                self.memories.recall("What shall I do today?", watched)
                for agent in watched:
                    texts = {hit.memory.content for hit in agent.memory.recalled}
                    for act in example.acts:
                        vars(agent).pop(act, None)
                        if REST in texts:
                            vars(agent)[act] = lambda: None
                super().step()
                for agent in watched:
                    agent.memory.record_observation(f"Day {self.steps}: {example.metric(self):g}.")

    options = dict(example.options)
    if "simulator" in inspect.signature(base).parameters:
        options["simulator"] = ABMSimulator()
    random.seed(seed)  # the virus spreads on a network that it draws from Python's own generator
    model = Remembering(**{seeded: seed}, **options)
    model.memories = Memories(model, metrics={"measure": example.metric})
    first = next(iter(model.agents))
    for text in (REST, SKY):
        first.memory.add(text, tier="pinned")
    return model


def maker(name: str) -> Callable[[int], Model]:
    """What makes an example, given a seed."""

    def example(seed: int) -> Model:
        return make(EXAMPLES[name], seed)

    return example
