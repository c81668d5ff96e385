"""The five tiers: how much a memory matters."""

from enum import IntEnum
from numbers import Integral

from ..errors import InvalidTier


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
