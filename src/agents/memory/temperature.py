"""The three temperatures: how active a memory is."""

from enum import IntEnum

from ..errors import InvalidTemperature


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
_VALUES = {name: temperature for temperature, name in TEMPERATURE_NAMES.items()}


def parse_temperature(value: object) -> Temperature:
    """The temperature of a ``Temperature`` or a name in any case.

    >>> parse_temperature("Cold")
    <Temperature.COLD: 2>
    """
    if type(value) is Temperature:
        return value
    if isinstance(value, str) and (found := _VALUES.get(value.lower())) is not None:
        return found
    raise InvalidTemperature(
        f"{value!r:.60} is not a temperature", hint="use one of hot, warm, cold"
    )
