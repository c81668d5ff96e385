"""What an experiment with a language model asks for, before anybody pays for it."""

import json
from pathlib import Path
from typing import NamedTuple

from ...memory.context import approximate_tokens
from ..policies.cassette import Cassette
from ..runs.folder import read_folder

__all__ = ["Cost", "cost_of"]


class Cost(NamedTuple):
    """The most that an experiment asks a language model; a prompt that is the same costs nothing.

    Numbers of tokens are rough: four characters are a token.
    """

    branches: int
    """How many branches and fresh runs there are, the branch without a change included."""
    ticks: int
    """How many ticks they have in all."""
    calls: int
    """At most, if each prompt after the branching tick is another; a retry counts once more."""
    prompt_tokens: int
    reply_tokens: int


def cost_of(run: Path, at: int, until: int, seeds: int, futures: int) -> Cost:
    """The cost of a change after ``at``, by the calls that the run itself made."""
    settings, _ = read_folder(run)
    after, whole = until - at, until
    branches = 2 + 2 * (seeds - 1) + 2 * (futures - 1)
    ticks = 2 * after + (seeds - 1) * (whole + after) + (futures - 1) * 2 * after
    if settings.simulation.policy != "llm":
        return Cost(branches, ticks, 0, 0, 0)
    late, every = [0, 0, 0], [0, 0, 0]
    for exchange in Cassette(run / "cassette.jsonl", replay=True):
        prompt = approximate_tokens(json.dumps([dict(each) for each in exchange.messages]))
        told = (1, prompt, approximate_tokens(exchange.reply or ""))
        for place, amount in enumerate(told):
            every[place] += amount
            late[place] += amount if exchange.tick > at else 0
    # The branch without a change asks nothing; that with one at most what the run asked.
    sums = [
        one + (seeds - 1) * (both + one) + (futures - 1) * 2 * one
        for one, both in zip(late, every, strict=True)
    ]
    return Cost(branches, ticks, *sums)
