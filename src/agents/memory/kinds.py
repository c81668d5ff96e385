"""The kind of a memory, and its tags."""

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..errors import InvalidContent, InvalidInput
from .records import check_text

KINDS = (
    "message",
    "fact",
    "decision",
    "preference",
    "entity",
    "context",
    "observation",
    "action",
    "note",
    "insight",
)

_MOST_TAGS, _LONGEST_TAG = 32, 64


class Traits(NamedTuple):
    """Kind and tags, made by :func:`traits`."""

    kind: str
    tags: tuple[str, ...]
    """In alphabetical order."""
    json: str
    """Kind and tags as JSON text."""


def traits(kind: str, tags: tuple[str, ...]) -> Traits:
    """The traits with this checked kind and these checked tags."""
    return Traits(kind, tags, json.dumps([kind, tags], ensure_ascii=False, separators=(",", ":")))


PLAIN = traits("fact", ())
"""The traits of a memory without options."""


def check_kind(kind: object) -> str:
    """``kind`` itself, or :class:`InvalidInput`."""
    if isinstance(kind, str) and kind in KINDS:
        return str.__str__(kind)
    raise InvalidInput(
        f"{kind!r:.60} is not a kind of memory", hint=f"use one of {', '.join(KINDS)}"
    )


def check_tags(tags: object) -> tuple[str, ...]:
    """The tags in alphabetical order, each once; or :class:`InvalidInput`."""
    if isinstance(tags, str | bytes | Mapping) or not isinstance(tags, Iterable):
        raise InvalidInput(f"tags are a list of texts; got {tags!r:.60}")
    found = set()
    for tag in tags:
        try:
            text = check_text(tag, "tag")
        except InvalidContent as error:
            raise InvalidInput(error.why, hint=error.hint) from None
        if not text.strip() or text != text.strip() or len(text) > _LONGEST_TAG or "," in text:
            raise InvalidInput(
                f"{text!r:.80} is not a tag",
                hint=f"use 1 to {_LONGEST_TAG} characters without commas and without blanks around",
            )
        found.add(text)
    if len(found) > _MOST_TAGS:
        raise InvalidInput(
            f"a memory has at most {_MOST_TAGS} tags; got {len(found)}", hint="leave some out"
        )
    return tuple(sorted(found))
