"""The form of a language model's replies, as JSON Schema, and how they are read.

A reply in the wrong form is ValueError: a server may not know schemas, or not keep to them.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...memory.records import Memory
from ...memory.sources import MOST_EVIDENCE, check_importance
from ...notes.flush import SILENT_REPLY
from ..protocols import Action, Ask, Insight, Say
from ..tick.actions import (
    ASK_ACTIONS,
    GROUP_ASKS,
    NAMES_OF_MEMORIES,
    NO_OP,
    as_action,
    schema_of,
)
from . import as_actions, check_keepable

Value = dict[str, Any]
_LONGEST_REASON = 160
_MOST_ACTIONS = 4
_LONGEST_THOUGHT = 300
_FREE = {"type": "object"}
"""The arguments of an action that nobody described."""


# Forms


def decision_schema(
    world_actions: Mapping[str, str],
    own_actions: Mapping[str, str],
    arguments: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """A reason and a list of actions: those of the world, and those on memories.

    ``arguments`` has the schemas of arguments of the world's actions, by action and argument.
    """
    names_of: dict[str, list[str]] = {}  # by their arguments, since most take the same ones
    for name in {**own_actions, **world_actions}:
        shape: Mapping[str, Any] | None
        if name in arguments:
            shape = object_schema(arguments[name])
        elif name in world_actions:
            shape = None
        else:
            shape = schema_of(name, own_actions[name])
        names_of.setdefault(json.dumps(_FREE if shape is None else shape), []).append(name)
    kinds = []
    for text, names in names_of.items():
        shape, named = json.loads(text), {"name": {"type": "string", "enum": names}}
        if shape.get("properties") == {}:
            kinds.append(object_schema(named))
        else:
            optional = () if shape != _FREE else ("arguments",)
            kinds.append(object_schema({**named, "arguments": shape}, optional))
    actions = {"type": "array", "maxItems": _MOST_ACTIONS, "items": {"anyOf": kinds}}
    reason = {"type": "string", "maxLength": _LONGEST_REASON}
    return object_schema({"reason": reason, "actions": actions})


def talk_schema(shown: Iterable[str]) -> dict[str, Any]:
    """What :func:`say_in` reads; ``shown`` are the ids of memories that the prompt shows."""
    text = {"type": "string", "maxLength": _LONGEST_THOUGHT}
    return object_schema({"say": text, "memory_id": {"enum": [None, *shown]}})


def questions_schema(most: int) -> dict[str, Any]:
    """What :func:`questions_in` reads."""
    text = {"type": "string", "minLength": 1, "maxLength": _LONGEST_THOUGHT}
    return object_schema(
        {"questions": {"type": "array", "minItems": 1, "maxItems": most, "items": text}}
    )


def insights_schema(memories: Sequence[Memory], most: int) -> dict[str, Any]:
    """What :func:`insights_in` reads."""
    place = {"type": "integer", "minimum": 1, "maximum": len(memories)}
    insight = {
        "insight": {"type": "string", "minLength": 1, "maxLength": _LONGEST_THOUGHT},
        "because_of": {"type": "array", "minItems": 1, "maxItems": MOST_EVIDENCE, "items": place},
        "importance": _IMPORTANCE,
    }
    items = object_schema(insight)
    return object_schema({"insights": {"type": "array", "maxItems": most, "items": items}})


def ratings_schema(count: int) -> dict[str, Any]:
    """What :func:`ratings_in` reads."""
    sized = {"minItems": count, "maxItems": count}
    return object_schema({"importance": {"type": "array", **sized, "items": _IMPORTANCE}})


_IMPORTANCE = {"type": "integer", "minimum": 1, "maximum": 10}


def object_schema(properties: Mapping[str, Any], optional: Sequence[str] = ()) -> dict[str, Any]:
    """An object with these properties and no other ones."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


# Replies


def actions_in(reply: str) -> list[object]:
    """The actions of a reply; an invalid one stays as it is, for the loop to refuse.

    The first one has the reason of the reply, unless it has a reason of its own.
    """
    value = _with_list(reply, "actions")
    actions, reason = as_actions(value["actions"]), value.get("reason")
    first = actions[0] if actions else None
    if isinstance(first, Action) and first.reason is None and isinstance(reason, str):
        actions[0] = as_action(first._replace(reason=reason.strip() or None))
    return actions


def decision_in(reply: str) -> list[object]:
    """The actions of a reply; where there is none, its reason for that."""
    actions = actions_in(reply)
    reason = None if actions else object_of(reply).get("reason")
    if isinstance(reason, str) and reason.strip():
        return [as_action(Action(NO_OP, reason=reason.strip()))]
    return actions


