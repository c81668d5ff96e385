"""How commands reach a bank, and how they name a memory of it.

They have the bank itself, or a copy that leaves the bank to its users.

The engine is imported when a bank is opened, so that the help of a command appears at once.
"""

import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ...errors import BankError, InvalidInput, NoteRefused
from ...memory.records import id_prefix, sequence_of, short_id, whole_id
from ...memory.requests import check_agent_id
from ...memory.words import counted, first_of
from .failures import drop_output, telling
from .options import flags, tell_idle
from .output import say

if TYPE_CHECKING:
    from ...bank.memory_bank import MemoryBank
    from ...notes.agent_notes import AgentNotes
    from ...notes.index import Synced


@contextmanager
def opened(
    folder: Path,
    file: Path | None = None,
    preset: str | None = None,
    assignments: Sequence[str] | None = None,
    **settings: Any,
) -> "Iterator[MemoryBank]":
    """A bank that exists; a wall clock moves it to now, closing it changes nothing more.

    To import mem0 and write its store takes ten times as long as most commands.
    """
    from ...bank.memory_bank import MemoryBank
    from ...bank.opening import Opening

    opening = Opening(
        file,
        assignments=flags(preset, assignments),
        create=False,
        apply_caps=False,
        is_brief=True,
        overrides=settings,
    )
    bank = MemoryBank(opening.in_folder(folder))
    try:
        tell_idle_in(bank, preset, assignments)
        yield bank
    finally:
        bank.close(sync=False)


def served(
    folder: Path,
    file: Path | None,
    preset: str | None,
    assignments: Sequence[str] | None,
    profile: str | None,
    *,
    create: bool,
) -> "MemoryBank":
    """A bank for agents at work: a wall clock moves it, unless it or the settings say otherwise."""
    from ...bank.memory_bank import MemoryBank
    from ...bank.opening import Opening

    given = flags(preset, assignments, profile)
    opening = Opening(file, assignments=given, create=create, clock_mode="wall")
    return MemoryBank(opening.in_folder(folder))


def tell_idle_in(
    bank: "MemoryBank",
    preset: str | None,
    assignments: Sequence[str] | None,
    profile: str | None = None,
) -> None:
    """Tell of the flags without which the bank would have the same settings."""
    load = bank.engine.settings_with
    if load is not None:
        tell_idle(preset, assignments, load, profile=profile)


@contextmanager
def changed(
    folder: Path,
    file: Path | None = None,
    preset: str | None = None,
    assignments: Sequence[str] | None = None,
    *,
    dry_run: bool = False,
) -> "Iterator[MemoryBank]":
    """A bank to change, or for a dry run a copy of it; Ctrl-C tells whether anything was stored."""
    if dry_run:
        with copied(folder, config=file, assignments=flags(preset, assignments)) as bank:
            tell_idle_in(bank, preset, assignments)
            yield bank
        return
    stored = False
    with (
        telling(lambda: "what it stored is kept" if stored else "nothing was stored"),
        opened(folder, file, preset, assignments) as bank,
    ):
        journal = bank.engine.journal
        before = journal.head
        try:
            yield bank
        finally:
            stored = journal.head != before


@contextmanager
def storing(bank: "MemoryBank", tell: Callable[[], None]) -> Iterator[None]:
    """Commit the memories that the block adds, then ``tell`` of them.

    To repeat the command after its commit would store them twice, and the user learns that.
    """
    with bank.transaction():
        yield
    try:
        tell()
    except OSError as error:
        drop_output()
        raise BankError(
            f"the memories are stored, but that can't be printed: {error}",
            hint="don't repeat it: that would store them twice",
        ) from error


@contextmanager
def copied(folder: Path, agent: str | None = None, **options: Any) -> "Iterator[MemoryBank]":
    """A copy of a bank, which may be in use meanwhile; the bank must have the agent.

    The copy of the present bank is as a wall clock moves it: what expired meanwhile is not there.
    """
    from ...bank.memory_bank import MemoryBank

    with MemoryBank.at(folder, **options) as bank:
        if options.get("tick") is None:
            bank.follow_clock()
        check_agent(bank, folder, agent)
        yield bank


@contextmanager
def copied_with_notes(
    folder: Path, agent: str
) -> "Iterator[tuple[MemoryBank, AgentNotes, Synced]]":
    """A copy of a bank with the agent's notes as they are on disk, and what reading them found."""
    from ...notes.agent_notes import AgentNotes
    from ...notes.opening import look_at_files

    with copied(folder) as bank:
        notes, seen = look_at_files(bank.engine, folder, agent)
        if not seen.problems:
            check_agent(bank, folder, agent)
        yield bank, AgentNotes(notes), seen


