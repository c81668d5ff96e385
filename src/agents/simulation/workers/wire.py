"""What driver, workers and the tick's log tell each other: JSON, with defaults left out.

An observation, an outcome, a remark or a question is a list of its text and of its other fields,
if it has any that are not the default. Nothing is unpickled: a log may come from somebody else.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from itertools import accumulate, pairwise
from marshal import dumps
from typing import Any, NoReturn, TypeVar

import orjson

from ...errors import SimulationError
from ...memory.requests import FIELDS, WORLD_FIELDS
from ...memory.sources import Telling
from ...telling.groups import GroupChange
from ..protocols import Action, Ask, Conversation, Observation, Outcome, Persona, Remark
from ..tick.act import Deed, Speech, Wish
from ..tick.decide import OF_LOOP, Decided
from ..tick.decision_log import REFUSAL
from ..tick.user_code import check_keys

_EXACT = b" "
"""Begins JSON that orjson can't read: it takes whole numbers beyond 64 bits for floats."""
_OWN = -1
"""The result of an action on the agent's own memory, which is not done yet."""
_OF_GROUP = 1
"""The last value of a wish, by which it is longer than a speech."""
_AS_GIVEN = ("facts", "metadata", *[name for name in WORLD_FIELDS if FIELDS[name].kept_as])
"""Fields in which an enum is refused: the engine local would not take its value for it."""
_SCALARS = {str, int, float, bool, type(None)}
_LISTS, _NAMED = (list, tuple), (str, int)
_PLAIN: dict[type, tuple[Any, ...]] = {
    kind: kind("") for kind in (Observation, Outcome, Remark, Ask)
}
_Sparse = TypeVar("_Sparse", Observation, Outcome, Remark, Ask)


