"""Memories that became cold together, in columns: many at once cost a fraction of one by one."""

import json
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...memory.kinds import Traits
from ...memory.metadata import KeptMetadata
from ..digests import DIGEST, HEAD, of_many
from ..full_record import ColdFact, Shelved, Stored, traits_of
from ..vectors import Quantised

__all__ = ["WIDEST", "Leaving", "Pack"]

WIDEST = 2048
"""The numbers of a pack's memories lie less than this apart. Journals rely on it: who looks for one
memory looks at few packs, however many there are."""
_ABSENT = ""
"""In place of the JSON of what a memory doesn't have."""


class Leaving(NamedTuple):
    """Resident memories on their way to the shelf, in columns."""

    numbers: NDArray[np.int64]
    """A row per memory: what :class:`Shelved` begins with, relevance as its bits."""
    traits: Sequence[Traits | None]
    metadata: Sequence[KeptMetadata | None]
    contents: Sequence[str]
    vectors: Quantised

    def only(self, places: NDArray[np.intp]) -> "Leaving":
        """Some of them."""
        chosen = places.tolist()
        return Leaving(
            self.numbers[places],
            [self.traits[place] for place in chosen],
            [self.metadata[place] for place in chosen],
            [self.contents[place] for place in chosen],
            self.vectors[places],
        )


class Pack:
    """Cold memories of one agent, oldest first; it does not change.

    They are such that nobody has to look into packs for them: not critical, not expiring, never
    recalled.
    """

    __slots__ = ("_heads", "_size", "agent", "digests", "kinds", "metadata", "sequences", "texts",
                 "vectors")  # fmt: skip

    FEWEST = 64
    """So many leave together to be packed."""
    MOST = 256
    """Of so many is a pack at most: who wants one of them reads all."""
    LONGEST = 2000
    """Characters of a text or of metadata, for the same reason."""

    def __init__(
        self,
        agent: str,
        heads: bytes,
        digests: bytes,
        kinds: Sequence[str],
        metadata: Sequence[str],
        texts: Sequence[bytes],
        vectors: bytes,
    ) -> None:
        self.agent = agent
        self._heads = heads
        self.digests = digests
        self.kinds = kinds
        """The JSON of each memory's kind and tags."""
        self.metadata = metadata
        self.texts = texts
        self.vectors = vectors
        """Of all of them; of none, for who only looks at the rest."""
        self.sequences: list[int] = np.frombuffer(heads, "<i8")[:: HEAD.size // 8].tolist()
        self._size = len(vectors) // len(texts)

    @classmethod
    def of(cls, agent: str, leaving: Leaving) -> "Pack":
        """The pack of these memories."""
        texts = [content.encode() for content in leaving.contents]
        kinds = [_ABSENT if own is None else own.json for own in leaving.traits]
        metadata = [_ABSENT if own is None else own.json for own in leaving.metadata]
        heads = np.empty((len(texts), 12), "<i8")
        heads[:, :11] = leaving.numbers
        heads[:, 11] = list(map(len, texts))
        packed, vectors = heads.tobytes(), leaving.vectors.tobytes()
        digests = of_many(agent, packed, texts, vectors, metadata, kinds)
        return cls(agent, packed, digests, kinds, metadata, texts, vectors)

    def __len__(self) -> int:
        return len(self.texts)

    def place_of(self, sequence: int) -> int | None:
        """Where a memory is in it, if it is."""
        place = bisect_left(self.sequences, sequence)
        is_here = place < len(self.sequences) and self.sequences[place] == sequence
        return place if is_here else None

    @property
    def tiers(self) -> NDArray[np.int64]:
        """The tier of each memory."""
        return np.frombuffer(self._heads, "<i8")[1 :: HEAD.size // 8]

    def stored(self, place: int) -> Stored:
        """A memory, with the hash that was taken over it."""
        kinds, metadata = self.kinds[place], self.metadata[place]
        head = HEAD.unpack_from(self._heads, place * HEAD.size)
        record = Shelved._make(
            (
                *head[:11],
                (),
                traits_of(kinds) if kinds else None,
                KeptMetadata(json.loads(metadata)) if metadata else None,
                self.texts[place].decode(),
                self.vectors[place * self._size : (place + 1) * self._size],
            )
        )
        return Stored(record, self.digests[place * DIGEST : (place + 1) * DIGEST])

    def facts(self, gone: Collection[int]) -> Iterator[ColdFact]:
        """What rules look at, of those that are not gone."""
        for head, kinds in zip(HEAD.iter_unpack(self._heads), self.kinds, strict=True):
            sequence, tier, _, _, _, created, _, _, count, last, relevance, _ = head
            if sequence not in gone:
                own = traits_of(kinds) if kinds else None
                yield ColdFact(sequence, tier, created, count, last, relevance, 0, own)

    def only(self, places: Sequence[int]) -> "Pack":
        """The pack of these of its memories, which are at least one."""

        def part(data: bytes, size: int) -> bytes:
            return b"".join([data[place * size : (place + 1) * size] for place in places])

        return Pack(
            self.agent,
            part(self._heads, HEAD.size),
            part(self.digests, DIGEST),
            [self.kinds[place] for place in places],
            [self.metadata[place] for place in places],
            [self.texts[place] for place in places],
            part(self.vectors, self._size),
        )

    def total(self) -> int:
        """The sum of the hashes."""
        words = np.frombuffer(self.digests, ">u4").reshape(-1, DIGEST // 4)
        total = 0
        for word in words.sum(axis=0, dtype=np.uint64).tolist():
            total = (total << 32) + word
        return total

    # As bytes

    def parts(self) -> tuple[bytes, bytes, bytes, bytes]:
        """All that there is but the vectors, for :meth:`read`."""
        labels = json.dumps([_once(self.kinds), _once(self.metadata)], ensure_ascii=False)
        texts = b"\0".join(self.texts)  # no text has a NUL
        return self._heads, self.digests, labels.encode(), texts

    @classmethod
    def read(
        cls, agent: str, heads: bytes, digests: bytes, labels: bytes, texts: bytes, vectors: bytes
    ) -> "Pack":
        """The pack that gave these :meth:`parts`; the vectors may be missing."""
        members = texts.split(b"\0")
        kinds, metadata = (_each(len(members), *column) for column in json.loads(labels))
        return cls(agent, heads, digests, kinds, metadata, members, vectors)


def _once(values: Sequence[str]) -> tuple[list[str], list[int]]:
    """Each value once, and which of them each memory has, unless it is plain."""
    known = list(dict.fromkeys(values))
    if len(known) in (1, len(values)):
        return known, []
    places = {value: place for place, value in enumerate(known)}
    return known, [places[value] for value in values]


def _each(count: int, known: list[str], own: list[int]) -> list[str]:
    """The values that :func:`_once` was given."""
    if own:
        return [known[number] for number in own]
    return known if len(known) == count else known * count
