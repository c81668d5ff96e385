"""The command that gives a bank another embedder."""

from shlex import quote
from typing import Annotated, Any

from typer import Option

from ....errors import ConfigError
from ....memory.words import counted
from ..options import AsJson, Assignments, BankFolder, Config
from ..output import echo_json, say
from .care import DryRun


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
    killed goes on where it was. Then tiermem sync makes mem0's store anew. --dry-run embeds up to
    500 texts, changes nothing, and says how far the two embedders agree.
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
        say(f"mem0's store is made anew by: tiermem sync {quote(str(folder))}")
