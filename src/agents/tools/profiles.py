"""A profile's table of operations, made from ours: other names, defaults, and keys of results."""

import functools
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..bank.agent_memory import AgentMemory
from ..bank.renaming import CONVERTERS as ARGUMENT_CONVERTERS
from ..bank.renaming import converted, put, with_defaults
from ..config.profiles import Argument, Profile, Renamed, profile
from ..config.settings import Settings
from ..engine import clock
from ..errors import ConfigError, InvalidInput, NoteRefused
from ..memory.context import cost
from ..memory.scopes import scope_of
from ..memory.tiers import Temperature
from ..rules.ranking import mean_from
from .checking import Table, fitting, validator_of
from .operations import OPERATIONS, Operation, Route
from .shapes import Schema, list_of, object_of

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


def table_of(profile_name: str | None) -> Table:
    """The operations of a profile; ours for None."""
    return OPERATIONS if profile_name is None else _compiled(profile_name)


@functools.cache
def _compiled(name: str) -> Table:
    whole = profile(name)
    table = {each: OPERATIONS[each] for each in whole.keeps}
    for own in whole.operations.values():
        table[own.name] = _operation(whole, own)
    routes = [(each.route.method, each.route.path) for each in table.values()]
    for route in routes:
        if routes.count(route) > 1:
            raise ConfigError(f"profile {name}: two operations are at {' '.join(route)}")
    return MappingProxyType(table)


def _operation(whole: Profile, renamed: Renamed) -> Operation:
    def wrong(why: str) -> ConfigError:
        return ConfigError(f"profile {whole.name}: {renamed.name} {why}")

    if renamed.does not in OPERATIONS:
        raise wrong(f"does {renamed.does!r:.40}, which is no operation")
    base = OPERATIONS[renamed.does]
    ours: Mapping[str, Schema] = base.arguments["properties"]
    arguments = renamed.arguments
    taken = {name for each in arguments for name in (each.name, each.ours)} | renamed.fixed.keys()
    if renamed.others:
        arguments += tuple(
            Argument(name, name, None, None, None, None, {}) for name in ours if name not in taken
        )
    for each in arguments:
        place, _, key = each.ours.partition(".")
        if place not in ours or (key and ours[place].get("type") != "object"):
            raise wrong(f"has {each.name}, and {base.name} takes no {each.ours}")
        if key and each.schema is None:
            raise wrong(f"has {each.name} without a schema")
        if each.convert is not None and each.convert not in ARGUMENT_CONVERTERS:
            raise wrong(f"has {each.name}, and there is no converter {each.convert}")
    needed = set(base.arguments.get("required", ()))
    is_required = {
        each.name: each.ours in needed if each.required is None else each.required
        for each in arguments
    }
    given = {each.ours for each in arguments if is_required[each.name] or each.default is not None}
    if missing := needed - given - renamed.fixed.keys():
        raise wrong(f"does not always give {', '.join(sorted(missing))}, which {base.name} needs")
    schema: Schema = {
        "type": "object",
        "properties": {
            each.name: deepcopy(dict(ours[each.ours] if each.schema is None else each.schema))
            for each in arguments
        },
    }
    if required := [name for name, is_needed in is_required.items() if is_needed]:
        schema["required"] = required
    translation = _Translation(renamed, base, arguments)
    shape = None
    result = base.result
    if renamed.result is not None:
        shape = _keys(_shape_of(renamed.result, whole, wrong), base.result, whole, wrong)
        result = shape.schema
    failed = None
    if renamed.failed is not None:
        failed = _keys(renamed.failed, _FAILED, whole, wrong)
        result = {"anyOf": [result, failed.schema]}
    return Operation(
        renamed.name,
        renamed.description or base.description,
        schema,
        result,
        base.permission,
        functools.partial(_run, translation, shape, failed),
        dict(renamed.example) or _example(base, arguments),
        _route(base.route, renamed, arguments, wrong),
        base.destroys,
        whole.name,
        frozenset(each.name for each in arguments if not each.listed),
    )


