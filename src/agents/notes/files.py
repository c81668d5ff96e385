"""One agent's notes on disk, and nothing else on disk."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from agents.errors import NoteRefused
from agents.memory.context import one_line

__all__ = ["MOST_BYTES", "NoteFiles", "check_text"]

MOST_BYTES = 1 << 20
"""The most that a note may have."""

_MOST_CHARACTERS = 512
_MOST_NAME_CHARACTERS = 128
_MOST_NAME_BYTES = 250  # a file system takes 255, and the staged file's name has five more

_MAIN = "MEMORY.md"
_ALLOWED = "a note is MEMORY.md, memory/NAME.md or, only to read, a file that the settings name"

# Nothing is looked at by name and then opened by name: what is opened is looked at, and a link
# is never followed. Without O_NONBLOCK a named pipe would wait for a writer.
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_THE_WAY = (errno.ELOOP, errno.EMLINK, errno.ENOTDIR)


class _Place(NamedTuple):
    """Where a note is: in the last of ``folders``, each opened from the one before."""

    path: str
    folders: tuple[str, ...]
    name: str

    @property
    def staged(self) -> str:
        return f".{self.name}.new"


class NoteFiles:
    """The notes in ``folder``, and those in the files and folders of ``extra``, which stay as is.

    Notes are called ``MEMORY.md``, ``memory/NAME.md`` and ``extra/ITEM/…/NAME.md``, where ITEM is
    the last part of an extra path. A path or a file that is anything else is ``NoteRefused``, and
    so is what the operating system refuses. No link is followed, at ``folder``, at an extra path
    or below, however it came there; what is above is the caller's to trust.
    """

    def __init__(self, folder: Path, extra: Sequence[Path] = ()) -> None:
        self._folder = str(folder.absolute())
        self._extra: dict[str, Path] = {}
        for item in extra:
            fault = _fault_of_name(item.name)
            if fault:
                raise NoteRefused(f"the extra path {str(item)!r} can't be used: its name {fault}")
            if item.name in self._extra:
                both = f"{str(self._extra[item.name])!r} and {str(item.absolute())!r}"
                raise NoteRefused(
                    f"the extra paths {both} are both called {item.name!r}; rename one of them"
                )
            self._extra[item.name] = item.absolute()

    def check(self, path: object) -> str:
        """The path, if a note may be called that, whether or not there is one."""
        return self._place(path).path

    def paths(self) -> list[str]:
        """The notes that are there: the main one, the others by name, then the extra ones.

        They are told by name alone; whether one can be read, reading tells.
        """
        extra = [path for item in self._extra for path in self._extra_paths(item)]
        return self._own_paths("", "") + sorted(extra)

    def read(self, path: str) -> str | None:
        """The text as it is on disk, line ends too; None if there is no such file."""
        return _read(self._place(path))

    def stage(self, path: str, text: str) -> None:
        """Put the text on disk beside the note, which stays as it is until ``publish``.

        What was staged for the note before may be gone even if this fails.
        """
        place = self._own_place(path)
        data = check_text(path, text)
        with _refusing(path, "written"), _opened(place.folders, make=True) as folder:
            _check_own(place, folder)
            _write(place.staged, folder, data)

    def publish(self, path: str) -> None:
        """Make the staged text the note, wholly or not at all."""
        place = self._own_place(path)
        with _refusing(path, "published"), _opened(place.folders) as folder:
            try:
                os.rename(place.staged, place.name, src_dir_fd=folder, dst_dir_fd=folder)
            except FileNotFoundError:
                raise NoteRefused(f"{path!r:.80} can't be published: nothing is staged") from None
            os.fsync(folder)

    def discard(self, path: str) -> None:
        """Drop what is staged for the note, if anything is."""
        place = self._own_place(path)
        with _refusing(path, "discarded"), contextlib.suppress(FileNotFoundError):
            _unlink(place.staged, place)

    def staged(self) -> list[str]:
        """The notes for which something is staged, in the order of ``paths``.

        A process that was killed while it staged leaves a part of a text behind.
        """
        return self._own_paths(".", ".new")

    def read_staged(self, path: str) -> str | None:
        """The text that is staged for the note; None if there is none."""
        place = self._own_place(path)
        return _read(place._replace(name=place.staged))

    def remove(self, path: str) -> None:
        """Delete the note, if there is one. What is staged stays."""
        place = self._own_place(path)
        with _refusing(path, "removed"), contextlib.suppress(FileNotFoundError):
            _unlink(place.name, place, check=True)

    def _place(self, path: object) -> _Place:
        """Where a note of that path is, or would be."""
        if not isinstance(path, str):
            raise NoteRefused(f"{path!r:.80} is not a note's path: it is no text; {_ALLOWED}")
        fault = _fault(path)
        match path.split("/"):
            case _ if fault:
                pass
            case [name] if name == _MAIN:
                return _Place(path, (self._folder,), name)
            case ["memory", name]:
                return _Place(path, (self._folder, "memory"), name)
            case ["extra", item] if item in self._extra:
                # The dot stands for a folder that may be a link: it is above the extra path.
                return _Place(path, (f"{self._extra[item].parent}/.",), item)
            case ["extra", item, *folders, name] if item in self._extra:
                return _Place(path, (str(self._extra[item]), *folders), name)
        fault = fault or "names nothing that is one"
        raise NoteRefused(f"{path!r:.80} is not a note's path: it {fault}; {_ALLOWED}")

    def _own_place(self, path: object) -> _Place:
        place = self._place(path)
        if place.path.startswith("extra/"):
            raise NoteRefused(f"{path!r:.80} is an extra note, which is only read")
        return place

    def _own_paths(self, prefix: str, suffix: str) -> list[str]:
        """The agent's own notes for which there is a file named so."""
        with _refusing(self._folder, "listed"):
            main, others = (
                [
                    name[len(prefix) : len(name) - len(suffix)]
                    for name in sorted(_names(folders))
                    if name.startswith(prefix) and name.endswith(suffix)
                ]
                for folders in ((self._folder,), (self._folder, "memory"))
            )
        paths = [name for name in main if name == _MAIN] + [f"memory/{name}" for name in others]
        return [path for path in paths if not _fault(path)]

    def _extra_paths(self, item: str) -> list[str]:
        path = f"extra/{item}"
        with _refusing(path, "listed"):
            try:
                with _opened((str(self._extra[item]),)) as folder:
                    return list(_walk(folder, path))
            except FileNotFoundError:
                return []
            except OSError as error:
                if error.errno in _IN_THE_WAY and item.endswith(".md"):
                    return [path]
                raise


