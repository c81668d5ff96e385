"""Loads settings: merges the defaults, a profile, a preset, a file, assignments and keywords.

``settings.py`` declares them, with their defaults; ``config/presets`` holds the presets. What is
wrong is told by ``config/schema.yaml``, which is made of the declarations.
"""

import functools
import itertools
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from types import MappingProxyType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from ..errors import ConfigError
from ..memory.requests import FIELDS, WORLD_FIELDS
from ..rules.bounds import Bound, Items, OneOf, Within, Written
from .packaged import named, packaged
from .plain import Document, copy_plain, printable
from .settings import WITH_PROVIDER, Settings, is_secret, thawed

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

# Section, the key that names a provider, world or policy, and the key of its options.
_OPTIONS = (
    *((section, "provider", "config") for section in WITH_PROVIDER),
    ("simulation", "world", "world_options"),
    ("simulation", "model", "world_options"),
    ("simulation", "policy", "policy_options"),
)

_GONE = MappingProxyType(
    {
        "retrieval": ("fusion", "diversity"),
        "status": ("unpin_after", "unpin_below", "stale_after", "duplicate_at"),
        "simulation": ("streams",),
    }
)
"""Keys that a bank may keep from when they were settings. They mean nothing any more."""


def load_settings(
    config: str | os.PathLike[str] | Mapping[str, object] | Settings | None = None,
    *,
    preset: str | None = None,
    assignments: Iterable[str] = (),
    overrides: Mapping[str, object] | None = None,
    base: Mapping[str, object] | None = None,
) -> Settings:
    """The defaults, changed by ``preset``, ``config``, ``assignments`` and ``overrides``, in turn.

    ``base`` holds the settings of an existing bank; they come right after the defaults.

    ``preset`` is the name of a packaged preset, such as ``lifetime``. ``config`` is the path of a
    YAML file or a mapping of the same shape. An assignment is text such as ``memory.max_pinned=3``;
    its value is read as YAML. ``overrides`` may nest, or name keys with dots; of two overrides of
    the same key, the later wins. Mappings merge key by key, except that a layer with another
    provider starts that provider's ``config`` afresh; a list replaces the list before it.

    If one of them names a ``profile``, the profile's settings come right below the preset, unless
    ``base`` has them already, and the keys of the profile's document are understood in all of them.

    One ``ConfigError`` lists the problems of all of them.
    """
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
    if overrides is not None:
        layers.append([_overrides(overrides)])
    kept: Document | None = None
    if base is not None and not isinstance(config, Settings):  # Settings name every value already
        kept = copy_plain(_without_gone(base), "the bank's settings")
    own = config.profile if isinstance(config, Settings) else _profile_in([kept] if kept else [])
    chosen = _profile_in([document for layer in layers for document in layer], own)
    if isinstance(config, Settings) and (preset is not None or chosen != own):
        kind, name = ("profile", chosen) if preset is None else ("preset", preset)
        raise ConfigError(
            f"{kind} {name!r:.60} would change nothing: Settings name every value already",
            hint=f"give the {kind} where these are loaded",
        )
    if preset is not None:
        layers.insert(0, [named("preset", preset)])
    if isinstance(chosen, str):
        from .profiles import in_our_words, profile

        named_so = profile(chosen)
        layers = [[in_our_words(each, named_so) for each in layer] for layer in layers]
        if chosen != own:  # a bank that was made with it has its settings, and perhaps others
            layers = [*([each] for each in named_so.settings), *layers]
    if kept is not None:
        layers.insert(0, [kept])
    _check([document for layer in layers for document in layer])
    for layer in layers:
        together: dict[str, Any] = {}
        for document in layer:
            together = _merge(together, cast(dict[str, Any], document.value))
        merged = _apply(merged, together)
    if merged["embedder"]["provider"] == "none" and merged["retrieval"]["mode"] == "vector":
        raise ConfigError(
            "retrieval.mode: vector needs vectors, and embedder.provider is none",
            hint="use keyword or hybrid",
        )
    settings = cast(Settings, _made(Settings, merged))
    if not any(settings.retrieval.generative[1:]):
        raise ConfigError(
            "retrieval.generative: recency, importance and relevance are all 0",
            hint="give one of them a weight",
        )
    return settings


