"""One agent's Markdown notes: plain files that people may edit, indexed as memories."""

from contextlib import suppress
from datetime import date
from typing import NamedTuple, final

from ..errors import EmbedderError, InvalidInput, TierFull
from ..memory.records import Memory
from ..storage.note import is_transcript
from .files import is_extra
from .index import NoteIndex, Place, Synced
from .markdown import split_lines

_NOT_INDEXED = (InvalidInput, TierFull, EmbedderError)
"""The errors of a note whose text can't become memories."""

LONG_TERM = "MEMORY.md"
"""The note for what lasts; each other note is of one day or one tick."""


class NoteLines(NamedTuple):
    """Consecutive lines of a note."""

    path: str
    first: int
    """The number of the first line, from 1."""
    last: int
    """The number of the last line; less than ``first`` if there are no lines."""
    text: str


@final
class AgentNotes:
    """The notes of one agent: ``MEMORY.md`` for what lasts, and ``memory/*.md`` by day or by tick.

    Notes may be in folders below ``memory/``. With ``notes.transcripts``, the transcripts
    ``sessions/*.jsonl`` are read like notes, and never written.

    Made by :attr:`AgentMemory.notes`. In a bank with a folder, the notes are files in
    ``notes/AGENT``; in a bank without a folder, only the journal has them. Each note is indexed:
    its chunks are memories of the kind ``note``, which every search finds. A written note is
    committed like a memory, and its file appears with the commit. A path that no note may have
    raises :class:`NoteRefused`.
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
        """The paths of the agent's notes, ``MEMORY.md`` first, extra notes last."""
        with self._bank.using():
            self.sync()
            return sorted(self._index.kept(), key=_order)

    def read(self, path: str = LONG_TERM) -> str:
        """The text of a note as it is on disk; empty if the note does not exist."""
        with self._bank.using():
            place = self._index.check(path)
            if is_transcript(place):
                return "".join(self._index.messages(place, 1, None))
            text = self._index.on_disk(place)
            with suppress(*_NOT_INDEXED):  # sync() reports it
                self._index.take(place, text)
            return text or ""

    def lines(self, path: str, from_line: int = 1, lines: int | None = None) -> NoteLines:
        """The exact lines of a note from ``from_line`` on: ``lines`` of them, or all."""
        for name, value, least in (("from_line", from_line, 1), ("lines", lines, 0)):
            is_whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
            if not is_whole and not (name == "lines" and value is None):
                raise InvalidInput(f"{name} {value!r:.40} is not a whole number from {least} on")
        if is_transcript(self._index.check(path)):
            with self._bank.using():
                chosen = self._index.messages(path, from_line, lines)
        else:
            stop = None if lines is None else from_line - 1 + lines
            chosen = split_lines(self.read(path))[from_line - 1 : stop]
        return NoteLines(path, from_line, from_line - 1 + len(chosen), "".join(chosen))

    def citation(self, memory: Memory) -> str | None:
        """The place of a memory of the kind ``note``, such as ``memory/2026-01-20.md#L50-L55``.

        None for any other memory, and for a chunk that its note no longer has.
        """
        place = self.place(memory)
        return None if place is None else str(place)

    def place(self, memory: Memory) -> Place | None:
        """The path and lines of a memory, whether searches cite it or not; as text, its citation.

        None for a memory that is no chunk of a note, or no longer.
        """
        return self._index.place(memory)

    # Writing

    def daily_path(self) -> str:
        """The path of today's note, or in a simulation, of the note of this tick."""
        with self._bank.using():
            how, tick = self._bank.settings.notes.daily, self._bank.tick
        is_counted = tick > 0 and self._bank.settings.clock.mode == "ticks"
        if how == "tick" or (how == "auto" and is_counted):
            return f"memory/tick-{tick:06}.md"
        return f"memory/{date.today().isoformat()}.md"  # noqa: DTZ011  # a person's own day

    def append(self, text: str, path: str | None = None) -> str:
        """Append lines to a note, by default the daily note, or make it; the note's path."""
        with self._index.writing():
            place = self._index.writable(self.daily_path() if path is None else path)
            note = self._index.fresh(place)
            old = "" if note is None else note.text
            between = "" if not old or old.endswith(("\n", "\r")) else "\n"
            end = "" if _checked(text).endswith(("\n", "\r")) else "\n"
            self._index.put(place, f"{old}{between}{text}{end}", None if note is None else old)
            return place

    def write(self, path: str, text: str) -> None:
        """Replace the whole text of a note, or make the note."""
        with self._index.writing():
            place = self._index.writable(path)
            there = self._index.on_disk(place)
            with suppress(*_NOT_INDEXED):  # the replaced text need not be valid
                self._index.take(place, there)
            self._index.put(place, _checked(text), there)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace ``old`` by ``new``; :class:`InvalidInput` unless the note has ``old`` once."""
        with self._index.writing():
            place = self._index.writable(path)
            note = self._index.fresh(place)
            found = 0 if note is None else _times(note.text, _checked(old))
            if note is None or found != 1:
                times = "not there" if not found else f"there {found} times"
                raise InvalidInput(
                    f"the text to replace must be in {place} exactly once; it is {times}",
                    hint="give more of the text around it" if found else "read the note first",
                )
            self._index.put(place, note.text.replace(old, _checked(new)), note.text)

    def sync(self) -> Synced:
        """Index the notes that changed on disk since the last look."""
        return self._index.sync()


def _times(text: str, part: str) -> int:
    """How many times a text has a part; none for an empty part. Two that overlap are two."""
    if not part or part not in text:
        return 0
    is_alone = text.find(part) == text.rfind(part)
    return 1 if is_alone else max(2, text.count(part))


def _order(path: str) -> tuple[bool, bool, str]:
    """The sort key: the long-term note first, extra notes last."""
    return path != LONG_TERM, is_extra(path), path


def _checked(text: object) -> str:
    if not isinstance(text, str):
        raise InvalidInput(f"a note's text is text, not {type(text).__name__}")
    return text
