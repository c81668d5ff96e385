"""Hashes over memories. An agent's state has their sum, so a change costs as much as it changes.

The use of a memory has a hash of its own: it changes with every tick, and texts are long.
"""

import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..memory.events import Additions, Start
from ..memory.metadata import KeptMetadata
from ..memory.records import Traits
from ..rules.lifetime import begun
from .full_record import Shelved

DIGEST = 32
"""Bytes of a hash."""
Places = NDArray[np.int32]
Limbs = NDArray[np.int64]
HEAD = struct.Struct("<10qdq")
"""The numbers that a :class:`Shelved` begins with, and how many bytes its text has."""
_NUMBERS = struct.Struct("<qqqd")


def of_memory(
    sequence: int,
    tier: int,
    temperature: int,
    created: int,
    entered: int,
    expires: int,
    content: str,
    vector: bytes,
    metadata: KeptMetadata | None,
    traits: Traits | None,
) -> bytes:
    """The hash over what a memory is, without its use."""
    text = content.encode()
    head = f"{sequence} {tier} {temperature} {created} {entered} {expires} {len(text)} ".encode()
    extra = metadata.json.encode() if metadata else b""
    if traits is not None:
        extra += traits.json.encode()
    return sha256(head + text + vector + extra).digest()


def of_new(new: Additions, tick: int, vectors: bytes) -> list[bytes]:
    """:func:`of_memory` of the memories added in one tick; ``vectors`` has theirs one by one."""
    size, join = len(vectors) // len(new.agents), b"".join
    known: dict[tuple[int, Start | None], tuple[str, bytes]] = {}
    marks = []
    for place, (_, sequence, tier, content, metadata, start) in enumerate(zip(*new, strict=True)):
        own = known.get((tier, start))
        if own is None:  # most memories of a tick begin alike
            heat, kinds, expires = begun(tier, start)
            head = f" {tier} {heat} {tick} {tick} {expires} "
            own = known[tier, start] = head, b"" if kinds is None else kinds.json.encode()
        text = content.encode()
        data = join(
            (
                f"{sequence}{own[0]}{len(text)} ".encode(), text,
                vectors[place * size : (place + 1) * size],
                b"" if metadata is None else metadata.json.encode(), own[1],
            )
        )  # fmt: skip
        marks.append(sha256(data).digest())
    return marks


def of_activity(sequence: int, count: int, last: int, use_record: float) -> bytes:
    """The hash over the use of a memory that was used at least once."""
    return sha256(_NUMBERS.pack(sequence, count, last, use_record)).digest()


def of_activities(
    sequences: NDArray[np.int64],
    counts: NDArray[np.int64],
    last: int | NDArray[np.int64],
    use_records: NDArray[np.float64],
) -> list[bytes]:
    """:func:`of_activity` of many memories; those used in one tick have one ``last``."""
    numbers = np.empty((len(sequences), 4), "<i8")
    numbers[:, 0], numbers[:, 1], numbers[:, 2] = sequences, counts, last
    numbers.view("<f8")[:, 3] = use_records
    data, size = numbers.tobytes(), _NUMBERS.size
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


def of_shelved(agent_id: str, record: Shelved) -> bytes:
    """The hash over all there is of a memory that is not resident."""
    return of_all_shelved(agent_id, [record])[0]


def of_all_shelved(agent_id: str, records: Sequence[Shelved]) -> list[bytes]:
    """:func:`of_shelved` of many memories of one agent."""
    owner, join, pack = agent_id.encode(), b"".join, HEAD.pack
    digests = []
    for record in records:
        recalls, traits, metadata, content, vector = record[11:]
        text = content.encode()
        parts = (
            pack(*record[:11], len(text)), owner, text, vector,
            b"" if metadata is None else metadata.json.encode(),
            b"" if traits is None else traits.json.encode(),
            repr(recalls).encode() if recalls else b"",
        )  # fmt: skip
        digests.append(sha256(join(parts)).digest())
    return digests


@final
class Marks:
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
