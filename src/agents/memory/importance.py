"""The importance of a memory, from 1 (mundane) to 10 (poignant), and the evidence of an insight."""

from collections.abc import Mapping

from ..errors import InvalidInput

__all__ = ["IMPORTANCE", "check_importance", "given_importance"]

IMPORTANCE = "importance"
"""The name under which the metadata keeps a memory's importance."""
_LEAST, _MOST = 1, 10


def check_importance(value: object) -> int:
    """``value`` itself if it is a whole number from 1 to 10, or :class:`InvalidInput`."""
    if isinstance(value, int) and not isinstance(value, bool) and _LEAST <= value <= _MOST:
        return int(value)
    raise InvalidInput(
        f"importance {value!r:.40} is not a whole number from {_LEAST} to {_MOST}",
        hint="1 is mundane, 10 is poignant; leave it out to go by the tier",
    )


def given_importance(metadata: Mapping[str, object]) -> float | None:
    """The importance in a memory's metadata; None where there is no number from 1 to 10."""
    value = metadata.get(IMPORTANCE)
    if isinstance(value, int | float) and not isinstance(value, bool) and _LEAST <= value <= _MOST:
        return float(value)
    return None