# Names


def _fault(path: str) -> str | None:
    """Why no note can be called that, whatever there is on disk."""
    if len(path) > _MOST_CHARACTERS:
        return f"has over {_MOST_CHARACTERS} characters"
    if path.startswith("/"):
        return "is absolute"
    faults = (_fault_of_name(name) for name in path.split("/"))
    fault = next((fault for fault in faults if fault), None)
    if fault is None and not path.endswith(".md"):
        return "doesn't end in .md"
    return fault


def _fault_of_name(name: str) -> str | None:
    """Why no file or folder on the way to a note can be called that."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "is no valid Unicode"
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


# Texts


def check_text(path: str, text: object) -> bytes:
    """The bytes of a text that a note may have, or :class:`NoteRefused`."""
    if not isinstance(text, str):
        raise NoteRefused(f"{path!r:.80} can't be written: {text!r:.80} is no text")
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
    _check_text(path, data, "read")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NoteRefused(
            f"{path!r:.80} can't be read: byte {error.start} is not UTF-8; save it as UTF-8"
        ) from None


def _check_text(path: str, data: bytes, done: str) -> None:
    if len(data) > MOST_BYTES:
        fault = f"it is over {MOST_BYTES} bytes; cut it into several"
    elif b"\0" in data:
        fault = f"byte {data.index(0)} is NUL, so it is no text"
    else:
        return
    raise NoteRefused(f"{path!r:.80} can't be {done}: {fault}")


# Files


@contextlib.contextmanager
def _refusing(path: str, done: str) -> Iterator[None]:
    """Make what the operating system refuses a refusal that says so."""
    try:
        yield
    except (OSError, ValueError) as error:  # a NUL in a folder's path is a ValueError
        raise NoteRefused(f"{path!r:.200} can't be {done}: {_reason(error)}") from error


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
    """The last of the folders. The first is a whole path, and each other a name in the former."""
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
    """Make a folder where there is none, and those above a whole path; they are on disk."""
    above = os.path.dirname(name)
    if parent is None and not os.path.isdir(above):
        _make_folder(above, None)
    try:
        os.mkdir(name, dir_fd=parent)
    except FileExistsError:
        return
    if parent is not None:
        os.fsync(parent)
    else:
        with _opened((f"{above}/.",)) as folder:
            os.fsync(folder)


def _names(folders: Sequence[str]) -> list[str]:
    try:
        with _opened(folders) as folder:
            return os.listdir(folder)
    except FileNotFoundError:
        return []


def _walk(folder: int, prefix: str) -> Iterator[str]:
    """The notes in a folder and in those below it; links and hidden ones are passed over."""
    with os.scandir(folder) as entries:
        found = [
            (f"{prefix}/{entry.name}", entry.name, entry.is_dir(follow_symlinks=False))
            for entry in entries
            if not entry.is_symlink() and not _fault_of_name(entry.name)
        ]
    for path, name, is_folder in found:
        if not is_folder:
            if not _fault(path):
                yield path
        elif len(path) < _MOST_CHARACTERS:
            try:
                inner = os.open(name, _FOLDER, dir_fd=folder)
            except OSError as error:
                if error.errno in (errno.ENOENT, *_IN_THE_WAY):
                    continue  # it was replaced since
                raise
            try:
                yield from _walk(inner, path)
            finally:
                os.close(inner)


def _read(place: _Place) -> str | None:
    with _refusing(place.path, "read"):
        try:
            with _opened(place.folders) as folder:
                file = os.open(place.name, _FILE, dir_fd=folder)
        except FileNotFoundError:
            return None
        try:
            _check_file(place.path, os.fstat(file), "read")
            data = _content(file)
        finally:
            os.close(file)
    return _decoded(place.path, data)


def _content(file: int) -> bytes:
    """What is in the file; a byte more than a note may have if it has grown since."""
    data = bytearray()
    while len(data) <= MOST_BYTES and (more := os.read(file, MOST_BYTES + 1 - len(data))):
        data += more
    return bytes(data)


def _check_file(path: str, status: os.stat_result, done: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        fault = "it is no plain file but a link, a folder, a pipe, a socket or a device"
    elif status.st_nlink > 1:  # 0 if it was replaced since it was opened
        fault = "it has a second name on disk (a hard link), perhaps outside the notes; copy it"
    elif status.st_size > MOST_BYTES and done == "read":
        fault = f"it is over {MOST_BYTES} bytes; cut it into several"
    else:
        return
    raise NoteRefused(f"{path!r:.80} can't be {done}: {fault}")


def _check_own(place: _Place, folder: int) -> None:
    """Refuse to replace what is no note. It spares a user's links: no change goes through one."""
    with contextlib.suppress(FileNotFoundError):
        status = os.stat(place.name, dir_fd=folder, follow_symlinks=False)
        _check_file(place.path, status, "replaced")


def _unlink(name: str, place: _Place, *, check: bool = False) -> None:
    with _opened(place.folders) as folder:
        if check:
            _check_own(place, folder)
        os.unlink(name, dir_fd=folder)
        os.fsync(folder)


def _write(name: str, folder: int, data: bytes) -> None:
    """Write a new file; it is on disk, or it is gone."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    file = os.open(name, _NEW, 0o666, dir_fd=folder)
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
