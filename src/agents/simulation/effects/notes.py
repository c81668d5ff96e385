"""What a reader should know of an effect's figures."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import RunError
from .arms import Pair
from .interventions import Change, later_births


def notes_of_pairs(pairs: Sequence[Pair], compared: int) -> Iterator[str]:
    """How much the figures of these pairs say, of which so many were compared."""
    changed = pairs[0].changed
    if changed is not None and changed.stopped:
        yield (
            f"the changed branch ended after tick {changed.ended}, and is compared there: "
            f"{changed.stopped}"
        )
    if compared < len(pairs):
        yield f"{compared} of {len(pairs)} pairs have the change; the figures are of these alone"
    if compared == 1:
        yield "one run: the difference is exact in it, and says nothing of others"
    no_ops = sum(pair.changed.no_ops for pair in pairs if pair.changed is not None)
    before = sum(pair.was.no_ops for pair in pairs if pair.was is not None)
    if no_ops > before:
        yield f"{no_ops - before} more decisions had no answer of the language model: did nothing"


def notes_of_blocks(change: Change, *, has_changed: bool) -> Iterator[str]:
    """What a block keeps away, and whether it kept anything away."""
    blocked = [f"{rule['from']}→{rule['to']}" for rule in change.rules if rule["do"] == "block"]
    if blocked and has_changed:
        yield "a blocked remark is one whose speaker the world names"
    elif blocked:
        yield (
            f"nothing was blocked ({', '.join(blocked)}): after tick {change.at} no words reached "
            "that agent whose speaker the world names so"
        )


def notes_of_births(changed: Path, change: Change) -> list[str]:
    """What is never heard in its tick and comes later; an error if it comes in its tick."""
    notes = []
    for rule in change.rules:
        ticks = later_births(changed, rule) if rule["do"] == "never" else []
        if rule.get("tick") in ticks:
            raise RunError(
                f"{rule['agent']} got {rule['content']!r:.60} in tick {rule['tick']} all the same: "
                "it did not come by a way that can be blocked",
                hint="let the agent forget it instead: --forget",
            )
        notes += [
            f"{rule['agent']} gets the same text later, in tick {tick}: that is not kept away"
            for tick in ticks[:1]
        ]
    return notes
