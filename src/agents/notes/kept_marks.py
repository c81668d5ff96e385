"""The marks near the ends of notes that an open bank remembers from one append to the next."""

from collections.abc import Iterable

from ..storage.note import Note
from .marks import Mark

Marks = dict[tuple[str, str], tuple[frozenset[bytes], object]]
"""By agent and path: a mark, and the digests of the versions of the note that it is of."""

_MOST = 1000
"""Without its mark, a note is looked through once more."""


def keep_mark(marks: Marks, key: tuple[str, str], versions: Iterable[Note], mark: Mark) -> None:
    """Remember a mark of these versions of a note: if a transaction is undone, the old one counts.

    The mark that was not needed for the longest time is dropped for it.
    """
    marks.pop(key, None)
    marks[key] = frozenset(each.digest for each in versions), mark
    while len(marks) > _MOST:
        del marks[next(iter(marks))]


def kept_mark(marks: Marks, key: tuple[str, str], note: Note) -> Mark | None:
    """The mark of this version of a note; None if the note has changed otherwise, or is unknown."""
    digests, mark = marks.get(key, (frozenset(), None))
    return mark if isinstance(mark, Mark) and note.digest in digests else None
