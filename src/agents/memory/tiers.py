"""How a memory stands: its tier (how much it matters), temperature (how active) and retention."""

from enum import IntEnum
from numbers import Integral

from ..errors import InvalidInput, InvalidTemperature, InvalidTier


class Tier(IntEnum):
    """How much a memory matters; the lower the number, the more.

    >>> Tier.PINNED < Tier.LOW
    True
    """

    PINNED = 0
    CRITICAL = 1
    IMPORTANT = 2
    NORMAL = 3
    LOW = 4


TierLike = Tier | int | str
"""What :func:`parse_tier` takes."""

TIER_NAMES: dict[Tier, str] = {tier: tier.name.lower() for tier in Tier}
TIER_VALUES: dict[str, Tier] = {name: tier for tier, name in TIER_NAMES.items()}

NO_TIERS = "hot, warm and cold are temperatures"
"""What a refusal of a tier says beside the tiers: many people call the temperatures tiers."""


def parse_tier(value: object) -> Tier:
    """The tier of a ``Tier``, a whole number 0–4, or a name in any case.

    >>> parse_tier("Critical")
    <Tier.CRITICAL: 1>
    """
    if type(value) is Tier:
        return value
    if isinstance(value, str):
        tier = TIER_VALUES.get(value) or TIER_VALUES.get(value.lower())
        if tier is not None:
            return tier
    elif isinstance(value, Integral) and not isinstance(value, bool) and int(value) in range(5):
        return Tier(int(value))
    allowed = ", ".join(f"{tier.value} {name}" for tier, name in TIER_NAMES.items())
    raise InvalidTier(f"{value!r} is not a tier", hint=f"use one of {allowed}; {NO_TIERS}")


class Temperature(IntEnum):
    """How active a memory is.

    The agent sees hot memories each turn. Searches find hot and warm memories, and cold memories
    only if the caller asks for them.
    """

    HOT = 0
    WARM = 1
    COLD = 2


TemperatureLike = Temperature | str
"""What :func:`parse_temperature` takes."""

TEMPERATURE_NAMES: dict[Temperature, str] = {each: each.name.lower() for each in Temperature}
TEMPERATURE_VALUES = {name: temperature for temperature, name in TEMPERATURE_NAMES.items()}


def parse_temperature(value: object) -> Temperature:
    """The temperature of a ``Temperature`` or a name in any case.

    >>> parse_temperature("Cold")
    <Temperature.COLD: 2>
    """
    if type(value) is Temperature:
        return value
    if isinstance(value, str) and (found := TEMPERATURE_VALUES.get(value.lower())) is not None:
        return found
    raise InvalidTemperature(
        f"{value!r:.60} is not a temperature", hint="use one of hot, warm, cold"
    )


class Retention(IntEnum):
    """Whether a memory is visible.

    Searches see active memories. An archived memory can be read by its id. A deleted memory can be
    restored for a while; then it is purged: its text and vector are gone.
    """

    ACTIVE = 0
    ARCHIVED = 1
    DELETED = 2


RetentionLike = Retention | str
"""What :func:`parse_retention` takes."""

RETENTION_NAMES: dict[Retention, str] = {each: each.name.lower() for each in Retention}
_RETENTIONS = {name: retention for retention, name in RETENTION_NAMES.items()}


def parse_retention(value: object) -> Retention:
    """The retention of a ``Retention`` or a name in any case.

    >>> parse_retention("Archived")
    <Retention.ARCHIVED: 1>
    """
    if type(value) is Retention:
        return value
    if isinstance(value, str) and (found := _RETENTIONS.get(value.lower())) is not None:
        return found
    raise InvalidInput(
        f"{value!r:.60} is not a retention", hint=f"use one of {', '.join(_RETENTIONS)}"
    )
