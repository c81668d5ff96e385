"""Plain values, of which settings are made, and where each was written.

A plain value is UTF-8 text, a whole or finite number, true, false, null, a list, or a mapping whose
keys are text. So settings can be compared, copied and saved.
"""

import itertools
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import NoReturn, TypeAlias

from ..errors import ConfigError

KeyPath: TypeAlias = tuple[str | int, ...]

MAX_VALUES = 10_000
MAX_DEPTH = 32
# Python refuses to print much longer integers.
MAX_INTEGER_BITS = 256
_SCALARS = {str, int, float, bool, type(None)}
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """A plain value, and where each part of it was written."""

    source: str
    value: object
    lines: dict[KeyPath, int] = field(default_factory=dict)
    written: dict[KeyPath, str] = field(default_factory=dict)
    """The characters in the file, for each value that is not text."""
    theirs: dict[KeyPath, KeyPath] = field(default_factory=dict)
    """The keys of a profile's document that stand for ours."""

    def shown(self, path: KeyPath) -> str:
        """``memory.max_pinned``, or the key of a profile's document with ours beside it."""
        own = show_path(path)
        return f"{show_path(self.theirs[path])} ({own})" if path in self.theirs else own

    def place(self, path: KeyPath) -> str:
        """``my.yaml:3`` where the line is known, else the source alone."""
        line = self.lines.get(path)
        return self.source if line is None else f"{self.source}:{line}"


def show_path(path: KeyPath) -> str:
    """``memory.max_pinned``; a part is quoted unless it is letters, digits, _ and -."""
    shown = ""
    for part in path:
        if isinstance(part, int):
            shown += f"[{part}]"
        else:
            plain = part.replace("_", "a").replace("-", "a").isalnum() and len(part) <= 60
            shown += ("." if shown else "") + (part if plain else repr(part[:57]))
    return shown or "the top level"


def printable(text: str) -> str:
    """The text for a message: a long text is cut, one with control characters is escaped."""
    short = text if len(text) <= 60 else text[:57] + "..."
    return short if short.isprintable() else repr(short)


def copy_plain(value: object, source: str) -> Document:
    """A copy of a Python value as a plain one.

    A mapping becomes a dict, a tuple a list, a path its text, a number of NumPy one of Python.
    """
    numbers = itertools.count(1)

    def refuse(path: KeyPath, reason: str, hint: str = "") -> NoReturn:
        raise ConfigError(f"{source}: {show_path(path)} {reason}", hint=hint)

    def copied(value: object, path: KeyPath) -> object:
        if next(numbers) > MAX_VALUES:
            refuse(path, f"goes over {MAX_VALUES:,} values", "settings are small")
        if len(path) >= MAX_DEPTH:
            refuse(path[:3], f"is nested deeper than {MAX_DEPTH} levels")
        is_scalar = type(value) in _SCALARS  # as most are: no other question is asked of them
        if not is_scalar and isinstance(value, Mapping):
            result: dict[str, object] = {}
            for key, child in value.items():
                if not isinstance(key, str) or unfit(key):
                    refuse(path, f"has a key that is not text: {printable(ascii(key))}")
                result[str.__str__(key)] = copied(child, (*path, str.__str__(key)))
            return result
        if not is_scalar and isinstance(value, list | tuple):
            return [copied(child, (*path, at)) for at, child in enumerate(value)]
        plain = value if is_scalar else _plain(value)
        if plain is None and value is not None:
            kind = type(value).__name__
            refuse(path, f"is an object of type {kind}", "settings are plain values as in YAML")
        if problem := unfit(plain):
            refuse(path, problem)
        return plain

    return Document(source, copied(value, ()))


def _plain(value: object) -> str | int | float | None:
    """A scalar as a value of Python's own types; None for an object that is not a scalar."""
    if isinstance(value, str):
        return str.__str__(value)  # the text itself, whatever an enum makes of str()
    if isinstance(value, bool):
        return value
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, float) else None


def unfit(value: object) -> str | None:
    """The reason why a scalar can't be a setting, or None."""
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
        return f"must be a whole number of at most {MAX_INTEGER_BITS} bits"
    if isinstance(value, str) and not value.isascii() and _SURROGATES.search(value):
        return "must be text that UTF-8 can hold; it has half of a surrogate pair"
    return None
