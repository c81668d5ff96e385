"""What a value may be, beyond its type: bounds that stand in the annotations of settings."""

from typing import Annotated, Literal, NamedTuple, TypeAlias

from ..memory.records import KINDS
from ..memory.tiers import TIER_NAMES


class Within(NamedTuple):
    """The bounds of a number."""

    least: float | None = None
    most: float | None = None
    above: float | None = None


class OneOf(NamedTuple):
    """The texts of which a value is one."""

    names: tuple[str, ...]


class Written(NamedTuple):
    """How a text is written: a regular expression matches all of it."""

    pattern: str
    allowed: str
    """What is allowed, for a message."""


class Items(NamedTuple):
    """How many items a list has, and whether they all differ."""

    least: int = 0
    most: int | None = None
    all_differ: bool = False


Bound: TypeAlias = Within | OneOf | Written | Items
Count: TypeAlias = Annotated[int, Within(0)]
Positive: TypeAlias = Annotated[int, Within(1)]
Share: TypeAlias = Annotated[float, Within(0, 1)]
Duration: TypeAlias = Annotated[
    int | str,
    Within(0, 999_999_999),
    Written("[0-9]{1,9}[dh]?", "a duration: ticks, or text such as 7d or 12h"),
]
"""Ticks, or text such as ``7d`` or ``12h``; ``ClockSettings.ticks()`` translates it."""
Period: TypeAlias = Annotated[
    int | str,
    Within(1, 999_999_999),
    Written(
        "(?=0*[1-9])[0-9]{1,9}[dh]?",
        "a duration of at least one tick: ticks, or text such as 7d or 12h",
    ),
]
Kind: TypeAlias = Annotated[str, OneOf(KINDS)]
Tag: TypeAlias = Annotated[
    str,
    Written(
        r"(?![^,]{65})[^,\s]([^,]*[^,\s])?",
        "a tag: 1 to 64 characters without commas and without blanks around",
    ),
]
TierName: TypeAlias = Annotated[str, OneOf(tuple(TIER_NAMES.values()))]
TemperatureName: TypeAlias = Literal["hot", "warm", "cold"]
