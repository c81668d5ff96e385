"""The command that trusts what somebody else made."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ....errors import InvalidInput
from ..options import AsJson
from ..output import say, table


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
        raise InvalidInput("give a PATH to trust, or --list", hint="tiermem trust PATH")
    if path is None:
        rows = [{"path": each.path, "kind": each.kind} for each in trust_list.trusted()]
        table("trusted", rows, as_json)
        return
    if remove:
        trust_list.untrust(path)
        say(f"{path} is trusted no more")
        return
    found = trust_list.trust(path)
    say(f"{path} is trusted, and may {' and '.join(found)}" if found else f"{path} is trusted")