@contextmanager
def past(folder: Path, tick: int | None = None) -> "Iterator[tuple[MemoryBank, Sequence[str]]]":
    """A copy of a bank, or of the bank of a run, as it was after a tick; and its agents."""
    from ...simulation.runs.record import past_bank
    from ...simulation.worlds.outside import agents_of

    if (folder / "journal.db").is_file() and not (folder / "run.json").exists():
        with copied(folder, tick=tick) as bank:
            yield bank, bank.agents()
        return
    with past_bank(folder, tick) as bank:
        yield bank, agents_of(bank.engine.journal, bank.settings)


def check_agent(bank: "MemoryBank", folder: Path, agent: str | None) -> None:
    """Refuse an agent that the bank does not have."""
    if agent is None or check_agent_id(agent) in (agents := bank.agents()):
        return
    first = f"let it remember something: tiermem add {quote(str(folder))} --agent {agent} TEXT"
    raise BankError(
        f"{folder} has no agent {agent}" + ("" if agents else ", nor any other yet"),
        hint=f"it has {first_of(agents)}; name one of these" if agents else first,
    )


def check_bank(folder: Path, create: bool, hint: str) -> None:
    """Refuse a folder without a bank, unless the command may make one."""
    if not create and not (folder / "journal.db").is_file():
        from ...bank.history import no_bank

        raise no_bank(folder, hint)


def check_served(bank: "MemoryBank", folder: Path) -> None:
    """Refuse to serve an untrusted bank that can't embed; warn of tokens that came with one."""
    from .. import tokens

    guard = bank.engine.guard
    if guard is None or guard.is_trusted:
        return
    if refused := guard.embedder():
        raise refused
    if tokens.grants(folder):
        say(
            f"{folder} is not known as yours on this machine, and its tokens may be known to "
            f"others; list them with: tiermem token list {quote(str(folder))}",
            err=True,
        )


@contextmanager
def watched(bank: "MemoryBank") -> Iterator[None]:
    """Inside, a server indexes notes as they change: with ``notes.watch`` and watchfiles.

    After an error, closing the bank stops the watcher.
    """
    watch = None
    if bank.settings.notes.watch and importlib.util.find_spec("watchfiles") is not None:
        try:
            watch = bank.watch_notes()
        except NoteRefused as error:
            say(f"notes are not watched: {error}", err=True)
    yield
    if watch is not None:
        watch.stop()


# One memory


_LENGTH = 36
"""Characters of a whole id."""

MemoryId = Annotated[
    str, Argument(metavar="ID", help="The memory's id, or its last digits as search shows them.")
]
MemoryIds = Annotated[
    list[str],
    Argument(metavar="ID...", help="The memories' ids, or their last digits as search shows them."),
]
WholeIds = Annotated[
    bool, Option("--ids", help="Show whole ids on a terminal, not their last digits.")
]


def full_id(bank: "MemoryBank", agent: str, given: str) -> str:
    """The memory's id, of which ``given`` may be the last digits."""
    return whole_id(id_prefix(bank.settings.seed, agent), given)


def id_in(folder: Path, written: str) -> str:
    """The id of a memory of a run or a bank, where a command takes no agent.

    ``written`` may be AGENT:ID, or the last digits alone if one agent alone has such a memory.
    """
    if len(written) == _LENGTH:
        return written
    whose, _, digits = written.rpartition(":")
    with past(folder) as (bank, agents):
        meant = {
            agent: identifier
            for agent in agents
            if whose in ("", agent)
            and _had(bank, agent, identifier := full_id(bank, agent, digits))
        }
    if len(meant) > 1:
        named = [f"{agent}:{short_id(identifier)}" for agent, identifier in meant.items()]
        raise InvalidInput(
            f"{written!r:.80} may be a memory of {counted(len(meant), 'agent')}",
            hint=f"name one of them: {first_of(named)}",
        )
    return next(iter(meant.values()), written)


def _had(bank: "MemoryBank", agent: str, identifier: str) -> bool:
    """Whether the agent ever had a memory with this id, also one that is gone."""
    number = sequence_of(id_prefix(bank.settings.seed, agent), identifier)
    return number is not None and number < bank.engine.state.block(agent).next_sequence


def shown_id(identifier: str, *, whole: bool = False) -> str:
    """The last digits of an id for a person to type; all of it for a program."""
    return short_id(identifier) if sys.stdout.isatty() and not whole else identifier
