"""Checks of what callers give: agent ids, texts, queries and whole numbers."""

import re
from collections.abc import Sequence
from typing import Any

from ..errors import InvalidAgentId, InvalidContent, InvalidInput

__all__ = [
    "MOST_QUERY",
    "are_agent_ids",
    "are_plain_texts",
    "check_agent_id",
    "check_content",
    "check_query",
    "check_text",
    "check_whole",
]

_AGENT_ID = re.compile(r"[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,127}")
_LONGEST_ID = 128
MOST_QUERY = 1_000_000
_MOST = 2**62  # leaves room to add in 64 bits


def check_agent_id(agent_id: object) -> str:
    """``agent_id`` itself, or :class:`InvalidAgentId`.

    The alphabet has no character with a meaning for mem0's filters, a file system or a terminal:
    ``*`` would match every agent in mem0.
    """
    if isinstance(agent_id, str) and _AGENT_ID.fullmatch(agent_id):
        return str.__str__(agent_id)  # never a subclass of str
    shown = repr(agent_id) if len(repr(agent_id)) <= 160 else repr(agent_id)[:150] + "…"
    raise InvalidAgentId(
        f"{shown} is not an agent id",
        hint="use 1 to 128 of the characters A–Z a–z 0–9 . _ - @, not starting with a dot",
    )


def are_agent_ids(ids: Sequence[Any]) -> bool:
    """Whether :func:`check_agent_id` would return each of these ids unchanged."""
    if set(map(type, ids)) != {str}:
        return False
    # Most ids are ASCII identifiers of Python, which are within the alphabet.
    if "".join(ids).isascii() and all(map(str.isidentifier, ids)):
        return max(map(len, ids)) <= _LONGEST_ID
    return all(map(_AGENT_ID.fullmatch, ids))


def check_content(content: object, max_bytes: int) -> str:
    """``content`` itself if a memory can have this text, or :class:`InvalidContent`."""
    text = check_text(content, "memory")
    if not text or text.isspace():
        raise InvalidContent("a memory needs some text; this one is blank")
    # A character is at most 4 bytes, so a short text fits without a look at its bytes.
    if len(text) * 4 > max_bytes:
        size = len(text.encode())
        if size > max_bytes:
            raise InvalidContent(
                f"a memory of {size:,} bytes is over memory.max_content_bytes ({max_bytes:,})"
            )
    return text


def check_query(query: object) -> str:
    """``query`` itself, blank or not, or :class:`InvalidContent`."""
    text = check_text(query, "query")
    if len(text) > MOST_QUERY:
        raise InvalidContent(f"a query of {len(text):,} characters is over {MOST_QUERY:,}")
    return text


def check_text(text: object, what: str) -> str:
    if type(text) is str and text.isascii() and "\0" not in text:  # most texts are like this
        return text
    if not isinstance(text, str):
        raise InvalidContent(f"a {what} is text, not {type(text).__name__}")
    if type(text) is not str:  # the journal returns no subclass of str
        text = str.__str__(text)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidContent(
                f"a {what} can't hold the lone surrogate {text[error.start]!a} "
                f"(character {error.start})"
            ) from None
    if "\0" in text:
        raise InvalidContent(f"a {what} can't hold a NUL (character {text.index(chr(0))})")
    return text


def are_plain_texts(texts: Sequence[Any], longest: int) -> bool:
    """Whether each text has at most ``longest`` characters, and is ASCII without a NUL."""
    if set(map(type, texts)) != {str} or max(map(len, texts)) > longest:
        return False
    text = "".join(texts)
    return text.isascii() and "\0" not in text


def check_whole(name: str, value: object, least: int = 0) -> int:
    """``value`` itself if it is a whole number of at least ``least``, or :class:`InvalidInput`."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        if value <= _MOST:
            return value
        raise InvalidInput(f"{name} {value!r:.40} is too large", hint=f"it may be {_MOST} at most")
    raise InvalidInput(f"{name} {value!r:.40} is not a whole number from {least} on")
