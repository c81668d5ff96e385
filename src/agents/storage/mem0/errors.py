"""Errors that programs catch as mem0's own, and that are ours as well."""

import functools
from typing import Any, TypeVar

from ...errors import ExtractionError, InvalidInput, TierMemError
from .package import import_mem0

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
