"""What becomes of notes when a bank is opened: files and journal are brought together."""

import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agents.engine import Staged
from agents.errors import InvalidAgentId, NoteRefused
from agents.memory.records import check_agent_id
from agents.notes.agent_notes import AgentNotes, Synced, files_of, notes_in, settle
from agents.notes.files import NoteFiles
from agents.storage.note import Note

if TYPE_CHECKING:
    from agents.bank import MemoryBank

__all__ = ["look_at_files", "open_notes", "sync_notes"]

logger = logging.getLogger(__name__)


def open_notes(bank: "MemoryBank") -> None:
    """Finish what a killed process left half done, then index what a person changed meanwhile.

    A bank that was restored, rewound or branched has its notes written as they were then.
    """
    journal = bank._ledger.journal
    for agent in _agents(bank):
        files = files_of(bank, agent)
        if files is not None:
            _recover(files, bank._ledger.resident.block(agent).notes)
    if journal.get("notes_unwritten"):
        for agent in _agents(bank):
            files = files_of(bank, agent)
            if files is not None:
                _write_out(files, bank._ledger.resident.block(agent).notes)
        journal.set(notes_unwritten=None)
    for agent, synced in sync_notes(bank).items():
        for problem in synced.problems:
            logger.warning("a note of %s is not indexed: %s", agent, problem)


def sync_notes(bank: "MemoryBank") -> dict[str, Synced]:
    """Index what changed on disk, of all agents that have notes."""
    return {agent: AgentNotes(bank, agent).sync() for agent in _agents(bank)}


def look_at_files(copy: "MemoryBank", folder: Path, agent_id: str) -> tuple[AgentNotes, Synced]:
    """Index, in a copy of the bank in ``folder``, what changed on disk, as opening it would.

    The bank may be in use. What is staged may be committed already, and then the journal is right
    and the disk is not yet.
    """
    own = AgentNotes(copy, agent_id)
    if copy._ledger.journal.get("notes_unwritten"):  # what is on disk is of another time
        return own, own.sync()
    own._files = files = notes_in(folder, agent_id, copy.settings.notes.extra_paths)
    with suppress(NoteRefused):  # which sync() says, too
        for path in files.staged():
            note = copy._ledger.resident.block(agent_id).notes.get(path)
            kept = set() if note is None else {note.text}
            copy._staged[agent_id, path] = Staged(lambda: None, kept)
    with copy.transaction():
        return own, own.sync()


def _agents(bank: "MemoryBank") -> list[str]:
    """The agents that have notes, on disk or in the journal."""
    found = {agent for agent, block in bank._ledger.resident.blocks.items() if block.notes}
    root = None if bank._folder is None else bank._folder / "notes"
    if root is not None and root.is_dir() and not root.is_symlink():
        for folder in root.iterdir():
            try:
                found.add(check_agent_id(folder.name))
            except InvalidAgentId:  # somebody else's folder
                continue
    return sorted(found)


def _recover(files: NoteFiles, notes: dict[str, Note]) -> None:
    try:
        for path in files.staged():
            settle(files, path, notes[path].text if path in notes else None)
    except NoteRefused as error:
        logger.warning("a note that was being written is left as it is: %s", error)


def _write_out(files: NoteFiles, notes: dict[str, Note]) -> None:
    own = [path for path in notes if not path.startswith("extra/")]
    try:
        for path in own:
            if files.read(path) != notes[path].text:
                files.stage(path, notes[path].text)
                files.publish(path)
        for path in files.paths():
            if path not in notes and not path.startswith("extra/"):
                files.remove(path)
    except NoteRefused as error:
        logger.warning("notes can't be written as they were: %s", error)
