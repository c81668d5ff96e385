"""Commands that find what is wrong, and that trust what somebody else made."""

import sys
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.text import Text
from typer import Argument, Exit, Option

from ....errors import InvalidInput
from ....memory.context import one_line
from ....memory.words import counted
from ...doctor import Check, Finding, bank_checks, embedding, installation_checks, run_checks
from ..options import AsJson
from ..output import echo_json, say, table

_COLOURS = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def doctor(
    folder: Annotated[
        Path | None, Argument(metavar="BANK", help="The folder of a bank to check, too.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the installation, and a bank: what is wrong, and what to do about it.

    The command reads copies and changes nothing. It exits with 1 if there is a problem.
    """
    checks = installation_checks()
    if folder is None:
        checks.append(Check("embedder", embedding))
    else:
        if not (folder / "journal.db").is_file():
            from ....bank.history import no_bank  # it needs packages that may be missing

            raise no_bank(folder)
        checks += bank_checks(folder)
    findings = list(run_checks(checks))
    if as_json:
        echo_json([finding._asdict() for finding in findings])
    else:
        _print(findings)
    if any(finding.state == "problem" for finding in findings):
        raise Exit(1)


def _print(findings: list[Finding]) -> None:
    if not sys.stdout.isatty():
        for finding in findings:
            say("\t".join(filter(None, finding)))
        return
    console = Console(highlight=False, soft_wrap=True)
    for state, about, said, todo in findings:
        label, subject = (f"{state:<8}", _COLOURS[state]), (f"{about:<12}", "bold")
        console.print(Text.assemble(label, " ", subject, " ", one_line(said)))
        if todo:
            console.print(Text.assemble(" " * 22, ("→", "dim"), " ", one_line(todo)))
    problems = sum(finding.state == "problem" for finding in findings)
    if problems:
        console.print(Text(counted(problems, "problem"), "bold red"))
    else:
        console.print(Text("all is well", "green"))


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
