"""Mesa's Schelling model with memory: agents don't go back to where they were unhappy.

    python simulations/mesa/schelling.py runs/schelling
    tiermem show runs/schelling

It needs Mesa 3.3 or later: pip install 'tiermem[mesa]'.
"""

import sys

from mesa.examples.basic.schelling import model as example
from mesa.examples.basic.schelling.agents import SchellingAgent

from tiermem.mesa import Memories


class RememberingAgent(SchellingAgent):
    """Moves as the example's agent does, but not to a place of which it has a bad memory."""

    def step(self):
        """Move if unhappy, and remember why."""
        if self.happy:
            return
        self.memory.add(
            f"I was unhappy at {place(self.cell)}.", "important", {"place": place(self.cell)}
        )
        bad = {hit.memory.metadata.get("place") for hit in self.memory.recalled}
        grid = self.model.grid
        chosen = grid.select_random_empty_cell()
        for _ in range(10):
            if place(chosen) not in bad:
                break
            chosen = grid.select_random_empty_cell()
        self.cell = chosen


class RememberingSchelling(example.Schelling):
    """The example's model, with remembering agents in the places of its own."""

    def __init__(self, width=10, height=10, homophily=0.5, seed=7, folder=None, **settings):
        size = {"width": width, "height": height, "homophily": homophily}
        if hasattr(example, "SchellingScenario"):  # from Mesa 3.5 on
            super().__init__(scenario=example.SchellingScenario(**size, rng=seed))
        else:
            super().__init__(**size, seed=seed)
        self.memories = Memories(self, folder, metrics={"happy": "happy"}, **settings)
        for agent in list(self.agents):
            cell = agent.cell
            agent.remove()
            RememberingAgent(self, cell, agent.type, agent.homophily, agent.radius)
        self.happy = 0
        self.agents.do("assign_state")

    def step(self):
        """One step of the example, which is one tick of the run."""
        with self.memories.step():
            self.memories.recall(lambda agent: None if agent.happy else "Where was I unhappy?")
            super().step()


def place(cell):
    """A cell as text."""
    return ",".join(str(int(number)) for number in cell.coordinate)


if __name__ == "__main__":
    model = RememberingSchelling(folder=sys.argv[1])
    while model.running and model.memories.tick < 50:
        model.step()
    summary = model.memories.close()
    print(f"{summary['metrics']['happy']} of {len(model.agents)} agents are happy")
    print(f"state {summary['state_hash'][:16]}, report in {model.memories.folder / 'report.html'}")
