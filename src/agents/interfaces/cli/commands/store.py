"""Commands on what is on disk: backups, mem0's copy of a bank, its vectors, files, and trust."""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ....errors import ConfigError, InvalidInput
from ....memory.requests import check_agent_id
from ....memory.words import counted, first_of
from ..banks import changed, check_agent, copied, opened, storing
from ..failures import telling
from ..options import (
    AsJson,
    Assignments,
    BankFolder,
    Config,
    DryRun,
    Force,
    OneAgent,
    OutFolder,
    Quiet,
    RunFolder,
)
from ..output import echo_exactly, echo_json, say, table
from ..progress import Screen

if TYPE_CHECKING:
    from ....exchange.importing import Imported
    from ....exchange.row_files import Row


_NEITHER = ("notes", "tokens.json", "bank.lock", "bank.head", "reembed.db")
"""Entries of a bank's folder that belong neither to the journal nor to mem0's store."""


def backup(
    folder: BankFolder,
    to: Annotated[Path, Argument(metavar="BACKUP", help="The new folder of the backup.")],
    as_json: AsJson = False,
) -> None:
    """Copy a bank that may be in use to a new folder, and check the copy.

    The backup has every commit that was acknowledged before the command began, and appears whole
    or not at all. It has the memories, the notes as the bank knows them, the tokens, and the
    records of a run. It is a bank: open it where it is, or to restore it, move its folder to where
    the bank was. mem0's store is made anew from it.
    """
    from ....bank.backup import backup as back_up
    from ..progress import writing

    with (
        telling(lambda: "the backup is whole" if to.exists() else "no backup was made"),
        writing("pages") as show,
    ):
        made = back_up(folder, to, progress=show)
    if as_json:
        echo_json({"bank": str(folder), **made._asdict()})
        return
    commits = counted(made.commits, "commit")
    say(f"backed up {folder} to {to}: {commits} up to tick {made.tick:,}, {_bytes(made.bytes)}")


