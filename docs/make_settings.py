"""Writes config/config.yaml and config/schema.yaml from the declarations: ``make settings``."""

import ast
import functools
import inspect
import itertools
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, is_typeddict

import yaml

from tiermem.config.load import types_in
from tiermem.config.settings import Condition, Settings
from tiermem.rules.bounds import Bound, Items, OneOf, Within, Written

FOLDER = Path(__file__).parents[1] / "config"
WIDTH = 100

_ABOUT_DEFAULTS = """\
# The defaults of every setting. A preset (--preset lifetime, see presets/) changes some; your own
# file names only what it changes; a value given on the command line (--set memory.max_pinned=3) or
# as a keyword argument wins over all of them.
# What each key accepts is written in schema.yaml. `make settings` makes both files from
# src/agents/config/settings.py.
"""
_ABOUT_SCHEMA = """\
# What a settings file may say. No key is required: what a file leaves out keeps its default.
# `make settings` makes this file from src/agents/config/settings.py.
"""


@functools.cache
def texts_of(section: type) -> Mapping[str, str]:
    """What stands below each key of a section, in its source."""
    (body,) = [
        node.body
        for node in ast.parse(textwrap.dedent(inspect.getsource(section))).body
        if isinstance(node, ast.ClassDef)
    ]
    return {
        declared.target.id: inspect.cleandoc(str(below.value.value))
        for declared, below in itertools.pairwise(body)
        if isinstance(declared, ast.AnnAssign) and isinstance(declared.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
    }


def text_of(section: type, key: str) -> str:
    """What a key is for. A section of the settings says it itself."""
    kind = types_in(section)[key]
    text = inspect.getdoc(kind) if section is Settings and types_in(kind) else None
    return text or texts_of(section).get(key, "")


# The defaults


def comment(text: str, indent: str) -> Iterator[str]:
    """The lines of a comment. Lines of the text that are indented stay as they are."""
    start = f"{indent}# "
    wrap = textwrap.TextWrapper(
        WIDTH, initial_indent=start, subsequent_indent=start, break_on_hyphens=False
    )
    flowing = ""
    for line in text.splitlines():
        if line.startswith("  "):
            yield from wrap.wrap(flowing)
            yield start + line
            flowing = ""
        else:
            flowing = f"{flowing} {line}".strip()
    yield from wrap.wrap(flowing)


def as_yaml(value: object) -> str:
    """A value on one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...")


def defaults(section: type, values: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """The lines of a section: each key with its comment and its default."""
    for number, (key, value) in enumerate(values.items()):
        text, parts = text_of(section, key), types_in(types_in(section)[key])
        if number and len(indent) <= 2:
            yield ""
        yield from comment(text, indent)
        if parts and all(text_of(types_in(section)[key], part) for part in parts):
            yield f"{indent}{key}:"
            yield from defaults(types_in(section)[key], value, f"{indent}  ")
        elif value and isinstance(value, list):
            yield f"{indent}{key}:"
            for item in value:
                first, *others = (f"{name}: {as_yaml(part)}" for name, part in item.items())
                yield f"{indent}  - {first}"
                yield from (f"{indent}    {other}" for other in others)
        else:
            yield f"{indent}{key}: {as_yaml(value)}"


# The schema

_NAMES: Mapping[type, str] = {
    bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"
}  # fmt: skip


def schema_of(kind: Any) -> dict[str, Any]:
    """What a type with its bounds accepts, as JSON Schema; a title says it in words."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        schema = schema_of(inner[0])
        for bound in inner[1:]:
            schema |= keywords_of(bound)
        return {"enum": schema["enum"]} if "enum" in schema else schema
    if origin in (Union, UnionType):
        return either([schema_of(choice) for choice in inner])
    if origin is Literal:
        return {"enum": [*inner, True, False] if "on" in inner else list(inner)}
    if origin is tuple:
        return {"type": "array", "items": schema_of(inner[0])}
    if kind is Condition:
        return {"$ref": "#/$defs/condition"}
    if types_in(kind):
        return section_of(kind)
    if origin is Mapping:
        return {"type": "object"}
    return {"type": _NAMES[kind], **({"minLength": 1} if kind is str else {})}


def keywords_of(bound: Bound) -> dict[str, Any]:
    """A bound in the words of JSON Schema."""
    match bound:
        case Within(least, most, above):
            words = {"minimum": least, "exclusiveMinimum": above, "maximum": most}
        case OneOf(names):
            words = {"enum": list(names)}
        case Written(pattern, allowed):
            # Python's $ would also match before a line break at the end.
            words = {"title": allowed, "pattern": rf"^({pattern})(?!\n)$"}
        case Items(least, most, all_differ):
            words = {"minItems": least or None, "maxItems": most, "uniqueItems": all_differ or None}
    return {name: word for name, word in words.items() if word is not None}


def either(choices: list[dict[str, Any]]) -> dict[str, Any]:
    """What accepts each of the choices, whose keywords concern different types of values.

    One thing or a list of them depends on whether the value is a list, so that an error is about
    the thing, or about the item.
    """
    first, second = choices[0], choices[-1]
    if second.get("items") == first:
        items = {name: word for name, word in second.items() if name != "type"}
        return {"if": {"type": "array"}, "then": items, "else": first}
    together = {name: word for choice in choices for name, word in choice.items()}
    types = [choice["type"] for choice in choices]
    return {**together, "type": [*types[0], types[1]] if isinstance(types[0], list) else types}


def section_of(kind: Any) -> dict[str, Any]:
    """The schema of a mapping whose keys are declared."""
    needed = kind.__required_keys__ if is_typeddict(kind) else ()
    required = [name for name in types_in(kind) if name in needed]
    properties = {}
    for name, part in types_in(kind).items():
        lines = text_of(kind, name).splitlines()
        text = " ".join(line for line in lines if not line.startswith("  "))
        properties[name] = {**({"description": text} if text else {}), **schema_of(part)}
    return {
        "type": "object",
        "additionalProperties": False,
        **({"required": required} if required else {}),
        "properties": properties,
    }


def schema() -> dict[str, Any]:
    """The schema of a settings file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "TierMem settings",
        **section_of(Settings),
        "$defs": {"condition": section_of(Condition)},
    }


class _Dumper(yaml.SafeDumper):
    """Writes no alias where one object stands in two places."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def files() -> dict[Path, str]:
    """What each of the files should say."""
    plain = yaml.dump(
        schema(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH - 1
    )
    lines = "\n".join(defaults(Settings, Settings().to_dict()))
    return {
        FOLDER / "config.yaml": f"{_ABOUT_DEFAULTS}\n{lines}\n",
        FOLDER / "schema.yaml": _ABOUT_SCHEMA + plain,
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
