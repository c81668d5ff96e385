"""Words for numbers, names and long texts: the same in messages, in commands and on pages."""

import math
from collections.abc import Sequence

from .context import one_line

_MOST_NAMED = 10


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


def signed(value: float) -> str:
    """A difference as people write it: ``+3``, ``−3``, ``0``."""
    return f"+{number(value)}" if value > 0 else number(value)


def counted(count: int, one: str, many: str = "") -> str:
    """A number with its noun: ``1 row``, ``2 rows``, ``3 memories``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def first_of(names: Sequence[str], most: int = _MOST_NAMED) -> str:
    """The first ten names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def cut(text: str, most: int) -> str:
    """The text, or its beginning with an ellipsis, of at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def short(text: str, most: int = 60) -> str:
    """The beginning of a memory, in one line."""
    return cut(one_line(text), most)
