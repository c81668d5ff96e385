"""Messages about wrong settings: the place, the value, and what is allowed there."""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..errors import ConfigError
from .plain import Document, KeyPath, printable, show_path
from .profiles import profiles_with

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

_MOST_PROBLEMS = 20
_WORDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "text that is not empty",
    "object": "a mapping of keys",
}


class _Problem(NamedTuple):
    reason: str
    hint: str = ""


def keys_of(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key of the schema, a section before its keys."""
    for name, below in schema.get("properties", {}).items():
        yield (*path, name)
        yield from keys_of(below, (*path, name))


def check(documents: Iterable[Document], validator: "Validator") -> None:
    """Raise a ConfigError that names every problem, in the order of the text."""
    schema = cast(Mapping[str, Any], validator.schema)
    problems: list[_Problem] = []
    for document in documents:
        if not isinstance(document.value, dict):
            found, hint = _found(document, (), document.value)
            said = f"{document.place(())}: settings must be a mapping of keys, not {found}"
            problems.append(_Problem(said, hint))
            continue
        reasons: dict[KeyPath, _Problem] = {}
        for error in validator.iter_errors(document.value):
            reasons.update(_reasons(error, document, schema))
        order = sorted(reasons, key=lambda path: document.lines.get(path, 0))
        for path in order:
            reason, hint = reasons[path]
            problems.append(_Problem(f"{document.place(path)}: {reason}", hint))
    if len(problems) == 1:
        raise ConfigError(problems[0].reason, hint=problems[0].hint)
    if len(problems) > _MOST_PROBLEMS:
        more = len(problems) - _MOST_PROBLEMS
        problems[_MOST_PROBLEMS:] = [_Problem(f"and {more} more")]
    if problems:  # each has its hint beside it
        raise ConfigError("\n".join("; ".join(filter(None, problem)) for problem in problems))


def _reasons(
    error: "ValidationError", document: Document, whole: Mapping[str, Any]
) -> dict[KeyPath, _Problem]:
    """The problems of an error, by path."""
    path: KeyPath = tuple(error.absolute_path)
    shown = document.shown(path)
    schema = cast(dict[str, Any], error.schema)
    if error.validator == "additionalProperties":
        known = list(schema["properties"])
        extra = [key for key in cast(dict[str, Any], error.instance) if key not in known]
        return {(*path, key): _unknown(path, key, known, whole) for key in extra}
    if error.validator == "required":
        given = cast(dict[str, Any], error.instance)
        missing = [key for key in schema["required"] if key not in given]
        return {path: _Problem(f"{shown} needs {_listed(missing, 'and')}")}
    if error.validator == "uniqueItems":
        return {path: _Problem(f"{shown} must not name anything twice")}
    if error.validator == "minItems":
        return {path: _Problem(f"{shown} must not be an empty list")}
    found, hint = _found(document, path, error.instance)
    if error.validator == "maximum" and "title" in schema:
        return {path: _Problem(f"{shown} must be at most {schema['maximum']}, not {found}", hint)}
    return {path: _Problem(f"{shown} must be {_allowed(schema)}, not {found}", hint)}


def _unknown(path: KeyPath, key: str, siblings: list[str], whole: Mapping[str, Any]) -> _Problem:
    start = f"unknown key {show_path((*path, key))}"
    if not path and (names := profiles_with(key)):
        return _Problem(start, f"with the profile {' or '.join(names)} it is known: name it, too")
    if tuple(key.split(".")) in set(keys_of(whole)) and not path:
        section, _, name = key.rpartition(".")
        return _Problem(start, f"write {name} indented under {section}")
    if near := difflib.get_close_matches(key.lower(), siblings, 1):
        return _Problem(start, f"did you mean {show_path((*path, near[0]))}?")
    # Of several keys with the same name, a user most often means the first in the file.
    last = {known[-1]: known for known in reversed(list(keys_of(whole))) if len(known) > 1}
    if near := difflib.get_close_matches(key.lower(), last, 1, 0.8):
        return _Problem(start, f"did you mean {show_path(last[near[0]])}?")
    return _Problem(start, f"known here: {', '.join(siblings)}")


def _allowed(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        # The schema has true and false because YAML reads on and off as them.
        return _listed([str(each) for each in schema["enum"] if not isinstance(each, bool)], "or")
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    allowed = _WORDS[kinds[0]]
    if "title" in schema:
        allowed = schema["title"]
    elif "exclusiveMinimum" in schema:
        allowed += f" above {schema['exclusiveMinimum']}"
        allowed += f" and at most {schema['maximum']}" if "maximum" in schema else ""
    elif "maximum" in schema:
        allowed += f" from {schema['minimum']} to {schema['maximum']}"
    elif "minimum" in schema:
        allowed += f", {schema['minimum']} or more"
    if "array" in kinds[1:]:
        allowed += ", or a list"
    return f"{allowed}, or null" if "null" in kinds else allowed


def _listed(names: list[str], word: str) -> str:
    *others, final = names
    return f"{', '.join(others)} {word} {final}" if others else final


def _found(document: Document, path: KeyPath, value: object) -> tuple[str, str]:
    """The value in words, and a hint on how YAML reads it."""
    if isinstance(value, str):
        # YAML 1.1 reads 5e-1 as text, which few users know.
        number = re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", value)
        hint = "YAML wants a dot and a sign, as in 5.0e-1" if number else ""
        short = value if len(value) <= 60 else value[:57] + "..."
        return f"the text {short!r}" if value else "an empty text", hint
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list", ""
    shown = repr(value) if isinstance(value, float) else json.dumps(value)
    written = document.written.get(path, shown)
    if written in ("", shown):
        return shown if written else f"{shown} (nothing is written there)", ""
    return f"{shown}, which is how YAML reads {printable(written)}", ""
