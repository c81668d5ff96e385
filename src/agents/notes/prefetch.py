"""Embeds the chunks of the next notes while the notes before them are stored."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

from ..errors import TierMemError
from ..storage.embedding.cache import CachedEmbedder
from .chunks import Chunk
from .growth import Growth

_CHUNKS_AT_ONCE = 512
"""How many chunks are embedded together, from one file or several."""
_GROUPS_AHEAD = 2
"""One group is being embedded, and one waits for its turn."""


class Changed(NamedTuple):
    """A note whose text has changed since it was indexed."""

    path: str
    text: str | None
    """The text on disk; None if the file is gone."""
    chunks: list[Chunk]
    growth: Growth | None = None
    """How the chunks change, if only the last ones were looked at."""


def embedded(embedder: CachedEmbedder, notes: Iterable[Changed]) -> Iterator[Changed]:
    """The same notes, each when the vectors of its chunks are known.

    An error of the embedder is not raised here; it is raised when the chunks are stored.
    """
    ahead: deque[tuple[list[Changed], Callable[[], None]]] = deque()
    with ThreadPoolExecutor(1, "tiermem-notes") as worker:
        for together in _groups(notes):
            texts = [each.text for note in together for each in note.chunks]
            ahead.append((together, embedder.begin(texts, worker)))
            if len(ahead) > _GROUPS_AHEAD:
                yield from _ready(*ahead.popleft())
        while ahead:
            yield from _ready(*ahead.popleft())


def _ready(together: list[Changed], finish: Callable[[], None]) -> list[Changed]:
    with suppress(TierMemError):
        finish()
    return together


def _groups(notes: Iterable[Changed]) -> Iterator[list[Changed]]:
    together: list[Changed] = []
    count = 0
    for note in notes:
        together.append(note)
        count += len(note.chunks)
        if count >= _CHUNKS_AT_ONCE:
            yield together
            together, count = [], 0
    if together:
        yield together
