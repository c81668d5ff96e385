"""A Markdown note as the journal has it: its text, and the memories that stand for its parts."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

__all__ = ["Note"]


class Note(NamedTuple):
    """A note's text, and where its chunks are."""

    text: str
    chunks: tuple[tuple[int, int, int], ...]
    """For each chunk the memory's sequence number, its first and its last line."""
    digest: bytes
    """A hash over both."""

    @classmethod
    def of(cls, text: str, chunks: Iterable[Sequence[int]]) -> Self:
        """The note with this text and these chunks."""
        places = tuple([(sequence, first, last) for sequence, first, last in chunks])
        return cls(text, places, hashlib.sha256(f"{places}{text}".encode()).digest())

    def lines_of(self, sequence: int) -> tuple[int, int] | None:
        """The lines that a memory stands for; None if it is no part of this note."""
        for number, first, last in self.chunks:
            if number == sequence:
                return first, last
        return None
