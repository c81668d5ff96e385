"""What the options --meta, --filter and --value say."""

import json
import re
from typing import TYPE_CHECKING, Any

from ...errors import InvalidInput

if TYPE_CHECKING:
    from ...memory.records import Scalar

__all__ = ["condition", "pair", "value_of"]

_SIGNS = {">=": "$gte", "<=": "$lte", "!=": "$ne", ">": "$gt", "<": "$lt"}
_COMPARED = re.compile(f"([^<>=!]+)({'|'.join(_SIGNS)})(.*)", re.DOTALL)


def condition(text: str) -> dict[str, Any]:
    """What a --filter says: JSON, or a name of metadata and its value."""
    if not text.lstrip().startswith("{"):
        compared = _COMPARED.fullmatch(text)
        if compared is None:
            name, value = pair(text, "--filter place=bay")
            return {f"metadata.{name.removeprefix('metadata.')}": value}
        name, sign = compared[1].strip(), compared[2]
        return {f"metadata.{name.removeprefix('metadata.')}": {_SIGNS[sign]: _scalar(compared[3])}}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"--filter {text!r:.80} is no JSON: {error}", hint="write --filter place=bay"
        ) from None
    return dict(found)


def pair(text: str, example: str = "--meta source=chat") -> "tuple[str, Scalar]":
    key, sign, value = text.partition("=")
    if not sign:
        option = example.split()[0]
        raise InvalidInput(
            f"{option} takes KEY=VALUE; got {text!r:.80}", hint=f"write it as in {example}"
        )
    return key, _scalar(value)


def _scalar(text: str) -> "Scalar":
    """A number, true, false or null, if the text is one in JSON; else the text."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(parsed, list | dict) else parsed


def value_of(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"--value {text!r:.80} is no JSON: {error!s:.80}", hint="""write --value '{"a": [1]}'"""
        ) from None
