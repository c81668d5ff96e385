"""Writes docs/reference.md, the page of all operations, from their table: ``make reference``."""

import inspect
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tiermem import errors
from tiermem.tools import ERROR, OPERATIONS, Failure, Operation
from tiermem.tools.shapes import MEMORY, Schema

PAGE = Path(__file__).with_name("reference.md")

_INTRODUCTION = """\
# Operations

What an agent can do with its memory, through MCP, HTTP, or the tool calls of a language model: the
names, arguments and results are the same everywhere. None of them can reach another agent's memory.
In Python, [a loop with a model](howto/llm-loop.md) calls them with
`tools.call(memory, name, arguments)`, and `agent.call(name, …)` gives the result itself. A bank
with a [profile](howto/profiles.md) has the operations of the profile instead.

`make reference` makes this page from the table in `src/agents/tools/operations.py`.

Arguments that are not listed are refused; `null` for an optional one means that it is not given.
Names of other clients are understood where they mean one thing: camelCase (`autoPromote`,
`memoryId`), `sessionId` for `session`, `type` for `kind`, `limit` for `max_results`, and hot, warm
or cold as a `tier`, which are temperatures.
Over HTTP, what is in braces in a path is an argument, and the others are the JSON body, or for GET
and DELETE the query string.
"""

_ERRORS = """\
## Errors

An operation that is refused has changed nothing (but see `CommitUnknown`). It gives, instead of its
result, an error that a model or a person can act on:

{example}

{fields}
{table}
`tools.call` never raises an exception: it gives an `Outcome`, whose `is_error` says which of the
two it is.

## Other errors

What else Python code can meet when it opens, keeps or simulates a bank. `except TierMemError`
catches all errors of TierMem; the tree is in `src/agents/errors.py`.

{others}"""

_TOLD = (
    errors.InvalidInput,
    errors.InvalidContent,
    errors.InvalidMetadata,
    errors.MemoryNotFound,
    errors.MemoryPinned,
    errors.TierFull,
    errors.NoteRefused,
    errors.EmbedderError,
    errors.StoreError,
    errors.CommitFailed,
    errors.CommitUnknown,
    errors.BankClosed,
    errors.BankBroken,
    errors.BankDamaged,
    errors.Untrusted,
)
"""The errors that an operation can meet."""


def reference() -> str:
    """The page, as Markdown."""
    parts = [_INTRODUCTION, _overview(), *map(_section, OPERATIONS.values()), _memory(), _errors()]
    return "\n".join(parts)


def _overview() -> str:
    rows = (
        (f"[`{each.name}`](#{each.name})", each.permission, _route(each), each.description)
        for each in OPERATIONS.values()
    )
    return _table(("operation", "permission", "HTTP", "what it does"), rows)


def _section(operation: Operation) -> str:
    lasting = " What it deletes may be gone for good." if operation.destroys else ""
    return "\n".join(
        (
            f"## {operation.name}\n",
            f"{operation.description}\n",
            f"Permission: {operation.permission}.{lasting} "
            f"HTTP: {_route(operation)}, answers {operation.route.status}.\n",
            _arguments(operation.arguments),
            f"Result:{_result(operation.result)}",
            f"Example:\n\n{_json(operation.example)}\n",
        )
    )


def _route(operation: Operation) -> str:
    return f"`{operation.route.method} {operation.route.path}`"


# Arguments


def _arguments(schema: Schema) -> str:
    if not schema["properties"]:
        return "It takes no arguments.\n"
    required = schema.get("required", ())
    rows = (
        (f"`{name}`", _type(each), _allowed(each), "yes" if name in required else "", _said(each))
        for name, each in schema["properties"].items()
    )
    return _table(("argument", "type", "allowed", "required", "description"), rows)


def _type(schema: Schema) -> str:
    """The type of a value, in words."""
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {_type(schema['items'])}"
    return str(kind)


