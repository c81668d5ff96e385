"""The command on tokens: create, list, revoke."""

from typing import Annotated

import typer
from typer import Argument, Option

from ....errors import BankError, InvalidInput
from ....storage.files import make_folder
from ... import tokens
from ..banks import check_bank
from ..help import HelpfulCommand, HelpfulGroup
from ..options import AsJson, BankFolder, Whose
from ..output import say, table

app = typer.Typer(
    cls=HelpfulGroup,
    help="Make, list and revoke tokens. A token opens the memory of one agent, over HTTP and MCP.",
    no_args_is_help=True,
    add_completion=False,
)


@app.command(cls=HelpfulCommand)
def create(
    folder: BankFolder,
    agent: Whose,
    read_only: Annotated[
        bool, Option("--read-only", help="A token that can read and search, not change.")
    ] = False,
    advance: Annotated[
        bool,
        Option("--advance", help="A token that can also move the clock, for all agents."),
    ] = False,
    tell: Annotated[
        bool,
        Option("--tell", help="A token that can also tell other agents, and write to boards."),
    ] = False,
    name: Annotated[str | None, Option(help="The token's name; without it, the agent's.")] = None,
    make: Annotated[
        bool, Option("--create", help="Make the folder, for `tiermem serve --create`.")
    ] = False,
) -> None:
    """Make a token for an agent, and print it.

    The token is printed this once: the bank keeps only its hash. A running server accepts it at
    once.
    """
    if read_only and advance:
        raise InvalidInput(
            "a token that only reads moves no clock", hint="leave out --read-only or --advance"
        )
    if read_only and tell:
        raise InvalidInput(
            "a token that only reads tells nothing", hint="leave out --read-only or --tell"
        )
    check_bank(folder, make, "--create makes the folder for one")
    try:
        make_folder(folder)
    except OSError as error:
        raise BankError(
            f"{folder} can't hold a bank: {error.strerror or error}", hint="name another folder"
        ) from None
    may: tokens.Permission = "tell" if tell else "write"
    token, made = tokens.create(
        folder, agent, "read" if read_only else "advance" if advance else may, name
    )
    say(token)
    verb = "read" if read_only else "write"
    more = ", and tell other agents" if tell or advance else ""
    more += ", and move the clock of the bank" if advance else ""
    say(
        f"the token {made.name} lets its bearer {verb} the memory of {made.agent_id}{more}; "
        "it is not shown again",
        err=True,
    )


@app.command("list", cls=HelpfulCommand)
def list_(folder: BankFolder, as_json: AsJson = False) -> None:
    """List the names, agents and permissions of all tokens, but not the tokens themselves."""
    from ....bank.history import no_bank

    if not folder.is_dir():
        raise no_bank(folder)
    rows = [
        {"name": each.name, "agent": each.agent_id, "permission": each.permission}
        for each in tokens.grants(folder)
    ]
    table(f"{folder}: tokens", rows, as_json)


@app.command(cls=HelpfulCommand)
def revoke(
    folder: BankFolder,
    name: Annotated[str, Argument(metavar="NAME", help="The token's name.")],
) -> None:
    """Revoke a token, at once and for good.

    A bank whose tokens are all revoked lets nobody in. To serve it without tokens again, delete
    tokens.json in the bank's folder and restart the server.
    """
    tokens.revoke(folder, name)
    say(f"revoked {name}")
