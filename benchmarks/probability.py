"""How well `relevance_probability` is calibrated, on LoCoMo, and how its weights were fitted.

DATA is LoCoMo's file, as for `make quality`. Each question is asked of the whole conversation and
of parts of it that have an answer, from five turns on. The weights are fitted on all conversations
but one and checked on that one, in turn. Then the shipped weights are checked with other ways of
searching, which they were not fitted on, and on questions that have no answer.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import locomo
import numpy as np
from locomo import BadData, Conversation
from numpy.typing import NDArray
from report import Goal, console, goals, machine, table

from tiermem import MemoryBank
from tiermem.errors import TierMemError

Floats = NDArray[np.float64]

SIZES = (5, 10, 20, 40, 80, 160, 320, None)
"""How many turns are the memories; None: the whole conversation."""
MANY, FEW = 40, 12
"""How many parts of a conversation are taken, of fewer than 50 turns, and of more."""
GIVEN = 10
GOAL = 0.05
KEPT = 0.9
LIMITS = (0.35, 0.5, 0.65)
WAYS: Mapping[str, Mapping[str, Any]] = {
    "hybrid": {},
    "hybrid, without sessions": {"metadata": False},
    "keyword": {"retrieval": {"mode": "keyword"}},
    "vector": {"preset": "vector", "metadata": False},
    "weighted-sum": {"preset": "weighted-sum", "metadata": False},
    "hybrid, minilm": {"embedder": {"provider": "minilm"}},
    "quality": {"preset": "quality"},
}


class Asked(NamedTuple):
    """What searches gave, a row for each hit."""

    conversation: NDArray[np.intp]
    size: NDArray[np.intp]
    features: Floats
    """The root of how far the score stands out, how far the best one does, the logarithm of the
    number."""
    probability: Floats
    """What the hit says."""
    is_relevant: Floats
    best: dict[tuple[int, int], float]
    """The largest probability, by the conversation and the place of a question."""


def ask(
    conversations: Sequence[Conversation],
    sizes: Sequence[int | None],
    *,
    metadata: bool = True,
    **options: Any,
) -> Asked:
    """Ask the questions that parts of the conversations answer."""
    rng = np.random.default_rng(0)
    rows: list[tuple[float, ...]] = []
    best: dict[tuple[int, int], float] = {}
    for size in sizes:
        with MemoryBank.ephemeral(**options) as bank:
            for number, each in enumerate(conversations):
                whole = len(each.turns)
                few = whole if size is None else min(size, whole)
                starts = [0]
                if few < whole:
                    most = MANY if few < 50 else FEW
                    starts = rng.integers(0, whole - few + 1, most).tolist()
                for part, start in enumerate(starts):
                    agent = bank.agent(f"{number}_{part}")
                    agent.add_many(
                        (
                            turn.text,
                            "normal",
                            {"session": turn.session, "speaker": turn.speaker}
                            if metadata
                            else None,
                        )
                        for turn in each.turns[start : start + few]
                    )
                    for place, question in enumerate(each.questions):
                        answers = {turn - start for turn in question.evidence}
                        answers &= set(range(few))
                        if not answers:
                            continue
                        hits = agent.search(question.text, few, min_probability=0)
                        scores = np.array([hit.score for hit in hits])
                        scale = scores.std() or 1.0
                        out = (scores - scores.mean()) / scale
                        for hit, deviation in zip(hits[:GIVEN], out.tolist(), strict=False):
                            chance = hit.relevance_probability
                            is_relevant = hit.memory.sequence - 1 in answers
                            features = (max(deviation, 0) ** 0.5, out.max(), np.log(few))
                            rows.append((number, size or 0, *features, chance or 0.0, is_relevant))
                        if size is None:
                            best[number, place] = max(
                                hit.relevance_probability or 0 for hit in hits
                            )
        tell(f"{size or 'all'} memories: {len(rows):,} hits so far")
    columns = np.array(rows)
    whose, sizes_of = columns[:, 0].astype(np.intp), columns[:, 1].astype(np.intp)
    return Asked(whose, sizes_of, columns[:, 2:5], columns[:, 5], columns[:, 6], best)


def fit(features: Floats, is_relevant: Floats, weights: Floats) -> Floats:
    """A logistic regression by Newton's method; the last number stands alone."""
    matrix = np.column_stack([features, np.ones(len(features))])
    found = np.zeros(matrix.shape[1])
    for _ in range(60):
        chances = 1 / (1 + np.exp(-matrix @ found))
        bend = (matrix * (weights * chances * (1 - chances))[:, None]).T @ matrix
        slope = matrix.T @ (weights * (is_relevant - chances))
        found += np.linalg.solve(bend + np.eye(len(found)), slope - found)
    return found


