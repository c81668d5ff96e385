"""What a value may be, beyond its type: bounds that stand in the annotations of settings."""

import re
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from ..memory.records import KINDS
from ..memory.tiers import TIER_NAMES


class Within(NamedTuple):
    """The bounds of a number."""

    least: float | None = None
    most: float | None = None
    above: float | None = None

    def take(self, value: object) -> bool:
        """Whether a value is within the bounds, which only concern numbers."""
        return not isinstance(value, int | float) or not (
            (self.least is not None and value < self.least)
            or (self.most is not None and value > self.most)
            or (self.above is not None and value <= self.above)
        )


class OneOf(NamedTuple):
    """The texts of which a value is one."""

    names: tuple[str, ...]

    def take(self, value: object) -> bool:
        return value in self.names


class Written(NamedTuple):
    """How a text is written: a regular expression matches all of it."""

    pattern: str
    allowed: str
    """What is allowed, for a message."""

    def take(self, value: object) -> bool:
        """Whether a value is written so, which only concerns text."""
        return not isinstance(value, str) or re.fullmatch(self.pattern, value) is not None


class Items(NamedTuple):
    """How many items a list has, and whether they all differ."""

    least: int = 0
    most: int | None = None
    all_differ: bool = False

    def take(self, items: list[Any]) -> bool:
        return (
            len(items) >= self.least
            and (self.most is None or len(items) <= self.most)
            and (not self.all_differ or len(set(items)) == len(items))
        )


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
