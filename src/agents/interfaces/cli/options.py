"""Arguments and options that several commands take."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AllowHosts",
    "AllowOrigins",
    "AsJson",
    "Assignments",
    "BankFolder",
    "Config",
    "Create",
    "Force",
    "OneAgent",
    "Preset",
    "Quiet",
    "RunFolder",
    "Whose",
]

BankFolder = Annotated[Path, typer.Argument(metavar="BANK", help="The bank's folder.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")]
Whose = Annotated[str, typer.Option("--agent", "-a", help="The agent whose memory it is.")]
OneAgent = Annotated[
    str | None, typer.Option("--agent", "-a", help="Only the memories of this agent.")
]
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="A YAML file with settings of your own."),
]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="Settings for a way of working: tiers, hot-warm-cold, hot-cold-session or lifetime; "
        "or of searching: hybrid, vector or weighted-sum.",
    ),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="One setting, such as memory.max_pinned=3; can be repeated.",
    ),
]
Create = Annotated[bool, typer.Option("--create", help="Make the bank if there is none.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the files that are there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
AllowHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="NAME",
        help="Another host name by which clients reach the service; can be repeated.",
    ),
]
AllowOrigins = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-origin", help="Web pages that may use the service from a browser; can be repeated."
    ),
]
