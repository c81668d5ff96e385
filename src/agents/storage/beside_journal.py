"""What lies beside a journal: records of its last commit and of its bank, and its checkpoints.

SQLite reads its write-ahead log up to the first frame that is not whole, and takes the rest for
never written. So damage in the log looks like a bank that ended earlier. The record tells. It is
kept at three places, since one may be lost with the log, or be replaced by an older copy:
``journal.db-head`` has each commit, ``bank.head`` the last one when the bank was opened or closed,
and which bank that is, and ``tiermem.head`` in the folder of a local store the one up to which the
store was written.

``journal.db-head`` has two slots, and a commit is written into the slot of the older one. A kill in
the middle leaves the other slot whole, and the journal has the commit that was being written.
Before the first commit after an opening, ``journal.db-head`` is made whole, and then ``bank.head``
says that commits come; a closing says that none came after its own. So a slot that is not whole
beside a journal without a later commit, or no record where commits came, is damage, and no kill.

``bank.head`` is first written when the bank has its journal on disk, and a bank that goes back
leaves its id there. A folder with a record and without a journal has lost the journal. A folder
without any may hold notes that a person wrote before there is a bank.
"""

import contextlib
import json
import logging
import os
import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from ..errors import BankDamaged, CommitFailed
from .files import replace_file
from .sqlite import DAMAGE, discard, log_of, sync_folder

logger = logging.getLogger(__name__)

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


# The record of the last commit


STORE_RECORD = "tiermem.head"
"""The name of the record in the folder of a store."""
_RECORD = struct.Struct("<4sQ32s")
_START = _RECORD.size
_SIZE = _START + 4
_PLAIN, _BUSY, _AT_REST = b"tmhd", b"tmhb", b"tmhr"
"""How a record begins: it says no more; commits came after it; none came before the next one."""
_LIKELY = 1 << 20
"""A number in a damaged record that is this much too large says nothing."""
# A bank from somebody else may have a link there, to a file that is not its own.
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class Acknowledged(NamedTuple):
    """A commit that was acknowledged, and the record that says so."""

    commit: int
    hash: bytes
    path: Path
    kind: bytes = _PLAIN
    owner: str = ""
    """The id of the bank, if the record says it."""

    def is_in(self, commit: int, digest: bytes) -> bool:
        """Whether a journal has it that ends with this commit, as far as its end shows."""
        return self.commit < commit or (self.commit, self.hash) == (commit, digest)


class Found(NamedTuple):
    """What was found of a record."""

    path: Path
    is_there: bool
    slots: Sequence[Acknowledged | None] = ()
    """None for a slot that is not whole."""
    numbers: Sequence[int] = ()
    """The commits that the slots name, whole or not."""

    @property
    def last(self) -> Acknowledged | None:
        """The last commit of a slot that is whole."""
        return max(filter(None, self.slots), key=lambda slot: slot.commit, default=None)

    @property
    def is_damaged(self) -> bool:
        """Whether the file is there and has no slot that is whole."""
        return self.is_there and self.last is None

    def warn(self) -> None:
        """Tell the log of a record that is damaged."""
        if self.is_damaged:
            logger.warning(
                "the record %s is damaged: it can't say whether the journal has lost commits",
                self.path,
            )


class HeadRecord:
    """The record in the file at ``path``, of the bank ``owner`` if it says so.

    With ``owner`` None, the record tells whose it is, also before the first commit.

    The commit is on disk before the record is written in place, and that is not synced: after a
    power cut it may be old, and never ahead. It costs one system call and no wait.
    """

    def __init__(self, path: Path, owner: str | None = "") -> None:
        self.path = path
        self.tells_owner = owner is None
        self.owner = owner
        self._file = -1
        self._next = 0
        """The slot that the next commit is written into."""

    def find(self) -> Found:
        """What is there; nothing if the file is another bank's."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return Found(self.path, False)
        except OSError:
            data = b""
        record, check, written = data[:_START], data[_START:_SIZE], data[_SIZE:]
        owner = written if self.owner is None else self.owner.encode()
        if written != owner and check == _check(record + written):
            return Found(self.path, False)
        size = _SIZE + len(owner)
        parts = [data[at : at + size] for at in range(0, len(data) or 1, size)]
        numbers = [_RECORD.unpack(part[:_START])[1] for part in parts if len(part) >= _START]
        return Found(self.path, True, [self._read(part, owner) for part in parts], numbers)

    def _read(self, data: bytes, owner: bytes) -> Acknowledged | None:
        record, check, written = data[:_START], data[_START:_SIZE], data[_SIZE:]
        if len(data) < _SIZE or written != owner or check != _check(record + owner):
            return None
        kind, commit, digest = _RECORD.unpack(record)
        is_known = kind in (_PLAIN, _BUSY, _AT_REST)
        return (
            Acknowledged(commit, digest, self.path, kind, owner.decode("utf-8", "replace"))
            if is_known
            else None
        )

    def read(self) -> Acknowledged | None:
        """What the file says; None if there is none, if it is not whole, or another bank's."""
        return self.find().last

    def update(self, commit: int, digest: bytes, *, at_rest: bool = False) -> None:
        """Record a commit if the file says something else; ``at_rest`` says that no more came."""
        said = self._saying(commit, digest, _AT_REST if at_rest else _PLAIN)
        if (commit or self.tells_owner) and self.read() != said:
            self._replace(said)

    def begin(self, commit: int, digest: bytes) -> bool:
        """Make the file ready for :meth:`write`; False, and a word in the log, if it can't be.

        If it is not there with two whole slots, it gets this commit, which the journal ends with.
        """
        found = self.find()
        if len(found.slots) != 2 or None in found.slots:
            if not self._replace(self._saying(commit, digest), slots=2):
                return False
            found = self.find()
        try:
            self._file = os.open(self.path, _FLAGS)
        except OSError as error:
            self._tell(error)
            return False
        self._next = int(found.last is found.slots[0])
        return True

    def expect_more(self, commit: int, digest: bytes, *, is_recorded: bool) -> None:
        """Say that commits come after this one, if another record will have them."""
        if not self._replace(self._saying(commit, digest, _BUSY if is_recorded else _PLAIN)):
            discard(self.path)  # it must not say that none came

    def write(self, commit: int, digest: bytes) -> None:
        """Record a commit in place, after :meth:`begin`. A failure is logged: the commit is safe.

        Where :meth:`begin` failed, it is tried again.
        """
        if self._file < 0 and not self.begin(commit, digest):
            return
        data = _packed(self._saying(commit, digest))
        try:
            os.pwrite(self._file, data, self._next * len(data))
        except OSError as error:
            self._tell(error)
        else:
            self._next = 1 - self._next

    def _saying(self, commit: int, digest: bytes, kind: bytes = _PLAIN) -> Acknowledged:
        return Acknowledged(commit, digest, self.path, kind, self.owner or "")

    def _replace(self, said: Acknowledged, slots: int = 1) -> bool:
        """Write the file anew: whoever reads it finds the old one or the new one."""
        self.close()
        try:
            replace_file(self.path, _packed(said) * slots)
            sync_folder(self.path.parent)
        except OSError as error:
            self._tell(error)
            return False
        return True

    def _tell(self, error: OSError) -> None:
        logger.warning("the last commit could not be recorded in %s: %s", self.path, error)

    def forget(self) -> None:
        """The journal is about to go back. What stays, if it tells so much, is whose journal."""
        self.close()
        said = self.read() if self.tells_owner else None
        try:
            if said is not None and said.owner:
                nothing = Acknowledged(0, bytes(32), self.path, owner=said.owner)
                replace_file(self.path, _packed(nothing))
            else:
                self.path.unlink(missing_ok=True)
        except OSError as error:
            raise CommitFailed(
                f"{self.path} could not be cleared ({error}), and so the journal can't go back; "
                "nothing was changed"
            ) from error

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = -1


