"""The index of one agent's notes: their chunks as memories of the agent."""

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple, final

from ..engine.engine import Changing, Engine, Staged
from ..engine.write import store
from ..errors import NoteRefused, TierMemError
from ..memory.records import Memory
from ..memory.requests import NewMemories, check_content, check_new
from ..memory.tiers import Retention, Tier
from ..storage.embedding import CachedEmbedder
from ..storage.note import Note, is_transcript
from .files import (
    NoteFiles,
    check_text,
    is_extra,
    is_of_the_system,
    is_own,
    leads_through_note,
    notes_in,
)
from .markdown import Chunk, cut
from .transcripts import Bookmark, grown, lines_of

logger = logging.getLogger(__name__)

_CHUNKS_AT_ONCE = 512
"""How many chunks are embedded together, from one file or several."""
NOT_A_NOTE = "\0"
"""Stands for the text of a file that is not a note; no note has this text."""


class Changed(NamedTuple):
    """A note whose text has changed since it was indexed."""

    path: str
    text: str | None
    """The text on disk; None if the file is gone."""
    chunks: list[Chunk]
    """The chunks of the text; of a transcript that grew, those after the chunks that stay."""
    kept: int = 0
    """How many chunks stay as they are, from the beginning on."""


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


class Place(NamedTuple):
    """Consecutive lines of a note. As text, it is a citation: ``memory/2026-01-20.md#L50-L55``."""

    path: str
    first: int
    """The number of the first line, from 1."""
    last: int
    """The number of the last line."""

    def __str__(self) -> str:
        lines = f"L{self.first}" if self.first == self.last else f"L{self.first}-L{self.last}"
        return f"{self.path}#{lines}"

    @property
    def source(self) -> Literal["note", "transcript"]:
        """What the lines are of."""
        return "transcript" if is_transcript(self.path) else "note"


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

    def place(self, memory: Memory) -> Place | None:
        """Where a memory stands in a note; None if it is no chunk of a note, or no longer."""
        with self.bank.using():
            path = memory.metadata.get("path")
            if memory.kind != "note" or not isinstance(path, str):
                return None
            note = self.kept().get(path)
        lines = note.lines_of(memory.sequence) if note is not None else None
        return None if lines is None else Place(path, *lines)

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
        notes = chain(self._cuts(found, problems), longer)
        for new in _embedded(self.bank.embedder, notes):
            try:
                with self.bank.changing():
                    self._index(new)
                (removed if new.text is None else changed).append(new.path)
            except (TierMemError, ValueError) as error:
                problems.append(f"{new.path}: {error}")
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
        return Changed(path, more.bookmark.text, more.chunks, kept)

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
        state = self.bank.state
        _, others = state.block(self.agent_id).rows_of([number for number, _, _ in note.chunks])
        return bool(others) and len(state.memories(self.agent_id, others)) < len(others)

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
                self._index(Changed(path, text, self._cut(text)))

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
        self._index(Changed(path, text, self._cut(text)))
        note = self.kept()[path]
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

    def _index(self, note: Changed) -> None:
        """Let these chunks be the note's, or the last ones of a transcript that grew."""
        path = note.path
        before = self.kept().get(path)
        places = () if before is None else before.chunks
        known = [] if before is None else self._known(before, note.kept)
        numbers: dict[tuple[str, Tier | None], list[int]] = {}
        for chunk, memory in known:
            numbers.setdefault((chunk.text, chunk.tier), []).append(memory.sequence)
        equal = [numbers.get((chunk.text, chunk.tier), []) for chunk in note.chunks]
        reused = [sequences.pop(0) if sequences else None for sequences in equal]
        gone = {number for number, _, _ in places[note.kept :]}
        gone.difference_update(reused)
        self._drop(sorted(gone))
        lost = [(chunk, memory) for chunk, memory in known if memory.sequence in gone]
        pairs = list(zip(note.chunks, reused, strict=True))
        new = [(chunk, _tier_of(chunk, lost)) for chunk, number in pairs if number is None]
        added = iter(self._add(path, new))
        self.bank.ledger.noted(
            self.agent_id,
            path,
            note.text,
            [
                *places[: note.kept],
                *(
                    (next(added).sequence if number is None else number, chunk.first, chunk.last)
                    for chunk, number in pairs
                ),
            ],
        )

    def _known(self, before: Note, kept: int) -> list[tuple[Chunk, Memory]]:
        """The chunks of a note after the first ``kept``, as far as their memories are there."""
        places = before.chunks[kept:]
        tiers: list[Tier | None] = [None] * len(places)
        if "tier" in before.text:  # no other text names one
            chunks = self._cut(before.text)
            if [chunk[1:3] for chunk in chunks] != [place[1:] for place in places]:
                return []  # other settings cut the note then
            tiers = [chunk.tier for chunk in chunks]
        known = []
        for (number, first, last), tier in zip(places, tiers, strict=True):
            memory = self.bank.state.memory(self.agent_id, number)
            if memory is not None and memory.retention is not Retention.DELETED:
                known.append((Chunk(memory.content, first, last, tier), memory))
        return known

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
        return store(
            self.bank,
            NewMemories.of(
                (agent, check_content(chunk.text, most), tier, metadata, options)
                for chunk, tier in chunks
            ),
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


def _embedded(embedder: CachedEmbedder, notes: Iterable[Changed]) -> Iterator[Changed]:
    """The same notes, each when the vectors of its chunks are known, which are made together.

    An error of the embedder is not raised here; it is raised when the chunks are stored.
    """
    for together in _groups(notes):
        with suppress(TierMemError):
            embedder.encode([chunk.text for note in together for chunk in note.chunks])
        yield from together


def _groups(notes: Iterable[Changed]) -> Iterator[list[Changed]]:
    together: list[Changed] = []
    count = 0
    for note in notes:
        together.append(note)
        count += len(note.chunks)
        if count >= _CHUNKS_AT_ONCE:
            yield together
            together, count = [], 0
    if together:
        yield together


# How the text of a note comes to disk after its commit
#
# A version of a note is staged under two marks. The note's token tells whether the journal has this
# version. The mark of the replaced text tells whether a person has changed the file since.


def mark_of(text: str | None) -> str:
    """A mark for a text on disk; None is a missing file."""
    return "none" if text is None else hashlib.sha256(text.encode()).hexdigest()[:16]


def stage(files: NoteFiles, path: str, note: Note, base: str) -> None:
    """Stage a note's text, which is to replace the text with the mark ``base``."""
    files.stage(path, note.text, f"{note.token}-{base}")


def staged(files: NoteFiles) -> dict[str, dict[str, str]]:
    """The mark of the text that each staged version replaces, by path and token."""
    return {
        path: {key.partition("-")[0]: key.partition("-")[2] for key in files.keys(path)}
        for path in files.staged()
    }


def settle(files: NoteFiles, path: str, note: Note | None, bases: dict[str, str]) -> None:
    """Publish the staged version of a note that the journal has; drop all other versions.

    ``note`` is the note in the journal. If a person has changed the file since, the person's text
    is kept as another note.
    """
    base = None if note is None else bases.get(note.token)
    if note is not None and base is not None:
        there = read_or(partial(files.read, path), NOT_A_NOTE)
        if there != note.text:
            if there and mark_of(there) != base:
                _keep(files, path)
            key = f"{note.token}-{base}"
            if read_or(partial(files.read_staged, path, key), None) != note.text:
                files.stage(path, note.text, key)
            files.publish(path, key)
    bases.clear()  # now a person may edit the file, even if a leftover can't be deleted
    files.discard(path)


def read_or(read: Callable[[], str | None], otherwise: str | None) -> str | None:
    """The text that ``read`` reads from disk, or ``otherwise`` if the file is not a note."""
    try:
        return read()
    except NoteRefused as error:
        if is_of_the_system(error):
            raise
        return otherwise


def _keep(files: NoteFiles, path: str) -> None:
    """Move a person's version of a note to a path of its own."""
    taken, number = set(files.own_paths()), 1
    stem = PurePosixPath(path).stem[:100].encode()[:150].decode(errors="ignore")
    while (other := f"memory/{stem}-conflict-{number}.md") in taken:
        number += 1
    files.set_aside(path, other)
    logger.warning("%s was edited while an agent wrote it; the edited text is now %s", path, other)
