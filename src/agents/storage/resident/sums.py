"""Sums of hashes, one for each agent, as rows of one array."""

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..digests import DIGEST, Limbs, limbs_of, number_of

_MODULUS = 1 << 8 * DIGEST
_FEW = 48
"""Sums of fewer agents are changed one by one: Python is faster than NumPy there."""
_LOW = 0xFFFFFFFF


@final
class Sums:
    """For each agent, by its seat, a sum of hashes, and whether anybody made the sum.

    A sum is kept as the bytes that the hash over all agents needs: its lowest 256 bits. What comes
    to the sums of a few agents waits until somebody asks for the bytes. The sum of an agent that
    nobody gave one is 0.
    """

    __slots__ = ("_data", "_rows", "_waiting", "known")

    def __init__(self) -> None:
        # One sum is read and written as bytes: to ask NumPy takes ten times as long.
        self._data = bytearray()
        self._rows = np.frombuffer(self._data, np.uint8).reshape(0, DIGEST)
        self.known = bytearray()
        """1 by the seat of each agent whose sum somebody made; empty if nobody made one."""
        self._waiting: dict[int, int] = {}

    def knows(self, seat: int) -> bool:
        """Whether somebody made the sum of an agent."""
        return 0 <= seat < len(self.known) and self.known[seat] == 1

    def knows_any(self, seats: Sequence[int]) -> bool:
        """Whether somebody made the sum of one of these agents."""
        self._make_room(seats)
        return any(map(self.known.__getitem__, seats))

    def unknown(self, seats: Sequence[int]) -> list[int]:
        """Those of these agents whose sums nobody made."""
        self._make_room(seats)
        known = self.known
        return [seat for seat in seats if not known[seat]]

    def of(self, seat: int) -> int:
        """The sum of an agent."""
        if not 0 <= seat < len(self.known):
            return 0
        if self._waiting:
            self._settle()
        return int.from_bytes(self._data[DIGEST * seat : DIGEST * (seat + 1)], "big")

    def total(self) -> int:
        """The sum over all agents."""
        self._settle()
        limbs = limbs_of(bytes(self._data))
        return number_of(limbs.sum(axis=0).tolist())

    def digests(self, seats: Sequence[int], others: "Sums") -> bytes:
        """The bytes of each sum, with what ``others`` has for the agent added."""
        if len(seats) < _FEW:
            totals = [(self.of(seat) + others.of(seat)) % _MODULUS for seat in seats]
            return b"".join([total.to_bytes(DIGEST, "big") for total in totals])
        if others:
            return _rows_of(self.limbs(seats) + others.limbs(seats)).tobytes()
        self._settle()
        self._make_room(seats)
        return self._rows[seats].tobytes()

    def limbs(self, seats: Sequence[int]) -> Limbs:
        """The sums of these agents, as numbers that NumPy can add."""
        self._settle()
        self._make_room(seats)
        return limbs_of(self._rows[seats].tobytes())

    def put(self, seat: int, total: int) -> None:
        """This is the sum of an agent now."""
        self._settle()
        if seat < 0:
            raise IndexError("an agent that is not in the population has no sum")
        self._make_room([seat])
        data = (total % _MODULUS).to_bytes(DIGEST, "big")
        self._data[DIGEST * seat : DIGEST * (seat + 1)] = data
        self.known[seat] = 1

    def put_all(self, seats: Sequence[int], sums: Limbs) -> None:
        """These are the sums of these agents now."""
        self._settle()
        self._make_room(seats)
        if min(seats, default=0) < 0:
            raise IndexError("an agent that is not in the population has no sum")
        self._rows[seats] = _rows_of(sums)
        for seat in seats:
            self.known[seat] = 1

    def add(self, seat: int, more: int) -> None:
        """Add to the sum of an agent, which somebody made."""
        self._waiting[seat] = self._waiting.get(seat, 0) + more

    def add_all(self, seats: Sequence[int], more: Limbs) -> None:
        """Add to the sums of these agents, each of which is there once, if anybody made them."""
        self._make_room(seats)
        if len(seats) < _FEW:
            for seat, limbs in zip(seats, more.tolist(), strict=True):
                if self.known[seat]:
                    self.add(seat, number_of(limbs))
            return
        own = np.frombuffer(self.known, bool)[seats]
        if not own.all():
            seats, more = np.array(seats)[own].tolist(), more[own]
        self._rows[seats] = _rows_of(self.limbs(seats) + more)

    def forget(self, seat: int) -> None:
        """Nobody has made the sum of an agent."""
        if self.knows(seat):
            self._settle()
            self.known[seat] = 0
            self._data[DIGEST * seat : DIGEST * (seat + 1)] = bytes(DIGEST)

    def _settle(self) -> None:
        """Add what waits."""
        waiting, data = self._waiting, self._data
        for seat, more in waiting.items():
            own = slice(DIGEST * seat, DIGEST * (seat + 1))
            total = (int.from_bytes(data[own], "big") + more) % _MODULUS
            # At once: after an interrupt, nothing may be added twice.
            data[own], waiting[seat] = total.to_bytes(DIGEST, "big"), 0
        waiting.clear()

    def _make_room(self, seats: Sequence[int]) -> None:
        most = max(seats, default=-1) + 1
        if most > len(self.known):
            size = most + most // 8
            known, data = bytearray(size), bytearray(DIGEST * size)
            known[: len(self.known)], data[: len(self._data)] = self.known, self._data
            rows = np.frombuffer(data, np.uint8).reshape(-1, DIGEST)
            # At once: an interrupt finds all or none.
            self.known, self._data, self._rows = known, data, rows


def _rows_of(sums: Limbs) -> NDArray[np.uint8]:
    """The lowest 256 bits of sums whose numbers are of any size, as bytes."""
    carried = np.zeros(len(sums), np.int64)
    rows = np.empty(sums.shape, ">u4")
    for place in range(sums.shape[1] - 1, -1, -1):
        carried += sums[:, place]
        rows[:, place] = carried & _LOW
        carried >>= 32
    return rows.view(np.uint8)
