"""Commands that move memories in and out of banks: export, import."""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ....errors import InvalidInput
from ....memory.requests import check_agent_id
from ....memory.words import counted, first_of
from ..banks import changed, check_agent, copied, storing
from ..options import AsJson, Assignments, BankFolder, Force, OneAgent
from ..output import echo_exactly, echo_json, say

if TYPE_CHECKING:
    from ....exchange.importing import Imported
    from ....exchange.row_files import Row

_STANDARD = Path("-")
_MOST_AGENTS = 10


def export(
    folder: BankFolder,
    agent: OneAgent = None,
    to: Annotated[
        Path, Option(metavar="FILE", help="FILE.jsonl, FILE.parquet, or - for stdout.")
    ] = _STANDARD,
    everything: Annotated[bool, Option("--all", help="Export the archived memories, too.")] = False,
    salvage: Annotated[
        bool, Option("--salvage", help="Export what is whole of a damaged bank.")
    ] = False,
    force: Force = False,
    out: Annotated[Path | None, Option(hidden=True, help="The same as --to.")] = None,
) -> None:
    """Write the memories of a bank to a file: JSON Lines or Parquet.

    A row has agent_id, id, content, tier, temperature, retention, kind, tags, metadata (in Parquet
    as JSON text), created_tick, expires_tick, access_count and last_access_tick. Notes are not
    exported: they are Markdown files already, in the folder `notes` of the bank. Rows of a group
    have a dot and its name as agent_id: its members, then what is on its board.

    The command reads a copy: the bank can be in use.

    --salvage is for a bank that is damaged. It exports the memories that are as they were written,
    says what is missing, and exits with 1 if anything is. It changes nothing in the bank.
    """
    from ....exchange.row_files import exported, exported_boards, format_of

    to = to if out is None else out
    if to != _STANDARD:
        format_of(to)
    if salvage:
        _salvage(folder, agent, to, everything, force)
        return
    with copied(folder, agent) as bank:
        agents = bank.agents() if agent is None else [agent]
        rows = exported(bank, agents, archived=everything)
        boards = list(exported_boards(bank)) if agent is None else []
        _write(folder, to, chain(rows, boards), force, len(bank.groups()) if boards else 0)


def _write(
    folder: Path, to: Path, rows: "Iterable[dict[str, Any]]", force: bool, groups: int = 0
) -> None:
    from ....exchange.row_files import format_of, lines, write

    if to == _STANDARD:
        echo_exactly(lines(rows))
        return
    number = write(to, format_of(to), rows, force=force) - groups
    more = f" and {counted(groups, 'group')}" if groups else ""
    say(f"wrote {_memories(number)}{more} of {folder} to {to}", err=True)


def _salvage(folder: Path, agent: str | None, to: Path, everything: bool, force: bool) -> None:
    from ....exchange.salvage import salvage

    found = salvage(folder)
    with found.bank as bank:
        check_agent(bank, folder, agent)
        rows = found.rows(None if agent is None else [agent], archived=everything)
        _write(folder, to, rows, force, len(bank.groups()) if agent is None else 0)
    if found.is_complete:
        say("every memory of the bank is whole", err=True)
        return
    say(f"not everything is there: {first_of(found.problems)}", err=True)
    for name, number in list(found.lost.items())[:_MOST_AGENTS]:
        say(f"  {name}: {_memories(number)} missing", err=True)
    if (more := len(found.lost) - _MOST_AGENTS) > 0:
        say(f"  and memories of {more:,} more agents", err=True)
    if not found.lost:
        say("how many memories are missing is not known", err=True)
    raise typer.Exit(1)


