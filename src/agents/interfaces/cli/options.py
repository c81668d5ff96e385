"""Options that several commands take."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["AsJson", "Assignments", "Config", "Force", "Preset", "Quiet", "RunFolder", "Workers"]

Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="A YAML file with settings of your own.")
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
    typer.Option("--set", metavar="KEY=VALUE", help="One setting, such as memory.max_pinned=3."),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
Workers = Annotated[
    int | None,
    typer.Option("--workers", "-w", min=1, help="Processes at once; one per core by default."),
]
