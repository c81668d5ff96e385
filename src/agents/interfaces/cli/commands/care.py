"""Commands on a bank's memories: status, compact, prune, vacuum."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..options import AsJson, Assignments, Config, Preset
from ..output import echo_json
from ..signals import telling

if TYPE_CHECKING:
    from ....bank.memory_bank import MemoryBank
    from ....memory.records import Memory

__all__ = ["compact", "prune", "status", "vacuum"]

_TEXT = 60
"""Characters of a memory that are shown in a list."""

_NEITHER = ("notes", "tokens.json", "bank.lock")
"""What of a bank's folder is no part of its journal or of mem0's store."""

BankFolder = Annotated[Path, typer.Argument(metavar="BANK", help="The bank's folder.")]
Agent = Annotated[str | None, typer.Option("--agent", "-a", help="Only this agent's memories.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", "-n", help="List what would move; move nothing.")
]


def status(folder: BankFolder, agent: Agent = None, as_json: AsJson = False) -> None:
    """Show how full a bank is, and suggest what to do about it.

    It looks at a copy, so the bank may be in use, and nothing is changed.
    """
    from ....bank.memory_bank import MemoryBank
    from ..status_page import Page

    with MemoryBank.at(folder) as bank:
        _check_agent(bank, folder, agent)
        found = bank.status(agent)
        if as_json:
            echo_json(found.to_dict())
            return
        page = Page(
            str(folder),
            found,
            bank.settings.status.spill_above,
            lambda owner, memory_id: _short(bank.agent(owner).get(memory_id).content),
        )
        if sys.stdout.isatty():
            page.draw(Console(highlight=False))
        else:
            for line in page.lines():
                typer.echo(line)


def compact(
    folder: BankFolder,
    agent: Agent = None,
    dry_run: DryRun = False,
    file: Config = None,
    preset: Preset = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Move memories between hot, warm and cold as temperature.rules say.

    --preset, --config and --set go on top of the settings that the bank was made with. A second
    time moves nothing. --dry-run looks at a copy, so the bank may be in use.
    """
    from ....memory.temperature import TEMPERATURE_NAMES

    with _opened(folder, dry_run, file, preset, assignments) as bank:
        _check_agent(bank, folder, agent)
        done = bank.compact(agent, dry_run=dry_run)
    rows = [
        {
            "agent": move.memory.agent_id,
            "id": move.memory.id,
            "from": TEMPERATURE_NAMES[move.memory.temperature],
            "to": TEMPERATURE_NAMES[move.to],
            "rule": move.rule,
            "memory": move.memory.content,
        }
        for move in done.moves
    ]
    if as_json:
        counts = {"hot": done.hot, "warm": done.warm, "cold": done.cold, "pruned": done.pruned}
        echo_json({"dry_run": dry_run, **counts, **({"moves": rows} if dry_run else {})})
        return
    if rows:
        lines = [
            [row["agent"], row["id"], f"{row['from']} → {row['to']}", row["rule"], row["memory"]]
            for row in rows
        ]
        _list(["agent", "id", "move", "rule", "memory"], lines)
    verb = "would move" if dry_run else "moved"
    typer.echo(f"{verb} {done.hot:,} to hot, {done.warm:,} to warm, {done.cold:,} to cold")
    if done.pruned:
        verb = "would archive" if dry_run else "archived"
        typer.echo(f"{verb} {done.pruned:,} cold beyond temperature.max_cold_items")


