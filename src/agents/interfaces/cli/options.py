"""Arguments and options that several commands take, and which of them say nothing new."""

import json
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, BadParameter, Option

from .output import say

if TYPE_CHECKING:
    from ...config.settings import Settings


BankFolder = Annotated[Path, Argument(metavar="BANK", help="The bank's folder.")]
RunFolder = Annotated[Path, Argument(metavar="RUN", help="The run's folder.")]
Whose = Annotated[str, Option("--agent", "-a", help="The agent whose memory it is.")]
OneAgent = Annotated[str | None, Option("--agent", "-a", help="Only the memories of this agent.")]
Config = Annotated[
    Path | None,
    Option("--config", "-c", metavar="FILE", help="A YAML file with settings of your own."),
]
Preset = Annotated[
    str | None,
    Option(
        "--preset",
        metavar="NAME",
        help="Settings for a way of working: tiers, hot-warm-cold, hot-cold-session or lifetime; "
        "or of searching: hybrid, vector or weighted-sum; or a classic agent: generative-agents, "
        "memorybank or recency.",
    ),
]
Assignments = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="KEY=VALUE",
        help="One setting, such as memory.max_pinned=3; can be repeated.",
    ),
]
Create = Annotated[bool, Option("--create", help="Make the bank if there is none.")]
DryRun = Annotated[bool, Option("--dry-run", "-n", help="List what would change; change nothing.")]
Force = Annotated[bool, Option("--force", help="Replace an existing file or folder.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print errors only.")]
AsJson = Annotated[bool, Option("--json", help="Print the result as JSON, and nothing else.")]
Address = Annotated[
    str | None,
    Option(help="Ray's cluster: local starts one here, auto finds one, or host:port."),
]
AllowHosts = Annotated[
    list[str] | None,
    Option(
        "--allow-host",
        metavar="NAME",
        help="Another host name by which clients reach the service; can be repeated.",
    ),
]
AllowOrigins = Annotated[
    list[str] | None,
    Option(
        "--allow-origin", help="Web pages that may use the service from a browser; can be repeated."
    ),
]


def no_nan(value: float | None) -> float | None:
    """A callback of an option that takes a number: nan is neither too small nor too large."""
    if value is not None and math.isnan(value):
        raise BadParameter("nan is not a number.")
    return value


def flags(preset: str | None, assignments: Sequence[str] | None) -> list[str]:
    """What --preset and --set say, as assignments: both beat a file, and --set beats --preset."""
    given = list(assignments or ())
    if preset is None:
        return given
    from ...config.load import preset_settings

    named = preset_settings(preset).items()
    return [*(f"{key}={json.dumps(value)}" for key, value in named), *given]


def tell_idle(
    preset: str | None,
    assignments: Sequence[str] | None,
    load: "Callable[[list[str]], Settings]",
    tell: Callable[[str], None] | None = None,
) -> None:
    """Tell of the flags without which ``load`` gives the same settings.

    Without ``tell``, standard error gets it. The value of a provider's option may be a secret, and
    is not repeated.
    """
    tell = tell or partial(say, err=True)
    given = list(assignments or ())
    without = []
    for at, text in enumerate(given):
        key = text.partition("=")[0]
        shown = key if "config" in key.split(".") else text
        without.append((f"--set {shown}", (preset, [*given[:at], *given[at + 1 :]])))
    if preset is not None:
        without.append((f"--preset {preset}", (None, given)))
    settings = load(flags(preset, given)) if without else None
    for flag, left in without:
        if load(flags(*left)) == settings:
            tell(f"{flag} changes nothing here: these settings are so already")
