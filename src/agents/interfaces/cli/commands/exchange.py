"""Commands that move memories in and out of banks: export, import."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..commit_then_sync import storing
from ..options import AsJson, Assignments, Force
from ..output import echo_json
from .care import Agent, BankFolder, _check_agent, _opened

if TYPE_CHECKING:
    from ....exchange.importing import Imported
    from ....exchange.memory_rows import Row

__all__ = ["export", "import_"]

_STANDARD = Path("-")


def export(
    folder: BankFolder,
    agent: Agent = None,
    to: Annotated[
        Path,
        typer.Option("--to", metavar="FILE", help="FILE.jsonl, FILE.parquet, or - for stdout."),
    ] = _STANDARD,
    everything: Annotated[bool, typer.Option("--all", help="Archived memories, too.")] = False,
    force: Force = False,
    out: Annotated[
        Path | None, typer.Option("--out", hidden=True, help="As --to: run calls it so.")
    ] = None,
) -> None:
    """Write a bank's memories to a file: JSON Lines or Parquet.

    A row has agent_id, id, content, tier, temperature, retention, kind, tags, metadata (in Parquet
    as JSON text), created_tick, expires_tick, access_count and last_access_tick. Notes are left
    out: they are Markdown files already, in the bank's folder `notes`.

    It looks at a copy, so the bank may be in use.
    """
    from ....bank.memory_bank import MemoryBank
    from ....exchange.memory_rows import exported
    from ....exchange.row_files import Format, format_of, lines, write

    to = to if out is None else out
    form = Format.JSONL if to == _STANDARD else format_of(to)
    with MemoryBank.at(folder) as bank:
        _check_agent(bank, folder, agent)
        agents = bank.agents() if agent is None else [agent]
        rows = exported(bank, agents, archived=everything)
        if to == _STANDARD:
            _print(lines(rows))
            return
        number = write(to, form, rows, force=force)
    typer.echo(f"wrote {_count(number)} of {folder} to {to}", err=True)


def import_(
    folder: BankFolder,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="What export writes, or - for JSON Lines from stdin."),
    ] = None,
    mem0: Annotated[
        Path | None,
        typer.Option(
            "--mem0", metavar="CONFIG", help="Adopt the mem0 store of this mem0 config instead."
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", "-a", metavar="AGENT", help="For rows that name no agent."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="jsonl or parquet; else by the name."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Check all rows; store nothing.")
    ] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out rows that can't be kept, and say which.")
    ] = False,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Store the memories of a file, or of a mem0 store, in a bank: all of them, or none.

    A row needs `content`; agent_id, tier, temperature, retention, kind, tags and metadata are taken
    where it has them. Ids and ticks are new: id, access_count and last_access_tick are read over,
    and a lifetime from created_tick to expires_tick begins anew. An archived memory that was hot
    comes back as warm. What is wrong is told with the number of its line; --skip-bad leaves it out.

    What is stored is told at once. That mem0's store can't be written then is told, too, and no
    error: it catches up when the bank is opened again, and a second import would store all twice.

    --mem0 takes a YAML or JSON file with mem0's own config, such as
    `vector_store: {provider: chroma, config: {path: db, collection_name: mem0}}`. The store is only
    read. --set goes on top of the bank's settings, for this import.
    """
    from ....exchange.importing import check_rows, store_rows
    from ....memory.checks import check_agent_id

    if agent is not None:
        check_agent_id(agent)
    rows = _rows(file, mem0, form, agent)
    with _opened(folder, dry_run, None, None, assignments) as bank:
        if dry_run:
            _report(check_rows(bank, rows, agent, skip_bad=skip_bad), True, as_json)
            return
        with storing(bank, lambda: _report(done, False, as_json)):
            done = store_rows(bank, rows, agent, skip_bad=skip_bad)


def _rows(
    file: Path | None, mem0: Path | None, form: str | None, agent: str | None
) -> "Iterable[Row]":
    """The rows of what is named, which has to be one thing."""
    from ....errors import InvalidInput
    from ....exchange.mem0_rows import mem0_rows
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
        return read(file, Format.JSONL if file == _STANDARD else format_of(file))
    if form not in list(Format):
        raise InvalidInput(
            f"there is no format {form!r:.40}", hint=f"--format is {' or '.join(Format)}"
        )
    return read(file, Format(form))


def _print(lines: Iterable[bytes]) -> None:
    """Print UTF-8, whatever the terminal's encoding is."""
    binary = getattr(sys.stdout, "buffer", None)
    for line in lines:
        if binary is None:
            sys.stdout.write(line.decode())
        else:
            binary.write(line)
    sys.stdout.flush()


def _report(done: "Imported", dry_run: bool, as_json: bool) -> None:
    from ....memory.context import one_line

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
    names = f"{len(done.agents):,} {'agent' if len(done.agents) == 1 else 'agents'}"
    verb = "would store" if dry_run else "stored"
    archived = f", {done.archived:,} of them archived" if done.archived else ""
    typer.echo(f"{verb} {_count(done.total)} of {names}{archived}")
    if done.moved_down:
        typer.echo(f"{_count(done.moved_down)} moved to a lower tier, because tiers were full")
    if done.blank:
        typer.echo(f"left out {_number(done.blank)} without a text")
    if done.bad:
        typer.echo(f"left out {_number(done.bad)} that can't be kept:")
    for row in done.first_bad:
        typer.echo(one_line(f"  {row.place}: {row.why}"))
    if more := done.bad - len(done.first_bad):
        typer.echo(f"  and {more:,} more")


def _number(rows: int) -> str:
    return f"{rows:,} {'row' if rows == 1 else 'rows'}"


def _count(number: int) -> str:
    return f"{number:,} {'memory' if number == 1 else 'memories'}"
