"""How warm a new memory starts: what is soon forgotten need not be hot."""

from ..errors import InvalidInput
from ..memory.events import Start
from ..memory.records import NEVER, PLAIN, Traits, traits
from ..memory.tiers import TEMPERATURE_NAMES, Temperature, Tier
from .transitions import PINNED

Begun = tuple[int, Traits | None, int]
"""The temperature, the traits and the end of a new memory."""

_PLAIN = Start(int(Temperature.WARM), PLAIN.kind, PLAIN.tags, None)


def initial_temperature(
    tier: Tier,
    asked: Temperature | None,
    ttl: int | None,
    initial: Temperature,
    warm_below: int | None,
    cold_below: int | None,
) -> Temperature:
    """The temperature of a new memory.

    Pinned is hot. Else it is what was ``asked`` for; else cold or warm if it lives for fewer than
    ``cold_below`` or ``warm_below`` ticks (``ttl``; None: for ever); else ``initial``. Raises
    :class:`InvalidInput` for a pinned memory that is asked to be anything but hot.
    """
    if tier is Tier.PINNED:
        if asked not in (None, PINNED.temperature):
            raise InvalidInput(
                f"a pinned memory is hot; got temperature {TEMPERATURE_NAMES[asked]}",
                hint="leave the temperature out, or use another tier",
            )
        return PINNED.temperature
    if asked is not None:
        return asked
    if ttl is not None:
        if cold_below is not None and ttl < cold_below:
            return Temperature.COLD
        if warm_below is not None and ttl < warm_below:
            return Temperature.WARM
    return initial


def begun(tier: int, start: Start | None) -> Begun:
    """How a new memory with this start begins in this tier."""
    heat, kind, tags, expires = start or _PLAIN
    own = traits(kind, tags) if kind != "fact" or tags else None
    begins = int(PINNED.temperature) if tier == Tier.PINNED else heat
    return begins, own, NEVER if expires is None else expires
