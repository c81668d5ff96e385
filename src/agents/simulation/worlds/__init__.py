"""The built-in worlds: a market, a household, a rumour mill, a building site, a town, two games.

A scenario names a world as ``world: market``, or its user's own world as ``world: module:Class``.
A world is imported when a run uses it.
"""

from collections.abc import Mapping
from random import Random

from ...errors import ConfigError, InvalidAction
from ..protocols import Action, WorldRandom

__all__ = [
    "WORLDS",
    "another",
    "check_share",
    "check_whole_option",
    "check_yes_or_no",
    "own_stream",
    "refused",
]

WORLDS: Mapping[str, str] = {
    "market": f"{__name__}.market:Market",
    "household": f"{__name__}.household:Household",
    "rumor": f"{__name__}.rumor:Rumor",
    "site": f"{__name__}.site:Site",
    "town": f"{__name__}.town:Town",
    "minority": f"{__name__}.minority:Minority",
    "helping": f"{__name__}.helping:Helping",
}
"""The class of each built-in world, as ``module:Class``, by name."""


def own_stream(rng: Random, name: str, agent_id: str) -> Random:
    """An agent's own generator of this name; a plain ``Random`` has only itself."""
    return rng.stream(name, agent_id) if isinstance(rng, WorldRandom) else rng


def another(me: int, count: int, rng: Random) -> int:
    """Draw one of ``count`` agents other than ``me``."""
    other = int(rng.random() * (count - 1))
    return other + 1 if other >= me else other


def check_whole_option(name: str, value: object, least: int, most: int) -> int:
    """``value`` itself if it is a whole number from ``least`` to ``most``, or ConfigError."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise ConfigError(
        f"simulation.world_options.{name} is {value!r:.40}",
        hint=f"a whole number from {least} to {most} is needed",
    )


def check_yes_or_no(name: str, value: object) -> bool:
    """``value`` itself if it is true or false, or ConfigError."""
    if isinstance(value, bool):
        return value
    raise ConfigError(
        f"simulation.policy_options.{name} is {value!r:.40}", hint="use true or false"
    )


def check_share(name: str, value: object) -> float:
    """``value`` itself if it is a number from 0 to 1, or ConfigError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return value
    raise ConfigError(
        f"simulation.policy_options.{name} is {value!r:.40}", hint="use a number from 0 to 1"
    )


def refused(action: Action, actions: Mapping[str, str]) -> InvalidAction:
    """The error for an action that the world does not know."""
    known = "; ".join(f"{name}: {what}" for name, what in actions.items())
    return InvalidAction(f"there is no action {action.name!r:.40} here", hint=f"there is {known}")
