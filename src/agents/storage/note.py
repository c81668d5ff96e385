"""A Markdown note in the journal: its text, and the memories that stand for its parts."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from os.path import commonprefix
from typing import NamedTuple, Self

from ..memory.records import Memory


class Note(NamedTuple):
    """A note's text, and where its chunks are."""

    text: str
    chunks: tuple[tuple[int, int, int], ...]
    """For each chunk the memory's sequence number, its first and its last line."""
    digest: bytes
    """A hash over the text and the chunks."""

    @classmethod
    def of(cls, text: str, chunks: Iterable[Sequence[int]]) -> Self:
        """The note with this text and these chunks."""
        places = tuple([(sequence, first, last) for sequence, first, last in chunks])
        return cls(text, places, hashlib.sha256(f"{places}{text}".encode()).digest())

    @property
    def token(self) -> str:
        """The beginning of the digest, which tells apart the versions of a note."""
        return self.digest.hex()[:16]

    def lines_of(self, sequence: int) -> tuple[int, int] | None:
        """The lines that a memory stands for; None if it is not a part of this note."""
        for number, first, last in self.chunks:
            if number == sequence:
                return first, last
        return None


def kept_of(old: Note | None, text: str | None) -> int:
    """The number of first characters of a note that stay when it gets another text."""
    if old is None or text is None:
        return 0
    if text.startswith(old.text):
        return len(old.text)
    return len(commonprefix([old.text, text]))  # noqa: RUF071  # of texts, not of paths


def is_transcript(path: str) -> bool:
    """Whether a path is that of a transcript of a session, which is only read."""
    return path.startswith("sessions/")


def is_of_note(memory: Memory) -> bool:
    """Whether a memory looks as if it stands, or stood, for a part of a note."""
    return memory.kind == "note" and isinstance(memory.metadata.get("path"), str)


def note_of(memory: Memory, notes: Mapping[str, Note]) -> str | None:
    """The path of the note that has a memory as one of its chunks, or None."""
    path = memory.metadata.get("path")
    if not isinstance(path, str) or path not in notes:
        return None
    return path if notes[path].lines_of(memory.sequence) else None
