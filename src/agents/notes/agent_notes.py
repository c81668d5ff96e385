"""One agent's Markdown notes: plain files that a person may edit, indexed as memories."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, final

from agents.engine import Staged
from agents.errors import InvalidInput, NoteRefused, TierMemError
from agents.memory.records import Memory
from agents.memory.retention import Retention
from agents.memory.tiers import Tier
from agents.notes.chunks import Chunk, cut, split_lines
from agents.notes.files import NoteFiles, check_text
from agents.storage.note import Note

if TYPE_CHECKING:
    from agents.bank import MemoryBank

__all__ = ["LONG_TERM", "AgentNotes", "NoteLines", "Synced", "files_of", "notes_in", "settle"]

_FILES_AT_ONCE = 16
_Changed = tuple[str, str | None, list[Chunk]]
"""The path of a note, its text on disk, and the chunks of it."""

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


class Synced(NamedTuple):
    """What became of the notes on disk."""

    changed: tuple[str, ...]
    """The notes that were indexed, or indexed again."""
    removed: tuple[str, ...]
    """The notes that are gone."""
    unchanged: int
    problems: tuple[str, ...]
    """What could not be indexed and why; such a note is found as it was before."""


@final
class AgentNotes:
    """The notes of one agent: ``MEMORY.md`` for what lasts, and ``memory/*.md`` by day or by tick.

    Made by :attr:`AgentMemory.notes`. In a bank with a folder they are files in ``notes/AGENT``;
    in one without, they are kept with the memories alone. Each note is indexed: its chunks are
    memories of the kind ``note``, found by every search. What is written here is committed like
    any memory, and the file appears with the commit.
    """

    __slots__ = ("_bank", "_files", "agent_id")

    def __init__(self, bank: "MemoryBank", agent_id: str) -> None:
        self._bank = bank
        self.agent_id = agent_id
        self._files = files_of(bank, agent_id)

    def __repr__(self) -> str:
        return f"<AgentNotes {self.agent_id}: {len(self._kept())} notes>"

    # Reading

    def paths(self) -> list[str]:
        """The notes that there are, ``MEMORY.md`` first."""
        with self._bank._using():
            self.sync()
            return sorted(self._kept(), key=_order)

    def read(self, path: str = LONG_TERM) -> str:
        """The text of a note; empty if there is none."""
        with self._bank._using():
            note = self._fresh(self._check(path))
            return "" if note is None else note.text

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
        path = memory.metadata.get("path")
        with self._bank._using():
            note = self._kept().get(path) if isinstance(path, str) else None
        lines = note.lines_of(memory.sequence) if note is not None else None
        if memory.kind != "note" or lines is None:
            return None
        first, last = lines
        return f"{path}#L{first}" if first == last else f"{path}#L{first}-L{last}"

    # Writing

    def daily_path(self) -> str:
        """The note of today, or in a simulation, of this tick."""
        how, tick = self._bank.settings.notes.daily, self._bank.tick
        if how == "tick" or (how == "auto" and tick > 0):
            return f"memory/tick-{tick:06}.md"
        return f"memory/{date.today().isoformat()}.md"  # noqa: DTZ011  # a person's own day

    def append(self, text: str, path: str | None = None) -> str:
        """Add lines to a note, of today unless told; make it, if there is none. Its path."""
        with self._writing():
            place = self._writable(self.daily_path() if path is None else path)
            note = self._fresh(place)
            old = "" if note is None else note.text
            between = "" if not old or old.endswith(("\n", "\r")) else "\n"
            end = "" if _checked(text).endswith(("\n", "\r")) else "\n"
            self._put(place, f"{old}{between}{text}{end}")
            return place

    def write(self, path: str, text: str) -> None:
        """Give a note this text, whatever it was before."""
        with self._writing():
            place = self._writable(path)
            self._fresh(place)
            self._put(place, _checked(text))

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace ``old``, which must be in the note exactly once, by ``new``."""
        with self._writing():
            place = self._writable(path)
            note = self._fresh(place)
            found = 0 if note is None else note.text.count(_checked(old)) if old else 0
            if note is None or found != 1:
                times = "not there" if not found else f"there {found} times"
                raise InvalidInput(
                    f"the text to replace must be in {place} exactly once; it is {times}"
                )
            self._put(place, note.text.replace(old, _checked(new)))

    # The index

    def sync(self) -> Synced:
        """Index what changed on disk since it was last looked at."""
        with self._bank._using():
            if not self._bank._ledger.in_transaction:
                self._bank._settle_notes()
            return self._look()

    def _look(self) -> Synced:
        changed: list[str] = []
        removed: list[str] = []
        problems: list[str] = []
        unchanged = 0
        kept, files = self._kept(), self._files
        if files is None:
            return Synced((), (), len(kept), ())
        try:
            there = dict.fromkeys([*files.paths(), *kept])
        except NoteRefused as error:
            return Synced((), (), 0, (str(error),))
        found: list[_Changed] = []
        for path in there:
            try:
                note = kept.get(path)
                text = self._on_disk(path, note)
                if note is not None and text == note.text:
                    unchanged += 1
                else:
                    found.append((path, text, self._cut(text)))
            except (TierMemError, ValueError) as error:
                problems.append(f"{path}: {error}")
        for path, text, chunks in self._embedded(found):
            try:
                with self._bank._changing():
                    self._index(path, text, chunks)
                (removed if text is None else changed).append(path)
            except (TierMemError, ValueError) as error:
                problems.append(f"{path}: {error}")
        return Synced(tuple(changed), tuple(removed), unchanged, tuple(problems))

    def _embedded(self, found: list[_Changed]) -> Iterator[_Changed]:
        """The same, their chunks embedded many files at a time, which is faster."""
        for start in range(0, len(found), _FILES_AT_ONCE):
            together = found[start : start + _FILES_AT_ONCE]
            with suppress(TierMemError):  # who stores them is told
                self._bank._embedder.encode([each.text for _, _, own in together for each in own])
            yield from together

    def _fresh(self, path: str) -> Note | None:
        """A note as it is on disk now."""
        note = self._kept().get(path)
        text = self._on_disk(path, note)
        if text != (None if note is None else note.text):
            with self._bank._changing():
                self._index(path, text, self._cut(text))
        return self._kept().get(path)

    def _on_disk(self, path: str, note: Note | None) -> str | None:
        """The text on disk, unless what is there waits to be replaced by a commit."""
        waiting = self._bank._staged.get((self.agent_id, path))
        is_ahead = waiting is not None and note is not None and note.text in waiting.texts
        if self._files is None or is_ahead:
            return None if note is None else note.text
        return self._files.read(path)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._bank._using():
            if not self._bank._ledger.in_transaction:
                self._bank._settle_notes()  # those of a transaction that was undone
            with self._bank._changing():
                yield

    def _put(self, path: str, text: str) -> None:
        """Index a text, and have the file written when that is committed."""
        check_text(path, text)
        files = self._files
        if files is not None:
            files.stage(path, text)
            before = self._kept().get(path)
            base = None if before is None else before.text
            waiting = Staged(partial(self._settle, files, path, base), set())
            self._bank._staged.setdefault((self.agent_id, path), waiting).texts.add(text)
        self._index(path, text, self._cut(text))

    def _settle(self, files: NoteFiles, path: str, base: str | None) -> None:
        """The transaction that staged a note is over; whether it was kept, the journal knows.

        ``base`` is what was on disk before: a transaction inside may have been undone after it
        staged something else, and then the text that was kept is written now.
        """
        note = self._kept().get(path)
        if settle(files, path, None if note is None else note.text) or note is None:
            return
        if note.text != base and files.read(path) == base:
            files.stage(path, note.text)
            files.publish(path)

    def _cut(self, text: str | None) -> list[Chunk]:
        settings, count = self._bank.settings.notes, self._bank._retrieval.count_tokens
        if text is None:
            return []
        return cut(text, settings.chunk_tokens, settings.chunk_overlap, count)

    def _index(self, path: str, text: str | None, chunks: list[Chunk]) -> None:
        old = self._kept().get(path)
        numbers = self._reusable(old, [] if old is None else self._cut(old.text))
        places = [numbers.get((chunk.text, chunk.tier), []) for chunk in chunks]
        reused = [own.pop(0) if own else None for own in places]
        gone = set() if old is None else {number for number, _, _ in old.chunks}
        self._drop(sorted(gone.difference(reused)))
        new = [chunk for chunk, number in zip(chunks, reused, strict=True) if number is None]
        added = iter(self._add(path, new))
        self._bank._ledger.noted(
            self.agent_id,
            path,
            text,
            [
                (next(added).sequence if number is None else number, chunk.first, chunk.last)
                for chunk, number in zip(chunks, reused, strict=True)
            ],
        )

    def _reusable(
        self, old: Note | None, chunks: list[Chunk]
    ) -> dict[tuple[str, Tier | None], list[int]]:
        """The memories of chunks that may still be there, by their text and tier."""
        found: dict[tuple[str, Tier | None], list[int]] = {}
        if old is None or [each[1:3] for each in chunks] != [each[1:] for each in old.chunks]:
            return found  # it was cut by other settings
        resident = self._bank._ledger.resident
        for chunk, (number, _, _) in zip(chunks, old.chunks, strict=True):
            memory = resident.memory(self.agent_id, number)
            if memory is not None and memory.retention is not Retention.DELETED:
                found.setdefault((chunk.text, chunk.tier), []).append(number)
        return found

    def _drop(self, numbers: Iterable[int]) -> None:
        ledger = self._bank._ledger
        gone = []
        for number in numbers:
            memory = ledger.resident.memory(self.agent_id, number)
            if memory is None or memory.retention is Retention.DELETED:
                continue
            if memory.tier is Tier.PINNED:  # the note says so no longer
                ledger.change_tier(memory, Tier.NORMAL, demoted=False)
            gone.append(number)
        ledger.retain(self.agent_id, gone, Retention.DELETED, "set")

    def _add(self, path: str, chunks: list[Chunk]) -> list[Memory]:
        return self._bank.add_many(
            (
                self.agent_id,
                chunk.text,
                Tier.NORMAL if chunk.tier is None else chunk.tier,
                {"path": path},
                {"kind": "note"},
            )
            for chunk in chunks
        )

    def _kept(self) -> dict[str, Note]:
        return self._bank._ledger.resident.block(self.agent_id).notes

    def _check(self, path: object) -> str:
        if isinstance(path, str) and path in self._kept():  # a copy of a bank has no extra files
            return path
        return (self._files or NoteFiles(Path("notes"))).check(path)

    def _writable(self, path: object) -> str:
        place = self._check(path)
        if place.startswith("extra/"):
            raise NoteRefused(f"{place!r:.80} is an extra note, which is only read")
        if self._bank.settings.notes.read_only:
            raise NoteRefused(f"{place!r:.80} can't be written: notes.read_only is true")
        return place


def files_of(bank: "MemoryBank", agent_id: str) -> NoteFiles | None:
    """Where an agent's notes are; None for a bank without a folder."""
    folder = bank._folder
    return None if folder is None else notes_in(folder, agent_id, bank.settings.notes.extra_paths)


def notes_in(folder: Path, agent_id: str, extra: Iterable[str]) -> NoteFiles:
    """An agent's notes in a bank's folder, and the extra ones."""
    return NoteFiles(folder / "notes" / agent_id, [folder / path for path in extra])


def settle(files: NoteFiles, path: str, text: str | None) -> bool:
    """Make a staged note the note if the journal has that text; else drop it. Whether it has."""
    try:
        is_wanted = text is not None and files.read_staged(path) == text
    except NoteRefused:  # a part of a text
        is_wanted = False
    if is_wanted:
        files.publish(path)
    else:
        files.discard(path)
    return is_wanted


def _order(path: str) -> tuple[bool, bool, str]:
    """The long-term note first, extra ones last."""
    return path != LONG_TERM, path.startswith("extra/"), path


def _checked(text: object) -> str:
    if not isinstance(text, str):
        raise InvalidInput(f"a note's text is text, not {type(text).__name__}")
    return text
