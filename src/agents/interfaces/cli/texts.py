"""Texts that a command takes as words, or from standard input."""

import sys
from collections.abc import Sequence

from ...errors import InvalidInput

_MOST_STDIN = 4 << 20
"""Bytes that are read; no memory and no note may have as many."""


def text_of(words: Sequence[str]) -> str:
    """The words as one text; a single ``-`` stands for the text on standard input."""
    if list(words) != ["-"]:
        return " ".join(words)
    data = sys.stdin.buffer.read(_MOST_STDIN)
    try:
        return data.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"standard input is not UTF-8 (byte {error.start + 1})", hint="convert it first"
        ) from None
