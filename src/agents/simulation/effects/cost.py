"""What an experiment with a language model asks for, before anybody pays for it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...memory.context import approximate_tokens
from ..policies.cassette import Cassette
from ..runs.folder import read_folder


class Cost(NamedTuple):
    """What an experiment asks a language model, if each branch asks as often as the run did.

    It is less where prompts are the same, and more where a branch asks, reflects or retries more
    often. Numbers of tokens are rough: four characters are a token.
    """

    branches: int
    """How many branches and fresh runs there are, the branch without a change included."""
    ticks: int
    """How many ticks they have in all."""
    calls: int
    """If each prompt after the branching tick is another; a retry counts once more."""
    prompt_tokens: int
    reply_tokens: int


def cost_of(run: Path, at: int, until: int, seeds: int, futures: int) -> Cost:
    """The cost of a change after ``at``, by the calls that the run itself made."""
    after, whole = until - at, until
    branches = 2 + 2 * (seeds - 1) + 2 * (futures - 1)
    ticks = 2 * after + (seeds - 1) * (whole + after) + (futures - 1) * 2 * after
    asked = _asked(run)
    late, every = _sums(asked, at), _sums(asked, -1)
    # The branch without a change asks nothing; that with one at most what the run asked.
    sums = [
        one + (seeds - 1) * (both + one) + (futures - 1) * 2 * one
        for one, both in zip(late, every, strict=True)
    ]
    return Cost(branches, ticks, *sums)


def cost_of_removals(run: Path, begins: Sequence[int], until: int, futures: int) -> Cost:
    """The cost of removing memories in turn, each after its tick, in so many futures."""
    if not begins:
        return Cost(0, 0, 0, 0, 0)
    # A removal is a branch, and two in each other future; one branch has no change at all.
    arms = 2 * futures - 1
    ticks = until - min(begins) + arms * sum(until - begin for begin in begins)
    asked = _asked(run)
    late = [_sums(asked, begin) for begin in begins]
    sums = [arms * sum(each) for each in zip(*late, strict=True)]
    return Cost(1 + arms * len(begins), ticks, *sums)


def _asked(run: Path) -> list[tuple[int, int, int]]:
    """The tick, and the tokens of prompt and reply, of each call that the run made."""
    settings, _ = read_folder(run)
    if settings.simulation.policy != "llm":
        return []
    return [
        (
            exchange.tick,
            approximate_tokens(json.dumps([dict(each) for each in exchange.messages])),
            approximate_tokens(exchange.reply or ""),
        )
        for exchange in Cassette(run / "cassette.jsonl", replay=True)
    ]


def _sums(asked: Sequence[tuple[int, int, int]], after: int) -> tuple[int, int, int]:
    """How many calls there were after a tick, and the tokens of their prompts and replies."""
    late = [each for each in asked if each[0] > after]
    return len(late), sum(each[1] for each in late), sum(each[2] for each in late)
