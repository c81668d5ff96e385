"""What agents hold and who told it to whom, for the studies of a population at any tick."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import overload

import numpy as np

from ...simulation.analysis.collection import Collection, Earlier
from ...simulation.analysis.columns import Columns
from .slices import Slices


class Beliefs(Collection):
    """The events of a journal, without the texts of memories: the slices have them."""

    def __init__(self, seed: int, agents: Sequence[str]) -> None:
        self._words = array("q")
        self._earlier: list[str | None] = []
        """The texts of memories that are older than the journal: the slices lack them."""
        super().__init__(seed, agents)

    def before(self, earlier: Iterable[Earlier], *, is_whole: bool) -> None:
        """Take the memories that are older than the first commit, with their texts."""
        memories = list(earlier)
        self._earlier = [each.text for each in memories]
        super().before(memories, is_whole=is_whole)

    def keep_texts(self, texts: Sequence[str | None]) -> None:
        """Keep a number for each text."""
        self._words.extend(map(_number_of, texts))

    def up_to(self, tick: int, slices: Slices) -> Columns:
        """The columns up to a tick; the slices give the texts that are asked for."""
        columns = self.columns(tick)
        columns.words = np.array(self._words[: len(columns)], np.int64)
        columns.text = _Texts(columns, slices, self._earlier)
        return columns


def _number_of(text: str | None) -> int:
    """A number for a text: equal texts have equal numbers."""
    data = b"" if text is None else text.encode()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)


class _Texts(Sequence[str | None]):
    """The texts of memories, read when they are asked for."""

    def __init__(self, columns: Columns, slices: Slices, earlier: Sequence[str | None]) -> None:
        self._columns = columns
        self._slices = slices
        self._earlier = earlier

    def __len__(self) -> int:
        return len(self._columns)

    @overload
    def __getitem__(self, row: int) -> str | None: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[str | None]: ...
    def __getitem__(self, row: int | slice) -> str | Sequence[str | None] | None:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        if row < len(self._earlier):
            return self._earlier[row]
        columns = self._columns
        place = self._slices.places.get(columns.agents[int(columns.agent[row])], -1)
        return self._slices.text(place, int(columns.sequence[row]))

    def __iter__(self) -> Iterator[str | None]:
        return (self[row] for row in range(len(self)))
