"""Folders that appear whole or not at all: of runs and their cells, of experiments, of backups.

A folder is made beside its place, under a name that tells the process, and gets its own name when
all is in it. So a kill leaves the folder that was there, and what the next one removes.
"""

import errno
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from .files import is_alive, is_temporary, make_folder

_making = set[Path]()
"""The folders that threads of this process make now, by :func:`name_beside`."""
_one_maker = Lock()


@contextmanager
def whole_folder(folder: Path, *, replace: bool = True) -> Iterator[Path]:
    """A new folder to fill, which gets the name ``folder`` at the end of the block.

    It replaces the folder that has this name; without ``replace``, OSError if that one holds
    anything. After an error it is removed, and nothing changed. OSError if another thread of this
    process makes it.
    """
    temporary = name_beside(folder)
    with _one_maker:
        if temporary in _making:
            raise FileExistsError(errno.EEXIST, "it is being made by another thread", str(folder))
        _making.add(temporary)
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        make_folder(temporary)
        yield temporary
        if replace:
            put_in_place(temporary, folder)
        else:
            temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        _making.discard(temporary)


def name_beside(folder: Path) -> Path:
    """The name that a folder has while this process makes it."""
    return folder.with_name(f".{folder.name}.{os.getpid()}.tmp")


def put_in_place(temporary: Path, folder: Path) -> None:
    """Give a finished folder its name, and remove the folder that had it."""
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old.tmp")
    if folder.exists():
        folder.rename(old)
    try:
        temporary.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def put_aside(folder: Path) -> Path:
    """Take a folder's name away at once; its new name, for removing it."""
    gone = name_beside(folder)
    shutil.rmtree(gone, ignore_errors=True)
    folder.rename(gone)
    return gone


def clear_up(folder: Path) -> None:
    """Remove what dead processes left when they made this folder, or put the old one back."""
    name = re.compile(rf"\.{re.escape(folder.name)}\.(\d+)(\.old)?\.tmp")
    for path in sorted(folder.parent.glob(".*.tmp")):
        match = name.fullmatch(path.name)
        if match is None or is_alive(int(match[1])):
            continue
        if match[2] and not folder.exists():
            path.rename(folder)  # the process died before the new one replaced this old one
        else:
            shutil.rmtree(path, ignore_errors=True)


def strangers(folder: Path, names: Collection[str]) -> Iterator[Path]:
    """What is in a folder under none of these names, and is not being made by a process."""
    for path in sorted(folder.iterdir()):
        if path.name not in names and not is_temporary(path.name):
            yield path
