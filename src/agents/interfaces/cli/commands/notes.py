"""The command on an agent's notes: list, search, get, append, write, edit, sync."""

import logging
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.text import Text
from typer import Argument, Exit, Option

from ....errors import InvalidInput, NoteRefused
from ....memory.context import one_line
from ....memory.tiers import TIER_NAMES
from ....memory.words import first_of
from ....notes.markdown import split_lines
from ....notes.transcripts import length_of
from ..banks import changed, copied_with_notes, opened, storing
from ..options import AsJson, BankFolder, no_nan, text_of
from ..output import echo_exactly, echo_json, say, table

if TYPE_CHECKING:
    from ....bank.memory_bank import MemoryBank
    from ....notes.agent_notes import AgentNotes


class Action(StrEnum):
    """What to do with notes."""

    LIST = "list"
    SEARCH = "search"
    GET = "get"
    APPEND = "append"
    WRITE = "write"
    EDIT = "edit"
    SYNC = "sync"


def notes(
    folder: BankFolder,
    agent: Annotated[str, Option("--agent", "-a", help="The agent whose notes they are.")],
    action: Annotated[
        Action,
        Argument(metavar="ACTION", help="list, search, get, append, write, edit or sync."),
    ] = Action.LIST,
    words: Annotated[
        list[str] | None,
        Argument(
            metavar="QUERY|PATH|TEXT",
            help="What to search for, the note to get, or what to write; - reads it from stdin.",
        ),
    ] = None,
    path: Annotated[
        str | None,
        Option(help="For append: the note; without it, the note of the day."),
    ] = None,
    limit: Annotated[
        int | None,
        Option(
            "--limit",
            "-l",
            min=0,
            help="For search: at most this many results; without it, notes.max_results.",
        ),
    ] = None,
    min_score: Annotated[
        float | None,
        Option(
            min=0,
            max=1,
            callback=no_nan,
            help="For search: the lowest match, from 0 to 1; without it, notes.min_score.",
        ),
    ] = None,
    first: Annotated[
        int | None, Option("--from", metavar="LINE", min=1, help="For get: the first line.")
    ] = None,
    lines: Annotated[int | None, Option(min=0, help="For get: the number of lines.")] = None,
    as_json: AsJson = False,
) -> None:
    """List, search, print, write or index the Markdown notes of an agent.

    `tiermem notes BANK --agent A` lists the notes, their length, and the tiers of their chunks.

    `tiermem notes BANK --agent A search QUERY` searches notes and memories, and cites the lines.

    `tiermem notes BANK --agent A get PATH --from 40 --lines 30` prints lines of a note.

    `tiermem notes BANK --agent A append TEXT --path MEMORY.md` adds lines to a note, `write PATH
    TEXT` replaces a note, and `edit PATH OLD NEW` replaces a part that the note has once. The files
    are on disk when the command returns.

    `tiermem notes BANK --agent A sync` indexes the notes that changed on disk, those of other
    agents too, and lists what changed for this agent. It exits with 1 if it can't index a note.

    list, search and get read a copy and the notes on disk: the bank can be in use, and nothing
    changes. The other actions need the bank for themselves; a program that has the bank open
    indexes notes anyway.
    """
    _check_options(
        action,
        {
            "--limit": (Action.SEARCH, limit),
            "--min-score": (Action.SEARCH, min_score),
            "--path": (Action.APPEND, path),
            "--from": (Action.GET, first),
            "--lines": (Action.GET, lines),
        },
    )
    if action in (Action.APPEND, Action.WRITE, Action.EDIT):
        _write(folder, agent, action, path, words or [], as_json)
        return
    subject = _subject(action, words or [])
    if action is Action.SYNC:
        _sync(folder, agent, as_json)
        return
    with copied_with_notes(folder, agent) as (bank, files, seen):
        if action is Action.GET:
            _get(files, subject, first or 1, lines, as_json)
            return
        for problem in (*seen.problems, *seen.skipped):
            say(f"not indexed: {problem}", err=True)
        if action is Action.SEARCH:
            _search(bank, agent, subject, limit, min_score, as_json)
        else:
            table(f"{folder}: notes of {agent}", _rows(bank, agent, as_json), as_json)


def _rows(bank: "MemoryBank", agent: str, as_json: bool) -> list[dict[str, Any]]:
    from ....engine.read import nth

    kept = bank.engine.state.block(agent).notes
    rows = []
    for path in bank.agent(agent).notes.paths():
        note = kept[path]
        lines, size = length_of(path, note)
        found = (nth(bank.engine, agent, number) for number, _, _ in note.chunks)
        counts = Counter(memory.tier for memory in found if memory is not None)
        tiers = {TIER_NAMES[tier]: counts[tier] for tier in sorted(counts)}
        shown = ", ".join(f"{count} {name}" for name, count in tiers.items())
        rows.append(
            {
                "path": path,
                "lines": lines,
                "bytes": size,
                "chunks": len(note.chunks),
                "tiers": tiers if as_json else shown,
            }
        )
    return rows


