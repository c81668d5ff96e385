"""How many examples a law is tried with that says so itself."""

import os
from collections.abc import Sequence
from typing import TypeVar

_T = TypeVar("_T")


def examples(most: int) -> int:
    """``most`` of them, and a fifth of that where no profile asks for a thorough look."""
    return most if "HYPOTHESIS_PROFILE" in os.environ else max(5, most // 5)


def some(values: Sequence[_T], turn: int) -> Sequence[_T]:
    """All of them, and a fifth, another one in each turn, where no profile asks for more."""
    return values if "HYPOTHESIS_PROFILE" in os.environ else values[turn % 5 :: 5]
