"""How the text of a note comes to disk once it is committed.

A version of a note is staged under two marks: the note's token, which tells whether it is the one
that the journal has, and the mark of the text that it replaces, which tells whether a person has
changed the file since.
"""

import hashlib
import logging
from pathlib import PurePosixPath

from ..errors import NoteRefused
from ..storage.note import Note
from .files import NoteFiles, is_of_the_system

__all__ = ["mark_of", "settle", "stage", "staged"]

logger = logging.getLogger(__name__)


def mark_of(text: str | None) -> str:
    """What stands for a text on disk; None is no file."""
    return "none" if text is None else hashlib.sha256(text.encode()).hexdigest()[:16]


def stage(files: NoteFiles, path: str, note: Note, base: str) -> None:
    """Put a note's text on disk, to take the place of the text with the mark ``base``."""
    files.stage(path, note.text, f"{note.token}-{base}")


def staged(files: NoteFiles) -> dict[str, dict[str, str]]:
    """By path and token: the mark of the text that the staged one replaces."""
    return {path: dict([_parts(key) for key in files.keys(path)]) for path in files.staged()}


def settle(files: NoteFiles, path: str, note: Note | None, bases: dict[str, str]) -> None:
    """Make what was staged for a note the note, if the journal has it; drop all else.

    ``note`` is what the journal has. What a person wrote in its place since becomes another note.
    """
    base = None if note is None else bases.get(note.token)
    if note is not None and base is not None:
        there = _read(files, path)
        if there != note.text:
            if there and mark_of(there) != base:
                _keep(files, path)
            key = f"{note.token}-{base}"
            if _read_staged(files, path, key) != note.text:
                files.stage(path, note.text, key)
            files.publish(path, key)
    bases.clear()  # from here on, the file is a person's to edit, even if a leftover can't go
    files.discard(path)


def _parts(key: str) -> tuple[str, str]:
    token, _, base = key.partition("-")
    return token, base


def _read(files: NoteFiles, path: str) -> str | None:
    """The text on disk; of what is no note, something that is no text of one."""
    try:
        return files.read(path)
    except NoteRefused as error:
        if is_of_the_system(error):
            raise
        return "\0"


def _read_staged(files: NoteFiles, path: str, key: str) -> str | None:
    try:
        return files.read_staged(path, key)
    except NoteRefused as error:
        if is_of_the_system(error):
            raise
        return None  # a part of a text


def _keep(files: NoteFiles, path: str) -> None:
    """Give a person's version of a note a name of its own."""
    taken, number = set(files.own_paths()), 1
    stem = PurePosixPath(path).stem[:100].encode()[:150].decode(errors="ignore")
    while (other := f"memory/{stem}-conflict-{number}.md") in taken:
        number += 1
    files.set_aside(path, other)
    logger.warning("%s was edited while an agent wrote it; the edited text is now %s", path, other)
