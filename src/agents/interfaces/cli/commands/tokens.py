"""The command on tokens: create, list, revoke."""

from typing import Annotated

import typer

from ..options import AsJson
from ..output import table
from .care import BankFolder

__all__ = ["app"]

app = typer.Typer(
    help="Tokens: who may speak for which agent, over HTTP and MCP.",
    no_args_is_help=True,
    add_completion=False,
)


@app.command()
def create(
    folder: BankFolder,
    agent: Annotated[str, typer.Option("--agent", "-a", help="Whose memory it opens.")],
    read_only: Annotated[
        bool, typer.Option("--read-only", help="It may read and search, and change nothing.")
    ] = False,
    name: Annotated[
        str | None, typer.Option("--name", help="To list and revoke it by; the agent if not.")
    ] = None,
    make: Annotated[
        bool, typer.Option("--create", help="Make the folder, for `tiermem serve --create`.")
    ] = False,
) -> None:
    """Make a token for an agent, and print it.

    It is shown this once: the bank keeps a hash of it. A server that runs takes it at once.
    """
    from ....errors import BankError, BankNotFound
    from ... import tokens

    if not make and not (folder / "journal.db").is_file():
        raise BankNotFound(
            f"there is no bank in {folder}", hint="--create makes the folder for one"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BankError(
            f"{folder} can't hold a bank: {error.strerror or error}", hint="name another folder"
        ) from None
    token, made = tokens.create(folder, agent, "read" if read_only else "write", name)
    typer.echo(token)
    typer.echo(
        f"the token {made.name} lets its bearer {made.permission} the memory of {made.agent_id}; "
        "it is not shown again",
        err=True,
    )


@app.command(name="list")
def list_(folder: BankFolder, as_json: AsJson = False) -> None:
    """List the tokens' names, agents and permissions; the tokens themselves nobody knows."""
    from ....bank.history import no_bank
    from ... import tokens

    if not folder.is_dir():
        raise no_bank(folder)
    rows = [
        {"name": each.name, "agent": each.agent_id, "permission": each.permission}
        for each in tokens.grants(folder)
    ]
    table(f"{folder}: tokens", rows, as_json)


@app.command()
def revoke(
    folder: BankFolder,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The token's name.")],
) -> None:
    """Make a token worthless, at once and for good.

    Without any token left, nobody is let in: only to delete tokens.json in the bank's folder, and
    to start again, brings back serving without tokens.
    """
    from ... import tokens

    tokens.revoke(folder, name)
    typer.echo(f"revoked {name}")
