"""One agent's notes on disk: the paths they may have, and reads and writes that follow no link."""

import contextlib
import errno
import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from ..errors import InvalidAgentId, NoteRefused
from ..memory.context import one_line
from ..memory.requests import check_agent_id
from ..storage.files import FILE_MODE, FOLDER_MODE
from ..storage.note import is_transcript

MOST_BYTES = 1 << 20
"""The largest size of a note."""
_MOST_CHARACTERS = 512
"""The longest path of a note."""

_MOST_NAME_CHARACTERS = 128
_MOST_NAME_BYTES = 200  # a file system takes 255; a staged file's name has 39 more
_MAIN = "MEMORY.md"
_ALLOWED = (
    "a note is MEMORY.md, memory/NAME.md or memory/FOLDER/NAME.md, or, only to read, a file that "
    "the settings name"
)

_ANY = re.compile(r"(?P<name>.+)", re.DOTALL)
_STAGED = re.compile(r"\.(?P<name>.+\.md)(?:\.(?P<key>[0-9a-z-]+))?\.new", re.DOTALL)

# A file is opened first and checked by its descriptor, so nobody can replace it between the two.
# Without O_NONBLOCK, opening a named pipe would wait for a writer.
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_THE_WAY = (errno.ELOOP, errno.EMLINK, errno.ENOTDIR)
"""The operating system's errors for a link or a file in place of a folder."""


# Which paths and which texts a note may have


def folder_of_agent(agent_id: str) -> str:
    """The name of an agent's folder. Names of two agents differ by more than case.

    >>> folder_of_agent("alice"), folder_of_agent("Alice"), folder_of_agent("ALICE")
    ('alice', 'Alice%1', 'ALICE%1f')
    """
    capitals = sum(1 << place for place, letter in enumerate(agent_id) if letter.isupper())
    # Some file systems ignore a dot at the end.
    return f"{agent_id}%{capitals:x}" if capitals or agent_id.endswith(".") else agent_id


def agent_of_folder(name: str) -> str | None:
    """The agent whose folder has this name; None if no agent's folder has it."""
    try:
        agent_id = check_agent_id(name.partition("%")[0])
    except InvalidAgentId:
        return None
    return agent_id if folder_of_agent(agent_id) == name else None


def _fault_of_path(path: str) -> str | None:
    """Why no note can have this path, whatever is on disk; None if one can."""
    if len(path) > _MOST_CHARACTERS:
        return f"has over {_MOST_CHARACTERS} characters"
    if path.startswith("/"):
        return "is absolute"
    faults = (_fault_of_name(name) for name in path.split("/"))
    fault = next((fault for fault in faults if fault), None)
    suffix = ".jsonl" if is_transcript(path) else ".md"
    if fault is None and not path.endswith(suffix):
        return f"doesn't end in {suffix}"
    return fault


def leads_through_note(path: str) -> bool:
    """Whether a folder of a path has the name of a note, which could then not be written."""
    return any(name.lower().endswith((".md", ".jsonl")) for name in path.split("/")[:-1])


def _fault_of_name(name: str) -> str | None:
    """Why no file or folder in a note's path can have this name; None if one can."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "is not valid Unicode"
    if not name:
        return "has an empty part"
    if name.startswith("."):
        return f"has a part that starts with a dot, {name!r:.80}"
    if "\\" in name:
        return "has a backslash"
    if one_line(name) != name:
        return "has a character that is not shown: a control, a line end or one that reorders text"
    if len(name) > _MOST_NAME_CHARACTERS or size > _MOST_NAME_BYTES:
        return f"has a part over {_MOST_NAME_CHARACTERS} characters or {_MOST_NAME_BYTES} bytes"
    return None


def check_text(path: str, text: object) -> bytes:
    """The bytes of the text, or :class:`NoteRefused` if no note may have it."""
    if not isinstance(text, str):
        raise NoteRefused(f"{path!r:.80} can't be written: {text!r:.80} is not text")
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise NoteRefused(
            f"{path!r:.80} can't be written: character {error.start} is a lone surrogate, for "
            "which UTF-8 has no bytes"
        ) from None
    _check_text(path, data, "written")
    return data


def _decoded(path: str, data: bytes) -> str:
    """The text of a note's bytes, or :class:`NoteRefused`."""
    _check_text(path, data, "read")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NoteRefused(
            f"{path!r:.80} can't be read: byte {error.start} is not UTF-8", hint="save it as UTF-8"
        ) from None