def encode(value: Any, what: str) -> bytes:
    """The value as JSON; :class:`SimulationError`, which names ``what``, if JSON can't hold it.

    What is read again equals the value, but tuples are lists.
    """
    try:
        try:
            dumps(value)  # marshal takes built-in types only, in less time than a look of our own
        except ValueError:  # orjson would write a date or an enum as text
            value = _built_in(value)
        return _written(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise SimulationError(
            f"{what} gave what no other process can be told: {error}",
            hint="facts and arguments are JSON values; the engine local also takes others",
        ) from error


def _written(value: object) -> bytes:
    mark = b""
    try:
        data = orjson.dumps(value)
        if b"null" not in data:  # orjson writes null for a number that is not finite
            return data
    except TypeError:  # half characters, numbers beyond 64 bits, or what JSON can't hold
        mark = _EXACT
    check_keys(value)
    return mark + json.dumps(value, default=_refuse, separators=(",", ":")).encode()


def decode(data: bytes) -> Any:
    """The value that :func:`encode` wrote; ValueError for other bytes."""
    if data[:1] != _EXACT:
        with suppress(ValueError):
            return orjson.loads(data)
    return json.loads(data)


def packed(head: object, parts: Sequence[bytes], what: str = "a message") -> bytes:
    """A message: a JSON value, then parts that are JSON already."""
    data = encode([head, list(map(len, parts))], what)
    return b"".join([len(data).to_bytes(8, "little"), data, *parts])


def unpacked(data: bytes) -> tuple[Any, list[bytes]]:
    """The value and the parts of :func:`packed`."""
    start = 8 + int.from_bytes(data[:8], "little")
    head, sizes = decode(data[8:start])
    ends = list(accumulate(sizes, initial=start))
    return head, [data[one:other] for one, other in pairwise(ends)]


def _built_in(value: Any) -> Any:
    """The value with built-in types only; TypeError if its class means more than they can say."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Enum):
        _refuse(value)
    if isinstance(value, _LISTS):
        return list(map(_built_in, value))
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int | float):
        return (int if isinstance(value, int) else float)(value)
    if isinstance(value, Mapping):
        return {_built_in(key): _built_in(own) for key, own in value.items()}
    return _refuse(value)


def _refuse(value: object) -> NoReturn:
    raise TypeError(f"{value!r:.60} is not a JSON value")


def plain_seen(seen: Iterable[Observation]) -> list[list[Any]]:
    """What agents see, before the loop's own fields are set."""
    return [_sparse(each) for each in seen]


def seen_of(plain: Iterable[Sequence[Any]]) -> list[Observation]:
    """The observations of :func:`plain_seen`."""
    return [_whole(Observation, each) for each in plain]


def plain_talk(talk: Conversation) -> list[Any]:
    """A conversation, as one who speaks heard it."""
    return list(talk)


def talk_of(plain: Sequence[Any]) -> Conversation:
    """The conversation of :func:`plain_talk`."""
    talk = Conversation(*plain)
    return talk._replace(said=[(speaker, text) for speaker, text in talk.said])


def plain_asks(decided: Decided, agents: Sequence[str]) -> dict[str, list[list[Any]]]:
    """The questions of each agent that asked, round by round."""
    result: dict[str, list[list[Any]]] = {}
    for number, round_ in enumerate(decided.asked, 1):
        for agent, answer in round_:
            rounds = result.setdefault(agent, [])
            while len(rounds) < number:
                rounds.append([])
            rounds[-1].append(_sparse(answer.ask))
    return result


def asks_of(plain: Mapping[str, Iterable[Iterable[Any]]]) -> dict[str, list[list[Ask]]]:
    """The questions of :func:`plain_asks`."""
    return {
        agent: [[_whole(Ask, ask) for ask in round_] for round_ in rounds]
        for agent, rounds in plain.items()
    }


def plain_actions(read: Iterable[Sequence[Action | Deed | Speech | Wish]]) -> list[list[Any]]:
    """What each agent wants to do; an action that was refused when read is its reason."""
    return [list(map(_plain_action, own)) for own in read]


def _plain_action(read: Action | Deed | Speech | Wish) -> list[Any]:
    """One value for a refusal, two for an action, five for a speech, six for a wish.

    An action with a reason has both, its name and the reason, as its first value.
    """
    if isinstance(read, Deed):
        return [read.outcome.text if read.outcome else ""]
    name, arguments, reason = read if isinstance(read, Action) else read.action
    first = name if reason is None else [name, reason]
    action = [first, arguments if type(arguments) is dict else dict(arguments)]
    if isinstance(read, Speech):
        return [*action, *read[1:]]
    if isinstance(read, Wish):
        change = [] if read.change is None else [*read.change]
        return [*action, change, read.is_member, read.refusal, _OF_GROUP]
    return action


def told_of(plain: Iterable[Sequence[Any]]) -> list[Telling]:
    """What agents were told, from JSON."""
    return list(map(Telling.of, plain))


def actions_of(plain: Iterable[Sequence[Any]]) -> list[Action | Deed | Speech | Wish]:
    """The actions of one agent from :func:`plain_actions`."""
    return list(map(_action, plain))


def _action(plain: Sequence[Any]) -> Action | Deed | Speech | Wish:
    if len(plain) == 1:
        return Deed(None, REFUSAL, Outcome(plain[0], success=False))
    action = _of_plain(plain)
    if len(plain) == 2:
        return action
    if len(plain) == 6:
        change, is_member, why, _ = plain[2:]
        return Wish(action, GroupChange(*change) if change else None, is_member, why)
    to, said, why = plain[2:]
    return Speech(action, to, said and Telling.of(said), why)


def _of_plain(plain: Sequence[Any]) -> Action:
    first, arguments = plain[:2]
    if isinstance(first, str):
        return Action(first, arguments)
    name, reason = first
    return Action(name, arguments, reason)


def plain_deeds(deeds: Iterable[Sequence[Deed]]) -> list[list[Any]]:
    """What came of the actions of each agent, without the actions."""
    return [
        [
            [_OWN if deed.result is None else deed.result]
            + ([] if deed.outcome is None else _sparse(deed.outcome))
            for deed in own
        ]
        for own in deeds
    ]


def deeds_of(actions: Iterable[Sequence[Any]], plain: Iterable[Sequence[Any]]) -> list[list[Deed]]:
    """The deeds of each agent, from :func:`plain_actions` and :func:`plain_deeds`."""
    return [
        [
            Deed(
                _of_plain(action) if len(action) > 1 else None,
                None if result == _OWN else result,
                _whole(Outcome, outcome) if outcome else None,
            )
            for action, (result, *outcome) in zip(did, came, strict=True)
        ]
        for did, came in zip(actions, plain, strict=True)
    ]


def _sparse(value: Observation | Outcome | Remark | Ask) -> list[Any]:
    """The first field, and by name the others that the world set and that are not the default."""
    size = OF_LOOP if isinstance(value, Observation) else None
    fields: tuple[Any, ...] = value
    plain = _PLAIN.get(type(value)) or type(value)(value[0])
    more = {
        name: [_sparse(remark) for remark in content]
        if name == "heard"
        else [content[0], dict(content[1])]
        if name == "persona"
        else content
        if type(content) in _SCALARS or name in _AS_GIVEN
        else _bare(content)
        for name, content, default in zip(
            value._fields[1:size], fields[1:size], plain[1:], strict=False
        )
        if content is not default
    }
    first = value[0] if type(value[0]) is str else _bare(value[0])
    return [first, more] if more else [first]


def _bare(value: Any) -> Any:
    """A text or a number that an enum names: ``Tier.LOW`` is 4, for every engine."""
    if isinstance(value, _LISTS):
        return [each if type(each) is str else _bare(each) for each in value]
    if isinstance(value, Enum) and isinstance(value, _NAMED):
        return str.__str__(value) if isinstance(value, str) else int(value)
    return value


def _whole(kind: type[_Sparse], plain: Sequence[Any]) -> _Sparse:
    if len(plain) == 1:
        return kind(plain[0])
    first, more = plain
    if "heard" in more:
        more["heard"] = [_whole(Remark, each) for each in more["heard"]]
    if "persona" in more:
        more["persona"] = Persona(*more["persona"])
    return kind(first, **more)