def _example(base: Operation, arguments: tuple[Argument, ...]) -> dict[str, Any]:
    """Our example under the document's names; nothing if the document's operation needs more."""
    own = {each.name: base.example[each.ours] for each in arguments if each.ours in base.example}
    is_whole = all(each.name in own for each in arguments if each.required)
    is_same = all(each.schema is None and each.convert is None for each in arguments)
    return own if is_whole and is_same else {}


def _route(
    route: Route,
    own: Renamed,
    arguments: tuple[Argument, ...],
    wrong: Callable[[str], ConfigError],
) -> Route:
    """Our route with the document's names in its path, or what the profile says."""
    names = {each.ours: each.name for each in arguments}
    path = re.sub(r"\{(\w+)\}", lambda part: f"{{{names.get(part[1], '?')}}}", route.path)
    made = route._replace(**{"path": path, **own.route})
    if "{?}" in made.path:
        raise wrong(f"has no argument for the path {route.path}")
    return made


class _Translation:
    """From a document's arguments, which were checked, to ours, which are checked here."""

    def __init__(self, own: Renamed, base: Operation, arguments: tuple[Argument, ...]) -> None:
        self.own, self.base, self.arguments = own, base, arguments
        properties = base.arguments["properties"]
        # Under the document's names, so that a message names what its reader gave.
        self._schema = object_of(
            None, {each.name: properties.get(each.ours, {}) for each in arguments}
        )

    @functools.cached_property
    def _validator(self) -> "Validator":
        return validator_of(self._schema)

    def ours(self, memory: AgentMemory, given: Mapping[str, Any]) -> dict[str, Any]:
        """Our arguments."""
        values = with_defaults(self.own, given)
        named = {
            each.name: converted(memory, each, values[each.name])
            for each in self.arguments
            if each.name in values
        }
        named = fitting(self.own.name, named, OPERATIONS, self._validator)
        ours = deepcopy(dict(self.own.fixed))
        for each in sorted(self.arguments, key=lambda each: "." in each.ours):
            if each.name in named:
                put(ours, each, named[each.name])
        return ours


def _run(
    translation: _Translation,
    shape: "_Shape | None",
    failed: "_Shape | None",
    memory: AgentMemory,
    given: dict[str, Any],
) -> dict[str, Any]:
    with memory.engine.using():  # what a result tells beside ours is of the same state
        ours = translation.ours(memory, given)
        try:
            result = translation.base.run(memory, ours)
        except (InvalidInput, NoteRefused) as error:  # the caller's own mistakes
            if failed is None:
                raise
            told: dict[str, Any] = failed.read(_Call(memory, given), {"error": str(error)})
            return told
        if shape is None:
            return result
        said: dict[str, Any] = shape.read(_Call(memory, given), result)
        return said


# Results


class _Call(NamedTuple):
    memory: AgentMemory
    given: Mapping[str, Any]
    """The document's arguments, by name."""


_NOTHING = object()
"""What is not there."""
_FAILED = object_of({"error": {"type": "string"}})
"""What there is to tell of a call that could not be done."""


class _Shape(NamedTuple):
    """A part of a result: how it is read from ours, and its schema."""

    read: Callable[[_Call, Any], Any]
    schema: Schema
    is_certain: bool
    """Whether it is always there."""


def _keys(
    spec: Mapping[str, Any], ours: Schema, whole: Profile, wrong: Callable[[str], ConfigError]
) -> _Shape:
    """An object with these keys."""
    parts = {name: _part(name, own, ours, whole, wrong) for name, own in spec.items()}
    certain = {name: part.schema for name, part in parts.items() if part.is_certain}
    perhaps = {name: part.schema for name, part in parts.items() if not part.is_certain}

    def read(call: _Call, result: Any) -> dict[str, Any]:
        said = {name: part.read(call, result) for name, part in parts.items()}
        return {name: value for name, value in said.items() if value is not _NOTHING}

    return _Shape(read, object_of(certain, perhaps), True)


