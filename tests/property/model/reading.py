"""How the model reads a text: its vector, how similar two vectors are, its line and its cost.

It shares no code with the package.
"""

import math
import unicodedata
from collections.abc import Sequence
from functools import cache

NORMAL = 3
NAMES = ("pinned", "critical", "important", "normal", "low")


def quantise(vector: Sequence[float]) -> list[int]:
    """Whole numbers, the largest ±127."""
    largest = max(abs(float(number)) for number in vector)
    return [round(float(number) / (largest or 1.0) * 127) for number in vector]


def similarity(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine of the quantised vectors; unrelated and opposite are both 0."""
    q, d = quantise(one), quantise(other)
    length = math.sqrt(sum(x * x for x in q)) * math.sqrt(sum(x * x for x in d))
    dot = sum(x * y for x, y in zip(q, d, strict=True))
    return min(1.0, dot / length) if dot > 0 else 0.0


def line(tier: int, content: str) -> str:
    """A memory as a line of a prompt."""
    text, at = "", 0
    if content.isascii() and content.isprintable():  # nothing of it is shown in another way
        text, at = content, len(content)
    while at < len(content):
        end = _end_of_flag(content, at)
        text += content[at:end] if end > at else _shown(content[at])
        at = max(end, at + 1)
    visible = 0
    while visible < len(text) and _invisible(text[visible]):
        visible += 1
    if text[visible : visible + 1] == "[":
        text = text[:visible] + "\\" + text[visible:]
    return f"- {text}" if tier == NORMAL else f"- [{NAMES[tier]}] {text}"


_REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
_HIDDEN = ((0x2065, 0x206F), (0xFFF0, 0xFFFB), (0xE0000, 0xE00FF), (0xE01F0, 0xE0FFF))
"""Invisible characters that no text needs: from the first to the last of each range."""
_BLANK = "\u115f\u1160\u3164\uffa0\u2800\ufffc\U0001d159"


def _shown(character: str) -> str:
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    code = ord(character)
    reorders = (
        unicodedata.bidirectional(character) in _REORDERING or character in "\u061c\u200e\u200f"
    )
    hides = any(first <= code <= last for first, last in _HIDDEN)
    if not (reorders or hides or unicodedata.category(character) in ("Cc", "Zl", "Zp")):
        return character
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)  # two halves, as in JSON
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _end_of_flag(text: str, at: int) -> int:
    """Where a flag that begins here ends: a black flag, 3 to 6 tags and an end. ``at`` if none."""
    tags = 0
    while tags < 7 and _is_tag(text[at + 1 + tags : at + 2 + tags]):
        tags += 1
    end = at + 2 + tags
    is_flag = text[at] == "\U0001f3f4" and 3 <= tags <= 6 and text[end - 1 : end] == "\U000e007f"
    return end if is_flag else at


def _is_tag(character: str) -> bool:
    """Whether it is the tag of a digit or of a small letter."""
    letter = chr(ord(character) - 0xE0000) if character >= "\U000e0000" else ""
    return letter.isascii() and (letter.isdigit() or letter.islower())


def _invisible(character: str) -> bool:
    is_mark = unicodedata.category(character) in ("Cf", "Mn", "Me")
    return character.isspace() or character in _BLANK or is_mark


@cache
def cost(tier: int, content: str) -> int:
    """A quarter of the characters of its line, line end included, rounded up."""
    return math.ceil((len(line(tier, content)) + 1) / 4)
