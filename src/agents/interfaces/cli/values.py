"""What the options --tier, --meta, --filter and --value say; the options of a new memory."""

import json
import re
import sys
from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from typer import Option

from ...errors import InvalidInput
from ...memory.new import FIELDS, Field

if TYPE_CHECKING:
    from ...memory.records import Scalar

_Command = TypeVar("_Command", bound=Callable[..., None])

_SIGNS = {">=": "$gte", "<=": "$lte", "!=": "$ne", ">": "$gt", "<": "$lt"}
_COMPARED = re.compile(r"([^<>=!]+)([<>=!]+)(.*)", re.DOTALL)
_NO_MAXIMUM = 2**31
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
            from ...memory.requests import in_session

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


# The optional fields of a new memory


def with_fields(command: _Command) -> _Command:
    """The command with an option for each optional field of a memory, after ``--tier``.

    The command takes them as its keyword arguments; :func:`field_of` reads them.
    """
    given = signature(command).parameters.values()
    plain = [each for each in given if each.kind is not Parameter.VAR_KEYWORD]
    place = [each.name for each in plain].index("tier") + 1
    plain[place:place] = [_parameter(field) for field in FIELDS.values() if field.schema]
    whole = signature(command).replace(parameters=plain)
    command.__signature__ = whole  # type: ignore[attr-defined]
    return command


def _parameter(field: Field) -> Parameter:
    schema, names = field.schema, [f"--{field.name}"]
    text, more = field.option or schema["description"], dict[str, Any]()
    kind: Any = str | None
    if schema["type"] == "integer":
        kind, more["min"] = int | None, schema["minimum"]
        if schema["maximum"] < _NO_MAXIMUM:
            more["max"] = schema["maximum"]
    elif schema["type"] == "array":
        kind, names = list[str] | None, [f"--{field.name.removesuffix('s')}"]
        text += "; can be repeated."
    said = Option(*names, metavar=field.metavar, help=text, **more)
    return Parameter(
        field.name, Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Annotated[kind, said]
    )


def field_of(field: Field, value: Any, id_of: Callable[[str], str]) -> Any:
    """What the option of a field says; ``id_of`` gives the whole id of a memory."""
    if field.names_memories:
        return list(map(id_of, value)) if isinstance(value, list) else id_of(value)
    return value_of(value) if field.schema["type"] == "object" else value


# Texts

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
