"""One agent's Markdown notes: plain files that a person may edit, indexed as memories."""

from contextlib import suppress
from datetime import date
from typing import NamedTuple, final

from ..errors import EmbedderError, InvalidInput, TierFull
from ..memory.records import Memory
from .chunks import split_lines
from .files import is_extra
from .index import NoteIndex, Synced

__all__ = ["LONG_TERM", "AgentNotes", "NoteLines"]

_NOT_INDEXED = (InvalidInput, TierFull, EmbedderError)
"""Why the text of a note may be no memories."""

LONG_TERM = "MEMORY.md"
"""The note for what lasts; the others are of one day, or of one tick."""


class NoteLines(NamedTuple):
    """Some lines of a note."""

    path: str
    first: int
    """The number of the first line, from 1."""
    last: int
    """The number of the last; less than the first where there are none."""
    text: str


@final
class AgentNotes:
    """The notes of one agent: ``MEMORY.md`` for what lasts, and ``memory/*.md`` by day or by tick.

    Made by :attr:`AgentMemory.notes`. In a bank with a folder they are files in ``notes/AGENT``;
    in one without, they are kept with the memories alone. Each note is indexed: its chunks are
    memories of the kind ``note``, found by every search. What is written here is committed like
    any memory, and the file appears with the commit.
    """

    __slots__ = ("_bank", "_index", "agent_id")

    def __init__(self, index: NoteIndex) -> None:
        self.agent_id = index.agent_id
        self._bank = index.bank
        self._index = index

    def __repr__(self) -> str:
        return f"<AgentNotes {self.agent_id}: {len(self._index.kept())} notes>"

    # Reading

    def paths(self) -> list[str]:
        """The notes that there are, ``MEMORY.md`` first."""
        with self._bank.using():
            self.sync()
            return sorted(self._index.kept(), key=_order)

    def read(self, path: str = LONG_TERM) -> str:
        """The text of a note as it is on disk, indexed or not; empty if there is none."""
        with self._bank.using():
            place = self._index.check(path)
            text = self._index.on_disk(place)
            with suppress(*_NOT_INDEXED):  # which sync() says
                self._index.take(place, text)
            return text or ""

    def lines(self, path: str, from_line: int = 1, lines: int | None = None) -> NoteLines:
        """These lines of a note, exactly; all from ``from_line`` on unless told how many."""
        for name, value, least in (("from_line", from_line, 1), ("lines", lines, 0)):
            is_whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
            if not is_whole and not (name == "lines" and value is None):
                raise InvalidInput(f"{name} {value!r:.40} is not a whole number from {least} on")
        every = split_lines(self.read(path))
        stop = len(every) if lines is None else min(len(every), from_line - 1 + lines)
        chosen = every[from_line - 1 : stop]
        return NoteLines(path, from_line, from_line - 1 + len(chosen), "".join(chosen))

    def citation(self, memory: Memory) -> str | None:
        """Where a memory of the kind ``note`` stands, such as ``memory/2026-01-20.md#L50-L55``."""
        return self._index.citation(memory)

    # Writing

    def daily_path(self) -> str:
        """The note of today, or in a simulation, of this tick."""
        how, tick = self._bank.settings.notes.daily, self._bank.tick
        if how == "tick" or (how == "auto" and tick > 0):
            return f"memory/tick-{tick:06}.md"
        return f"memory/{date.today().isoformat()}.md"  # noqa: DTZ011  # a person's own day

    def append(self, text: str, path: str | None = None) -> str:
        """Add lines to a note, of today unless told; make it, if there is none. Its path."""
        with self._index.writing():
            place = self._index.writable(self.daily_path() if path is None else path)
            note = self._index.fresh(place)
            old = "" if note is None else note.text
            between = "" if not old or old.endswith(("\n", "\r")) else "\n"
            end = "" if _checked(text).endswith(("\n", "\r")) else "\n"
            self._index.put(place, f"{old}{between}{text}{end}", None if note is None else old)
            return place

    def write(self, path: str, text: str) -> None:
        """Give a note this text, whatever it was before."""
        with self._index.writing():
            place = self._index.writable(path)
            there = self._index.on_disk(place)
            with suppress(*_NOT_INDEXED):  # what is replaced need not be right
                self._index.take(place, there)
            self._index.put(place, _checked(text), there)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace ``old``, which must be in the note exactly once, by ``new``."""
        with self._index.writing():
            place = self._index.writable(path)
            note = self._index.fresh(place)
            found = 0 if note is None else note.text.count(_checked(old)) if old else 0
            if note is None or found != 1:
                times = "not there" if not found else f"there {found} times"
                raise InvalidInput(
                    f"the text to replace must be in {place} exactly once; it is {times}",
                    hint="give more of the text around it" if found else "read the note first",
                )
            self._index.put(place, note.text.replace(old, _checked(new)), note.text)

    def sync(self) -> Synced:
        """Index what changed on disk since it was last looked at."""
        return self._index.sync()


def _order(path: str) -> tuple[bool, bool, str]:
    """The long-term note first, extra ones last."""
    return path != LONG_TERM, is_extra(path), path


def _checked(text: object) -> str:
    if not isinstance(text, str):
        raise InvalidInput(f"a note's text is text, not {type(text).__name__}")
    return text
