"""What tests of a search by meaning and by words share."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agents import AgentMemory

Make = Callable[..., AgentMemory]

SMALL_TALK = [f"day {n} was mild" for n in range(60)]
WEATHER = [f"Agent_{n} said the weather on day {n} was mild" for n in range(30)]


class Ones:
    """Ones, but zeros for a text with the word zero; fails for one with the word broken."""

    name, dims, reproducible = "test/ones", 8, True
    fails = False

    def embed(self, texts: Sequence[str], /) -> Any:
        if self.fails and any("broken" in text for text in texts):
            raise RuntimeError("out of order")
        return np.array([np.zeros(8) if "zero" in text else np.ones(8) for text in texts])


def contents(hits: Any) -> list[str]:
    return [hit.memory.content for hit in hits]