def _check_text(path: str, data: bytes, done: str) -> None:
    if len(data) > MOST_BYTES:
        fault, hint = f"it is over {MOST_BYTES} bytes", "cut it into several"
    elif b"\0" in data:
        fault, hint = f"byte {data.index(0)} is NUL, so it is not text", ""
    else:
        return
    raise NoteRefused(f"{path!r:.80} can't be {done}: {fault}", hint=hint)


# Files and folders, without following a link


class _Place(NamedTuple):
    """The place of a note: in the last of ``folders``, each opened from the one before."""

    path: str
    folders: tuple[str, ...]
    name: str

    def staged(self, key: str) -> str:
        """The file name of a staged text of the note."""
        return f".{self.name}.{key}.new" if key else f".{self.name}.new"


@contextlib.contextmanager
def refusing(path: str, done: str) -> Iterator[None]:
    """Turn an error of the operating system into :class:`NoteRefused` with its reason."""
    try:
        yield
    except (OSError, ValueError) as error:  # a NUL in a folder's path is a ValueError
        raise NoteRefused(f"{path!r:.200} can't be {done}: {_reason(error)}") from error


def is_of_the_system(refusal: NoteRefused) -> bool:
    """Whether the reason may lie beside the file, such as too many open files."""
    cause = refusal.__cause__
    return isinstance(cause, OSError) and cause.errno not in (*_IN_THE_WAY, errno.ENXIO)


def _reason(error: OSError | ValueError) -> str:
    if not isinstance(error, OSError):
        return str(error)
    if error.errno in _IN_THE_WAY:
        return "a symbolic link or a file is in the way; a note is a plain file in plain folders"
    if error.errno == errno.ENXIO:
        return "it is a socket or a device"
    return error.strerror or str(error)


