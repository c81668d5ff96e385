"""How much memories of a session lend each other.

This is a setting. It is not in :mod:`.session_spread`, because to load settings loads no NumPy.
"""

from typing import NamedTuple

__all__ = ["Spread"]


class Spread(NamedTuple):
    """What memories of a session lend each other, as shares of their scores."""

    question: float
    """A question, to the memory after it: that is where its answer stands."""
    neighbours: float
    """A memory, to the one before it, and to the one after the next."""
    session: float
    """The three best of a session, together, to each of it."""
    asked: float
    """What a question that was answered keeps of its own score."""
    speaker: float
    """Added where the query names the speaker, and no other."""

    @property
    def scale(self) -> float:
        """What a sum is divided by: where the context matches half as well as a memory itself, the
        memory keeps its score.
        """
        return 1.0 + (self.question + 2 * self.neighbours + self.session) / 2
