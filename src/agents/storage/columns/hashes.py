"""Hashes over memories, and for each agent their sum, so that a change costs its own size.

The use of a memory has a hash of its own: it changes with every tick, and texts are long.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import final

import numpy as np
from numpy.typing import NDArray

from ...memory.records import Traits
from ...memory.requests import KeptMetadata

DIGEST = 32
"""Bytes of a hash."""
_LIMBS = DIGEST // 4
_MODULUS = 1 << 8 * DIGEST
_LOW = 0xFFFFFFFF
_LARGE = 1 << 40
"""The numbers of a sum stay below, so that the sum over millions of agents fits 64 bits."""
Limbs = NDArray[np.int64]
_USE_BYTES = 32
"""Bytes of the numbers that the hash over a use is over."""


def of_memories(
    numbers: NDArray[np.int64],
    tiers: NDArray[np.int8],
    temperatures: NDArray[np.int8],
    contents: Sequence[str],
    vectors: NDArray[np.int8],
    metadata: Sequence[KeptMetadata | None],
    traits: Sequence[Traits | None],
) -> list[bytes]:
    """The hash over what each of these memories is, without its use.

    ``numbers`` begins with sequence number, tick of creation, of entering the tier, and of the end.
    """
    data, width, join = vectors.tobytes(), vectors.shape[1], b"".join
    hashes = []
    for start, sequence, tier, heat, created, entered, expires, content, own, kinds in zip(
        range(0, len(data), width),
        numbers[:, 0].tolist(),
        tiers.tolist(),
        temperatures.tolist(),
        *numbers[:, 1:4].T.tolist(),
        contents,
        metadata,
        traits,
        strict=True,
    ):
        text = content.encode()
        parts = (
            f"{sequence} {tier} {heat} {created} {entered} {expires} {len(text)} ".encode(), text,
            data[start : start + width],
            b"" if own is None else own.json.encode(),
            b"" if kinds is None else kinds.json.encode(),
        )  # fmt: skip
        hashes.append(sha256(join(parts)).digest())
    return hashes


def of_activities(
    sequences: NDArray[np.int64],
    counts: NDArray[np.int64],
    last: int | NDArray[np.int64],
    use_records: NDArray[np.float64],
) -> list[bytes]:
    """The hash over the use of each of these memories, which were used at least once.

    Memories that were used in one tick have one ``last``.
    """
    numbers = np.empty((len(sequences), 4), "<i8")
    numbers[:, 0], numbers[:, 1], numbers[:, 2] = sequences, counts, last
    numbers.view("<f8")[:, 3] = use_records
    data, size = numbers.tobytes(), _USE_BYTES
    return [sha256(data[place : place + size]).digest() for place in range(0, len(data), size)]


def limbs_of(marks: Sequence[bytes] | bytes) -> Limbs:
    """Hashes as rows of numbers of 32 bits, the highest first: NumPy can add these."""
    data = marks if isinstance(marks, bytes) else b"".join(marks)
    return np.frombuffer(data, ">u4").astype(np.int64).reshape(-1, _LIMBS)


def number_of(limbs: Limbs) -> int:
    """The whole number that numbers of 32 bits, or sums of such numbers, stand for."""
    total = 0
    for limb in limbs.tolist():
        total = (total << 32) + limb
    return total


def sums_of(hashes: Sequence[bytes], counts: Sequence[int] | NDArray[np.intp]) -> Limbs:
    """The sum of the hashes for each run that is as long as its count."""
    limbs, sizes = limbs_of(hashes), np.array(counts, np.intp)
    firsts = sizes.cumsum() - sizes
    if sizes.all() and len(sizes):
        return np.add.reduceat(limbs, firsts, axis=0)
    sums, has_any = np.zeros((len(sizes), limbs.shape[1]), np.int64), sizes > 0
    if len(limbs):
        sums[has_any] = np.add.reduceat(limbs, firsts[has_any], axis=0)
    return sums


@final
class Sums:
    """For each agent, by its slot, a sum of hashes, and whether anybody made the sum.

    A sum is a row of eight numbers of 32 bits, which are carried when somebody asks for the lowest
    256 bits, or before they are too large for 64 bits. So one call of NumPy adds to many sums. The
    sum of an agent that nobody gave one is 0.
    """

    __slots__ = ("_limbs", "known")

    def __init__(self) -> None:
        self._limbs: Limbs = np.zeros((0, _LIMBS), np.int64)
        self.known = bytearray()
        """1 by the slot of each agent whose sum somebody made; empty if nobody made one."""

    def knows(self, slot: int) -> bool:
        """Whether somebody made the sum of an agent."""
        return 0 <= slot < len(self.known) and self.known[slot] == 1

    def knows_any(self, slots: Sequence[int]) -> bool:
        """Whether somebody made the sum of one of these agents."""
        self._make_room(slots)
        return any(map(self.known.__getitem__, slots))

    def unknown(self, slots: Sequence[int]) -> list[int]:
        """Those of these agents whose sums nobody made."""
        self._make_room(slots)
        known = self.known
        return [slot for slot in slots if not known[slot]]

    def of(self, slot: int) -> int:
        """The sum of an agent."""
        return number_of(self._limbs[slot]) % _MODULUS if self.knows(slot) else 0

    def total(self) -> int:
        """The sum over all agents."""
        return number_of(self._limbs.sum(axis=0))

    def digests(self, slots: Sequence[int], others: "Sums") -> bytes:
        """The bytes of each sum, with what ``others`` has for the agent added."""
        return _carried(self.limbs(slots) + others.limbs(slots)).astype(">u4").tobytes()

    def limbs(self, slots: Sequence[int]) -> Limbs:
        """The sums of these agents, as numbers that NumPy can add."""
        self._make_room(slots)
        return self._limbs[slots]

    def put(self, slot: int, total: int) -> None:
        """This is the sum of an agent now."""
        self.put_all([slot], limbs_of((total % _MODULUS).to_bytes(DIGEST, "big")))

    def put_all(self, slots: Sequence[int], sums: Limbs) -> None:
        """These are the sums of these agents now."""
        if min(slots, default=0) < 0:
            raise IndexError("an agent that is not in the population has no sum")
        self._make_room(slots)
        self._limbs[slots] = _carried(sums)
        for slot in slots:
            self.known[slot] = 1

    def add(self, slot: int, more: int) -> None:
        """Add to the sum of an agent, if somebody made it."""
        self.add_all([slot], limbs_of((more % _MODULUS).to_bytes(DIGEST, "big")))

    def add_all(self, slots: Sequence[int], more: Limbs) -> None:
        """Add to the sums of these agents, each of which is there once, if anybody made them."""
        self._make_room(slots)
        is_known = np.frombuffer(self.known, bool)[slots]
        if not is_known.all():
            slots, more = np.array(slots)[is_known].tolist(), more[is_known]
        sums = self.limbs(slots) + more
        self._limbs[slots] = _carried(sums) if np.abs(sums).max(initial=0) > _LARGE else sums

    def forget(self, slot: int) -> None:
        """Nobody has made the sum of an agent."""
        if self.knows(slot):
            self.known[slot] = 0
            self._limbs[slot] = 0

    def _make_room(self, slots: Sequence[int]) -> None:
        most = max(slots, default=-1) + 1
        if most > len(self.known):
            size = most + most // 8
            known, limbs = bytearray(size), np.zeros((size, _LIMBS), np.int64)
            known[: len(self.known)], limbs[: len(self._limbs)] = self.known, self._limbs
            # At once: an interrupt finds both or none.
            self.known, self._limbs = known, limbs


def _carried(sums: Limbs) -> Limbs:
    """The lowest 256 bits of sums whose numbers are of any size, as numbers of 32 bits."""
    carried, result = np.zeros(len(sums), np.int64), np.empty_like(sums)
    for place in range(_LIMBS - 1, -1, -1):
        carried += sums[:, place]
        result[:, place] = carried & _LOW
        carried >>= 32
    return result
