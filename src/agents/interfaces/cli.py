"""The command ``tiermem``."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agents import __version__
from agents.errors import ConfigError, InvalidInput, TierMemError
from agents.interfaces import look_commands, memory_commands, note_commands, run_commands
from agents.interfaces.options import Assignments, Config, Preset

__all__ = ["app", "main"]

app = typer.Typer(
    help="Tiered, reproducible memory for agents in multi-agent simulations.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; an error is one message and an exit code, not a traceback."""
    try:
        app()
    except (ConfigError, InvalidInput) as error:
        _fail(error, code=2)
    except TierMemError as error:
        _fail(error, code=1)
    except KeyboardInterrupt:
        sys.exit(run_commands.INTERRUPTED)


def _fail(error: TierMemError, code: int) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        f"[bold red]tiermem:[/] {_escaped(str(error))}"
    )
    sys.exit(code)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tiermem {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    pass


@app.command()
def config(file: Config = None, preset: Preset = None, assignments: Assignments = None) -> None:
    """Check settings and print all of them, as they would be used.

    The defaults, then the preset, the file, and --set; the result is YAML that --config takes.
    """
    import yaml

    from agents.config import load_settings
    from agents.storage.mem0_store import check_providers

    settings = load_settings(file, preset=preset, assignments=assignments or ())
    check_providers(settings)
    typer.echo(yaml.safe_dump(settings.to_dict(redact=True), sort_keys=False), nl=False)


@app.command()
def repair(
    bank: Annotated[Path, typer.Argument(metavar="BANK", help="The bank's folder.")],
    file: Config = None,
    assignments: Assignments = None,
) -> None:
    """Rebuild mem0's store from the bank's journal.

    For a store that is missing, damaged, crashes when opened, or belongs to another bank. The
    memories are not changed, and an old local store is moved aside, not deleted. --config and --set
    go on top of the settings that the bank was made with.
    """
    from agents.bank import MemoryBank

    columns = (TextColumn("writing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with (
        MemoryBank.open(
            bank,
            file,
            assignments=assignments or (),
            create=False,
            apply_caps=False,
            storage={"sync": "manual"},
        ) as opened,
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task("writing", total=None)
        report = opened.repair_store(
            lambda done, total: bar.update(task, completed=done, total=total)
        )
    for line in report:
        typer.echo(line)


for command in (
    run_commands.run,
    run_commands.resume,
    run_commands.replay,
    run_commands.branch,
    look_commands.diff,
    look_commands.show,
    look_commands.report,
    look_commands.sweep,
    memory_commands.status,
    memory_commands.compact,
    memory_commands.prune,
    memory_commands.vacuum,
    note_commands.notes,
):
    app.command()(command)


if __name__ == "__main__":
    main()
