"""Hashes over memories, and for each agent their sum, so that a change costs its own size.

The use of a memory has a hash of its own: it changes with every tick, and texts are long.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import final

import numpy as np
from numpy.typing import NDArray

from ...memory.metadata import KeptMetadata
from ...memory.records import Traits

DIGEST = 32
"""Bytes of a hash."""
Places = NDArray[np.int32]
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
    return np.frombuffer(data, ">u4").astype(np.int64).reshape(-1, DIGEST // 4)


def number_of(limbs: Sequence[int]) -> int:
    """The whole number that these numbers of 32 bits, or sums of such numbers, stand for."""
    a, b, c, d, e, f, g, h = limbs
    high, low = (((a << 32) + b << 32) + c << 32) + d, (((e << 32) + f << 32) + g << 32) + h
    return (high << 128) + low


def sums_of(
    marks: Sequence[bytes],
    counts: Sequence[int] | NDArray[np.intp],
    less: NDArray[np.uint8] | None = None,
) -> Limbs:
    """The sum of the hashes, less those of ``less``, for each run that is as long as its count."""
    limbs = limbs_of(marks)
    if less is not None:
        limbs -= less.view(">u4")
    sizes = np.array(counts, np.intp)
    firsts = sizes.cumsum() - sizes
    if sizes.all() and len(sizes):
        return np.add.reduceat(limbs, firsts, axis=0)
    sums, has_any = np.zeros((len(sizes), limbs.shape[1]), np.int64), sizes > 0
    if len(limbs):
        sums[has_any] = np.add.reduceat(limbs, firsts[has_any], axis=0)
    return sums


@final
class UseHashes:
    """Hashes over the use of memories, at places that are numbers from 1 on.

    Few memories are ever used, and a tick uses thousands. So a row of the table has the place of
    its hash here, and the hashes lie together. Place 0 stands for no hash, and is all zeros.
    """

    __slots__ = ("_digests", "_free", "_used")

    def __init__(self) -> None:
        self._digests = np.zeros((1, DIGEST), np.uint8)
        self._used = 1
        self._free: list[int] = []

    def __len__(self) -> int:
        return self._used - 1 - len(self._free)

    def exchange(self, places: Places, marks: Sequence[bytes]) -> NDArray[np.uint8]:
        """Put hashes at these places, and give back the hashes that were there.

        No place comes twice. A new place is found for a 0, and written into ``places``.
        """
        new = np.flatnonzero(places == 0)
        if len(new):
            places[new] = self._give_out(len(new))
        old: NDArray[np.uint8] = self._digests[places]
        self._digests[places] = np.frombuffer(b"".join(marks), np.uint8).reshape(-1, DIGEST)
        return old

    def take(self, places: Places) -> int:
        """The sum of the hashes at these places, which become free; ``places`` become 0."""
        own = places[places != 0]
        total = sum([int.from_bytes(each.tobytes(), "big") for each in self._digests[own]])
        self._digests[own] = 0
        places[:] = 0  # first: a place that is free must be nobody's
        self._free += own.tolist()
        return total

    def _give_out(self, count: int) -> list[int]:
        again = self._free[len(self._free) - min(count, len(self._free)) :]
        first, stop = self._used, self._used + count - len(again)
        if stop > len(self._digests):
            larger = np.zeros((2 * stop, DIGEST), np.uint8)
            larger[:first] = self._digests[:first]
            self._digests = larger
        del self._free[len(self._free) - len(again) :]
        self._used = stop  # last: there are digests at all places that were given out
        return [*again, *range(first, stop)]


_MODULUS = 1 << 8 * DIGEST
_FEW = 48
"""Sums of fewer agents are changed one by one: Python is faster than NumPy there."""
_LOW = 0xFFFFFFFF


@final
class Sums:
    """For each agent, by its slot, a sum of hashes, and whether anybody made the sum.

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
        """1 by the slot of each agent whose sum somebody made; empty if nobody made one."""
        self._waiting: dict[int, int] = {}

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
        if not 0 <= slot < len(self.known):
            return 0
        if self._waiting:
            self._settle()
        return int.from_bytes(self._data[DIGEST * slot : DIGEST * (slot + 1)], "big")

    def total(self) -> int:
        """The sum over all agents."""
        self._settle()
        limbs = limbs_of(bytes(self._data))
        return number_of(limbs.sum(axis=0).tolist())

    def digests(self, slots: Sequence[int], others: "Sums") -> bytes:
        """The bytes of each sum, with what ``others`` has for the agent added."""
        if len(slots) < _FEW:
            totals = [(self.of(slot) + others.of(slot)) % _MODULUS for slot in slots]
            return b"".join([total.to_bytes(DIGEST, "big") for total in totals])
        if others:
            return _rows_of(self.limbs(slots) + others.limbs(slots)).tobytes()
        self._settle()
        self._make_room(slots)
        return self._rows[slots].tobytes()

    def limbs(self, slots: Sequence[int]) -> Limbs:
        """The sums of these agents, as numbers that NumPy can add."""
        self._settle()
        self._make_room(slots)
        return limbs_of(self._rows[slots].tobytes())

    def put(self, slot: int, total: int) -> None:
        """This is the sum of an agent now."""
        self._settle()
        if slot < 0:
            raise IndexError("an agent that is not in the population has no sum")
        self._make_room([slot])
        data = (total % _MODULUS).to_bytes(DIGEST, "big")
        self._data[DIGEST * slot : DIGEST * (slot + 1)] = data
        self.known[slot] = 1

    def put_all(self, slots: Sequence[int], sums: Limbs) -> None:
        """These are the sums of these agents now."""
        self._settle()
        self._make_room(slots)
        if min(slots, default=0) < 0:
            raise IndexError("an agent that is not in the population has no sum")
        self._rows[slots] = _rows_of(sums)
        for slot in slots:
            self.known[slot] = 1

    def add(self, slot: int, more: int) -> None:
        """Add to the sum of an agent, which somebody made."""
        self._waiting[slot] = self._waiting.get(slot, 0) + more

    def add_all(self, slots: Sequence[int], more: Limbs) -> None:
        """Add to the sums of these agents, each of which is there once, if anybody made them."""
        self._make_room(slots)
        if len(slots) < _FEW:
            for slot, limbs in zip(slots, more.tolist(), strict=True):
                if self.known[slot]:
                    self.add(slot, number_of(limbs))
            return
        own = np.frombuffer(self.known, bool)[slots]
        if not own.all():
            slots, more = np.array(slots)[own].tolist(), more[own]
        self._rows[slots] = _rows_of(self.limbs(slots) + more)

    def forget(self, slot: int) -> None:
        """Nobody has made the sum of an agent."""
        if self.knows(slot):
            self._settle()
            self.known[slot] = 0
            self._data[DIGEST * slot : DIGEST * (slot + 1)] = bytes(DIGEST)

    def _settle(self) -> None:
        """Add what waits."""
        waiting, data = self._waiting, self._data
        for slot, more in waiting.items():
            own = slice(DIGEST * slot, DIGEST * (slot + 1))
            total = (int.from_bytes(data[own], "big") + more) % _MODULUS
            # At once: after an interrupt, nothing may be added twice.
            data[own], waiting[slot] = total.to_bytes(DIGEST, "big"), 0
        waiting.clear()

    def _make_room(self, slots: Sequence[int]) -> None:
        most = max(slots, default=-1) + 1
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