def import_(
    folder: BankFolder,
    file: Annotated[
        Path | None,
        Argument(metavar="FILE", help="A file that export wrote, or - for JSON Lines from stdin."),
    ] = None,
    mem0: Annotated[
        Path | None,
        Option(metavar="CONFIG", help="Import the mem0 store that this mem0 config names."),
    ] = None,
    agent: Annotated[
        str | None, Option("--agent", "-a", help="The agent of rows that name no agent.")
    ] = None,
    form: Annotated[
        str | None,
        Option("--format", help="jsonl or parquet; without it, the file's name decides."),
    ] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", "-n", help="Check all rows, and store nothing.")
    ] = False,
    skip_bad: Annotated[
        bool, Option("--skip-bad", help="Leave out the rows that are wrong, and list them.")
    ] = False,
    max_unpacked: Annotated[
        int | None,
        Option(
            min=1,
            metavar="BYTES",
            help="The most bytes of a Parquet file's rows; by default 100 times the file's size, "
            "and at least 64 MiB.",
        ),
    ] = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Store the memories of a file, or of a mem0 store, in a bank: all of them, or none.

    A row needs `content`; it can have agent_id, tier, temperature, retention, kind, tags and
    metadata. Memories get new ids and ticks: access_count and last_access_tick of a row are
    ignored, and a lifetime from created_tick to expires_tick begins anew. Versions, evidence and
    sources that name the id of an earlier row name its new memory. An archived memory that was
    hot becomes warm. The command names the line of a wrong row; --skip-bad leaves the row out.

    `tiermem store sync` writes the memories to the bank's own mem0 store.

    --mem0 takes a YAML or JSON file with mem0's own config, such as
    `vector_store: {provider: chroma, config: {path: db, collection_name: mem0}}`. The store is only
    read. --set changes the settings of the bank for this import.
    """
    from ....exchange.importing import check_rows, store_rows

    if agent is not None:
        check_agent_id(agent)
    rows = _rows(file, mem0, form, agent, max_unpacked)
    with changed(folder, assignments=assignments, dry_run=dry_run) as bank:
        if dry_run:
            _report(check_rows(bank, rows, agent, skip_bad=skip_bad), True, as_json)
            return
        with storing(bank, lambda: _report(done, False, as_json)):
            done = store_rows(bank, rows, agent, skip_bad=skip_bad)


def _rows(
    file: Path | None,
    mem0: Path | None,
    form: str | None,
    agent: str | None,
    max_unpacked: int | None,
) -> "Iterable[Row]":
    """The rows of the file or of the mem0 store; naming both, or neither, is refused."""
    from ....exchange.importing import mem0_rows
    from ....exchange.row_files import Format, format_of, read

    if mem0 is not None and file is None:
        if form is not None:
            raise InvalidInput("--format goes with FILE, not with --mem0", hint="leave it out")
        return mem0_rows(mem0, agent)
    if file is None or mem0 is not None:
        raise InvalidInput(
            "there is not one thing to import",
            hint="import what? name a FILE, or a mem0 store with --mem0 CONFIG",
        )
    if form is None:
        return read(file, Format.JSONL if file == _STANDARD else format_of(file), max_unpacked)
    if form not in list(Format):
        raise InvalidInput(
            f"there is no format {form!r:.40}", hint=f"--format is {' or '.join(Format)}"
        )
    return read(file, Format(form), max_unpacked)


def _memories(number: int) -> str:
    return counted(number, "memory", "memories")


def _report(done: "Imported", dry_run: bool, as_json: bool) -> None:
    if as_json:
        echo_json(
            {
                "dry_run": dry_run,
                "memories": done.total,
                "archived": done.archived,
                "moved_down": done.moved_down,
                "agents": dict(sorted(done.agents.items())),
                "blank": done.blank,
                "left_out": done.bad,
                "left_out_first": [each._asdict() for each in done.first_bad],
            }
        )
        return
    from ....telling.groups import group_of

    boards = sum(group_of(name) is not None for name in done.agents)
    names, stored = counted(len(done.agents) - boards, "agent"), _memories(done.total)
    names += f" and {counted(boards, 'group')}" if boards else ""
    verb = "would store" if dry_run else "stored"
    archived = f", {done.archived:,} of them archived" if done.archived else ""
    say(f"{verb} {stored} of {names}{archived}")
    if done.moved_down:
        moved = _memories(done.moved_down)
        say(f"{moved} moved to a lower tier, because tiers were full")
    if done.blank:
        say(f"left out {counted(done.blank, 'row')} without a text")
    if done.bad:
        say(f"left out {counted(done.bad, 'row')} that can't be kept:")
    for row in done.first_bad:
        say(f"  {row.place}: {row.why}")
    if more := done.bad - len(done.first_bad):
        say(f"  and {more:,} more")
