"""One agent's Markdown notes: plain files that a person may edit, indexed as memories."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, final

from ..engine.open_bank import Staged
from ..errors import EmbedderError, InvalidInput, NoteRefused, TierFull, TierMemError
from ..memory.checks import check_content
from ..memory.records import Memory
from ..memory.requests import NewBatch, check_new
from ..memory.retention import Retention
from ..memory.tiers import Tier
from ..storage.note import Note
from .chunks import Chunk, cut, split_lines
from .files import NoteFiles, check_text, is_extra, notes_in
from .prefetch import Changed, embedded
from .settling import mark_of, settle, stage

if TYPE_CHECKING:
    from ..bank.memory_bank import MemoryBank

__all__ = ["LONG_TERM", "AgentNotes", "NoteLines", "Synced", "files_of", "notes_in"]

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
        """The text of a note as it is on disk, indexed or not; empty if there is none."""
        with self._bank._using():
            place = self._check(path)
            text = self._on_disk(place)
            with suppress(*_NOT_INDEXED):  # which sync() says
                self._take(place, text)
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
            self._put(place, f"{old}{between}{text}{end}", None if note is None else old)
            return place

    def write(self, path: str, text: str) -> None:
        """Give a note this text, whatever it was before."""
        with self._writing():
            place = self._writable(path)
            there = self._on_disk(place)
            with suppress(*_NOT_INDEXED):  # what is replaced need not be right
                self._take(place, there)
            self._put(place, _checked(text), there)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace ``old``, which must be in the note exactly once, by ``new``."""
        with self._writing():
            place = self._writable(path)
            note = self._fresh(place)
            found = 0 if note is None else note.text.count(_checked(old)) if old else 0
            if note is None or found != 1:
                times = "not there" if not found else f"there {found} times"
                raise InvalidInput(
                    f"the text to replace must be in {place} exactly once; it is {times}",
                    hint="give more of the text around it" if found else "read the note first",
                )
            self._put(place, note.text.replace(old, _checked(new)), note.text)

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
        found: list[tuple[str, str | None]] = []
        for path in self._there(problems):
            try:
                note = self._kept().get(path)
                text = self._on_disk(path)
                if text == (None if note is None else note.text) and not self._lacks(note):
                    unchanged += 1
                else:
                    found.append((path, text))
            except (TierMemError, ValueError) as error:
                problems.append(f"{path}: {error}")
        for path, text, chunks in embedded(self._bank._embedder, self._cuts(found, problems)):
            try:
                with self._bank._changing():
                    self._index(path, text, chunks)
                (removed if text is None else changed).append(path)
            except (TierMemError, ValueError) as error:
                problems.append(f"{path}: {error}")
        return Synced(tuple(changed), tuple(removed), unchanged, tuple(problems))

    def _there(self, problems: list[str]) -> list[str]:
        """The notes to look at: on disk, and in the journal.

        Those of a folder that can't be listed are left alone, and that is a problem.
        """
        kept, files = list(self._kept()), self._files
        if files is None:
            return kept
        found: dict[str, None] = {}
        for item in (None, *files.extra_items()):
            try:
                there = files.own_paths() if item is None else files.extra_paths(item)
                own = [path for path in kept if _item(path) == item]
                found |= dict.fromkeys([*there, *own])
            except NoteRefused as error:
                problems.append(str(error))
        known = {None, *files.extra_items()}
        return [*found, *(path for path in kept if _item(path) not in known)]

    def _lacks(self, note: Note | None) -> bool:
        """Whether a part of it is no memory: it was forgotten later, before the bank went back."""
        if note is None:
            return False
        resident = self._bank._ledger.resident
        _, others = resident.block(self.agent_id).rows_of([number for number, _, _ in note.chunks])
        return bool(others) and len(resident.memories(self.agent_id, others)) < len(others)

    def _cuts(
        self, found: Iterable[tuple[str, str | None]], problems: list[str]
    ) -> Iterator[Changed]:
        for path, text in found:
            try:
                chunks = self._cut(text)
            except (TierMemError, ValueError) as error:
                problems.append(f"{path}: {error}")
            else:
                yield Changed(path, text, chunks)

    def _fresh(self, path: str) -> Note | None:
        """A note as it is on disk now."""
        self._take(path, self._on_disk(path))
        return self._kept().get(path)

    def _take(self, path: str, text: str | None) -> None:
        """Index the text of a note, if it is another than before."""
        note = self._kept().get(path)
        if text != (None if note is None else note.text):
            with self._bank._changing():
                self._index(path, text, self._cut(text))

    def _on_disk(self, path: str) -> str | None:
        """The text on disk, or what will be there because the journal is ahead."""
        note = self._kept().get(path)
        is_unknown = (self.agent_id, "") in self._bank._staged
        if self._files is None or is_unknown or self._base(path) is not None:
            return None if note is None else note.text
        return self._files.read(path)

    def _base(self, path: str) -> str | None:
        """What the note as it is replaces on disk; None if it is not staged."""
        note, waiting = self._kept().get(path), self._bank._staged.get((self.agent_id, path))
        return None if note is None or waiting is None else waiting.bases.get(note.token)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._bank._using():
            if not self._bank._ledger.in_transaction:
                self._bank._settle_notes()  # those of a transaction that was undone
            with self._bank._changing():
                yield

    def _put(self, path: str, text: str, there: str | None) -> None:
        """Index a text, and have the file written when that is committed.

        ``there`` is the text that is replaced, of a commit before or of this one.
        """
        check_text(path, text)
        base = self._base(path) or mark_of(there)
        self._index(path, text, self._cut(text))
        note = self._kept()[path]
        if self._files is not None:
            waiting = self._waiting(path)
            if note.token not in waiting.bases:
                stage(self._files, path, note, base)
                waiting.bases[note.token] = base

    def _waiting(self, path: str) -> Staged:
        """What is staged of a note."""
        own = Staged(partial(self._settle, path), {})
        return self._bank._staged.setdefault((self.agent_id, path), own)

    def _settle(self, path: str) -> None:
        """The transaction that staged a note is over; whether it was kept, the journal knows."""
        if self._files is not None:
            settle(self._files, path, self._kept().get(path), self._waiting(path).bases)

    def _cut(self, text: str | None) -> list[Chunk]:
        settings, count = self._bank.settings.notes, self._bank._retrieval.count_tokens
        if text is None:
            return []
        return cut(text, settings.chunk_tokens, settings.chunk_overlap, count)

    def _index(self, path: str, text: str | None, chunks: list[Chunk]) -> None:
        old = self._kept().get(path)
        known = [] if old is None else self._known(old)
        numbers: dict[tuple[str, Tier | None], list[int]] = {}
        for chunk, memory in known:
            numbers.setdefault((chunk.text, chunk.tier), []).append(memory.sequence)
        places = [numbers.get((chunk.text, chunk.tier), []) for chunk in chunks]
        reused = [own.pop(0) if own else None for own in places]
        gone = set() if old is None else {number for number, _, _ in old.chunks}
        gone.difference_update(reused)
        self._drop(sorted(gone))
        lost = [(chunk, memory) for chunk, memory in known if memory.sequence in gone]
        new = [chunk for chunk, number in zip(chunks, reused, strict=True) if number is None]
        added = iter(self._add(path, [(chunk, _tier_of(chunk, lost)) for chunk in new]))
        self._bank._ledger.noted(
            self.agent_id,
            path,
            text,
            [
                (next(added).sequence if number is None else number, chunk.first, chunk.last)
                for chunk, number in zip(chunks, reused, strict=True)
            ],
        )

    def _known(self, old: Note) -> list[tuple[Chunk, Memory]]:
        """The chunks of a note whose memories are there as they were made."""
        chunks = self._cut(old.text)
        if [each[1:3] for each in chunks] != [each[1:] for each in old.chunks]:
            return []  # it was cut by other settings
        found = []
        for chunk, (number, _, _) in zip(chunks, old.chunks, strict=True):
            memory = self._bank._ledger.resident.memory(self.agent_id, number)
            if memory is None or memory.retention is Retention.DELETED:
                continue
            if memory.content == chunk.text:
                found.append((chunk, memory))
        return found

    def _drop(self, numbers: Iterable[int]) -> None:
        ledger = self._bank._ledger
        gone = []
        for number in numbers:
            memory = ledger.resident.memory(self.agent_id, number)
            if memory is None or memory.retention is Retention.DELETED:
                continue
            if memory.tier is Tier.PINNED:  # the note says so no longer
                ledger.change_tier(memory.agent_id, memory.sequence, Tier.NORMAL, demoted=False)
            gone.append(number)
        ledger.retain(self.agent_id, gone, Retention.DELETED, "set")

    def _add(self, path: str, chunks: list[tuple[Chunk, Tier]]) -> Sequence[Memory]:
        most, agent = self._bank.settings.memory.max_content_bytes, self.agent_id
        # All but the text is the same for each, and to check that takes longer than the text.
        *_, metadata, options = check_new((agent, path, 3, {"path": path}, {"kind": "note"}), most)
        return self._bank._add_new(
            NewBatch.of(
                (agent, check_content(chunk.text, most), tier, metadata, options)
                for chunk, tier in chunks
            )
        )

    def _kept(self) -> dict[str, Note]:
        return self._bank._ledger.resident.block(self.agent_id).notes

    def _check(self, path: object) -> str:
        if isinstance(path, str) and path in self._kept():  # a copy of a bank has no extra files
            return path
        return (self._files or NoteFiles(Path("notes"))).check(path)

    def _writable(self, path: object) -> str:
        place = self._check(path)
        if is_extra(place):
            raise NoteRefused(
                f"{place!r:.80} is an extra note, which is only read", hint="edit the file itself"
            )
        if self._bank.settings.notes.read_only:
            raise NoteRefused(f"{place!r:.80} can't be written: notes.read_only is true")
        return place


def files_of(bank: "MemoryBank", agent_id: str) -> NoteFiles | None:
    """Where an agent's notes are; None for a bank without a folder."""
    folder = bank._folder
    return None if folder is None else notes_in(folder, agent_id, bank.settings.notes.extra_paths)


def _item(path: str) -> str | None:
    """Which of the extra paths a note is in; None for the agent's own."""
    return path.split("/")[1] if is_extra(path) else None


def _order(path: str) -> tuple[bool, bool, str]:
    """The long-term note first, extra ones last."""
    return path != LONG_TERM, is_extra(path), path


def _tier_of(chunk: Chunk, lost: Iterable[tuple[Chunk, Memory]]) -> Tier:
    """What the note says, unless a part of the chunk had another tier than the note gave it."""
    own = [
        memory.tier
        for old, memory in lost
        if old.text in chunk.text and old.tier == chunk.tier and memory.tier is not _said(old)
    ]
    return min(own, default=_said(chunk))


def _said(chunk: Chunk) -> Tier:
    return Tier.NORMAL if chunk.tier is None else chunk.tier


def _checked(text: object) -> str:
    if not isinstance(text, str):
        raise InvalidInput(f"a note's text is text, not {type(text).__name__}")
    return text
