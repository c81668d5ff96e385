"""Settings: the packaged defaults, a file, assignments and keyword arguments, checked and frozen.

``config/config.yaml`` is the only place that holds a default, ``config/schema.yaml`` the only place
that says what a key accepts.
"""

import difflib
import functools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from agents.errors import ConfigError
from agents.settings import (
    TIERS,
    WITH_PROVIDER,
    CheckpointSettings,
    EmbedderSettings,
    LlmSettings,
    MemorySettings,
    Settings,
    SimulationSettings,
    StorageSettings,
    StoreSettings,
    is_secret,
    thawed,
)

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

    from agents.config_yaml import Document, KeyPath

__all__ = ["load_settings"]

# Which keys hold the options of what another key names.
_OPTIONS = (
    *((section, "provider", "config") for section in WITH_PROVIDER),
    ("simulation", "world", "world_options"),
    ("simulation", "policy", "policy_options"),
)
_MOST_PROBLEMS = 20


def load_settings(
    config: str | os.PathLike[str] | Mapping[str, object] | Settings | None = None,
    *,
    assignments: Iterable[str] = (),
    overrides: Mapping[str, object] | None = None,
    base: Mapping[str, object] | None = None,
) -> Settings:
    """The packaged defaults, changed by ``config``, then ``assignments``, then ``overrides``.

    ``base`` holds what an existing bank was made with; it comes right after the defaults.

    ``config`` is the path of a YAML file or a mapping of the same shape. An assignment is text such
    as ``memory.max_pinned=3``, its value read as YAML. ``overrides`` may nest, or name keys with
    dots; of two that name the same key, the later wins. Mappings merge key by key, except that a
    layer with another provider starts that provider's ``config`` afresh.

    Whatever is wrong with any of them raises one ``ConfigError`` that lists the problems.
    """
    from agents.config_yaml import copy_plain

    merged = _defaults()
    given: list[Document] = []
    if isinstance(config, Settings):
        merged = config.to_dict()
        given = [copy_plain(merged, "settings")]
    elif isinstance(config, Mapping):
        given = [copy_plain(config, "config mapping")]
    elif config is not None:
        given = [_file(config)]
    # Assignments are one layer, so that it does not matter whether the provider comes first.
    layers = [given, [_assignment(text) for text in assignments]]
    if base is not None and not isinstance(config, Settings):  # these are whole already
        layers.insert(0, [copy_plain(base, "the bank's settings")])
    if overrides is not None:
        layers.append([_overrides(overrides)])
    _check([document for layer in layers for document in layer])
    for layer in layers:
        together: dict[str, Any] = {}
        for document in layer:
            together = _merge(together, cast(dict[str, Any], document.value))
        merged = _apply(merged, together)
    return _freeze(merged)


def _file(path: str | os.PathLike[str]) -> "Document":
    from agents.config_yaml import Document, read_file

    if not isinstance(path, str | os.PathLike):
        kind = type(path).__name__
        raise ConfigError(f"config must be a path, a mapping, Settings or None, not {kind}")
    document = read_file(path)
    # An empty file changes nothing.
    value = {} if document.value is None else document.value
    return Document(document.source, value, document.lines, document.written)


def _assignment(text: str) -> "Document":
    from agents.config_yaml import Document, copy_plain, printable, read_yaml

    key, equals, value = text.partition("=")
    parts = tuple(part.strip() for part in key.split("."))
    # An error message may end up in a log, and what goes to a provider may be a secret.
    hidden = equals and ("config" in parts or is_secret(parts[-1]))
    source = f"--set {printable(f'{key}=...' if hidden else text)}"
    if not equals or not all(parts):
        raise ConfigError(f"{source}: write a key, = and a value, as in memory.max_pinned=3")
    read = read_yaml(value, source, under=parts, numbered=False)
    return Document(source, copy_plain(_nest(parts, read.value), source).value, {}, read.written)


def _overrides(overrides: Mapping[str, object]) -> "Document":
    from agents.config_yaml import Document, copy_plain

    source = "keyword argument"
    if not isinstance(overrides, Mapping):
        raise ConfigError(f"{source}: overrides must be a mapping, not {type(overrides).__name__}")
    nested: dict[str, Any] = {}
    for key, child in overrides.items():
        parts = key.split(".") if isinstance(key, str) else (key,)
        # Copied before it is merged: a key of a thousand dots is a thousand levels deep.
        nested = _merge(nested, cast(dict[str, Any], copy_plain(_nest(parts, child), source).value))
    return Document(source, nested)


def _nest(parts: Iterable[str], value: object) -> object:
    for part in reversed(tuple(parts)):
        value = {part: value}
    return value


