"""The command on an agent's notes: list, sync, search, get."""

import logging
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ..options import AsJson
from ..output import echo_json, table
from .care import BankFolder, _check_agent

if TYPE_CHECKING:
    from ....bank.memory_bank import MemoryBank
    from ....notes.agent_notes import AgentNotes

__all__ = ["notes"]


class Action(StrEnum):
    """What to do with notes."""

    LIST = "list"
    SYNC = "sync"
    SEARCH = "search"
    GET = "get"


def notes(
    folder: BankFolder,
    agent: Annotated[str, typer.Option("--agent", "-a", help="Whose notes.")],
    action: Annotated[
        Action, typer.Argument(metavar="ACTION", help="list, sync, search or get.")
    ] = Action.LIST,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUERY|PATH", help="What to search for, or the note to get."),
    ] = None,
    max_results: Annotated[
        int | None, typer.Option(min=0, help="search: at most so many; notes.max_results if not.")
    ] = None,
    min_score: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="search: what matches less is left out; notes.min_score."),
    ] = None,
    first: Annotated[
        int | None, typer.Option("--from", min=1, help="get: the first line; 1 if not.")
    ] = None,
    lines: Annotated[
        int | None, typer.Option(min=0, help="get: how many lines; all that follow if not.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List an agent's Markdown notes, index them, search them, or print lines of one.

    - `tiermem notes BANK --agent A` lists them: how long each is, and the tiers of its chunks.

    - `… search QUERY` finds what notes and memories say about it, and where it stands.

    - `… get PATH --from 40 --lines 30` prints these lines exactly, and nothing else.

    - `… sync` indexes what changed on disk, of other agents too, and says what became of the
    agent's. The exit code is 1 if one of them can't be indexed.

    All but sync look at a copy and at the notes as they are on disk, so the bank may be in use, and
    nothing is changed. sync needs the bank for itself; a program that has it open indexes notes.
    """
    _check_options(
        action,
        {
            "--max-results": (Action.SEARCH, max_results),
            "--min-score": (Action.SEARCH, min_score),
            "--from": (Action.GET, first),
            "--lines": (Action.GET, lines),
        },
    )
    subject = _subject(action, words or [])
    if action is Action.SYNC:
        _sync(folder, agent, as_json)
        return
    with _looking(folder, agent) as (bank, own, problems):
        if action is Action.GET:
            _get(own, subject, first or 1, lines, as_json)
            return
        for problem in problems:
            _say(f"not indexed: {problem}", err=True)
        if action is Action.SEARCH:
            _search(bank, agent, subject, max_results, min_score, as_json)
        else:
            table(f"{folder}: notes of {agent}", _rows(bank, agent, as_json), as_json)


# What each does


def _rows(bank: "MemoryBank", agent: str, as_json: bool) -> list[dict[str, Any]]:
    from ....memory.tiers import TIER_NAMES
    from ....notes.chunks import split_lines

    kept = bank.parts.ledger.resident.block(agent).notes
    rows = []
    for path in bank.agent(agent).notes.paths():
        note = kept[path]
        found = (bank.agent(agent).find(number) for number, _, _ in note.chunks)
        counts = Counter(memory.tier for memory in found if memory is not None)
        tiers = {TIER_NAMES[tier]: counts[tier] for tier in sorted(counts)}
        shown = ", ".join(f"{count} {name}" for name, count in tiers.items())
        rows.append(
            {
                "path": path,
                "lines": len(split_lines(note.text)),
                "bytes": len(note.text.encode()),
                "chunks": len(note.chunks),
                "tiers": tiers if as_json else shown,
            }
        )
    return rows


def _search(
    bank: "MemoryBank",
    agent: str,
    query: str,
    max_results: int | None,
    min_score: float | None,
    as_json: bool,
) -> None:
    findings = bank.agent(agent).memory_search(query, max_results, min_score)
    if findings.note:
        _say(findings.note, err=True)
    rows = [
        {
            "score": round(found.score, 4),
            "citation": found.citation,
            **({"id": found.memory.id} if as_json else {}),
            "snippet": found.snippet if as_json else found.snippet.strip(),
        }
        for found in findings
    ]
    table(f"{agent} searches: {query}", rows, as_json)


def _get(own: "AgentNotes", path: str, first: int, lines: int | None, as_json: bool) -> None:
    from ....errors import NoteRefused

    found = own.lines(path, first, lines)
    if path not in (paths := own.paths()):
        has = ", ".join(paths[:10]) + (f" and {len(paths) - 10:,} more" if len(paths) > 10 else "")
        raise NoteRefused(
            f"{own.agent_id} has no note {path}", hint=f"there is {has or 'none yet'}"
        )
    if as_json:
        echo_json({"path": path, "from": found.first, "to": found.last, "text": found.text})
    else:
        _print_exactly(found.text)


def _sync(folder: Path, agent: str, as_json: bool) -> None:
    from ....bank.memory_bank import MemoryBank
    from ....notes.opening import look_at_files

    with MemoryBank.at(folder) as copy:
        seen = look_at_files(copy.parts, folder, agent)[1]
        if not seen.problems:
            _check_agent(copy, folder, agent)
    with (
        _told_once(agent),
        MemoryBank.open(
            folder,
            create=False,
            apply_caps=False,
            temperature={"compact_on_close": False},  # a command does what it says, and no more
        ) as bank,
    ):
        done = bank.agent(agent).notes.sync()  # most was indexed when the bank was opened
    problems = done.problems
    changed = [
        path
        for path in dict.fromkeys((*seen.changed, *done.changed))
        if not any(problem.startswith(f"{path}: ") for problem in problems)
    ]
    removed = list(dict.fromkeys((*seen.removed, *done.removed)))
    unchanged = max(done.unchanged + len(done.changed) - len(changed), 0)
    if as_json:
        echo_json({"changed": changed, "removed": removed, "unchanged": unchanged,
                    "problems": list(problems)})  # fmt: skip
    else:
        for name, items in (("changed", changed), ("removed", removed), ("problem", problems)):
            for item in items:
                _say(f"{name}\t{item}", red=name == "problem")
        _say(f"{len(changed)} changed, {len(removed)} removed, {unchanged} unchanged, "
             f"{len(problems)} with problems")  # fmt: skip
    if problems:
        sys.exit(1)


# The bank


@contextmanager
def _looking(
    folder: Path, agent: str
) -> "Iterator[tuple[MemoryBank, AgentNotes, tuple[str, ...]]]":
    """A copy of the bank that knows the agent's notes as they are on disk."""
    from ....bank.memory_bank import MemoryBank
    from ....notes.agent_notes import AgentNotes
    from ....notes.opening import look_at_files

    with MemoryBank.at(folder) as bank:
        own, seen = look_at_files(bank.parts, folder, agent)
        if not seen.problems:
            _check_agent(bank, folder, agent)
        yield bank, AgentNotes(own), seen.problems


@contextmanager
def _told_once(agent: str) -> Iterator[None]:
    """Keep the log from saying about the agent what the command says anyway."""
    logger = logging.getLogger("tiermem.notes.opening")

    def is_new(record: logging.LogRecord) -> bool:
        return not isinstance(record.args, tuple) or agent not in record.args

    logger.addFilter(is_new)
    try:
        yield
    finally:
        logger.removeFilter(is_new)


# Arguments


def _check_options(action: Action, given: dict[str, tuple[Action, object]]) -> None:
    from ....errors import InvalidInput

    for name, (owner, value) in given.items():
        if value is not None and owner is not action:
            raise InvalidInput(f"{name} goes with {owner}, not with {action}", hint="leave it out")


def _subject(action: Action, words: list[str]) -> str:
    """The query or the path, where the action takes one."""
    from ....errors import InvalidInput

    text = " ".join(words)
    if action is Action.SEARCH:
        if not words:
            raise InvalidInput(
                "search for what?", hint="write: tiermem notes BANK --agent A search QUERY"
            )
    elif action is Action.GET:
        if len(words) != 1:
            got = f"{text!r:.80}" if words else "none"
            raise InvalidInput(
                f"get takes one note's path; got {got}", hint="name one, such as MEMORY.md"
            )
    elif words:
        raise InvalidInput(f"{action} takes nothing more; got {text!r:.80}", hint="leave it out")
    return text


# Output


def _say(text: str, *, err: bool = False, red: bool = False) -> None:
    from ....memory.context import one_line

    line = "\t".join(one_line(part) for part in text.split("\t"))
    if red and sys.stdout.isatty():  # Rich knows where colours are not wanted
        Console(highlight=False, soft_wrap=True).print(Text(line, "red"))
    else:
        typer.echo(line, err=err)


def _print_exactly(text: str) -> None:
    """The text's bytes; on a terminal, what would draw on the screen is shown escaped."""
    from ....memory.context import one_line
    from ....notes.chunks import split_lines

    if sys.stdout.isatty():
        for line in split_lines(text):
            typer.echo("\t".join(map(one_line, line.rstrip("\r\n").split("\t"))))
        return
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:
        sys.stdout.write(text)
        return
    sys.stdout.flush()
    binary.write(text.encode())
    binary.flush()
