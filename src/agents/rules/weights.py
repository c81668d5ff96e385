"""The weights of scores, which are settings.

They are in a file of their own, because to load settings loads no NumPy.
"""

from typing import Annotated, NamedTuple, TypeAlias

from .bounds import Share, Within

_Weight: TypeAlias = Annotated[float, Within(0, 100)]


class Generative(NamedTuple):
    """How recency, importance and relevance make one score."""

    decay: Annotated[float, Within(above=0, most=1)] = 0.995
    """What an hour (clock.ticks_per_day / 24 ticks) without an access leaves of a memory's
    recency."""
    recency: _Weight = 1
    """The weight of recency. Not all three weights are 0."""
    importance: _Weight = 1
    """The weight of importance."""
    relevance: _Weight = 1
    """The weight of relevance: how well the memory matches."""


class Spread(NamedTuple):
    """What memories of a session lend each other, as shares of their scores."""

    question: Share = 0.5
    """What a question lends to the memory after it, where the answer stands."""
    neighbours: Share = 0.2
    """What a memory lends to the memory before it, and to the memory after the next."""
    session: Share = 0.8
    """What the three best memories of a session together lend to each of its memories."""
    asked: Share = 0.8
    """What a question that was answered keeps of its own score."""
    speaker: Share = 0.02
    """Added to a memory where the query names its speaker, and no other speaker."""

    @property
    def scale(self) -> float:
        """The divisor of a sum: a memory keeps its score if its context matches half as well."""
        return 1.0 + (self.question + 2 * self.neighbours + self.session) / 2
