"""Commands on what is on disk: mem0's copy of a bank, its vectors, its space, and a spread run."""

from pathlib import Path
from shlex import quote
from typing import Annotated, Any

from typer import Option

from ....errors import ConfigError
from ....memory.words import counted
from ..banks import opened
from ..options import AsJson, Assignments, BankFolder, Config, DryRun, Force, Quiet, RunFolder
from ..output import echo_json, say
from ..progress import Screen

_NEITHER = ("notes", "tokens.json", "bank.lock", "bank.id", "bank.head", "reembed.db")
"""Entries of a bank's folder that belong neither to the journal nor to mem0's store."""


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
        Option(metavar="PROVIDER", help="The embedder: offline, none, or a provider of mem0's."),
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
    out: Annotated[
        Path, Option("--out", "-o", metavar="FOLDER", help="The folder of the new run.")
    ],
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
