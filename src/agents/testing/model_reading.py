"""How the model reads a text: its vector, how similar two vectors are, its line and its cost.

It shares no code with the package, and imports nothing of these tests: a fresh process uses it too.
"""

import hashlib
import math
import unicodedata
from collections.abc import Sequence

__all__ = ["DIMS", "NAMES", "SmallEmbedder", "cost", "embed", "line", "quantise", "similarity"]

NORMAL = 3
NAMES = ("pinned", "critical", "important", "normal", "low")
DIMS = 4


def embed(text: str) -> list[int]:
    """Few directions, so that equal scores are frequent; one text in eight is the zero vector."""
    digest = hashlib.sha256(text.encode()).digest()
    if digest[0] % 8 == 0:
        return [0] * DIMS
    spread = 7 if digest[0] % 8 == 1 else 3
    return [byte % spread - spread // 2 for byte in digest[1 : DIMS + 1]]


class SmallEmbedder:
    """:func:`embed`, as a bank takes it."""

    name = "small/hash-4"
    dims = DIMS

    def __init__(self, *, reproducible: bool = True) -> None:
        self.reproducible = reproducible

    def embed(self, texts: Sequence[str], /) -> list[list[int]]:
        return [embed(text) for text in texts]


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
    text = "".join(_shown(character) for character in content)
    visible = 0
    while visible < len(text) and _invisible(text[visible]):
        visible += 1
    if text[visible : visible + 1] == "[":
        text = text[:visible] + "\\" + text[visible:]
    return f"- {text}" if tier == NORMAL else f"- [{NAMES[tier]}] {text}"


_REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def _shown(character: str) -> str:
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    reorders = (
        unicodedata.bidirectional(character) in _REORDERING or character in "\u061c\u200e\u200f"
    )
    if reorders or unicodedata.category(character) in ("Cc", "Zl", "Zp"):
        return f"\\u{ord(character):04x}"
    return character


def _invisible(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) in ("Cf", "Mn", "Me")


def cost(tier: int, content: str) -> int:
    """A quarter of the characters of its line, line end included, rounded up."""
    return math.ceil((len(line(tier, content)) + 1) / 4)
