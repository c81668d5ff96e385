"""The checkpoints of a bank that lie in its folder and beside it, whatever their names are."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from .sqlite import DAMAGE

APPLICATION_ID = 0x746D636B  # "tmck"
"""Tells checkpoints from other SQLite databases."""

_META = "SELECT key, value FROM meta WHERE key IN ('bank', 'head', 'last_purge')"


class _Found(NamedTuple):
    path: Path
    bank: str
    commit: int
    tick: int
    hash: str
    last_purge: tuple[int, str] | None
    """None if there was none, or if an earlier version made the checkpoint."""


def is_ours(path: Path) -> bool:
    """Whether a file looks like a checkpoint, perhaps a damaged or an empty one."""
    with path.open("rb") as file:
        head = file.read(72)
    return not head or head[68:72] == APPLICATION_ID.to_bytes(4, "big")


def checkpoints_of(folder: Path, bank_id: str | None) -> list[Path]:
    """The checkpoints of a bank, or of any, by its folder; the latest tick first."""
    found = list(_found(folder, bank_id))
    return [each.path for each in sorted(found, key=lambda each: (-each.tick, each.path))]


def checkpoints_before_purge(
    folder: Path, bank_id: str, purge: tuple[int, str], hash_of: Callable[[int], bytes | None]
) -> list[Path]:
    """The checkpoints of a bank by its folder that may be from before its last purge.

    ``purge`` is the commit of that purge, its number and its hash. ``hash_of`` gives the hash of a
    commit that the bank has.
    """

    def is_later(each: _Found) -> bool:
        if each.last_purge == purge:
            return True
        known = hash_of(each.commit) if each.commit >= purge[0] else None
        return known is not None and known.hex() == each.hash

    return sorted(each.path for each in _found(folder, bank_id) if not is_later(each))


def _found(folder: Path, bank_id: str | None) -> Iterator[_Found]:
    for place in (folder, folder / "checkpoints", folder.parent, folder.parent / "checkpoints"):
        paths: list[Path] = []
        with suppress(OSError):  # a folder that can't be listed
            paths += place.iterdir()
        for path in paths:
            with suppress(OSError, *DAMAGE):  # a damaged checkpoint can't help
                if path.is_file() and is_ours(path):
                    found = _about(path)
                    if bank_id in (None, found.bank):
                        yield found


def _about(path: Path) -> _Found:
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as database:
        meta = dict(database.execute(_META))
    commit, tick, digest = json.loads(meta["head"])
    purge = json.loads(meta.get("last_purge", "null"))
    return _Found(
        path,
        str(json.loads(meta["bank"])["id"]),
        int(commit),
        int(tick),
        str(digest),
        None if purge is None else (int(purge[0]), str(purge[1])),
    )