def _with_list(reply: str, name: str) -> Value:
    """The object of a reply, which has a list of this name; ValueError if there is none.

    What is in the list is unchecked. Other keys may stand beside it.
    """
    value = object_of(reply)
    if not isinstance(value.get(name), list):
        raise ValueError(f'it is not an object with a list of "{name}": {value!r:.60}')
    check_keepable(value[name])
    return value


def object_of(reply: str) -> Value:
    """The JSON object of a reply, which may stand in a code fence; ValueError for anything else."""
    text = reply.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json")
    value = json.loads(text, parse_constant=_finite, parse_float=_finite, object_pairs_hook=_once)
    if not isinstance(value, dict):
        raise ValueError(f"it is not an object: {value!r:.60}")
    return value


def _once(pairs: list[tuple[str, Any]]) -> Value:
    """An object whose keys are there once: of two values, nobody knows which one is meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r:.60} is there twice")
    return found


def actions_to_save(reply: str) -> list[object]:
    """The list of actions; empty if the reply says that nothing needs saving."""
    return [] if reply.strip().casefold() == SILENT_REPLY.casefold() else actions_in(reply)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the object has {text}, which is too large or no number")
    return number


def with_whole_ids(actions: Sequence[Any], shown: Mapping[str, str]) -> list[Any]:
    """The actions, with the memories' whole ids in place of those that the prompt showed.

    What was not shown stays as it is, and no memory has such an id.
    """

    def whole(value: Any) -> Any:
        if isinstance(value, list):
            return [whole(each) for each in value]
        return shown.get(value, value) if isinstance(value, str) else value

    result = []
    for action in actions:
        if isinstance(action, Action) and isinstance(action.arguments, Mapping):
            named = [each for each in NAMES_OF_MEMORIES if each in action.arguments]
            if named:
                changed = {name: whole(action.arguments[name]) for name in named}
                action = action._replace(arguments={**action.arguments, **changed})
        result.append(action)
    return result


def say_in(shown: Mapping[str, str]) -> Callable[[str], list[object]]:
    """Reads what an agent says; ValueError if the reply has no text ``say``."""

    def read(reply: str) -> list[object]:
        value = object_of(reply)
        text, named = value.get("say"), value.get("memory_id")
        if not isinstance(text, str) or not isinstance(named, str | None):
            raise ValueError(f'"say" is no text, or "memory_id" no id: {value!r:.60}')
        check_keepable([text, named])
        return [Say(text, shown.get(named, named) if named else None)]

    return read


def asks_in(actions: Sequence[object]) -> list[Ask]:
    """The questions among actions; a question that lacks a part becomes one that is refused."""
    found = []
    for action in actions:
        if isinstance(action, Action) and action.name in (*ASK_ACTIONS, *GROUP_ASKS):
            arguments = action.arguments
            query: Any = arguments.get("query", "")
            is_cold = action.name == "recall_memory"
            of_groups = action.name in GROUP_ASKS
            limit, session = arguments.get("limit"), arguments.get("session")
            found.append(Ask(query, limit, is_cold, of_groups, session))
    return found


def questions_in(most: int) -> Callable[[str], list[object]]:
    """Reads the questions of a reply; ValueError if it has none."""

    def read(reply: str) -> list[object]:
        found = _list_in(reply, "questions")
        if not found or not all(isinstance(each, str) and each.strip() for each in found):
            raise ValueError(f'"questions" is not a list of texts: {found!r:.60}')
        return found[:most]

    return read


def insights_in(memories: Sequence[Memory], most: int) -> Callable[[str], list[object]]:
    """Reads the insights of a reply; ValueError if one of them names no statement."""

    def read(reply: str) -> list[object]:
        return [_insight(each, memories) for each in _list_in(reply, "insights")[:most]]

    return read


def ratings_in(count: int) -> Callable[[str], list[object]]:
    """Reads the ratings of a reply; ValueError unless there are as many as texts."""

    def read(reply: str) -> list[object]:
        found = _list_in(reply, "importance")
        if len(found) != count:
            raise ValueError(f'"importance" has {len(found)} numbers, not {count}')
        return [check_importance(each) for each in found]

    return read


def _insight(value: object, memories: Sequence[Memory]) -> Insight:
    own: Value = value if isinstance(value, dict) else {}
    text, numbers = own.get("insight"), own.get("because_of")
    if not isinstance(text, str) or not text.strip() or not isinstance(numbers, list):
        raise ValueError(f"an insight has a text and statements: {value!r:.60}")
    places = {each for each in numbers if type(each) is int}
    if not places or len(places) < len(numbers) or not places <= set(range(1, len(memories) + 1)):
        raise ValueError(f"statements have the numbers 1 to {len(memories)}: {numbers!r:.60}")
    evidence = [memories[place - 1].id for place in sorted(places)][:MOST_EVIDENCE]
    given = own.get("importance")
    return Insight(text, evidence, None if given is None else check_importance(given))


def _list_in(reply: str, name: str) -> list[Any]:
    return list(_with_list(reply, name)[name])
