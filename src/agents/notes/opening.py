"""What becomes of notes when a bank is opened: files and journal are brought together."""

import logging
from contextlib import suppress
from functools import partial
from pathlib import Path

from ..engine.open_bank import OpenBank, Staged
from ..errors import ConfigError, InvalidAgentId, NoteRefused
from ..memory.checks import check_agent_id
from .files import NoteFiles, is_extra, is_of_the_system, notes_in
from .index import NoteIndex, Synced, files_of
from .settling import staged

__all__ = ["look_at_files", "open_notes", "sync_notes"]

logger = logging.getLogger(__name__)


def open_notes(bank: OpenBank) -> None:
    """Finish what a killed process left half done, then index what a person changed meanwhile.

    A bank that was restored, rewound or branched has its notes written as they were then.
    """
    _check_extra_paths(bank)
    agents = _agents(bank)
    for agent in agents:
        bank.staged[agent, ""] = Staged(partial(_bring_together, bank, agent), {})
    bank.settle_notes()
    if not agents and bank.ledger.journal.get("notes_unwritten"):
        bank.ledger.journal.set(notes_unwritten=None)
    for agent, synced in _look(bank).items():
        for problem in synced.problems:
            logger.warning("a note of %s is not indexed: %s", agent, problem)


def sync_notes(bank: OpenBank) -> dict[str, Synced]:
    """Index what changed on disk, of all agents that have notes."""
    if not bank.ledger.in_transaction:
        bank.settle_notes()
    return _look(bank)


def _look(bank: OpenBank) -> dict[str, Synced]:
    return {agent: NoteIndex(bank, agent).look() for agent in _agents(bank)}


def look_at_files(copy: OpenBank, folder: Path, agent_id: str) -> tuple[NoteIndex, Synced]:
    """Index, in a copy of the bank in ``folder``, what changed on disk, as opening it would.

    The bank may be in use. What is staged may be committed already, and then the journal is right
    and the disk is not yet.
    """
    own = NoteIndex(copy, check_agent_id(agent_id))
    if copy.ledger.journal.get("notes_unwritten"):  # what is on disk is of another time
        return own, own.sync()
    own.files = files = notes_in(folder, agent_id, copy.settings.notes.extra_paths)
    with suppress(NoteRefused):  # which sync() says, too
        _register(own, files)
    with copy.changing():
        return own, own.sync()


def _agents(bank: OpenBank) -> list[str]:
    """The agents that have notes: on disk, in the journal, or because all have them."""
    is_shared = bool(bank.settings.notes.extra_paths)
    blocks = bank.ledger.resident.blocks
    found = {agent for agent, block in blocks.items() if block.notes or is_shared}
    root = None if bank.folder is None else bank.folder / "notes"
    if root is not None and root.is_dir() and not root.is_symlink():
        for folder in root.iterdir():
            try:
                found.add(check_agent_id(folder.name))
            except InvalidAgentId:  # somebody else's folder
                continue
    return sorted(found)


def _bring_together(bank: OpenBank, agent: str) -> None:
    """Let an agent's files be what the journal says; NoteRefused if that can't be done now."""
    own, files, journal = NoteIndex(bank, agent), files_of(bank, agent), bank.ledger.journal
    if files is None:
        return
    if not journal.get("notes_unwritten"):
        _register(own, files)
        return
    _write_out(own, files)
    if not any(other != agent and not path for other, path in bank.staged):  # it was the last
        journal.set(notes_unwritten=None)


def _register(own: NoteIndex, files: NoteFiles) -> None:
    """What a process staged that was killed, or that is still at it, waits to be settled."""
    for path, bases in staged(files).items():
        own.waiting(path).bases.update(bases)


def _write_out(own: NoteIndex, files: NoteFiles) -> None:
    """Write notes as the journal has them. What is in their way, or no note of then, is kept."""
    notes = {path: note.text for path, note in own.kept().items() if not is_extra(path)}
    for path in files.staged():
        files.discard(path)
    aside = files.unused(".replaced")
    for path in files.own_paths():
        if not _has(files, path, notes.get(path)):
            files.set_aside(path, f"{aside}/{path}")
    for path, text in notes.items():
        if files.read(path) is None:
            files.stage(path, text)
            files.publish(path)


def _has(files: NoteFiles, path: str, text: str | None) -> bool:
    """Whether this is the text on disk."""
    try:
        return files.read(path) == text
    except NoteRefused as error:
        if is_of_the_system(error):
            raise
        return False


def _check_extra_paths(bank: OpenBank) -> None:
    """Refuse extra paths that can't be told apart, or that are the agents' own notes."""
    if bank.folder is None:
        return
    own = (bank.folder / "notes").resolve()
    for item in bank.settings.notes.extra_paths:
        place = (bank.folder / item).resolve()
        if place == own or place in own.parents or own in place.parents:
            raise ConfigError(
                f"notes.extra_paths: {item!r} holds the notes of the bank's agents, which each of "
                "them has for itself",
                hint="name another folder",
            )
    try:
        notes_in(bank.folder, "any", bank.settings.notes.extra_paths)
    except NoteRefused as error:
        raise ConfigError(f"notes.extra_paths: {error.why}", hint=error.hint) from None