def _merge(below: Mapping[str, Any], layer: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in layer.items():
        under = merged.get(key)
        if isinstance(value, dict) and isinstance(under, dict):
            value = _merge(under, value)
        merged[key] = value
    return merged


def _apply(below: dict[str, Any], layer: dict[str, Any]) -> dict[str, Any]:
    for section, key, options in _OPTIONS:
        chosen = below[section][key]
        if layer.get(section, {}).get(key, chosen) != chosen:
            # One provider's options mean nothing to another.
            below = {**below, section: {**below[section], options: {}}}
    return _merge(below, layer)


def _freeze(values: dict[str, Any]) -> Settings:
    memory = dict(values["memory"])
    boosts = memory.pop("tier_boosts")
    configs = {
        name: {**values[name], "config": MappingProxyType(thawed(values[name]["config"], False))}
        for name in WITH_PROVIDER
    }
    simulation = thawed(values["simulation"], False)
    if isinstance(simulation["agents"], list):
        simulation["agents"] = tuple(simulation["agents"])
    for name in ("world_options", "policy_options"):
        simulation[name] = MappingProxyType(simulation[name])
    simulation["memories"] = tuple(map(MappingProxyType, simulation["memories"]))
    first, second, third, fourth, fifth = (float(boosts[name]) for name in TIERS)
    return Settings(
        seed=values["seed"],
        memory=MemorySettings(tier_boosts=(first, second, third, fourth, fifth), **memory),
        embedder=EmbedderSettings(**configs["embedder"]),
        store=StoreSettings(**configs["store"]),
        storage=StorageSettings(**values["storage"]),
        llm=LlmSettings(**configs["llm"]),
        simulation=SimulationSettings(**simulation),
        checkpoint=CheckpointSettings(**values["checkpoint"]),
    )


def _packaged(name: str) -> Path:
    # An installed wheel carries config/ inside the package; a checkout has it beside src/.
    here = Path(__file__).parent
    folder = here / "defaults"
    return (folder if folder.exists() else here.parents[1] / "config") / name


@functools.cache
def _defaults() -> dict[str, Any]:
    document = _file(_packaged("config.yaml"))
    _check([document])
    for path in _keys(_schema()):
        if path not in document.lines:
            raise ConfigError(f"{document.source}: {'.'.join(path)} must have its default here")
    return cast(dict[str, Any], document.value)


@functools.cache
def _schema() -> dict[str, Any]:
    return cast(dict[str, Any], _file(_packaged("schema.yaml")).value)


def _keys(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key of the schema, sections before what is in them."""
    for name, below in schema.get("properties", {}).items():
        yield (*path, name)
        yield from _keys(below, (*path, name))


@functools.cache
def _validator() -> "Validator":
    from jsonschema import Draft202012Validator, validators

    # JSON Schema takes 3.0 for an integer; a file that says so is more likely a mistake.
    types = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    strict = validators.extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]
    return cast("Validator", strict(_schema()))


def _check(documents: Iterable["Document"]) -> None:
    """Refuses what the schema does not allow, naming every problem in the order of the text."""
    from agents.config_yaml import show_path

    problems: list[str] = []
    for document in documents:
        if not isinstance(document.value, dict):
            found = _found(document, (), document.value)
            problems.append(
                f"{document.place(())}: settings must be a mapping of keys, not {found}"
            )
            continue
        reasons: dict[KeyPath, str] = {}
        for error in _validator().iter_errors(document.value):
            path: KeyPath = tuple(error.absolute_path)
            schema = cast(dict[str, Any], error.schema)
            if error.validator == "additionalProperties":
                extra = [
                    key
                    for key in cast(dict[str, Any], error.instance)
                    if key not in schema["properties"]
                ]
                for key in extra:
                    reasons[*path, key] = _unknown(path, key, list(schema["properties"]))
            elif error.validator == "required":
                given = cast(dict[str, Any], error.instance)
                missing = [key for key in schema["required"] if key not in given]
                reasons[path] = f"{show_path(path)} needs {' and '.join(missing)}"
            elif error.validator == "uniqueItems":
                reasons[path] = f"{show_path(path)} must not name anything twice"
            else:
                found = _found(document, path, error.instance)
                reasons[path] = f"{show_path(path)} must be {_allowed(schema)}, not {found}"
        order = sorted(reasons, key=lambda path: document.lines.get(path, 0))
        problems += [f"{document.place(path)}: {reasons[path]}" for path in order]
    if len(problems) > _MOST_PROBLEMS:
        more = len(problems) - _MOST_PROBLEMS
        problems[_MOST_PROBLEMS:] = [f"and {more} more"]
    if problems:
        raise ConfigError("\n".join(problems))


def _unknown(path: "KeyPath", key: str, siblings: list[str]) -> str:
    from agents.config_yaml import show_path

    start = f"unknown key {show_path((*path, key))}"
    if tuple(key.split(".")) in set(_keys(_schema())) and not path:
        section, _, name = key.rpartition(".")
        return f"{start}; write {name} indented under {section}"
    if near := difflib.get_close_matches(key.lower(), siblings, 1):
        return f"{start}; did you mean {show_path((*path, near[0]))}?"
    last = {known[-1]: known for known in _keys(_schema()) if len(known) > 1}
    if near := difflib.get_close_matches(key.lower(), last, 1, 0.8):
        return f"{start}; did you mean {show_path(last[near[0]])}?"
    return f"{start}; known here: {', '.join(siblings)}"


def _allowed(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        *others, final = schema["enum"]
        return f"{', '.join(others)} or {final}"
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    words = {
        "array": "a list",
        "integer": "a whole number",
        "number": "a number",
        "string": "text that is not empty",
        "object": "a mapping of keys",
    }
    allowed = words[kinds[0]]
    if "maximum" in schema:
        allowed += f" from {schema['minimum']} to {schema['maximum']}"
    elif "minimum" in schema:
        allowed += f", {schema['minimum']} or more"
    if "array" in kinds[1:]:
        allowed += ", or a list"
    return f"{allowed}, or null" if "null" in kinds else allowed


def _found(document: "Document", path: "KeyPath", value: object) -> str:
    from agents.config_yaml import printable

    if isinstance(value, str):
        # YAML 1.1 takes 5e-1 for text, which nobody who wrote it would guess.
        number = re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", value)
        hint = "; YAML wants a dot and a sign, as in 5.0e-1" if number else ""
        short = value if len(value) <= 60 else value[:57] + "..."
        return f"the text {short!r}{hint}" if value else "an empty text"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    shown = repr(value) if isinstance(value, float) else json.dumps(value)
    written = document.written.get(path, shown)
    if written in ("", shown):
        return shown if written else f"{shown} (nothing is written there)"
    return f"{shown}, which is how YAML reads {printable(written)}"
