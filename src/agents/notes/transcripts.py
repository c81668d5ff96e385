"""Transcripts of sessions: files of other programs, with one message as JSON in each line.

A transcript only grows, so that what was read once is not read again. The journal has no text of
it, only a bookmark and the memories of its chunks.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple, Self

from ..errors import NoteRefused
from ..memory.context import TokenCounter
from ..storage.note import Note, is_transcript
from .files import MOST_BYTES
from .markdown import Chunk, parts, split_lines

_CHECKED = 4096
"""How many of the first and of the last bytes tell whether a file was replaced."""
_UNSEEN = frozenset({"system", "developer", "tool", "toolResult", "function"})
"""The roles of messages that nobody said."""
_MOST_NAMED = 5


class Bookmark(NamedTuple):
    """How far a transcript was read. In the journal, it stands for the text of the file."""

    size: int
    """The bytes of the lines that were read."""
    lines: int
    open_size: int
    """The bytes before the last chunk, to which the next messages may be added."""
    open_lines: int
    check: str
    """A hash over the first and the last bytes that were read."""

    @classmethod
    def of(cls, text: str) -> Self:
        """The bookmark that the journal has."""
        return cls(**json.loads(text))

    @property
    def text(self) -> str:
        """The bookmark as the journal has it."""
        return json.dumps(self._asdict())


class Grown(NamedTuple):
    """What is new in a transcript."""

    bookmark: Bookmark
    kept: int
    """How many lines have chunks that stay."""
    chunks: list[Chunk]
    """The chunks of the other lines."""
    skipped: str
    """The new lines that are not JSON objects, in words; empty if there are none."""


class _Line(NamedTuple):
    number: int
    end: int
    """Where in the file the line ends."""
    message: str | None
    """Who said what, in one line; empty if it is not a message; None if it can't be read."""


def grown(file: int, old: Bookmark | None, tokens: int, count: TokenCounter) -> Grown | None:
    """What is new in an open transcript since a bookmark; None if there is nothing.

    A file that does not begin with what was read is read anew.
    """
    size = os.fstat(file).st_size
    if old is not None and (size < old.size or _check(file, old.size) != old.check):
        old = None
    if old is not None and size == old.size:
        return None
    start = old or Bookmark(0, 0, 0, 0, "")
    cutter = _Cutter(start, tokens, count)
    bad: list[int] = []
    end = start.open_size
    for line in _lines(file, start.open_size, start.open_lines):
        cutter.add(line)
        end = line.end
        if line.message is None and line.number > start.lines:
            bad.append(line.number)
    if old is not None and end <= old.size:
        return None
    bookmark = Bookmark(end, cutter.lines, cutter.open_size, cutter.open_lines, _check(file, end))
    return Grown(bookmark, start.open_lines, cutter.chunks(), _named(bad))


def lines_of(file: int, first: int, most: int | None) -> list[str]:
    """Messages of an open transcript from line ``first`` on, each as one line."""
    wanted = islice(_lines(file, 0, 0), first - 1, None if most is None else first - 1 + most)
    found, size = list[str](), 0
    for line in wanted:
        found.append(f"{line.message or ''}\n")
        size += len(found[-1].encode())
        if size > MOST_BYTES:
            raise NoteRefused(
                f"the messages from line {first} on have over {MOST_BYTES} bytes",
                hint="ask for fewer lines",
            )
    return found


def length_of(path: str, note: Note) -> tuple[int, int]:
    """How many lines and bytes a note or a transcript has."""
    if not is_transcript(path):
        return len(split_lines(note.text)), len(note.text.encode())
    read = Bookmark.of(note.text)
    return read.lines, read.size


class _Cutter:
    """Puts messages into chunks. Where a chunk ends depends on no later message but the next."""

    def __init__(self, start: Bookmark, tokens: int, count: TokenCounter) -> None:
        self.open_size, self.open_lines = start.open_size, start.open_lines
        self.lines, self._end = start.open_lines, start.open_size
        self._tokens = tokens
        self._count = count
        self._done: list[Chunk] = []
        self._open: list[tuple[int, str]] = []
        self._left = tokens

    def add(self, line: _Line) -> None:
        """Take the next line of the file."""
        if line.message:
            text = f"{line.message}\n"
            cost = self._count(text)
            if cost > self._left or not self._open:
                self._close()
            if cost > self._tokens:
                own = parts(text, cost, self._tokens, self._count)
                self._done += [Chunk(each, line.number, line.number, None) for each in own]
                self.open_size, self.open_lines = line.end, line.number
            else:
                self._open.append((line.number, text))
                self._left -= cost
        self.lines, self._end = line.number, line.end

    def chunks(self) -> list[Chunk]:
        """The chunks of all lines so far."""
        return self._done + self._last()

    def _close(self) -> None:
        self._done += self._last()
        self._open, self._left = [], self._tokens
        self.open_size, self.open_lines = self._end, self.lines

    def _last(self) -> list[Chunk]:
        if not self._open:
            return []
        text = "".join([each for _, each in self._open])
        return [Chunk(text, self._open[0][0], self._open[-1][0], None)]


def _lines(file: int, start: int, number: int) -> Iterator[_Line]:
    """The lines of a file from a place on. A last line without its end is not there yet."""
    end = start
    with open(os.dup(file), "rb") as reader:
        reader.seek(start)
        while line := reader.readline(MOST_BYTES):
            end += len(line)
            is_long = not line.endswith(b"\n")
            while is_long and not line.endswith(b"\n"):
                line = reader.readline(MOST_BYTES)
                end += len(line)
                if not line:
                    return
            number += 1
            yield _Line(number, end, None if is_long else _message(line))


def _message(line: bytes) -> str | None:
    """Who said what: ``role`` and ``content``, at the top of the object or one level below."""
    try:
        given = json.loads(line.decode()) if line.strip() else {}
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict):
        return None
    for each in (given, given.get("message"), given.get("payload")):
        if not isinstance(each, dict) or not isinstance(role := each.get("role"), str):
            continue
        said = " ".join(_texts(each.get("content")))
        return _plain(f"{role}: {said}") if said.strip() and role not in _UNSEEN else ""
    return ""


def _texts(content: Any) -> Iterator[str]:
    """The texts of a message: one, or those among its parts; pictures and calls have none."""
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            yield text


def _plain(text: str) -> str:
    """A text in one line that every memory may have."""
    whole = text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    return " ".join(whole.split())


def _check(file: int, size: int) -> str:
    first = os.pread(file, min(size, _CHECKED), 0)
    last = os.pread(file, min(size, _CHECKED), max(0, size - _CHECKED))
    return hashlib.sha256(first + last).hexdigest()[:16]


def _named(lines: Iterable[int]) -> str:
    """Lines that were skipped, in words."""
    numbers = list(lines)
    shown = ", ".join(map(str, numbers[:_MOST_NAMED]))
    more = f" and {len(numbers) - _MOST_NAMED} more" if len(numbers) > _MOST_NAMED else ""
    if not numbers:
        return ""
    what = "line" if len(numbers) == 1 else "lines"
    return f"{what} {shown}{more} skipped: no JSON object, or over {MOST_BYTES} bytes"
