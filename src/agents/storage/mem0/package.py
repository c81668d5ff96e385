"""The package mem0: its import without telemetry, and its errors."""

import atexit
import contextlib
import functools
import importlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

from ...config.settings import is_secret, passwords_in
from ...errors import ExtractionError, InvalidInput, TierMemError
from ..files import TemporaryFolder


def import_mem0(module: str) -> Any:
    """A module of mem0, imported without telemetry and without a file in the home folder."""
    if "mem0" not in sys.modules:
        with _environment(MEM0_TELEMETRY="False", MEM0_DIR=_folder().name):
            importlib.import_module("mem0")
    return importlib.import_module(module)


def import_store(provider: str | None) -> None:
    """Import mem0 and the package of a provider: a store that lacks a package is not damaged."""
    import_mem0("mem0")
    if provider == "chroma":
        importlib.import_module("chromadb")


def remove_folder() -> None:
    """Remove the folder of mem0's file, in a process that needs only stores and will be killed."""
    if _folder.cache_info().currsize:
        _folder().cleanup()


@cache
def _folder() -> TemporaryFolder:
    """The folder that mem0 takes for its own in this process, until the process ends."""
    folder = TemporaryFolder("mem0")
    atexit.register(folder.cleanup)
    return folder


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# Errors that programs catch as mem0's own, and that are ours as well


_E = TypeVar("_E", bound=TierMemError)


def invalid_request(message: str, code: str, details: dict[str, Any], hint: str) -> InvalidInput:
    """An :class:`InvalidInput` that is a ``mem0.exceptions.ValidationError``, if mem0 is there."""
    error: InvalidInput = _both(InvalidInput, "ValidationError")(message, hint=hint)
    return _filled(error, message, code, details, hint)


def extraction_failed(error: ExtractionError) -> ExtractionError:
    """The same error as one that is a ``mem0.exceptions.LLMError``, if mem0 is there."""
    again: ExtractionError = _both(ExtractionError, "LLMError")(error.why, hint=error.hint)
    return _filled(again, error.why, "LLM_001", {}, error.hint)


@functools.cache
def _both(ours: Any, theirs: str) -> Any:
    """A class that is one of our errors and one of mem0's; ours alone if mem0 is not installed."""
    try:
        own = getattr(import_mem0("mem0.exceptions"), theirs)
    except ImportError:
        return ours
    return type(
        ours.__name__, (ours, own), {"__doc__": ours.__doc__, "__module__": ours.__module__}
    )


def _filled(error: _E, message: str, code: str, details: dict[str, Any], hint: str) -> _E:
    """The error with the attributes that mem0's constructor sets."""
    own = {"message": message, "error_code": code, "details": details, "suggestion": hint}
    vars(error).update(own, debug_info={})
    return error


# The texts of other libraries' errors, without passwords and keys


# A key as services show it, a key in a header, a password in an address or in a list of options.
_SHOWN = re.compile(
    r"\b(?:sk|gsk|xai)-[\w*.-]{4,}|(?<=Bearer )[^\s,;'\"]+|(?<=://)[^/\s@]+(?=@)"
    r"|(?<=password=)[^\s&]+"
)
_LEAST, _LEAST_PART = 6, 4
"""A secret of fewer characters is not looked for, nor is a part of one."""


def without_secrets(text: str, config: Mapping[str, object]) -> str:
    """The text without the secrets of a provider's config and of the environment."""
    own = set(_secrets(config))
    # A library that cuts an address into parts shows a part of a password with @ or / in it.
    parts = {part for each in own for part in re.split(r"[@:/?#&=\s]", each)}
    hidden = {each for each in (*own, *_secrets(os.environ)) if len(each) >= _LEAST}
    hidden |= {part for part in parts if len(part) >= _LEAST_PART}
    for secret in sorted(hidden, key=len, reverse=True):
        text = text.replace(secret, "***")
    return _SHOWN.sub("***", text)


def _secrets(values: object, named: bool = False) -> Iterator[str]:
    """The texts, at any depth, that have the name of a secret, and passwords in addresses."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from _secrets(value, named or is_secret(str(key)))
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _secrets(value, named)
    elif isinstance(values, str):
        yield from [values] if named else passwords_in(values)
