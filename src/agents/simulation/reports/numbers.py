"""Numbers as people write them."""

import math

from ..statistics import FEWEST_SEEDS, may_differ


def number(value: object, digits: int = 4) -> str:
    """A number as people write it: ``12,345``, ``0.1235``, ``−3``; None is ``–``.

    Fractions have ``digits`` significant digits; whole numbers and thousands have all digits.
    """
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    size = abs(value)
    if size >= 1e15:
        text = f"{size:.{digits}g}"
    elif size >= 1_000 or size == int(size):
        text = f"{round(size):,}"
    else:
        text = f"{size:.{digits}g}"
    return f"−{text}" if value < 0 and text != "0" else text


def no_interval(n: int) -> str:
    """What ``n`` values say that have no interval; they are equal, or too few to say anything."""
    if n < FEWEST_SEEDS:
        return ""
    return f"all {n:,} are equal; up to {number(100 * may_differ(n), 2)} % of others may differ"
