"""How the text of a note comes to disk after its commit.

A version of a note is staged under two marks. The note's token tells whether the journal has this
version. The mark of the replaced text tells whether a person has changed the file since.
"""

import hashlib
import logging
from collections.abc import Callable
from functools import partial
from pathlib import PurePosixPath

from ..errors import NoteRefused
from ..storage.note import Note
from .files import NoteFiles, is_of_the_system

logger = logging.getLogger(__name__)

NOT_A_NOTE = "\0"
"""Stands for the text of a file that is not a note; no note has this text."""


def mark_of(text: str | None) -> str:
    """A mark for a text on disk; None is a missing file."""
    return "none" if text is None else hashlib.sha256(text.encode()).hexdigest()[:16]


def stage(files: NoteFiles, path: str, note: Note, base: str) -> None:
    """Stage a note's text, which is to replace the text with the mark ``base``."""
    files.stage(path, note.text, f"{note.token}-{base}")


def staged(files: NoteFiles) -> dict[str, dict[str, str]]:
    """The mark of the text that each staged version replaces, by path and token."""
    return {
        path: {key.partition("-")[0]: key.partition("-")[2] for key in files.keys(path)}
        for path in files.staged()
    }


def settle(files: NoteFiles, path: str, note: Note | None, bases: dict[str, str]) -> None:
    """Publish the staged version of a note that the journal has; drop all other versions.

    ``note`` is the note in the journal. If a person has changed the file since, the person's text
    is kept as another note.
    """
    base = None if note is None else bases.get(note.token)
    if note is not None and base is not None:
        there = read_or(partial(files.read, path), NOT_A_NOTE)
        if there != note.text:
            if there and mark_of(there) != base:
                _keep(files, path)
            key = f"{note.token}-{base}"
            if read_or(partial(files.read_staged, path, key), None) != note.text:
                files.stage(path, note.text, key)
            files.publish(path, key)
    bases.clear()  # now a person may edit the file, even if a leftover can't be deleted
    files.discard(path)


def read_or(read: Callable[[], str | None], otherwise: str | None) -> str | None:
    """The text that ``read`` reads from disk, or ``otherwise`` if the file is not a note."""
    try:
        return read()
    except NoteRefused as error:
        if is_of_the_system(error):
            raise
        return otherwise


def _keep(files: NoteFiles, path: str) -> None:
    """Move a person's version of a note to a path of its own."""
    taken, number = set(files.own_paths()), 1
    stem = PurePosixPath(path).stem[:100].encode()[:150].decode(errors="ignore")
    while (other := f"memory/{stem}-conflict-{number}.md") in taken:
        number += 1
    files.set_aside(path, other)
    logger.warning("%s was edited while an agent wrote it; the edited text is now %s", path, other)
