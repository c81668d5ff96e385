"""A language model's own chance: what its answers change when nothing else does.

A prompt that a change touches is answered anew, and the old prompt might have got another answer,
too. The placebo is the run as it was, asked anew: what differs there is the model's chance, and
nothing else. See docs/architecture/effects.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...memory.words import counted, first_of
from ..runs.record import RunRecord
from ..statistics import LEVEL
from .stories import Story, compare, story_of

TOLD_APART = "told apart from the model's own chance"
NOT_TOLD_APART = "not told apart from the model's own chance"
ALIKE = "the model answered alike when it was asked anew"
"""There was no chance to see, and too few pairs for an interval."""


class Placebo(NamedTuple):
    """How the run itself goes if the model is asked anew, and nothing else is changed."""

    decisions: int
    """How many there are after the branching tick."""
    differing: int
    """How many of them are other decisions than in the run."""
    reached: int
    """How many agents came to perceive, be given, do or remember something else."""


def placebo_of(folder: Path, was: Story, at: int) -> Placebo:
    """How the placebo in this folder differs from the run as it was."""
    with RunRecord.read(folder) as run:
        story = story_of(run, at)
    steps, _, reached = compare(was, story)
    decisions = sum(map(len, story.values()))
    return Placebo(decisions, sum(step.did for step in steps), len(reached))


def with_chance(
    statistics: Sequence[Mapping[str, Any]],
    pairs: Sequence[Mapping[str, Any]],
    placebo: Placebo | None,
) -> list[dict[str, Any]]:
    """The statistics, each with the placebo's differences and whether the change's are others.

    A change is told apart from the model's chance by the paired t test of its differences: with
    equal prompts answered alike, chance alone makes them as often positive as negative.
    """
    result = []
    for row in statistics:
        differences = [
            pair["placebo_difference"]
            for pair in pairs
            if pair["metric"] == row["metric"] and "placebo_difference" in pair
        ]
        is_alike = placebo is not None and not placebo.reached and not any(differences)
        result.append(
            {
                **row,
                "placebo_n": len(differences),
                "placebo_least": min(differences, default=None),
                "placebo_most": max(differences, default=None),
                "verdict": _verdict(row, is_alike=is_alike),
            }
        )
    return result


def _verdict(row: Mapping[str, Any], *, is_alike: bool) -> str:
    if row["p_holm"] is not None:
        return TOLD_APART if row["p_holm"] <= 1 - LEVEL else NOT_TOLD_APART
    return ALIKE if is_alike and row["mean"] else NOT_TOLD_APART


def verdicts(statistics: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """For each verdict the metrics that have it, in words; none without a language model."""
    for verdict in (TOLD_APART, ALIKE, NOT_TOLD_APART):
        names = [str(row["metric"]) for row in statistics if row.get("verdict") == verdict]
        if names:
            yield f"{first_of(names)}: {verdict}"


def placebo_told(placebo: Placebo) -> str:
    """What the placebo did, in words."""
    others = counted(placebo.decisions, "decision")
    return (
        f"placebo: the model asked anew without the change, {placebo.differing:,} of {others} "
        f"are others, and {counted(placebo.reached, 'agent')} reached"
    )
