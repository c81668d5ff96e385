"""What the options --tier, --meta, --filter and --value say."""

import json
import re
from typing import TYPE_CHECKING, Any

from ...errors import InvalidInput

if TYPE_CHECKING:
    from ...memory.records import Scalar

_SIGNS = {">=": "$gte", "<=": "$lte", "!=": "$ne", ">": "$gt", "<": "$lt"}
_COMPARED = re.compile(r"([^<>=!]+)([<>=!]+)(.*)", re.DOTALL)
_WRITE = """write --filter place=bay, 'day>=3' (or <=, >, <, !=), or JSON, or 'sign="<"'"""


def tier_of(text: str) -> str | int:
    """What a --tier says: a name, or a number."""
    return int(text) if text in ("0", "1", "2", "3", "4") else text


def condition(text: str) -> dict[str, Any]:
    """What a --filter says: JSON, or a name of metadata and its value."""
    if not text.lstrip().startswith("{"):
        compared = _COMPARED.fullmatch(text)
        if compared is None:
            raise InvalidInput(f"--filter {text!r:.80} compares nothing", hint=_WRITE)
        name, sign, value = (each.strip() for each in compared.groups())
        if sign != "=" and (sign not in _SIGNS or not value):
            raise InvalidInput(f"--filter {text!r:.80} can't be read", hint=_WRITE)
        meant = _scalar(value)
        if name.removeprefix("metadata.") == "session" and sign in ("=", "!="):
            from ...memory.filters import in_session

            return in_session(meant) if sign == "=" else {"$not": in_session(meant)}
        is_ = meant if sign == "=" else {_SIGNS[sign]: meant}
        return {f"metadata.{name.removeprefix('metadata.')}": is_}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"--filter {text!r:.80} is not JSON: {error}", hint=_WRITE) from None
    return dict(found)


def pair(text: str) -> "tuple[str, Scalar]":
    """What a --meta says."""
    key, sign, value = text.partition("=")
    if not sign:
        raise InvalidInput(
            f"--meta takes KEY=VALUE; got {text!r:.80}", hint="write it as in --meta source=chat"
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
            f"--value {text!r:.80} is not JSON: {error!s:.80}",
            hint="""write --value '{"a": [1]}'""",
        ) from None
