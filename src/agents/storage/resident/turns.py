"""The order in which an agent's memories entered the tiers that have a cap."""

from collections.abc import Iterable
from typing import NamedTuple

from ...memory.tiers import Tier
from ...rules.caps import Turn, entering


class Standing(NamedTuple):
    """Where a memory stands in its tier."""

    sequence: int
    tier: Tier
    tier_tick: int
    turn: Turn


def first_turn(sequence: int) -> Turn:
    """The turn of a memory in the tier that it began in."""
    return sequence, 0


class Turns(dict[int, Turn]):
    """By sequence number, the turns of memories that entered a tier from another one.

    All other memories have the turn of a new memory. ``state_hash()`` does not cover turns: the
    events of the journal say them, and journals of before turns keep their hashes.
    """

    newest = 0
    """The sequence number of the newest memory that an event added, if the table lacks it."""

    def standing(self, sequence: int, tier: Tier, tier_tick: int) -> Standing:
        """Where a memory that entered this tier in this tick stands there."""
        return Standing(sequence, tier, tier_tick, self.of(sequence))

    def enter(self, sequence: int, newest: int | None) -> None:
        """A memory enters a tier after ``newest`` was added; None stands for a tier without a cap.

        So the order is that of the events.
        """
        self.pop(sequence, None)
        if newest is not None:
            self[sequence] = entering(max(newest, self.newest), self.values())

    def of(self, sequence: int) -> Turn:
        """The turn of a memory."""
        return self.get(sequence) or first_turn(sequence)

    def take(self, sequence: int, place: int, number: int) -> None:
        """A memory takes over the turn of another one."""
        self[sequence] = place, number

    def forget(self, sequences: Iterable[int]) -> None:
        """These memories are gone for good."""
        for sequence in sequences:
            self.pop(sequence, None)
