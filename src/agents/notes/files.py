"""One agent's notes on disk."""

import contextlib
import itertools
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from ..errors import NoteRefused
from .names import (
    MOST_BYTES,
    check_text,
    fault_of_name,
    fault_of_path,
    folder_of_agent,
    is_transcript,
)
from .safe_files import (
    IN_THE_WAY,
    Entry,
    Place,
    check_own,
    is_of_the_system,
    names_in,
    opened,
    read,
    reading,
    refusing,
    unlink,
    walk,
    write,
)

__all__ = [
    "MOST_BYTES",
    "NoteFiles",
    "check_text",
    "is_extra",
    "is_of_the_system",
    "is_own",
    "notes_in",
]

_MAIN = "MEMORY.md"
_ALLOWED = (
    "a note is MEMORY.md, memory/NAME.md or memory/FOLDER/NAME.md, or, only to read, a file that "
    "the settings name"
)

_ANY = re.compile(r"(?P<name>.+)", re.DOTALL)
_STAGED = re.compile(r"\.(?P<name>.+\.md)(?:\.(?P<key>[0-9a-z-]+))?\.new", re.DOTALL)


class NoteFiles:
    """The notes in ``folder``, and those in the files and folders ``extra``, which are only read.

    The paths of notes are ``MEMORY.md``, ``memory/…/NAME.md`` and ``extra/ITEM/…/NAME.md``; ITEM
    is the last part of an extra path. Any other path or file raises ``NoteRefused``, and so does an
    error of the operating system. No link is followed at ``folder``, its parent, an extra path or
    below them. The caller trusts the folders above.
    """

    def __init__(self, folder: Path, extra: Sequence[Path] = ()) -> None:
        whole = folder.absolute()
        self._folder = (str(whole.parent), whole.name)
        self._extra: dict[str, Path] = {}
        for item in extra:
            fault = fault_of_name(item.name)
            if fault:
                raise NoteRefused(
                    f"the extra path {str(item)!r} can't be used: its name {fault}",
                    hint="rename it",
                )
            if item.name in self._extra:
                both = f"{str(self._extra[item.name])!r} and {str(item.absolute())!r}"
                raise NoteRefused(
                    f"the extra paths {both} are both called {item.name!r}",
                    hint="rename one of them",
                )
            self._extra[item.name] = item.absolute()

    def check(self, path: object) -> str:
        """The path itself if a note may have it, whether or not the note exists."""
        return self._place(path).path

    def paths(self) -> list[str]:
        """The paths of all notes: the main note, the other notes by name, then the extra notes.

        A path is listed by its name; the file may still be unreadable.
        """
        extra = [path for item in self._extra for path in self.extra_paths(item)]
        return self.own_paths() + sorted(extra)

    def own_paths(self, skipped: list[str] | None = None) -> list[str]:
        """The paths of the agent's own notes.

        The folders that are not entered are added to ``skipped``, each with the reason.
        """
        return self._own_paths(_ANY, [] if skipped is None else skipped)

    def extra_items(self) -> list[str]:
        """The names of the extra paths."""
        return list(self._extra)

    def extra_paths(self, item: str) -> list[str]:
        """The paths of the notes of one extra path."""
        path = f"extra/{item}"
        with refusing(path, "listed"):
            try:
                with opened((str(self._extra[item]),)) as folder:
                    entries = list(walk(folder, path))
            except FileNotFoundError:
                return []
            except OSError as error:
                if error.errno in IN_THE_WAY and item.endswith(".md"):
                    return [path]
                raise
        if closed := [each for each in entries if each.fault]:
            raise NoteRefused(f"{closed[0].path!r:.200} can't be listed: {closed[0].fault}")
        notes = [each.path for each in entries if not each.is_folder and not each.is_link]
        return sorted(each for each in notes if not fault_of_path(each))

    def transcripts(self) -> list[str]:
        """The paths of the transcripts of the agent's sessions."""
        with refusing("sessions", "listed"):
            paths = [f"sessions/{name}" for name in names_in((*self._folder, "sessions"))]
        return sorted(path for path in paths if not fault_of_path(path))

    def reading(self, path: str) -> AbstractContextManager[int | None]:
        """Open a transcript to read it; None if the file does not exist."""
        return reading(self._place(path), of_any_size=True)

    def read(self, path: str) -> str | None:
        """The exact text on disk, with its line ends; None if the file does not exist."""
        return read(self._place(path))

    def stage(self, path: str, text: str, key: str = "") -> None:
        """Write the text to a file beside the note. The note stays as it is until ``publish``.

        A note may have several staged texts, under keys of small letters, digits and dashes. An
        older text under the same key may be gone even if this fails.
        """
        place = self._own_place(path)
        data = check_text(path, text)
        with refusing(path, "written"), opened(place.folders, make=True) as folder:
            check_own(place, folder)
            write(place.staged(key), folder, data)

    def publish(self, path: str, key: str = "") -> None:
        """Make the staged text the note, wholly or not at all."""
        place = self._own_place(path)
        with refusing(path, "published"), opened(place.folders) as folder:
            try:
                os.rename(place.staged(key), place.name, src_dir_fd=folder, dst_dir_fd=folder)
            except FileNotFoundError:
                raise NoteRefused(f"{path!r:.80} can't be published: nothing is staged") from None
            os.fsync(folder)

    def discard(self, path: str) -> None:
        """Delete all staged texts of the note."""
        place = self._own_place(path)
        with refusing(path, "discarded"):
            for key in self.keys(path):
                with contextlib.suppress(FileNotFoundError):
                    unlink(place.staged(key), place)

    def staged(self) -> list[str]:
        """The paths of notes with a staged text, in the order of ``paths``.

        A process that is killed while it stages leaves an incomplete text.
        """
        return list(dict.fromkeys(self._own_paths(_STAGED, [])))

    def keys(self, path: str) -> list[str]:
        """The keys of the note's staged texts."""
        place = self._own_place(path)
        with refusing(path, "listed"):
            found = [_STAGED.fullmatch(name) for name in sorted(names_in(place.folders))]
        return [each["key"] or "" for each in found if each and each["name"] == place.name]

    def read_staged(self, path: str, key: str = "") -> str | None:
        """The note's staged text under this key; None if there is none."""
        place = self._own_place(path)
        return read(place._replace(name=place.staged(key)))

    def set_aside(self, path: str, to: str) -> None:
        """Move the file at a note's path, whatever it is, to another path in the agent's folder."""
        place = self._own_place(path)
        *names, name = to.split("/")
        with (
            refusing(path, "set aside"),
            opened(place.folders) as old,
            opened((*self._folder, *names), make=True) as new,
        ):
            os.rename(place.name, name, src_dir_fd=old, dst_dir_fd=new)
            os.fsync(new)
            os.fsync(old)

    def unused(self, name: str) -> str:
        """``name-1``, ``name-2`` or so on: the first that is free in the agent's folder."""
        with refusing(name, "numbered"):
            taken = set(names_in(self._folder))
        return next(each for n in itertools.count(1) if (each := f"{name}-{n}") not in taken)

    def _place(self, path: object) -> Place:
        """The place of the note with this path, whether or not it exists."""
        if not isinstance(path, str):
            raise NoteRefused(f"{path!r:.80} is not a note's path: it is not text", hint=_ALLOWED)
        fault = fault_of_path(path)
        match path.split("/"):
            case _ if fault:
                pass
            case [name] if name == _MAIN:
                return Place(path, self._folder, name)
            case ["memory", *folders, name]:
                return Place(path, (*self._folder, "memory", *folders), name)
            case ["sessions", name]:
                return Place(path, (*self._folder, "sessions"), name)
            case ["extra", item] if item in self._extra:
                # With the dot, the folder above the extra path may be a link.
                return Place(path, (f"{self._extra[item].parent}/.",), item)
            case ["extra", item, *folders, name] if item in self._extra:
                return Place(path, (str(self._extra[item]), *folders), name)
        fault = fault or "names nothing that is one"
        raise NoteRefused(f"{path!r:.80} is not a note's path: it {fault}", hint=_ALLOWED)

    def _own_place(self, path: object) -> Place:
        place = self._place(path)
        if not is_own(place.path):
            raise NoteRefused(f"{path!r:.80} is only read", hint="edit the file itself")
        return place

    def _own_paths(self, shape: re.Pattern[str], skipped: list[str]) -> list[str]:
        """The paths of the agent's own notes that have a file with a name of this shape."""
        others: list[str] = []
        with refusing("/".join(self._folder), "listed"):
            main = [
                found["name"] for name in names_in(self._folder) if (found := shape.fullmatch(name))
            ]
            for entry in sorted(self._below_memory()):
                if found := shape.fullmatch(entry.name):
                    others.append(f"{entry.path[: -len(entry.name)]}{found['name']}")
                fault = "it is a symbolic link" if entry.is_link else entry.fault
                if entry.is_folder and fault and not entry.name.startswith("."):
                    skipped.append(f"{entry.path}: the notes in it are skipped: {fault}")
        paths = [name for name in main if name == _MAIN] + others
        return [path for path in paths if not fault_of_path(path)]

    def _below_memory(self) -> list[Entry]:
        try:
            with opened((*self._folder, "memory")) as folder:
                return list(walk(folder, "memory"))
        except FileNotFoundError:
            return []


def notes_in(folder: Path, agent_id: str, extra: Iterable[str]) -> NoteFiles:
    """An agent's notes in a bank's folder, and the extra notes."""
    own = folder / "notes" / folder_of_agent(agent_id)
    return NoteFiles(own, [folder / path for path in extra])


def is_own(path: str) -> bool:
    """Whether a path is that of a note that the agent itself writes."""
    return not is_extra(path) and not is_transcript(path)


def is_extra(path: str) -> bool:
    """Whether a path is that of an extra note, which all agents read and none writes."""
    return path.startswith("extra/")
