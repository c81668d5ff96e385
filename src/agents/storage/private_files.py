"""Files and folders that only their owner can read, whatever the umask."""

import os
import secrets
import shutil
from pathlib import Path

from .leftovers import sweep_beside

FILE_MODE, FOLDER_MODE = 0o600, 0o700
SHARED_MODE = 0o666
"""For a file that the user names: the umask says who else may read it."""


def make_folder(folder: Path) -> None:
    """Make a folder, unless it exists. Folders that are made above it have the umask's mode."""
    folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)


def make_folders(top: Path, inside: Path) -> None:
    """Make a folder that is inside another, and all between them."""
    for each in (*reversed(inside.relative_to(top).parents), inside.relative_to(top)):
        make_folder(top / each)


def new_file(path: Path, mode: int = FILE_MODE) -> int:
    """Create an empty file, and open it; FileExistsError if anything has this name, even a link."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)


def replace_file(path: Path, content: str | bytes, mode: int = FILE_MODE) -> None:
    """Write a file of a few megabytes; the content is on disk before the file gets its name."""
    data = content.encode() if isinstance(content, str) else content
    sweep_beside(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        with os.fdopen(new_file(temporary, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def copy_file(source: Path, target: Path) -> None:
    """Copy the content of a file, and not its mode, to a new file."""
    with source.open("rb") as content, os.fdopen(new_file(target), "wb") as file:
        shutil.copyfileobj(content, file)
