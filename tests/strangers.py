"""Another user of this machine, or another machine: its key is not ours."""

import contextlib
import os
import pickle
import sqlite3
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def stranger(folder: Path) -> Iterator[None]:
    """Inside, banks and runs are made by somebody else, whose state is in ``folder``."""
    before = os.environ["XDG_STATE_HOME"]
    os.environ["XDG_STATE_HOME"] = str(folder / "stranger")
    try:
        yield
    finally:
        os.environ["XDG_STATE_HOME"] = before


class Touch:
    """When unpickled, it makes a file: code that a store's file brought along."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.path,))


def poison(bank: Path, path: Path) -> None:
    """Put a pickle that makes the file ``path`` into the bank's local qdrant store."""
    (file,) = bank.glob("qdrant/**/storage.sqlite")
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute("INSERT INTO points VALUES ('x', ?)", (pickle.dumps(Touch(path)),))
