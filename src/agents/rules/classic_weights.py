"""The weights of the score of the generative agents.

This is a setting. It is not in :mod:`.classics`, because to load settings loads no NumPy.
"""

from typing import NamedTuple


class Generative(NamedTuple):
    """How recency, importance and relevance make one score."""

    decay: float
    """What an hour without an access leaves of a memory's recency."""
    recency: float
    importance: float
    relevance: float
