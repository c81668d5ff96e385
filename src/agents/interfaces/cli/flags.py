"""What --preset and --set say, and which of them say nothing new."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from .output import say

if TYPE_CHECKING:
    from ...config.settings import Settings


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