def sync(
    folder: BankFolder,
    file: Config = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Write to mem0's store what it lacks, for programs that read a bank by mem0.

    Other commands leave the store alone, unless storage.sync is commit. Long-lived processes write
    it as storage.sync says. --config and --set change the settings of the bank for this command.
    """
    from ..progress import writing

    with opened(folder, file, None, assignments) as bank, writing("commits") as show:
        written = bank.sync(show)
    if as_json:
        echo_json({"written": written})
    else:
        say(f"wrote {counted(written, 'memory', 'memories')} to mem0's store")


def rebuild(folder: BankFolder, file: Config = None, assignments: Assignments = None) -> None:
    """Rebuild mem0's store from the bank's journal.

    Use it for a store that is missing, damaged, crashes when opened, or belongs to another bank.
    The memories stay as they are. An old local store is moved aside, not deleted. --config and
    --set change the settings of the bank for this command.
    """
    from ..progress import writing

    with (
        opened(folder, file, None, assignments, storage={"sync": "manual"}) as bank,
        writing() as show,
    ):
        report = bank.repair_store(show)
    for line in report:
        say(line)


def reembed(
    folder: BankFolder,
    embedder: Annotated[
        str | None,
        Option(
            metavar="PROVIDER",
            help="The embedder: offline, minilm, both, none, or a provider of mem0's.",
        ),
    ] = None,
    dry_run: DryRun = False,
    file: Config = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Give a bank another embedder: all its texts are embedded anew.

    Options of the embedder come from --set embedder.config.model=… or from the section embedder of
    --config. Ids, tiers and history stay. All vectors change at once at the end; a command that was
    killed goes on where it was. Then tiermem store sync makes mem0's store anew. --dry-run embeds
    up to 500 texts, changes nothing, and says how far the two embedders agree.
    """
    from ....bank.memory_bank import MemoryBank
    from ....config.load import load_settings
    from ..progress import writing

    chosen = [*(assignments or ()), *([f"embedder.provider={embedder}"] if embedder else ())]
    if not chosen and file is None:
        raise ConfigError("no embedder is named", hint="use --embedder, such as --embedder offline")
    section: Any = load_settings(file, assignments=chosen).to_dict()["embedder"]
    with writing() as show:
        done = MemoryBank.reembed(folder, section, dry_run=dry_run, progress=show)
    if as_json:
        echo_json({"dry_run": dry_run, **done._asdict()})
        return
    if done.before == done.after:
        say(f"{folder} has the embedder {done.after} already")
        return
    verb = "would embed" if dry_run else "embedded"
    say(f"{verb} {counted(done.texts, 'text')} with {done.after}, instead of {done.before}")
    if done.agreement is not None:
        say(
            f"nearness: of the nearest texts of a text, {done.agreement:.0%} stay the nearest "
            f"({done.compared:,} texts compared)"
        )
    if not dry_run:
        say(f"mem0's store is made anew by: tiermem store sync {quote(str(folder))}")


def vacuum(folder: BankFolder) -> None:
    """Write the files of a bank anew, without the space that purged memories left.

    Afterwards the bank's folder holds nothing of a purged memory.
    """
    from ..progress import writing

    before = _sizes(folder)
    with opened(folder, storage={"sync": "manual"}) as bank, writing() as show:
        left = bank.vacuum(show)
    after = _sizes(folder)
    for name, size in before.items():
        if size or after[name]:
            say(f"{name}: {_bytes(size)} → {_bytes(after[name])}")
    for each in left:
        say(f"forgotten texts may still be in {each}")


def merge(
    folder: RunFolder,
    out: OutFolder,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make one bank of a run whose agents are spread over workers: a copy of the run.

    The copy has all ticks that the run has now, and its results. The run stays as it is, and may
    go on meanwhile.
    """
    from ....simulation.runs.branch import merge as merge_run

    with Screen(quiet=quiet or as_json):
        summary = merge_run(folder, out, force=force)
    if as_json:
        echo_json({"run": str(out), "merged": str(folder), **summary})
    elif not quiet:
        say(f"made {out}: {summary['ticks']} ticks, state {summary['state_hash'][:16]}")


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


# Files


_STANDARD = Path("-")
_MOST_AGENTS = 10


def export(
    folder: BankFolder,
    agent: OneAgent = None,
    out: Annotated[
        Path,
        Option("--out", "-o", metavar="FILE", help="FILE.jsonl, FILE.parquet, or - for stdout."),
    ] = _STANDARD,
    everything: Annotated[bool, Option("--all", help="Export the archived memories, too.")] = False,
    salvage: Annotated[
        bool, Option("--salvage", help="Export what is whole of a damaged bank.")
    ] = False,
    force: Force = False,
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

    if out != _STANDARD:
        format_of(out)
    if salvage:
        _salvage(folder, agent, out, everything, force)
        return
    with copied(folder, agent) as bank:
        agents = bank.agents() if agent is None else [agent]
        rows = exported(bank, agents, archived=everything)
        boards = list(exported_boards(bank)) if agent is None else []
        _write(folder, out, chain(rows, boards), force, len(bank.groups()) if boards else 0)


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

    saved = salvage(folder)
    with saved.bank as bank:
        check_agent(bank, folder, agent)
        rows = saved.rows(None if agent is None else [agent], archived=everything)
        _write(folder, to, rows, force, len(bank.groups()) if agent is None else 0)
    if saved.is_complete:
        say("every memory of the bank is whole", err=True)
        return
    say(f"not everything is there: {first_of(saved.problems)}", err=True)
    for name, number in list(saved.lost.items())[:_MOST_AGENTS]:
        say(f"  {name}: {_memories(number)} missing", err=True)
    if (more := len(saved.lost) - _MOST_AGENTS) > 0:
        say(f"  and memories of {more:,} more agents", err=True)
    if not saved.lost:
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


# Trust


def trust(
    path: Annotated[
        Path | None, Argument(metavar="PATH", help="A bank, a run or a checkpoint.")
    ] = None,
    show: Annotated[bool, Option("--list", help="List what you trust.")] = False,
    remove: Annotated[bool, Option("--remove", help="Trust PATH no more.")] = False,
    as_json: AsJson = False,
) -> None:
    """Trust a bank, a run or a checkpoint that somebody else made, or that came from elsewhere.

    What you made on this machine needs no trust, and neither do reading and offline search. A
    trusted bank may use the servers, stores and files that it names, with your API keys; the code
    of a trusted run is run. SECURITY.md says more. --json goes with --list.
    """
    from ....simulation.runs import trust as trust_list

    if show == (path is not None) or (remove and path is None):
        raise InvalidInput("give a PATH to trust, or --list", hint="tiermem store trust PATH")
    if path is None:
        rows = [{"path": each.path, "kind": each.kind} for each in trust_list.trusted()]
        table("trusted", rows, as_json)
        return
    if remove:
        trust_list.untrust(path)
        say(f"{path} is trusted no more")
        return
    allowed = trust_list.trust(path)
    say(f"{path} is trusted, and may {' and '.join(allowed)}" if allowed else f"{path} is trusted")
