"""How alike a question and memories are, whatever other memories there are."""

from collections.abc import Sequence

import numpy as np

from ..memory.records import Memory
from ..storage.state.state import State
from ..storage.vectors import Quantised, norms, products
from .ranker import similarities

_DIGITS = 9
"""A root that was rounded must not keep a memory from being like its own text."""


def likenesses(
    resident: State, query: str, asked: Quantised, memories: Sequence[Memory]
) -> list[float]:
    """The likeness of each memory to a query with the vector ``asked``, from 0 to 1.

    It is the cosine of both vectors, with all words of the query alike; without a vector, the
    share of words that both have. A memory's own text gives 1.
    """
    return [_likeness(resident, query, asked, memory) for memory in memories]


def _likeness(resident: State, query: str, asked: Quantised, memory: Memory) -> float:
    vector = resident.vector(memory.agent_id, memory.sequence)
    if asked.any() and vector.any():
        return round(float(similarities(vector[None], asked)[0]), _DIGITS)
    own, theirs = (set(text.casefold().split()) for text in (query, memory.content))
    return round(2 * len(own & theirs) / max(1, len(own) + len(theirs)), _DIGITS)


def cosines(resident: State, asked: Quantised, memories: Sequence[Memory]) -> list[float]:
    """The cosine of the vector ``asked`` and each memory's, below 0 too; 0 without a vector."""
    if not memories or not asked.any():
        return [0.0] * len(memories)
    vectors = np.stack([resident.vector(each.agent_id, each.sequence) for each in memories])
    lengths = norms(vectors) * norms(asked[None])[0]
    return [round(each, _DIGITS) for each in (products(vectors, asked) / lengths).tolist()]
