"""How many examples a test tries: few while somebody works, more in CI, all of them on request.

The variable HYPOTHESIS_PROFILE says it: nothing, ``ci`` (`make test-all`), ``full``
(`make test-long`) or ``thorough``, which takes hours.
"""

import os
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["PROFILE", "examples", "number_by_profile", "some"]

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")
_T = TypeVar("_T")


def number_by_profile(default: int, ci: int, full: int, thorough: int | None = None) -> int:
    """The one of these numbers that the profile asks for."""
    most = full if thorough is None else thorough
    return {"default": default, "ci": ci, "full": full, "thorough": most}[PROFILE]


def examples(most: int) -> int:
    """How many examples of ``most`` a law is tried with that says so itself."""
    return number_by_profile(max(5, most // 5), max(6, most // 4), most)


def some(values: Sequence[_T], turn: int) -> Sequence[_T]:
    """All of them, and otherwise a part, another one in each turn."""
    step = number_by_profile(5, 3, 1)
    return values[turn % step :: step]