def _search(
    bank: "MemoryBank",
    agent: str,
    query: str,
    limit: int | None,
    min_score: float | None,
    as_json: bool,
) -> None:
    findings = bank.agent(agent).memory_search(query, limit, min_score)
    if findings.note:
        say(findings.note, err=True)
    rows = [
        {
            "score": round(finding.score, 4),
            **({} if finding.match is None else {"match": round(finding.match, 4)}),
            "citation": finding.citation,
            **({"id": finding.memory.id} if as_json else {}),
            "snippet": finding.snippet if as_json else finding.snippet.strip(),
        }
        for finding in findings
    ]
    table(f"{agent} searches: {query}", rows, as_json)


def _get(files: "AgentNotes", path: str, first: int, lines: int | None, as_json: bool) -> None:
    part = files.lines(path, first, lines)
    if path not in (paths := files.paths()):
        has = first_of(paths) or "none yet"
        raise NoteRefused(f"{files.agent_id} has no note {path}", hint=f"there is {has}")
    if as_json:
        echo_json({"path": path, "from": part.first, "to": part.last, "text": part.text})
    elif sys.stdout.isatty():
        for line in split_lines(part.text):
            say(line.rstrip("\r\n"))
    else:
        echo_exactly([part.text.encode()])


def _write(
    folder: Path, agent: str, action: Action, path: str | None, words: list[str], as_json: bool
) -> None:
    needed = {Action.APPEND: "TEXT", Action.WRITE: "PATH TEXT", Action.EDIT: "PATH OLD NEW"}[action]
    least = len(needed.split())
    if len(words) < least or (action is Action.EDIT and len(words) > least):
        raise InvalidInput(
            f"{action} takes {needed}; got {len(words)} of them",
            hint=f"write: tiermem notes BANK --agent A {action} {needed}; quote what has blanks",
        )
    text = text_of(words[least - 1 :])
    done = {Action.APPEND: "appended to", Action.WRITE: "wrote", Action.EDIT: "edited"}[action]
    with changed(folder) as bank:
        files = bank.agent(agent).notes
        place = path or (files.daily_path() if action is Action.APPEND else words[0])

        def tell() -> None:
            if as_json:
                echo_json({"agent": agent, "path": place})
            else:
                say(f"{agent} {done} {place}")

        with storing(bank, tell):
            if action is Action.APPEND:
                files.append(text, place)
            elif action is Action.WRITE:
                files.write(place, f"{text}\n" if text else "")
            else:
                files.edit(place, words[1], text)


def _sync(folder: Path, agent: str, as_json: bool) -> None:
    with copied_with_notes(folder, agent) as (_, _, seen):
        pass
    with _told_once(agent), opened(folder) as bank:
        done = bank.agent(agent).notes.sync()  # opening the bank has indexed most notes
    problems = done.problems
    changed = [
        path
        for path in dict.fromkeys((*seen.changed, *done.changed))
        if not any(problem.startswith(f"{path}: ") for problem in problems)
    ]
    removed = list(dict.fromkeys((*seen.removed, *done.removed)))
    skipped = list(dict.fromkeys((*seen.skipped, *done.skipped)))
    unchanged = max(done.unchanged + len(done.changed) - len(changed), 0)
    if as_json:
        echo_json({"changed": changed, "removed": removed, "unchanged": unchanged,
                    "problems": list(problems), "skipped": skipped})  # fmt: skip
    else:
        for name, items in (
            ("changed", changed), ("removed", removed), ("skipped", skipped), ("problem", problems),
        ):  # fmt: skip
            for item in items:
                _tell(f"{name}\t{item}", is_bad=name == "problem")
        say(f"{len(changed)} changed, {len(removed)} removed, {unchanged} unchanged, "
             f"{len(problems)} with problems")  # fmt: skip
    if problems:
        raise Exit(1)


@contextmanager
def _told_once(agent: str) -> Iterator[None]:
    """Keep out of the log what the command prints about the agent."""
    logger = logging.getLogger("tiermem.notes.opening")

    def is_new(record: logging.LogRecord) -> bool:
        return not isinstance(record.args, tuple) or agent not in record.args

    logger.addFilter(is_new)
    try:
        yield
    finally:
        logger.removeFilter(is_new)


def _check_options(action: Action, given: dict[str, tuple[Action, object]]) -> None:
    for name, (owner, value) in given.items():
        if value is not None and owner is not action:
            raise InvalidInput(f"{name} goes with {owner}, not with {action}", hint="leave it out")


def _subject(action: Action, words: list[str]) -> str:
    """The query or the path; list and sync take neither."""
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


def _tell(text: str, *, is_bad: bool) -> None:
    if is_bad and sys.stdout.isatty():  # Rich knows where colours are not wanted
        line = "\t".join(map(one_line, text.split("\t")))
        Console(highlight=False, soft_wrap=True).print(Text(line, "red"))
    else:
        say(text)
