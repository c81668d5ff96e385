"""Hashes over how memories were used.

Few memories of many are used, and a tick uses thousands. So a row of the table has the place of its
hash here, 0 for none, and the hashes of all that have one lie together.
"""

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = ["MARK", "Marks", "Places"]

MARK = 32
"""Bytes of a hash."""
Places = NDArray[np.int32]


@final
class Marks:
    """Hashes at places that are numbers from 1 on; at 0 is none, which is all zeros."""

    __slots__ = ("_digests", "_free", "_used")

    def __init__(self) -> None:
        self._digests = np.zeros((1, MARK), np.uint8)
        self._used = 1
        self._free: list[int] = []

    def __len__(self) -> int:
        return self._used - 1 - len(self._free)

    def exchange(self, places: Places, marks: Sequence[bytes]) -> NDArray[np.uint8]:
        """Put hashes at these places, no two alike, and give back what was there.

        For a 0 there is a new place, which is written into ``places``.
        """
        new = np.flatnonzero(places == 0)
        if len(new):
            places[new] = self._give_out(len(new))
        old: NDArray[np.uint8] = self._digests[places]
        self._digests[places] = np.frombuffer(b"".join(marks), np.uint8).reshape(-1, MARK)
        return old

    def take(self, places: Places) -> int:
        """The sum of the hashes at these places, which are free from now on, and 0 here."""
        own = places[places != 0]
        total = sum([int.from_bytes(each.tobytes(), "big") for each in self._digests[own]])
        self._digests[own] = 0
        self._free += own.tolist()
        places[:] = 0
        return total

    def _give_out(self, count: int) -> list[int]:
        again = self._free[len(self._free) - min(count, len(self._free)) :]
        del self._free[len(self._free) - len(again) :]
        first, self._used = self._used, self._used + count - len(again)
        if self._used > len(self._digests):
            larger = np.zeros((2 * self._used, MARK), np.uint8)
            larger[:first] = self._digests[:first]
            self._digests = larger
        return [*again, *range(first, self._used)]