def apply(weights: Floats, features: Floats) -> Floats:
    """The probabilities that these weights give."""
    chances: Floats = 1 / (1 + np.exp(-(features @ weights[:-1] + weights[-1])))
    return chances


def alike(asked: Asked) -> Floats:
    """Weights of rows by which each size counts the same."""
    result = np.zeros(len(asked.size))
    for size in set(asked.size.tolist()):
        rows = asked.size == size
        result[rows] = 10_000 / rows.sum()
    return result


def bins(chances: Floats, is_relevant: Floats) -> list[tuple[int, float, float]]:
    """For each tenth: how many, their mean probability, and the share that is relevant."""
    found = []
    for low, high in pairwise(np.arange(11) / 10):
        rows = (chances >= low) & ((chances < high) | (high == 1))
        if rows.any():
            found.append((int(rows.sum()), chances[rows].mean(), is_relevant[rows].mean()))
    return found


def error(chances: Floats, is_relevant: Floats) -> float:
    """The expected calibration error, over tenths."""
    return sum(n * abs(said - true) for n, said, true in bins(chances, is_relevant)) / len(chances)


def unanswerable(conversations: Sequence[Conversation]) -> list[float]:
    """The best probability of each question that is asked of another conversation."""
    found = []
    with MemoryBank.ephemeral() as bank:
        for number, each in enumerate(conversations):
            agent = bank.agent(f"other_{number}")
            agent.add_many(
                (turn.text, "normal", {"session": turn.session, "speaker": turn.speaker})
                for turn in each.turns
            )
            for question in conversations[number - 1].questions:
                hits = agent.search(question.text, GIVEN, min_probability=0)
                found.append(max(hit.relevance_probability or 0 for hit in hits))
    return found


def tell(line: str) -> None:
    """Say how far it is."""
    print(line, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the result is the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", metavar="DATA", type=Path, help="a file like locomo10.json")
    options = parser.parse_args(arguments)
    try:
        conversations = locomo.read(locomo.load(options.data), options.data)
    except BadData as reason:
        tell(f"probability: {reason}")
        return 2
    every = ask(conversations, SIZES)
    weights = alike(every)
    held = np.zeros(len(every.size))
    for number in range(len(conversations)):
        out = every.conversation == number
        own = fit(every.features[~out], every.is_relevant[~out], weights[~out])
        held[out] = apply(own, every.features[out])
    console.print(machine())
    shown = ", ".join(f"{each:.2f}" for each in fit(every.features, every.is_relevant, weights))
    console.print(f"fitted on all: {shown} (root of the deviation, best, log of the number, alone)")
    rows, reached = [], []
    for size in SIZES:
        part = every.size == (size or 0)
        off = error(held[part], every.is_relevant[part])
        reached.append(off)
        rows.append(
            [
                f"{size or 'all'} memories",
                f"{off:.3f}",
                f"{error(every.probability[part], every.is_relevant[part]):.3f}",
                f"{every.is_relevant[part].mean():.3f}",
            ]
        )
    heads = ["", "error, held out", "error, as shipped", "share that is relevant"]
    table(f"Expected calibration error of the {GIVEN} best hits", heads, rows)
    rows = [
        [f"{n:,} hits", f"{said:.2f}", f"{true:.2f}"]
        for n, said, true in bins(held, every.is_relevant)
    ]
    table("Reliability, held out, all sizes", ["", "said", "true"], rows)
    rows = []
    for name, way in WAYS.items():
        try:
            found = ask(conversations, [None], **way)
        except TierMemError as reason:
            tell(f"{name}: left out, {reason}")
            continue
        off = error(found.probability, found.is_relevant)
        reached.append(off)
        rows.append([name, f"{off:.3f}", f"{found.is_relevant.mean():.3f}"])
        if name == "hybrid":
            whole = found
    table("As shipped, whole conversations", ["", "error", "share that is relevant"], rows)
    answered, wrong = [], []
    for (number, place), chance in whole.best.items():
        category = conversations[number].questions[place].category
        (wrong if category == "adversarial" else answered).append(chance)
    least = float(np.quantile(answered, 1 - KEPT))
    limits = (least, *LIMITS)
    rows = [
        [name, *(f"{100 * float(np.mean(np.array(values) < limit)):.0f} %" for limit in limits)]
        for name, values in {
            "answerable": answered,
            "adversarial (about the wrong person)": wrong,
            "asked of another conversation": unanswerable(conversations),
        }.items()
        if values
    ]
    heads = ["min_probability", *(f"{limit:.2f}" for limit in limits)]
    table("Questions for which nothing is found", heads, rows)
    goals([Goal("largest calibration error", GOAL, max(reached), "")])
    return 0


if __name__ == "__main__":
    sys.exit(main())
