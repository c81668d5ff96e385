"""The index of one agent's notes: their chunks as memories of the agent."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple, final

from ..engine.engine import Changing, Engine, Staged
from ..errors import NoteRefused, TierMemError
from ..memory.records import Memory
from ..memory.requests import NewMemories, check_content, check_new
from ..memory.tiers import Retention, Tier
from ..storage.note import Note
from .chunks import Chunk, cut
from .files import NoteFiles, check_text, is_extra, is_own, notes_in
from .growth import Growth, growth
from .kept_marks import keep_mark, kept_mark
from .marks import beginning
from .names import is_transcript, leads_through_note
from .prefetch import Changed, embedded
from .settling import mark_of, settle, stage
from .transcripts import Bookmark, grown, lines_of


class Synced(NamedTuple):
    """The result of indexing the notes on disk."""

    changed: tuple[str, ...]
    """The paths of new and changed notes, which were indexed."""
    removed: tuple[str, ...]
    """The paths of notes whose files are gone."""
    unchanged: int
    problems: tuple[str, ...]
    """The notes that could not be indexed, and why. Searches find their last indexed text."""
    skipped: tuple[str, ...] = ()
    """The new lines of transcripts that could not be read."""


@final
class NoteIndex:
    """Keeps the memories of an agent's notes equal to the notes."""

    __slots__ = ("agent_id", "bank", "files")

    def __init__(self, bank: Engine, agent_id: str) -> None:
        self.agent_id = agent_id
        self.bank = bank
        self.files = files_of(bank, agent_id)
        """The notes on disk; None for a bank without a folder."""

    def sync(self) -> Synced:
        """Index the notes that changed on disk since the last look."""
        with self.bank.using():
            if not self.bank.ledger.in_transaction:
                self.bank.settle_notes()
            return self.look()

    def citation(self, memory: Memory) -> str | None:
        """:meth:`AgentNotes.citation`."""
        path = memory.metadata.get("path")
        with self.bank.using():
            note = self.kept().get(path) if isinstance(path, str) else None
        lines = note.lines_of(memory.sequence) if note is not None else None
        if memory.kind != "note" or lines is None:
            return None
        first, last = lines
        return f"{path}#L{first}" if first == last else f"{path}#L{first}-L{last}"

    def shelved(self) -> list[int]:
        """The sequence numbers of the chunks that are not resident: cold, archived or deleted."""
        numbers = [number for note in self.kept().values() for number, _, _ in note.chunks]
        return self.bank.state.block(self.agent_id).rows_of(numbers)[1]

    def look(self) -> Synced:
        """:meth:`sync` without first writing the notes that wait for the disk."""
        changed: list[str] = []
        removed: list[str] = []
        problems: list[str] = []
        skipped: list[str] = []
        unchanged = 0
        found: list[tuple[str, str | None]] = []
        longer: list[Changed] = []
        for path in self._there(problems):
            try:
                note = self.kept().get(path)
                if is_transcript(path):
                    more = self._grown(path, note, skipped)
                    longer += [] if more is None else [more]
                    unchanged += more is None
                    continue
                text = self.on_disk(path)
                if text == (None if note is None else note.text) and not self._lacks(note):
                    unchanged += 1
                else:
                    found.append((path, text))
            except (TierMemError, ValueError) as error:
                problems.append(f"{path}: {error}")
        new = chain(self._cuts(found, problems), longer)
        for path, text, chunks, how in embedded(self.bank.embedder, new):
            try:
                with self.bank.changing():
                    self._index(path, text, chunks, how)
                (removed if text is None else changed).append(path)
            except (TierMemError, ValueError) as error:
                problems.append(f"{path}: {error}")
        return Synced(tuple(changed), tuple(removed), unchanged, tuple(problems), tuple(skipped))

    def _grown(self, path: str, note: Note | None, skipped: list[str]) -> Changed | None:
        """What is new in a transcript; None if there is nothing."""
        settings, count = self.bank.settings.notes, self.bank.search.count_tokens
        if self.files is None:
            return None
        with self.files.reading(path) as file:
            if file is None or not settings.transcripts:
                return Changed(path, None, [])
            old = None if note is None or self._lacks(note) else Bookmark.of(note.text)
            more = grown(file, old, settings.chunk_tokens, count)
        if more is None:
            return None
        if more.skipped:
            skipped.append(f"{path}: {more.skipped}")
        places = () if note is None else note.chunks
        kept = sum(first <= more.kept for _, first, _ in places)
        find = self.bank.state.memory
        last = [
            Chunk(memory.content, first, last, None)
            for number, first, last in places[kept:]
            if (memory := find(self.agent_id, number)) is not None
        ]
        return Changed(path, more.bookmark.text, more.chunks, Growth(kept, last, more.chunks))

    def messages(self, path: str, first: int, most: int | None) -> list[str]:
        """Lines of a transcript, as who said what; none if the file does not exist."""
        if self.files is None:
            raise NoteRefused(
                f"{path!r:.80} can't be read: a copy of a bank has no transcripts",
                hint="open the bank itself",
            )
        with self.files.reading(path) as file:
            return [] if file is None else lines_of(file, first, most)

    def _there(self, problems: list[str]) -> list[str]:
        """The paths of all notes on disk and in the journal.

        Notes in a folder that can't be listed are left out, and a problem is added.
        """
        kept, files = list(self.kept()), self.files
        if files is None:
            return kept
        found: dict[str, None] = {}
        for item in (None, *files.extra_items()):
            try:
                there = files.own_paths(problems) if item is None else files.extra_paths(item)
                if item is None and self.bank.settings.notes.transcripts:
                    there += files.transcripts()
                own = [path for path in kept if _item(path) == item]
                found |= dict.fromkeys([*there, *own])
            except NoteRefused as error:
                problems.append(str(error))
        known = {None, *files.extra_items()}
        return [*found, *(path for path in kept if _item(path) not in known)]

    def _lacks(self, note: Note | None) -> bool:
        """Whether a chunk has no memory: it was forgotten before the bank went back."""
        if note is None:
            return False
        resident = self.bank.state
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

    def fresh(self, path: str) -> Note | None:
        """The note, after the text on disk was indexed; None if there is none."""
        self.take(path, self.on_disk(path))
        return self.kept().get(path)

    def take(self, path: str, text: str | None) -> None:
        """Index the text of a note if it differs from the journal's."""
        note = self.kept().get(path)
        if text != (None if note is None else note.text):
            with self.bank.changing():
                self._index(path, text, self._cut(text))

    def on_disk(self, path: str) -> str | None:
        """The text on disk, or the journal's text if it is still to be written."""
        note = self.kept().get(path)
        is_unknown = (self.agent_id, "") in self.bank.staged
        if self.files is None or is_unknown or self._base(path) is not None:
            return None if note is None else note.text
        return self.files.read(path)

    def _base(self, path: str) -> str | None:
        """The mark of the text on disk that the current note replaces; None if it is not staged."""
        note, waiting = self.kept().get(path), self.bank.staged.get((self.agent_id, path))
        return None if note is None or waiting is None else waiting.bases.get(note.token)

    def writing(self) -> Changing:
        """Inside, notes are written in one transaction."""
        with self.bank.using():
            if not self.bank.ledger.in_transaction:
                self.bank.settle_notes()  # drops the staged notes of an undone transaction
        return self.bank.changing()

    def put(self, path: str, text: str, there: str | None) -> None:
        """Index a text, and stage the file, which the commit writes.

        ``there`` is the text that the new text replaces.
        """
        check_text(path, text)
        self.bank.journal.check_there()
        base = self._base(path) or mark_of(there)
        old, growth = self.kept().get(path), self._growth(path, text)
        self._index(path, text, self._cut(text) if growth is None else growth.new, growth)
        note = self.kept()[path]
        mark = beginning(text) if growth is None or growth.mark is None else growth.mark
        versions = (note,) if growth is None or old is None else (old, note)
        keep_mark(self.bank.note_marks, (self.agent_id, path), versions, mark)
        if self.files is not None:
            waiting = self.waiting(path)
            if note.token not in waiting.bases:
                stage(self.files, path, note, base)
                waiting.bases[note.token] = base

    def waiting(self, path: str) -> Staged:
        """The staged versions of a note."""
        own = Staged(partial(self._settle, path), {})
        return self.bank.staged.setdefault((self.agent_id, path), own)

    def _settle(self, path: str) -> None:
        """After the transaction: publish the staged version that the journal has, drop the rest."""
        if self.files is not None:
            settle(self.files, path, self.kept().get(path), self.waiting(path).bases)

    def _cut(self, text: str | None) -> list[Chunk]:
        settings, count = self.bank.settings.notes, self.bank.search.count_tokens
        if text is None:
            return []
        return cut(text, settings.chunk_tokens, settings.chunk_overlap, count)

    def _growth(self, path: str, text: str) -> Growth | None:
        """How the chunks change if the note grows; None if all are to be looked at."""
        old, settings = self.kept().get(path), self.bank.settings.notes
        if old is None:
            return None
        mark = kept_mark(self.bank.note_marks, (self.agent_id, path), old)
        size, overlap = settings.chunk_tokens, settings.chunk_overlap
        count = self.bank.search.count_tokens
        found = growth(old.text, old.chunks, mark, text, size, overlap, count)
        if found is None or not self._all_there(old.chunks[: found.kept]):
            return None
        return found

    def _all_there(self, places: Iterable[tuple[int, int, int]]) -> bool:
        """Whether each of these chunks has its memory."""
        resident = self.bank.state
        _, others = resident.block(self.agent_id).rows_of([number for number, _, _ in places])
        found = resident.memories(self.agent_id, others) if others else []
        there = [each for each in found if each.retention is not Retention.DELETED]
        return len(there) == len(others)

    def _index(
        self, path: str, text: str | None, chunks: list[Chunk], growth: Growth | None = None
    ) -> None:
        """Let these chunks be the note's, or the last ones of a note that grew."""
        old = self.kept().get(path)
        places = () if old is None else old.chunks
        kept = () if growth is None else places[: growth.kept]
        known = [] if old is None else self._known(old, growth)
        numbers: dict[tuple[str, Tier | None], list[int]] = {}
        for chunk, memory in known:
            numbers.setdefault((chunk.text, chunk.tier), []).append(memory.sequence)
        found = [numbers.get((chunk.text, chunk.tier), []) for chunk in chunks]
        reused = [own.pop(0) if own else None for own in found]
        gone = {number for number, _, _ in places[len(kept) :]}
        gone.difference_update(reused)
        self._drop(sorted(gone))
        lost = [(chunk, memory) for chunk, memory in known if memory.sequence in gone]
        new = [chunk for chunk, number in zip(chunks, reused, strict=True) if number is None]
        added = iter(self._add(path, [(chunk, _tier_of(chunk, lost)) for chunk in new]))
        self.bank.ledger.noted(
            self.agent_id,
            path,
            text,
            [
                *kept,
                *(
                    (next(added).sequence if number is None else number, chunk.first, chunk.last)
                    for chunk, number in zip(chunks, reused, strict=True)
                ),
            ],
        )

    def _known(self, old: Note, growth: Growth | None) -> list[tuple[Chunk, Memory]]:
        """The chunks of a note, or those at its end, whose memories have the text of the chunk."""
        chunks = self._cut(old.text) if growth is None else growth.old
        places = old.chunks[0 if growth is None else growth.kept :]
        if [each[1:3] for each in chunks] != [each[1:] for each in places]:
            return []  # other settings cut the note then
        found = []
        for chunk, (number, _, _) in zip(chunks, places, strict=True):
            memory = self.bank.state.memory(self.agent_id, number)
            if memory is None or memory.retention is Retention.DELETED:
                continue
            if memory.content == chunk.text:
                found.append((chunk, memory))
        return found

    def _drop(self, numbers: Iterable[int]) -> None:
        ledger = self.bank.ledger
        gone = []
        for number in numbers:
            memory = ledger.state.memory(self.agent_id, number)
            if memory is None or memory.retention is Retention.DELETED:
                continue
            if memory.tier is Tier.PINNED:  # the note pins it no longer
                ledger.change_tier(memory.agent_id, memory.sequence, Tier.NORMAL, demoted=False)
            gone.append(number)
        ledger.retain(self.agent_id, gone, Retention.DELETED, "set")

    def _add(self, path: str, chunks: list[tuple[Chunk, Tier]]) -> Sequence[Memory]:
        most, agent = self.bank.settings.memory.max_content_bytes, self.agent_id
        # All but text and tier is equal for all chunks, and is checked once.
        *_, metadata, options = check_new((agent, path, 3, {"path": path}, {"kind": "note"}), most)
        return self.bank.add_new(
            NewMemories.of(
                (agent, check_content(chunk.text, most), tier, metadata, options)
                for chunk, tier in chunks
            )
        )

    def kept(self) -> dict[str, Note]:
        """The agent's notes in the journal, by path."""
        return self.bank.state.block(self.agent_id).notes

    def check(self, path: object) -> str:
        """The path itself, or :class:`NoteRefused` if no note may have it."""
        if isinstance(path, str) and path in self.kept():  # a copy of a bank has no files
            return path
        place = (self.files or NoteFiles(Path("/notes"))).check(path)
        if is_transcript(place) and not self.bank.settings.notes.transcripts:
            raise NoteRefused(
                f"{place!r:.80} can't be read: transcripts are not indexed",
                hint="set notes.transcripts to true",
            )
        return place

    def writable(self, path: object) -> str:
        """The path itself, or :class:`NoteRefused` if the agent may not write the note."""
        place = self.check(path)
        if not is_own(place):
            raise NoteRefused(f"{place!r:.80} is only read", hint="edit the file itself")
        if self.bank.settings.notes.read_only:
            raise NoteRefused(f"{place!r:.80} can't be written: notes.read_only is true")
        if leads_through_note(place) and place not in self.kept():
            raise NoteRefused(
                f"{place!r:.80} can't be written: it has a folder with the name of a note",
                hint="name the folder without .md or .jsonl",
            )
        return place


def files_of(bank: Engine, agent_id: str) -> NoteFiles | None:
    """An agent's notes on disk; None for a bank without a folder."""
    folder = bank.folder
    return None if folder is None else notes_in(folder, agent_id, bank.settings.notes.extra_paths)


def _item(path: str) -> str | None:
    """The extra path that a note is in; None for the agent's own notes."""
    return path.split("/")[1] if is_extra(path) else None


def _tier_of(chunk: Chunk, lost: Iterable[tuple[Chunk, Memory]]) -> Tier:
    """The tier that the note names, or the tier that a call gave to a lost part of the chunk."""
    own = [
        memory.tier
        for old, memory in lost
        if old.text in chunk.text and old.tier == chunk.tier and memory.tier is not _said(old)
    ]
    return min(own, default=_said(chunk))


def _said(chunk: Chunk) -> Tier:
    return Tier.NORMAL if chunk.tier is None else chunk.tier