def _without_gone(kept: Mapping[str, object]) -> Mapping[str, object]:
    """What a bank keeps, without the keys that are no longer settings."""
    if not isinstance(kept, dict):  # loading it finds what is wrong
        return kept
    return {
        name: {key: value for key, value in section.items() if key not in _GONE.get(name, ())}
        if isinstance(section, dict)
        else section
        for name, section in kept.items()
    }


def _profile_in(documents: Iterable[Document], chosen: object = None) -> object:
    """The value of ``profile`` in the last of the documents that names one, right or wrong."""
    for document in documents:
        if isinstance(document.value, dict) and "profile" in document.value:
            chosen = document.value["profile"]
    return chosen


def preset_settings(name: str) -> dict[str, Any]:
    """The settings of a preset, by key: ``{"temperature.initial": "hot"}``."""
    sections = cast(dict[str, dict[str, Any]], named("preset", name).value)
    return {
        f"{section}.{key}": each for section, own in sections.items() for key, each in own.items()
    }


def _file(path: str | os.PathLike[str]) -> Document:
    from .yaml_files import read_file

    if not isinstance(path, str | os.PathLike):
        kind = type(path).__name__
        raise ConfigError(f"config must be a path, a mapping, Settings or None, not {kind}")
    document = read_file(path)
    # An empty file changes nothing.
    value = {} if document.value is None else document.value
    return Document(document.source, value, document.lines, document.written)


def _assignment(text: str) -> Document:
    from .yaml_files import read_yaml

    key, equals, value = text.partition("=")
    parts = tuple(part.strip() for part in key.split("."))
    # An error message may end up in a log, and a provider's option may be a secret.
    hidden = equals and ("config" in parts or is_secret(parts[-1]))
    source = f"--set {printable(f'{key}=...' if hidden else text)}"
    if not equals or not all(parts):
        raise ConfigError(
            f"{source}: this is not a setting with its value",
            hint="write a key, = and a value, as in memory.max_pinned=3",
        )
    read = read_yaml(value, source, under=parts, numbered=False)
    return Document(source, copy_plain(_nest(parts, read.value), source).value, {}, read.written)


def _overrides(overrides: Mapping[str, object]) -> Document:
    if not isinstance(overrides, Mapping):
        kind = type(overrides).__name__
        raise ConfigError(f"{_KEYWORD}: overrides must be a mapping, not {kind}")
    return Document(_KEYWORD, joined_overrides([overrides]))


_KEYWORD = "keyword argument"


def joined_overrides(levels: Iterable[Mapping[str, object]]) -> dict[str, Any]:
    """Overrides of several levels as one that nests; a later level beats those before it.

    >>> joined_overrides([{"memory": {"max_pinned": 1}, "seed": 1}, {"memory.max_critical": 2}])
    {'memory': {'max_pinned': 1, 'max_critical': 2}, 'seed': 1}
    """
    nested: dict[str, Any] = {}
    for key, child in itertools.chain.from_iterable(level.items() for level in levels):
        if key == "store" and child is None:
            child = {"provider": "none"}
        parts = key.split(".") if isinstance(key, str) else (key,)
        # Copied before it is merged: a key of a thousand dots is a thousand levels deep.
        own = copy_plain(_nest(parts, child), _KEYWORD).value
        nested = _merge(nested, cast(dict[str, Any], own))
    return nested


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