def prune(
    folder: BankFolder,
    agent: Agent = None,
    dry_run: DryRun = False,
    file: Config = None,
    preset: Preset = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Archive the cold memories that agents have beyond temperature.max_cold_items.

    The least relevant go first, critical ones never. Archived memories can be restored.
    """
    with _opened(folder, dry_run, file, preset, assignments) as bank:
        _check_agent(bank, folder, agent)
        agents = bank.agents() if agent is None else [agent]
        with bank.transaction():
            chosen = [
                bank.agent(name).get(each)
                for name in agents
                for each in bank.prune(name, dry_run=dry_run)
            ]
    if as_json:
        echo_json({"dry_run": dry_run, "archived": [_row(memory) for memory in chosen]})
        return
    if dry_run and chosen:
        _list(["agent", "id", "memory"], [list(_row(memory).values()) for memory in chosen])
    noun = "memory" if len(chosen) == 1 else "memories"
    typer.echo(f"{'would archive' if dry_run else 'archived'} {len(chosen):,} cold {noun}")


def vacuum(folder: BankFolder) -> None:
    """Write a bank's files anew, without the space that purged memories left in them.

    After it, nothing of a purged memory is in the bank's folder.
    """
    from ....bank.memory_bank import MemoryBank

    before = _sizes(folder)
    columns = (TextColumn("writing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with (
        MemoryBank.open(
            folder,
            create=False,
            apply_caps=False,
            storage={"sync": "manual"},
            temperature={"compact_on_close": False},
        ) as bank,
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task("writing", total=None)
        bank.vacuum(lambda done, total: bar.update(task, completed=done, total=total))
    after = _sizes(folder)
    for name, size in before.items():
        if size or after[name]:
            typer.echo(f"{name}: {_bytes(size)} → {_bytes(after[name])}")


@contextmanager
def _opened(
    folder: Path,
    dry_run: bool,
    file: Path | None,
    preset: str | None,
    assignments: list[str] | None,
) -> "Iterator[MemoryBank]":
    """The bank, or for a dry run a copy of it."""
    from ....bank.memory_bank import MemoryBank

    given = assignments or ()
    if dry_run:
        # Whatever the copy does when it is closed, nobody sees.
        with MemoryBank.at(folder, config=file, preset=preset, assignments=given) as bank:
            yield bank
        return
    stored = False
    with (
        telling(lambda: "what it stored is kept" if stored else "nothing was stored"),
        MemoryBank.open(
            folder,
            file,
            preset=preset,
            assignments=given,
            create=False,
            apply_caps=False,
            temperature={"compact_on_close": False},  # a command does what it says, and no more
        ) as bank,
    ):
        journal = bank.parts.ledger.journal
        before = journal.head
        try:
            yield bank
        finally:
            stored = journal.head != before


def _check_agent(bank: "MemoryBank", folder: Path, agent: str | None) -> None:
    from ....errors import BankError
    from ....memory.checks import check_agent_id

    if agent is None or check_agent_id(agent) in (agents := bank.agents()):
        return
    has = ", ".join(agents[:10]) + (f" and {len(agents) - 10:,} more" if len(agents) > 10 else "")
    first = f"let it remember something: tiermem add {quote(str(folder))} --agent {agent} TEXT"
    raise BankError(
        f"{folder} has no agent {agent}" + ("" if has else ", nor any other yet"),
        hint=f"it has {has}; name one of these" if has else first,
    )


def _row(memory: "Memory") -> dict[str, str]:
    return {"agent": memory.agent_id, "id": memory.id, "memory": memory.content}


def _list(names: list[str], lines: list[list[str]]) -> None:
    """A table on a terminal, lines with tabs elsewhere; the last of each is a memory's text."""
    from rich.table import Table
    from rich.text import Text

    lines = [[*line[:-1], _short(line[-1])] for line in lines]
    if not sys.stdout.isatty():
        for line in (names, *lines):
            typer.echo("\t".join(line))
        return
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    for name in names:
        is_text = name == names[-1]
        table.add_column(name, no_wrap=True, overflow="ellipsis" if is_text else "fold",
                         style="dim" if name == "id" else "")  # fmt: skip
    for line in lines:
        table.add_row(*map(Text, line))
    Console(highlight=False).print(table)


def _short(text: str) -> str:
    from ....memory.context import one_line

    line = one_line(text)
    return line if len(line) <= _TEXT else line[: _TEXT - 1] + "…"


def _sizes(folder: Path) -> dict[str, int]:
    sizes = {"journal": 0, "mem0's store": 0}
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).parts[0] not in _NEITHER:
            own = path.parent == folder and path.name.startswith("journal.db")
            sizes["journal" if own else "mem0's store"] += path.stat().st_size
    return sizes


def _bytes(size: int) -> str:
    if size < 1_000:
        return f"{size} bytes"
    return f"{size / 1e6:,.1f} MB" if size >= 1_000_000 else f"{size / 1e3:,.1f} kB"
