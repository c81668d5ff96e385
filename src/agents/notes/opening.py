"""When a bank is opened, its notes on disk and in the journal are brought together."""

import logging
from contextlib import suppress
from functools import partial
from pathlib import Path

from ..engine.engine import Engine, Staged
from ..errors import ConfigError, InvalidAgentId, NoteRefused
from ..memory.requests import check_agent_id
from .files import (
    NoteFiles,
    agent_of_folder,
    folder_of_agent,
    is_own,
    notes_in,
    refusing,
)
from .index import NOT_A_NOTE, NoteIndex, Synced, files_of, read_or, staged

logger = logging.getLogger(__name__)


def open_notes(bank: Engine) -> None:
    """Finish the notes that a killed process left half written, then index people's changes.

    The notes of a bank that was restored, rewound or branched are written as the journal has them.
    """
    _check_extra_paths(bank)
    _name_folders(bank)
    agents = _agents(bank)
    for agent in agents:
        bank.staged[agent, ""] = Staged(partial(_bring_together, bank, agent), {})
    bank.settle_notes()
    if not agents and bank.journal.get("notes_unwritten"):
        bank.journal.set(notes_unwritten=None)
    if not bank.settings.notes.sync_on_open:
        return
    for agent, synced in _look(bank).items():
        for problem in (*synced.problems, *synced.skipped):
            logger.warning("a note of %s is not indexed: %s", agent, problem)


def sync_notes(bank: Engine) -> dict[str, Synced]:
    """Index the changed notes on disk, of all agents that have notes."""
    if not bank.ledger.in_transaction:
        bank.settle_notes()
    return _look(bank)


def _look(bank: Engine) -> dict[str, Synced]:
    return {agent: NoteIndex(bank, agent).look() for agent in _agents(bank)}


def look_at_files(copy: Engine, folder: Path, agent_id: str) -> tuple[NoteIndex, Synced]:
    """Index changed notes on disk in a copy of the bank in ``folder``, as opening the bank would.

    The bank may be in use. A staged note may be committed already: then the journal is right, and
    the disk is behind.
    """
    own = NoteIndex(copy, check_agent_id(agent_id))
    if copy.journal.get("notes_unwritten"):  # the files are of another time
        return own, own.sync()
    own.files = files = notes_in(folder, agent_id, copy.settings.notes.extra_paths)
    with suppress(NoteRefused):  # sync() reports it too
        _register(own, files)
    with copy.changing():
        return own, own.sync()


def _agents(bank: Engine) -> list[str]:
    """The agents with notes on disk or in the journal; all agents, if there are extra paths."""
    is_shared = bool(bank.settings.notes.extra_paths)
    blocks = bank.state.blocks
    noted = {own.agent_id for own in blocks.loaded() if own.has_extras and own.notes}
    found = set(blocks) if is_shared else noted
    return sorted(found | set(filter(None, map(agent_of_folder, _folders(bank)))))


def _folders(bank: Engine) -> list[str]:
    root = None if bank.folder is None else bank.folder / "notes"
    if root is None or root.is_symlink() or not root.is_dir():
        return []
    with refusing(str(root), "listed"):
        return sorted(folder.name for folder in root.iterdir())


def _name_folders(bank: Engine) -> None:
    """Give a folder that a person named after an agent with capitals the name that it should have.

    On a file system that ignores case, ``Alice`` would be the folder of alice, too.
    """
    there = set(_folders(bank))
    for name in there:
        if bank.folder is None or agent_of_folder(name):
            continue
        with suppress(InvalidAgentId):
            own = folder_of_agent(check_agent_id(name))
            try:
                if own not in there:
                    (bank.folder / "notes" / name).rename(bank.folder / "notes" / own)
            except OSError as error:
                logger.warning("the notes of %s are not read: %s", name, error)


def _bring_together(bank: Engine, agent: str) -> None:
    """Make an agent's files equal to the journal; NoteRefused if the disk refuses it now."""
    own, files, journal = NoteIndex(bank, agent), files_of(bank, agent), bank.journal
    if files is None:
        return
    if not journal.get("notes_unwritten"):
        _register(own, files)
        return
    _write_out(own, files)
    if not any(
        other != agent and not path for other, path in bank.staged
    ):  # this agent was the last
        journal.set(notes_unwritten=None)


def _register(own: NoteIndex, files: NoteFiles) -> None:
    """Take over the staged notes of a process that was killed or still writes."""
    for path, bases in staged(files).items():
        own.waiting(path).bases.update(bases)


def _write_out(own: NoteIndex, files: NoteFiles) -> None:
    """Write the notes of the journal. Files that differ are set aside, not deleted."""
    notes = {path: note.text for path, note in own.kept().items() if is_own(path)}
    for path in files.staged():
        files.discard(path)
    aside = files.unused(".replaced")
    for path in files.own_paths():
        if read_or(partial(files.read, path), NOT_A_NOTE) != notes.get(path):
            files.set_aside(path, f"{aside}/{path}")
    for path, text in notes.items():
        if files.read(path) is None:
            files.stage(path, text)
            files.publish(path)


def _check_extra_paths(bank: Engine) -> None:
    """Refuse extra paths with equal names, and extra paths in the folder of the agents' notes."""
    if bank.folder is None or not bank.settings.notes.extra_paths:
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