@contextlib.contextmanager
def _opened(folders: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """Open the last of the folders: a whole path, then names, each in the folder before."""
    first, *names = folders
    if make:
        _make_folder(first, None)
    folder = os.open(first, _FOLDER)
    try:
        for name in names:
            if make:
                _make_folder(name, folder)
            inner = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _make_folder(name: str, parent: int | None) -> None:
    """Make a folder if it is missing, durably; for a whole path, the folders above it too."""
    above = os.path.dirname(name)
    if parent is None and not os.path.isdir(above):
        _make_folder(above, None)
    try:
        os.mkdir(name, FOLDER_MODE, dir_fd=parent)
    except FileExistsError:
        return
    if parent is not None:
        os.fsync(parent)
    else:
        with _opened((f"{above}/.",)) as folder:
            os.fsync(folder)


def _names_in(folders: Sequence[str]) -> list[str]:
    """The names in the last of the folders; none if the folder does not exist."""
    try:
        with _opened(folders) as folder:
            return os.listdir(folder)
    except FileNotFoundError:
        return []


class _Entry(NamedTuple):
    """A name in a folder of notes."""

    path: str
    is_folder: bool
    """A link to a folder is one as well."""
    is_link: bool
    fault: str = ""
    """Why the folder could not be entered."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads nowhere
        return False


def _walk(folder: int, prefix: str) -> Iterator[_Entry]:
    """What is in a folder and below it. Neither links nor hidden folders are entered."""
    with os.scandir(folder) as entries:
        found = [
            _Entry(f"{prefix}/{each.name}", _is_folder(each), each.is_symlink()) for each in entries
        ]
    for entry in found:
        is_open = entry.is_folder and not entry.is_link and not _fault_of_name(entry.name)
        if not is_open or len(entry.path) >= _MOST_CHARACTERS:
            yield entry
            continue
        try:
            inner = os.open(entry.name, _FOLDER, dir_fd=folder)
        except OSError as error:
            if error.errno not in (errno.ENOENT, *_IN_THE_WAY):  # another process replaced it
                yield entry._replace(fault=_reason(error))
            continue
        try:
            yield entry
            yield from _walk(inner, entry.path)
        finally:
            os.close(inner)


def _read(place: _Place) -> str | None:
    """The text of a note; None if the file does not exist."""
    with _reading(place) as file:
        data = None if file is None else _content(file)
    return None if data is None else _decoded(place.path, data)


@contextlib.contextmanager
def _reading(place: _Place, *, of_any_size: bool = False) -> Iterator[int | None]:
    """Open a file to read it; None if the file does not exist."""
    with refusing(place.path, "read"):
        try:
            with _opened(place.folders) as folder:
                file = os.open(place.name, _FILE, dir_fd=folder)
        except FileNotFoundError:
            yield None
            return
        try:
            _check_file(place.path, os.fstat(file), "opened" if of_any_size else "read")
            yield file
        finally:
            os.close(file)


def _content(file: int) -> bytes:
    """The bytes of the file, at most one more than a note may have."""
    data = bytearray()
    while len(data) <= MOST_BYTES and (more := os.read(file, MOST_BYTES + 1 - len(data))):
        data += more
    return bytes(data)


def _check_file(path: str, status: os.stat_result, done: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        fault, hint = (
            "it is not a plain file but a link, a folder, a pipe, a socket or a device",
            "",
        )
    elif status.st_nlink > 1:  # 0 if another process replaced it
        fault = "it has a second name on disk (a hard link), perhaps outside the notes"
        hint = "copy it"
    elif status.st_size > MOST_BYTES and done == "read":
        fault, hint = f"it is over {MOST_BYTES} bytes", "cut it into several"
    else:
        return
    raise NoteRefused(f"{path!r:.80} can't be {done}: {fault}", hint=hint)


def _check_own(place: _Place, folder: int) -> None:
    """Refuse to replace a file that is not a note, such as a person's link."""
    with contextlib.suppress(FileNotFoundError):
        status = os.stat(place.name, dir_fd=folder, follow_symlinks=False)
        _check_file(place.path, status, "replaced")


def _unlink(name: str, place: _Place) -> None:
    """Delete the file with this name beside a note."""
    with _opened(place.folders) as folder:
        os.unlink(name, dir_fd=folder)
        os.fsync(folder)


def _write(name: str, folder: int, data: bytes) -> None:
    """Write a new file durably; if that fails, the file is deleted."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    file = os.open(name, _NEW, FILE_MODE, dir_fd=folder)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
        finally:
            os.close(file)
        os.fsync(folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise


# The notes of one agent


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
            fault = _fault_of_name(item.name)
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
                with _opened((str(self._extra[item]),)) as folder:
                    entries = list(_walk(folder, path))
            except FileNotFoundError:
                return []
            except OSError as error:
                if error.errno in _IN_THE_WAY and item.endswith(".md"):
                    return [path]
                raise
        if closed := [each for each in entries if each.fault]:
            raise NoteRefused(f"{closed[0].path!r:.200} can't be listed: {closed[0].fault}")
        notes = [each.path for each in entries if not each.is_folder and not each.is_link]
        return sorted(each for each in notes if not _fault_of_path(each))

    def transcripts(self) -> list[str]:
        """The paths of the transcripts of the agent's sessions."""
        with refusing("sessions", "listed"):
            paths = [f"sessions/{name}" for name in _names_in((*self._folder, "sessions"))]
        return sorted(path for path in paths if not _fault_of_path(path))

    def reading(self, path: str) -> AbstractContextManager[int | None]:
        """Open a transcript to read it; None if the file does not exist."""
        return _reading(self._place(path), of_any_size=True)

    def read(self, path: str) -> str | None:
        """The exact text on disk, with its line ends; None if the file does not exist."""
        return _read(self._place(path))

    def stage(self, path: str, text: str, key: str = "") -> None:
        """Write the text to a file beside the note. The note stays as it is until ``publish``.

        A note may have several staged texts, under keys of small letters, digits and dashes. An
        older text under the same key may be gone even if this fails.
        """
        place = self._own_place(path)
        data = check_text(path, text)
        with refusing(path, "written"), _opened(place.folders, make=True) as folder:
            _check_own(place, folder)
            _write(place.staged(key), folder, data)

    def publish(self, path: str, key: str = "") -> None:
        """Make the staged text the note, wholly or not at all."""
        place = self._own_place(path)
        with refusing(path, "published"), _opened(place.folders) as folder:
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
                    _unlink(place.staged(key), place)

    def staged(self) -> list[str]:
        """The paths of notes with a staged text, in the order of ``paths``.

        A process that is killed while it stages leaves an incomplete text.
        """
        return list(dict.fromkeys(self._own_paths(_STAGED, [])))

    def keys(self, path: str) -> list[str]:
        """The keys of the note's staged texts."""
        place = self._own_place(path)
        with refusing(path, "listed"):
            found = [_STAGED.fullmatch(name) for name in sorted(_names_in(place.folders))]
        return [each["key"] or "" for each in found if each and each["name"] == place.name]

    def read_staged(self, path: str, key: str = "") -> str | None:
        """The note's staged text under this key; None if there is none."""
        place = self._own_place(path)
        return _read(place._replace(name=place.staged(key)))

    def set_aside(self, path: str, to: str) -> None:
        """Move the file at a note's path, whatever it is, to another path in the agent's folder."""
        place = self._own_place(path)
        *names, name = to.split("/")
        with (
            refusing(path, "set aside"),
            _opened(place.folders) as old,
            _opened((*self._folder, *names), make=True) as new,
        ):
            os.rename(place.name, name, src_dir_fd=old, dst_dir_fd=new)
            os.fsync(new)
            os.fsync(old)

    def unused(self, name: str) -> str:
        """``name-1``, ``name-2`` or so on: the first that is free in the agent's folder."""
        with refusing(name, "numbered"):
            taken = set(_names_in(self._folder))
        return next(each for n in itertools.count(1) if (each := f"{name}-{n}") not in taken)

    def _place(self, path: object) -> _Place:
        """The place of the note with this path, whether or not it exists."""
        if not isinstance(path, str):
            raise NoteRefused(f"{path!r:.80} is not a note's path: it is not text", hint=_ALLOWED)
        fault = _fault_of_path(path)
        match path.split("/"):
            case _ if fault:
                pass
            case [name] if name == _MAIN:
                return _Place(path, self._folder, name)
            case ["memory", *folders, name]:
                return _Place(path, (*self._folder, "memory", *folders), name)
            case ["sessions", name]:
                return _Place(path, (*self._folder, "sessions"), name)
            case ["extra", item] if item in self._extra:
                # With the dot, the folder above the extra path may be a link.
                return _Place(path, (f"{self._extra[item].parent}/.",), item)
            case ["extra", item, *folders, name] if item in self._extra:
                return _Place(path, (str(self._extra[item]), *folders), name)
        fault = fault or "names nothing that is one"
        raise NoteRefused(f"{path!r:.80} is not a note's path: it {fault}", hint=_ALLOWED)

    def _own_place(self, path: object) -> _Place:
        place = self._place(path)
        if not is_own(place.path):
            raise NoteRefused(f"{path!r:.80} is only read", hint="edit the file itself")
        return place

    def _own_paths(self, shape: re.Pattern[str], skipped: list[str]) -> list[str]:
        """The paths of the agent's own notes that have a file with a name of this shape."""
        others: list[str] = []
        with refusing("/".join(self._folder), "listed"):
            main = [
                found["name"]
                for name in _names_in(self._folder)
                if (found := shape.fullmatch(name))
            ]
            for entry in sorted(self._below_memory()):
                if found := shape.fullmatch(entry.name):
                    others.append(f"{entry.path[: -len(entry.name)]}{found['name']}")
                fault = "it is a symbolic link" if entry.is_link else entry.fault
                if entry.is_folder and fault and not entry.name.startswith("."):
                    skipped.append(f"{entry.path}: the notes in it are skipped: {fault}")
        paths = [name for name in main if name == _MAIN] + others
        return [path for path in paths if not _fault_of_path(path)]

    def _below_memory(self) -> list[_Entry]:
        try:
            with _opened((*self._folder, "memory")) as folder:
                return list(_walk(folder, "memory"))
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
