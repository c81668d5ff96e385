"""Reads and writes of files and folders that never follow a link."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..errors import NoteRefused
from ..storage.private_files import FILE_MODE, FOLDER_MODE
from .names import MOST_BYTES, MOST_CHARACTERS, decoded, fault_of_name

# A file is opened first and checked by its descriptor, so nobody can replace it between the two.
# Without O_NONBLOCK, opening a named pipe would wait for a writer.
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
IN_THE_WAY = (errno.ELOOP, errno.EMLINK, errno.ENOTDIR)
"""The operating system's errors for a link or a file in place of a folder."""


class Place(NamedTuple):
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
    return isinstance(cause, OSError) and cause.errno not in (*IN_THE_WAY, errno.ENXIO)


def _reason(error: OSError | ValueError) -> str:
    if not isinstance(error, OSError):
        return str(error)
    if error.errno in IN_THE_WAY:
        return "a symbolic link or a file is in the way; a note is a plain file in plain folders"
    if error.errno == errno.ENXIO:
        return "it is a socket or a device"
    return error.strerror or str(error)


@contextlib.contextmanager
def opened(folders: Sequence[str], *, make: bool = False) -> Iterator[int]:
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
        with opened((f"{above}/.",)) as folder:
            os.fsync(folder)


def names_in(folders: Sequence[str]) -> list[str]:
    """The names in the last of the folders; none if the folder does not exist."""
    try:
        with opened(folders) as folder:
            return os.listdir(folder)
    except FileNotFoundError:
        return []


class Entry(NamedTuple):
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


def walk(folder: int, prefix: str) -> Iterator[Entry]:
    """What is in a folder and below it. Neither links nor hidden folders are entered."""
    with os.scandir(folder) as entries:
        found = [
            Entry(f"{prefix}/{each.name}", _is_folder(each), each.is_symlink()) for each in entries
        ]
    for entry in found:
        is_open = entry.is_folder and not entry.is_link and not fault_of_name(entry.name)
        if not is_open or len(entry.path) >= MOST_CHARACTERS:
            yield entry
            continue
        try:
            inner = os.open(entry.name, _FOLDER, dir_fd=folder)
        except OSError as error:
            if error.errno not in (errno.ENOENT, *IN_THE_WAY):  # another process replaced it
                yield entry._replace(fault=_reason(error))
            continue
        try:
            yield entry
            yield from walk(inner, entry.path)
        finally:
            os.close(inner)


def read(place: Place) -> str | None:
    """The text of a note; None if the file does not exist."""
    with reading(place) as file:
        data = None if file is None else _content(file)
    return None if data is None else decoded(place.path, data)


@contextlib.contextmanager
def reading(place: Place, *, of_any_size: bool = False) -> Iterator[int | None]:
    """Open a file to read it; None if the file does not exist."""
    with refusing(place.path, "read"):
        try:
            with opened(place.folders) as folder:
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


def check_own(place: Place, folder: int) -> None:
    """Refuse to replace a file that is not a note, such as a person's link."""
    with contextlib.suppress(FileNotFoundError):
        status = os.stat(place.name, dir_fd=folder, follow_symlinks=False)
        _check_file(place.path, status, "replaced")


def unlink(name: str, place: Place) -> None:
    """Delete the file with this name beside a note."""
    with opened(place.folders) as folder:
        os.unlink(name, dir_fd=folder)
        os.fsync(folder)


def write(name: str, folder: int, data: bytes) -> None:
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