def _part(
    name: str, spec: Any, ours: Schema, whole: Profile, wrong: Callable[[str], ConfigError]
) -> _Shape:
    """The value of a key: a path in our result, or a mapping that says what is made of it.

    ``from`` is a path, or a list of which the first that is there counts. ``each`` has the keys of
    the entries of a list, ``keys`` those of an object, or the name of a shape; ``by`` two paths,
    for an object with an entry for each of a list. ``as`` is a converter, ``values`` a table,
    ``without`` keys that are left out. ``given`` is an argument instead, ``setting`` a setting of
    the bank, ``constant`` a value. ``scope`` is the agent's project or environment, which comes
    before what is at the path. ``else`` is what stands there where nothing is. With ``maybe``, the
    key is left out where its value is null or an empty text.
    """
    left: dict[str, Any] = {"from": spec} if isinstance(spec, str) else dict(spec)
    if "constant" in left:
        constant = left.pop("constant")
        made = _Shape(lambda call, result: constant, {"const": constant}, True)
    elif "given" in left:
        argument = left.pop("given")
        made = _Shape(lambda call, result: call.given.get(argument, _NOTHING), {}, False)
    elif "setting" in left:
        setting = left.pop("setting")
        section, _, key = setting.partition(".")
        if not hasattr(getattr(Settings(), section, None), key):
            raise wrong(f"has {name} in its result, and there is no setting {setting}")
        made = _Shape(
            lambda call, _: getattr(getattr(call.memory.engine.settings, section), key), {}, True
        )
    else:
        paths = left.pop("from", "")
        made = _found([paths] if isinstance(paths, str) else paths, ours, name, wrong)
    if (inner := left.pop("each", None)) is not None:
        items = made.schema.get("items", {})
        entry = _keys(_shape_of(inner, whole, wrong), items, whole, wrong)
        made = _then(made, lambda call, value: [entry.read(call, each) for each in value])
        made = made._replace(schema=list_of(entry.schema))
    if (inner := left.pop("keys", None)) is not None:
        entry = _keys(_shape_of(inner, whole, wrong), made.schema, whole, wrong)
        made = _then(made, entry.read)._replace(schema=entry.schema)
    if (by := left.pop("by", None)) is not None:
        first, second = by
        made = _then(
            made, lambda call, value: {_at(each, first): _at(each, second) for each in value}
        )._replace(schema={"type": "object"})
    if (names := left.pop("without", None)) is not None:
        made = _then(made, lambda call, value: {k: v for k, v in value.items() if k not in names})
    if (values := left.pop("values", None)) is not None:
        named = dict.fromkeys(values.get(each, each) for each in made.schema.get("enum", ()))
        made = _then(made, lambda call, value: values.get(value, value))
        made = made._replace(schema={"enum": list(named)} if named else {})
    if (convert := left.pop("as", None)) is not None:
        if convert not in CONVERTERS:
            raise wrong(f"has {name} in its result, and there is no converter {convert}")
        function, schema = CONVERTERS[convert]
        if "null" in made.schema.get("type", ()):
            schema = {**schema, "type": [schema["type"], "null"]}
        made = _then(
            made, lambda call, value: None if value is None else function(call.memory, value)
        )
        made = made._replace(schema=schema)
    if (part := left.pop("scope", None)) is not None:
        made = _of_scope(part, made)
    if "else" in left:
        made = _or_else(made, left.pop("else"))
    if left.pop("maybe", False):
        made = _then(made, lambda call, value: _NOTHING if value in (None, "") else value)
        made = made._replace(is_certain=False)
    if left:
        raise wrong(f"has {', '.join(left)} at {name} in its result, which mean nothing")
    return made


def _then(shape: _Shape, more: Callable[[_Call, Any], Any]) -> _Shape:
    """The same, with something made of what is there."""

    def read(call: _Call, result: Any) -> Any:
        value = shape.read(call, result)
        return value if value is _NOTHING else more(call, value)

    return shape._replace(read=read)


def _of_scope(part: str, shape: _Shape) -> _Shape:
    """The project or the environment of the agent; else what is there."""

    def read(call: _Call, result: Any) -> Any:
        return getattr(scope_of(call.memory.agent_id), part) or shape.read(call, result)

    return shape._replace(read=read)


def _or_else(shape: _Shape, other: Any) -> _Shape:
    """What is there, or the other value."""

    def read(call: _Call, result: Any) -> Any:
        value = shape.read(call, result)
        return other if value is _NOTHING else value

    return _Shape(read, {}, True)