def takes(kind: Any, value: object) -> bool:
    """Whether a plain value, as YAML has it, is of a declared type and within its bounds.

    A section may leave out keys, and no text is empty. YAML reads on and off as true and false.
    """
    origin = get_origin(kind)
    if origin is Annotated:
        of_type, *bounds = get_args(kind)
        return takes(of_type, value) and all(_keeps(bound, value) for bound in bounds)
    if origin in (Union, UnionType):
        return any(takes(choice, value) for choice in get_args(kind))
    if origin is Literal:
        return value in get_args(kind) or (isinstance(value, bool) and "on" in get_args(kind))
    if origin is tuple:
        return isinstance(value, list) and all(takes(get_args(kind)[0], item) for item in value)
    if parts := types_in(kind):
        return (
            isinstance(value, dict)
            and parts.keys() >= value.keys() >= getattr(kind, "__required_keys__", frozenset())
            and all(takes(parts[name], part) for name, part in value.items())
        )
    if origin is Mapping:
        return isinstance(value, dict)
    if kind is float:
        return type(value) in (int, float)
    return type(value) is kind and value != ""


def _keeps(bound: Bound, value: Any) -> bool:
    """Whether a value of the declared type is within a bound, which may concern another type."""
    match bound:
        case Within(least, most, above):
            return not isinstance(value, int | float) or not (
                (least is not None and value < least)
                or (most is not None and value > most)
                or (above is not None and value <= above)
            )
        case OneOf(names):
            return value in names
        case Written(pattern):
            return not isinstance(value, str) or re.fullmatch(pattern, value) is not None
        case Items(fewest, most_items, all_differ):
            return (
                len(value) >= fewest
                and (most_items is None or len(value) <= most_items)
                and (not all_differ or len(set(value)) == len(value))
            )


@functools.cache
def types_in(kind: Any) -> Mapping[str, Any]:
    """The types of the parts of a section, with their bounds; none for any other type."""
    if not (is_dataclass(kind) or is_typeddict(kind) or hasattr(kind, "_fields")):
        return {}
    return {
        name: get_args(part)[0] if get_origin(part) in (Required, NotRequired) else part
        for name, part in get_type_hints(kind, include_extras=True).items()
    }


def _made(kind: Any, value: Any) -> Any:
    """The value as a type of ``settings.py``, which can't be written to."""
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if kind is float:
        return float(value)
    if isinstance(value, bool) and get_origin(kind) is Literal:  # how YAML reads on and off
        return "on" if value else "off"
    if (types := types_in(kind)) and not is_typeddict(kind):
        return kind(**{name: _made(types[name], child) for name, child in value.items()})
    if isinstance(value, dict):  # the options of a provider, a world or a policy stay plain inside
        return MappingProxyType(thawed(value))
    return _frozen(value)


def _frozen(value: Any) -> Any:
    """A copy that can't be written to, at any depth."""
    if isinstance(value, dict):
        return MappingProxyType({key: _frozen(child) for key, child in value.items()})
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@functools.cache
def _defaults() -> dict[str, Any]:
    return Settings().to_dict()


def _check(documents: Iterable[Document]) -> None:
    """Raise a :class:`ConfigError` that names every problem of the documents."""
    wrong = [document for document in documents if not takes(Settings, document.value)]
    if wrong:
        from .messages import check

        check(wrong, _validator())


@functools.cache
def _schema() -> dict[str, Any]:
    """The schema; what agents know from the start has all fields of a memory that worlds give."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # a user's file takes longer to read
    with packaged("schema.yaml").open("rb") as file:
        schema = cast(dict[str, Any], yaml.load(file, loader))  # noqa: S506 - both are safe
    memory = schema["properties"]["simulation"]["properties"]["memories"]["items"]["properties"]
    for name in WORLD_FIELDS:
        memory.setdefault(name, FIELDS[name].schema)
    return schema


@functools.cache
def _validator() -> "Validator":
    from jsonschema import Draft202012Validator, validators

    # JSON Schema takes 3.0 for an integer; a file that says so is more likely a mistake.
    types = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    strict = validators.extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]
    return cast("Validator", strict(_schema()))
