"""The JSON value that a caller may keep beside a memory: nested and bounded."""

import json
import math
from typing import Any

from ..errors import InvalidContent, InvalidInput
from .records import check_text, shown

_MOST_BYTES = 1 << 20
_DEEPEST = 64
_LONGEST_NUMBER = 1024  # bits; Python refuses to read numbers that are much longer
_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def plain_scalar(value: Any) -> Any:
    """The plain value of a NumPy number, truth value or text; any other value as it is."""
    import numpy as np  # whoever has such a value has imported it

    if not isinstance(value, np.generic) or isinstance(value, np.datetime64 | np.timedelta64):
        return value
    plain = value.item()
    return plain if type(plain) in (str, bool, int, float) else value


def value_text(value: object) -> str:
    """The JSON text of a value, with sorted keys, or :class:`InvalidInput`."""
    text = _json(_checked(value, "value", _DEEPEST))
    return _bounded(text)


def check_value_text(text: object) -> None:
    """Raise :class:`InvalidInput` unless ``text`` is what :func:`value_text` gives for a value."""
    if not isinstance(text, str):
        raise InvalidInput(f"a memory's value is kept as JSON text, not {type(text).__name__}")
    try:
        value = json.loads(_bounded(text))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"a memory's value is not JSON: {error!s:.80}") from None
    if value_text(value) != text:
        raise InvalidInput(
            "a memory's value is JSON text with sorted keys and no spaces",
            hint="give the value itself as `value`",
        )


def _bounded(text: str) -> str:
    size = len(text.encode())
    if size > _MOST_BYTES:
        raise InvalidInput(
            f"a memory's value of {size:,} bytes is over the limit of {_MOST_BYTES:,}",
            hint="keep it in a file, and the file's name in the memory",
        )
    return text


def _checked(value: object, place: str, depth: int) -> object:
    """The value, lists and scalars plain, or :class:`InvalidInput` that names the wrong place."""
    if value is None or type(value) is bool:
        return value
    if type(value) is int and value.bit_length() <= _LONGEST_NUMBER:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, str):
        return _text(value, place)
    if not depth:
        raise InvalidInput(f"a memory's value is nested more than {_DEEPEST} deep")
    if isinstance(value, list | tuple):
        return [_checked(each, f"{place}[{at}]", depth - 1) for at, each in enumerate(value)]
    if isinstance(value, dict):
        wrong = next((key for key in value if type(key) is not str), None)
        if wrong is not None:
            raise InvalidInput(f"{place:.80}: keys are text, not {type(wrong).__name__}")
        return {
            _text(key, place): _checked(each, f"{place}.{key:.40}", depth - 1)
            for key, each in value.items()
        }
    plain = plain_scalar(value)
    if plain is not value:
        return _checked(plain, place, depth)
    raise InvalidInput(
        f"{place:.80} is not JSON that can be kept: {shown(value)}",
        hint="use text, finite numbers, true, false, null, lists and mappings",
    )


def _text(text: str, place: str) -> str:
    try:
        return check_text(text, f"{place:.80}")
    except InvalidContent as error:
        raise InvalidInput(error.why, hint=error.hint) from None
