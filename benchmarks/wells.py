"""A world whose effects are known: walkers, wells, luck and a superstition. See effects.py."""

from tiermem.simulation import Action, Observation, Remark

WELLS = ("north", "south", "east", "west")


class Wells:
    """One well has water; ``lift`` is the chance that a drink is one for the next walker, too."""

    def __init__(self, *, lift):
        self.lift = lift

    def setup(self, rng, agent_ids):
        self.rng, self.names, self.tick = rng, list(agent_ids), 1
        self.drinks, self.lifted, self.drank = 0, 0, []
        self.well = rng.choice(WELLS)

    def observe(self, agent_id):
        knows = Remark(f"The water is in the {self.well}", tier="pinned")
        heard = [knows, Remark("Bad luck walks left", tier="pinned")] if self.tick == 1 else []
        return Observation(
            "Where do I go?", heard=heard if agent_id != self.names[1] else heard[1:]
        )

    def apply(self, agent_id, action):
        found = action.arguments["well"] == self.well
        self.drinks += found
        if found:
            self.drank.append(agent_id)
        return f"I went {action.arguments['well']}"

    def end_tick(self):
        for name in self.drank:  # the next walker is lucky by chance, whatever it does
            after = self.names[(self.names.index(name) + 1) % len(self.names)]
            self.lifted += self.rng.stream("luck", after).random() < self.lift
        self.drank, self.tick = [], self.tick + 1

    def metrics(self):
        return {"drinks": self.drinks, "with_lifted": self.drinks + self.lifted}

    def get_state(self):
        return {"tick": self.tick, "drinks": self.drinks, "lifted": self.lifted}

    def set_state(self, state):
        self.tick, self.drinks, self.lifted = state["tick"], state["drinks"], state["lifted"]


class Walks:
    def decide(self, observation, memories, rng):
        texts = [hit.memory.content for hit in memories]
        known = [text.split()[-1] for text in texts if text.startswith("The water")]
        guess = rng.randrange(4)
        if any(text.startswith("Bad luck") for text in texts):
            guess = rng.randrange(4)  # another guess, no better and no worse
        return [Action("go", {"well": known[0] if known else WELLS[guess]})]
