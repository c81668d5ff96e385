"""The weights of scores, which are settings.

They are in a file of their own, because to load settings loads no NumPy.
"""

from typing import NamedTuple


class Generative(NamedTuple):
    """How recency, importance and relevance make one score."""

    decay: float
    """What an hour without an access leaves of a memory's recency."""
    recency: float
    importance: float
    relevance: float


class Spread(NamedTuple):
    """What memories of a session lend each other, as shares of their scores."""

    question: float
    """What a question lends the memory after it, which has its answer."""
    neighbours: float
    """What a memory lends the memory before it, and the memory after the next."""
    session: float
    """What the three best memories of a session together lend each memory of it."""
    asked: float
    """What an answered question keeps of its own score."""
    speaker: float
    """What is added if the query names the speaker, and no other speaker."""

    @property
    def scale(self) -> float:
        """The divisor of a sum: a memory keeps its score if its context matches half as well."""
        return 1.0 + (self.question + 2 * self.neighbours + self.session) / 2