def records_of(path: Path) -> list[HeadRecord]:
    """The records of the journal at ``path``; the first one is written with each commit.

    Who deletes them begins with the last one: a kill in between must not look like damage.
    """
    records = [HeadRecord(path.with_name(f"{path.name}-head"))]
    if path.name == "journal.db":  # and not one that will replace it
        records.append(HeadRecord(path.with_name("bank.head"), None))
    return records


def find_records(path: Path) -> list[Found]:
    """What is there of the records of the journal at ``path``.

    Another process may write them meanwhile. It makes the first one before the second says that
    there is one.
    """
    return [each.find() for each in reversed(records_of(path))][::-1]


def doubt(records: Sequence[Found], head: int, digest: bytes) -> str | None:
    """Why a journal that ends with this commit may have lost later ones; None if it has not.

    ``records`` are its records, none of which has a later commit.
    """
    if not records:
        return None
    record, others = records[0], records[1:]
    if any(each.last and each.last[:4] == (head, digest, each.path, _AT_REST) for each in others):
        return None
    may_have_more = record.last is None or record.last.commit >= head
    if record.is_there and None in record.slots and may_have_more:
        likely = [number for number in record.numbers if 0 < number - head <= _LIKELY]
        known = "how many are missing is not known"
        if likely:
            known = f"as far as it can be read, {max(likely)} were acknowledged"
        return f"the record {record.path} of the last one is damaged; {known}"
    if not record.is_there and any(
        each.is_damaged or (each.last is not None and each.last.kind == _BUSY) for each in others
    ):
        why = f"the record {record.path} of the last one is missing"
        return f"{why}; how many commits are missing is not known"
    return None


def _packed(said: Acknowledged) -> bytes:
    record, owner = _RECORD.pack(said.kind, said.commit, said.hash), said.owner.encode()
    return record + _check(record + owner) + owner


def _check(record: bytes) -> bytes:
    return zlib.crc32(record).to_bytes(4, "little")


# The bank of a folder


_MOST_NAMED = 3


def bank_of(folder: Path) -> str | None:
    """The id of the bank that was made in this folder; None if none was, or it can't be read."""
    said = records_of(folder / "journal.db")[-1].read()
    return said.owner if said is not None and said.owner else None


def lost_journal(folder: Path) -> BankDamaged | None:
    """The error for a folder whose journal is gone or empty although a bank was made there.

    A record says so, or a log. An empty journal beside checkpoints is lost as well, without any of
    them.
    """
    path, bank_id = folder / "journal.db", bank_of(folder)
    is_there = path.is_file()
    if is_there and path.stat().st_size:
        return None
    left = [log_of(path), *[each.path for each in records_of(path)]]
    was_bank = any(map(_has_bytes, left))
    if not was_bank and not is_there:
        return None
    found = checkpoints_of(folder, bank_id)
    if not was_bank and not any(each.is_relative_to(folder) for each in found):
        return None
    named = ", ".join(map(str, found[:_MOST_NAMED]))
    help_of = "restore journal.db from a backup"
    if found:
        call = f"MemoryBank.restore({str(found[0])!r}, {str(folder)!r})"
        help_of += f", or a checkpoint ({named}) with {call}"
    return BankDamaged(
        f"the journal {path} is {'empty' if is_there else 'missing'}, and a bank was made in "
        f"{folder}: the journal was lost; nothing was changed",
        hint=f"{help_of}; to start anew, use another folder, or delete {quote(str(folder))}",
    )


def _has_bytes(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False