def _shape_of(inner: Any, whole: Profile, wrong: Callable[[str], ConfigError]) -> Mapping[str, Any]:
    if not isinstance(inner, str):
        keys: Mapping[str, Any] = inner
        return keys
    if inner not in whole.shapes:
        raise wrong(f"has the shape {inner} in its result, which is not there")
    return whole.shapes[inner]


def _found(
    paths: list[str], ours: Schema, name: str, wrong: Callable[[str], ConfigError]
) -> _Shape:
    """What is at the first of these paths that is there and not null."""
    schemas = [_schema_at(path, ours) for path in paths]
    if all(schema is None for schema, _ in schemas):
        raise wrong(f"has {name} in its result, and ours has no {' or '.join(paths)}")

    def read(call: _Call, result: Any) -> Any:
        found = [_at(result, path) for path in paths]
        there = [each for each in found if each is not _NOTHING and each is not None]
        return there[0] if there else found[-1]

    schema, _ = schemas[-1]
    return _Shape(read, schema or {}, any(is_certain for _, is_certain in schemas))


def _at(value: Any, path: str) -> Any:
    for part in path.split(".") if path else ():
        if not isinstance(value, Mapping) or part not in value:
            return _NOTHING
        value = value[part]
    return value


def _schema_at(path: str, schema: Schema) -> tuple[Schema | None, bool]:
    """Our schema at a path, and whether something is always there; None for no such path."""
    is_certain = True
    for part in path.split(".") if path else ():
        if "properties" not in schema:
            return ({}, False) if schema.get("type", "object") == "object" else (None, False)
        if part not in schema["properties"]:
            return None, False
        is_certain = is_certain and part in schema.get("required", ())
        schema = schema["properties"][part]
    return schema, is_certain


# What a document's result tells that ours says otherwise


def _date(memory: AgentMemory, tick: int) -> str:
    """When a tick was, as ISO 8601."""
    return clock.date_of(memory.engine, tick)


def _model(memory: AgentMemory, _: object) -> str:
    """The embedder's model: its name without that of its provider."""
    provider = memory.engine.settings.embedder.provider
    return memory.engine.embedder.embedder.name.removeprefix(f"{provider}/")


def _fallback(memory: AgentMemory, note: str) -> dict[str, str] | None:
    """What could not be done and why, if anything."""
    return {"from": memory.engine.settings.embedder.provider, "reason": note} if note else None


def _tokens(memory: AgentMemory, identifier: str) -> int:
    """The tokens of a memory as the status counts them: a hot one is a line of a context."""
    own, count = memory.get(identifier), memory.engine.count_tokens
    return cost(own, count) if own.temperature is Temperature.HOT else count(own.content)


def _relevance(memory: AgentMemory, identifier: str) -> float:
    """1 for what is hot; else the mean of 1 and of the scores of recalls, the last counting half.

    This is how ctx-sys counts: a new or promoted item has 1, and each recall takes the mean.
    """
    own = memory.get(identifier)
    if own.temperature is Temperature.HOT:
        return 1.0
    record = memory.engine.state.use_record(memory.agent_id, own.sequence)
    return round(mean_from(1.0, record, own.access_count), 6)


CONVERTERS: Mapping[str, tuple[Callable[[AgentMemory, Any], Any], Schema]] = MappingProxyType(
    {
        "date": (_date, {"type": "string", "format": "date-time"}),
        "tokens": (_tokens, {"type": "integer"}),
        "relevance": (_relevance, {"type": "number"}),
        "model": (_model, {"type": "string"}),
        "fallback": (_fallback, {"type": "object"}),
        "target": (
            lambda memory, moved: "warm" if not moved or "warm" in moved.values() else "cold",
            {"type": "string"},
        ),
        "count": (lambda memory, value: len(value), {"type": "integer"}),
        "names": (lambda memory, value: list(value), list_of({"type": "string"})),
        "percent": (lambda memory, share: round(100 * share, 4), {"type": "number"}),
    }
)
"""What is made of a part of our result, by name, with the schema of what it becomes."""
