"""Sums of hashes, one for each agent, as rows of one array."""

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..digests import DIGEST, Limbs, limbs_of, number_of

__all__ = ["Sums"]

_MODULUS = 1 << 8 * DIGEST
_FEW = 16
"""Sums of fewer agents are changed one by one: Python is faster than NumPy there."""
_LOW = 0xFFFFFFFF


@final
class Sums:
    """For each agent, by its seat, a sum of hashes, and whether anybody made the sum.

    A sum is kept as the bytes that the hash over all agents needs: its lowest 256 bits. The sum of
    an agent that nobody gave one is 0.
    """

    __slots__ = ("_known", "_rows")

    def __init__(self) -> None:
        self._rows = np.zeros((0, DIGEST), np.uint8)
        self._known = np.zeros(0, bool)

    def __bool__(self) -> bool:
        """Whether anybody made a sum."""
        return len(self._known) > 0

    def knows(self, seat: int) -> bool:
        """Whether somebody made the sum of an agent."""
        return 0 <= seat < len(self._known) and self._known.item(seat)

    def which(self, seats: Sequence[int]) -> NDArray[np.bool_]:
        """Whether somebody made the sum, for each of these agents."""
        self._make_room(seats)
        known: NDArray[np.bool_] = self._known[seats]
        return known

    def of(self, seat: int) -> int:
        """The sum of an agent."""
        if not 0 <= seat < len(self._rows):
            return 0
        return int.from_bytes(self._rows[seat].tobytes(), "big")

    def total(self) -> int:
        """The sum over all agents."""
        limbs = limbs_of(self._rows.tobytes())
        return number_of(limbs.sum(axis=0).tolist())

    def digests(self, seats: Sequence[int], others: "Sums") -> bytes:
        """The bytes of each sum, with what ``others`` has for the agent added."""
        if others:
            return _rows_of(self.limbs(seats) + others.limbs(seats)).tobytes()
        self._make_room(seats)
        return self._rows[seats].tobytes()

    def limbs(self, seats: Sequence[int]) -> Limbs:
        """The sums of these agents, as numbers that NumPy can add."""
        self._make_room(seats)
        return limbs_of(self._rows[seats].tobytes())

    def put(self, seat: int, total: int) -> None:
        """This is the sum of an agent now."""
        self._make_room([seat])
        self._rows[seat] = np.frombuffer((total % _MODULUS).to_bytes(DIGEST, "big"), np.uint8)
        self._known[seat] = True

    def put_all(self, seats: Sequence[int], sums: Limbs) -> None:
        """These are the sums of these agents now."""
        self._make_room(seats)
        self._rows[seats] = _rows_of(sums)
        self._known[seats] = True

    def add(self, seat: int, more: int) -> None:
        """Add to the sum of an agent."""
        self.put(seat, self.of(seat) + more)

    def add_all(self, seats: Sequence[int], more: Limbs) -> None:
        """Add to the sums of these agents, each of which is there once, if anybody made them."""
        own = self.which(seats)
        if not own.all():
            seats, more = np.array(seats)[own].tolist(), more[own]
        if len(seats) < _FEW:
            for seat, limbs in zip(seats, more.tolist(), strict=True):
                self.add(seat, number_of(limbs))
        else:
            self._rows[seats] = _rows_of(self.limbs(seats) + more)

    def forget(self, seat: int) -> None:
        """Nobody has made the sum of an agent."""
        if self.knows(seat):
            self._known[seat] = False
            self._rows[seat] = 0

    def _make_room(self, seats: Sequence[int]) -> None:
        most = max(seats, default=-1) + 1
        if most > len(self._known):
            rows = np.zeros((most + most // 8, DIGEST), np.uint8)
            rows[: len(self._rows)] = self._rows
            known = np.zeros(len(rows), bool)
            known[: len(self._known)] = self._known
            self._rows, self._known = rows, known  # at once: an interrupt finds both or none


def _rows_of(sums: Limbs) -> NDArray[np.uint8]:
    """The lowest 256 bits of sums whose numbers are of any size, as bytes."""
    carried = np.zeros(len(sums), np.int64)
    rows = np.empty(sums.shape, ">u4")
    for place in range(sums.shape[1] - 1, -1, -1):
        carried += sums[:, place]
        rows[:, place] = carried & _LOW
        carried >>= 32
    return rows.view(np.uint8)