def _allowed(schema: Schema) -> str:
    """The values that the schema allows, in words."""
    if "anyOf" in schema:
        return _allowed(schema["anyOf"][0])
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    parts = [
        _span(schema.get("minimum"), schema.get("maximum"), ""),
        _span(schema.get("minLength"), schema.get("maxLength"), " characters"),
        _span(schema.get("minItems"), schema.get("maxItems"), " entries"),
        _span(schema.get("minProperties"), schema.get("maxProperties"), " entries"),
    ]
    if "items" in schema and (each := _allowed(schema["items"])):
        parts.append(f"each {each}")
    return "; ".join(part for part in parts if part)


def _span(least: float | None, most: float | None, unit: str) -> str:
    if least is None and most is None:
        return ""
    if most is None:
        return f"from {least:,}{unit}"
    return f"up to {most:,}{unit}" if least is None else f"{least:,} to {most:,}{unit}"


def _said(schema: Schema) -> str:
    return str(schema.get("description", ""))


# Results


def _result(schema: Schema) -> str:
    if "anyOf" in schema:
        return "\n\n" + "\nor\n\n".join(_fields_table(each) for each in schema["anyOf"])
    if schema == MEMORY:
        return " [a memory](#a-memory).\n"
    if "properties" not in schema:
        return " an object.\n"
    return "\n\n" + _fields_table(schema)


def _fields_table(schema: Schema) -> str:
    rows = ((f"`{path}`", kind, _said(each)) for path, kind, each in _fields(schema, ""))
    return _table(("field", "type", "description"), rows)


def _fields(schema: Schema, before: str) -> Iterator[tuple[str, str, Schema]]:
    """Path, type and schema of each field of an object, and of the objects in its lists."""
    for name, each in schema["properties"].items():
        path = f"{before}{name}"
        inner, shown = (each["items"], f"{path}[]") if "items" in each else (each, path)
        if "properties" not in inner:
            yield path, _type(each), each
        elif MEMORY["properties"].items() <= inner["properties"].items():
            yield shown, "[a memory](#a-memory)", each
            yield from _fields({"properties": _beyond_a_memory(inner)}, f"{shown}.")
        else:
            yield from _fields(inner, f"{shown}.")


def _beyond_a_memory(schema: Schema) -> dict[str, Schema]:
    return {
        name: each
        for name, each in schema["properties"].items()
        if name not in MEMORY["properties"]
    }


def _memory() -> str:
    rows = (
        (f"`{name}`", _type(each), _allowed(each), _said(each))
        for name, each in MEMORY["properties"].items()
    )
    table = _table(("field", "type", "allowed", "description"), rows)
    optional = [f"`{name}`" for name in MEMORY["properties"] if name not in MEMORY["required"]]
    some = f"{', '.join(optional[:-1])} and {optional[-1]}"
    said = f"All of these fields are always there, but for {some}, where a memory has none."
    return f"## A memory\n\n{said}\n\n{table}"


def _errors() -> str:
    failure = Failure("MemoryNotFound", "alice has no memory '42'")
    rows = [_meaning(each) for each in _TOLD]
    rows.append(("`InternalError`", "Something went wrong inside TierMem; its log says what."))
    every = (each for each in vars(errors).values() if isinstance(each, type))
    others = [each for each in every if each not in _TOLD and issubclass(each, Exception)]
    heads = ("type", "meaning")
    return _ERRORS.format(
        example=_json(failure.to_dict()),
        fields=_fields_table(ERROR),
        table=_table(heads, rows),
        others=_table(heads, map(_meaning, others)),
    )


def _meaning(error: type) -> tuple[str, str]:
    return f"`{error.__name__}`", _first_line(error)


# Markdown


def _first_line(described: type) -> str:
    return (inspect.getdoc(described) or "").partition("\n")[0].replace("``", "`")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_row(heads), "|---" * len(heads) + "|", *map(_row, rows)]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _json(value: Any) -> str:
    return f"```json\n{json.dumps(value, ensure_ascii=False)}\n```"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
