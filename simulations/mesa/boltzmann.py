"""Mesa's Boltzmann wealth model with memory: agents give to agents that gave to them.

    python simulations/mesa/boltzmann.py runs/boltzmann
    tiermem why runs/boltzmann --agent GratefulAgent_51 --tick 20

It needs Mesa 3.3 or later: pip install 'tiermem[mesa]'.
"""

import sys

from mesa.examples.basic.boltzmann_wealth_model import model as example
from mesa.examples.basic.boltzmann_wealth_model.agents import MoneyAgent

from tiermem.mesa import Memories


class GratefulAgent(MoneyAgent):
    """Gives a coin to an agent that gave one to it, if one of these is in its cell."""

    def give_money(self):
        """In place of MoneyAgent's: it chooses at random only among strangers."""
        mates = [agent for agent in self.cell.agents if agent is not self]
        if not mates:
            return
        givers = {hit.memory.metadata.get("giver") for hit in self.memory.recalled}
        friends = [agent for agent in mates if agent.memory.agent_id in givers]
        other = self.random.choice(friends or mates)
        other.wealth += 1
        self.wealth -= 1
        me = self.memory.agent_id
        self.memory.record_action("give", {"to": other.memory.agent_id})
        other.memory.add(f"{me} gave me a coin.", metadata={"giver": me})


class GratefulWealth(example.BoltzmannWealth):
    """The example's model, with grateful agents in the places of its own."""

    def __init__(self, n=50, seed=7, folder=None, **settings):
        if hasattr(example, "BoltzmannScenario"):  # from Mesa 3.5 on
            super().__init__(scenario=example.BoltzmannScenario(n=n, rng=seed))
        else:
            super().__init__(n=n, seed=seed)
        self.memories = Memories(self, folder, metrics={"gini": gini}, **settings)
        for agent in list(self.agents):
            GratefulAgent(self, agent.cell)
            agent.remove()

    def step(self):
        """One step of the example, which is one tick of the run."""
        with self.memories.step():
            self.memories.recall("Who gave me a coin?")
            super().step()


def gini(model):
    """How unequal the agents' wealth is."""
    wealth = sorted(agent.wealth for agent in model.agents)
    count = len(wealth)
    below = sum(own * (count - place) for place, own in enumerate(wealth))
    return 1 + 1 / count - 2 * below / (count * sum(wealth))


if __name__ == "__main__":
    model = GratefulWealth(folder=sys.argv[1])
    for _ in range(20):
        model.step()
    summary = model.memories.close()
    print(f"{summary['memories']} memories, gini {summary['metrics']['gini']:.3f}")
    print(f"state {summary['state_hash'][:16]}, report in {model.memories.folder / 'report.html'}")
