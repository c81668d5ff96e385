"""What callers give for new memories. A call for one is a batch of one."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from ..errors import InvalidContent, InvalidInput, InvalidMetadata
from .metadata import KeptMetadata, SharedMetadata, check_metadata, value_text
from .records import KEY, KINDS, SESSION, VALUE, session_of
from .requests import (
    check_agent_id,
    check_content,
    check_iterable,
    check_kind,
    check_session,
    check_tags,
    check_text,
    check_whole,
    plain_scalar,
)
from .sources import EVIDENCE, IMPORTANCE, check_importance, evidence_of, evidence_text
from .tiers import TEMPERATURE_NAMES, Temperature, Tier, parse_temperature, parse_tier


class Options(NamedTuple):
    """The optional properties of a new memory, checked."""

    kind: str = "fact"
    tags: tuple[str, ...] = ()
    temperature: Temperature | None = None
    """None: the settings choose the temperature."""
    ttl: int | None = None
    expires_tick: int | None = None
    keeps_tier: bool = False
    """Whether the memory has a key and no tier was given: it has the tier that its former has."""
    evidence: tuple[str, ...] = ()
    """The memories that it is drawn from, where they are given as an option: the agent must have
    them. The metadata has their ids, too; if nothing but the metadata has, nobody checks them.
    """


PLAIN_OPTIONS = Options()
_LONGEST_KEY = 256

NewMemory = tuple[str, str, Tier, KeptMetadata | None, Options]
"""Agent, text, tier, metadata and options, checked."""


class NewMemories(NamedTuple):
    """Checked new memories, column by column."""

    agents: Sequence[str]
    contents: Sequence[str]
    tiers: Sequence[Tier]
    metadata: Sequence[KeptMetadata | None]
    options: Sequence[Options]

    @classmethod
    def of(cls, memories: Iterable[NewMemory]) -> Self:
        """The columns of these memories."""
        columns = list(zip(*memories, strict=True))
        return cls(*columns) if columns else cls((), (), (), (), ())


def check_new(item: object, most_bytes: int, shared: SharedMetadata | None = None) -> NewMemory:
    """Agent, text, tier, metadata and options from a tuple. The last three may be missing.

    With ``shared``, memories with equal metadata share one object.
    """
    if not isinstance(item, tuple | list) or not 2 <= len(item) <= 5:
        raise InvalidInput(
            "a new memory is a tuple (agent_id, content), (agent_id, content, tier), "
            "(agent_id, content, tier, metadata) or (agent_id, content, tier, metadata, options); "
            f"got {item!r:.80}"
        )
    agent, content = check_agent_id(item[0]), check_content(item[1], most_bytes)
    given = item[2] if len(item) > 2 else None
    tier = Tier.NORMAL if given is None else given
    if type(tier) is not Tier:
        tier = parse_tier(tier)
    if len(item) < 4:
        return agent, content, tier, None, PLAIN_OPTIONS
    options, metadata = _check_options(item[4] if len(item) > 4 else None, item[3])
    kept = None
    if metadata is not None:
        kept = check_metadata(metadata) if shared is None else shared.check(metadata)
    if kept is not None and KEY in kept:
        check_key(kept[KEY])
        options = options._replace(keeps_tier=given is None)
    return agent, content, tier, kept, options


def check_all_new(
    items: Iterable[object], most_bytes: int, shared: SharedMetadata | None = None
) -> NewMemories:
    """A batch of new memories; each item is what :func:`check_new` takes."""
    return NewMemories.of([check_new(item, most_bytes, shared) for item in check_iterable(items)])


def _check_options(options: object, metadata: object) -> tuple[Options, object]:
    """The options of a mapping such as ``{"kind": "decision", "ttl": 20}``.

    With them comes the metadata, which keeps some of the options.
    """
    if type(options) is Options:
        return options, metadata
    if options is None:
        return PLAIN_OPTIONS, metadata
    if not isinstance(options, Mapping):
        raise InvalidInput(f"a memory's options are a mapping; got {options!r:.80}")
    unknown = [name for name in options if name not in _NAMES]
    if unknown:
        raise InvalidInput(
            f"{unknown[0]!r:.40} is not an option of a memory", hint=f"use {', '.join(_NAMES)}"
        )
    given = {name: value for name, value in options.items() if value is not None}
    kind, tags = given.pop("kind", "fact"), given.pop("tags", ())
    if type(kind) is not str or kind != "fact":
        kind = check_kind(kind)
    if type(tags) is not tuple or tags:
        tags = check_tags(tags)
    if not given:
        return Options(kind, tags), metadata
    if "ttl" in given and "expires_tick" in given:
        raise InvalidInput("a memory has a ttl or an expires_tick, not both", hint="leave one out")
    checked: dict[str, Any] = {}
    kept: dict[str, object] = {}
    for name, value in given.items():
        field = FIELDS[name]
        right = value if field.check is None else field.check(value)
        if field.kept_as is None:
            checked[name] = right
            continue
        kept[field.kept_as] = right
        if isinstance(metadata, Mapping) and metadata.get(field.kept_as, right) != right:
            raise InvalidMetadata(
                f"metadata says another {field.kept_as} than the option {name}",
                hint="give it once",
            )
    if "evidence" in given:
        checked["evidence"] = evidence_of(kept)
    if kept and (metadata is None or isinstance(metadata, Mapping)):
        metadata = {**(metadata or {}), **kept}  # other metadata is refused later
    return Options(kind, tags, **checked), metadata


def in_session(item: tuple[object, ...], session: object) -> tuple[object, ...]:
    """The tuple of a new memory with a session among its options, or :class:`InvalidInput`."""
    name = check_session(session)
    if len(item) > 5:  # it is refused with all others of another form
        return item
    whole = (*item, *(None,) * (5 - len(item)))
    given, options = whole[:4], whole[4]
    if options is None:
        return (*given, {SESSION: name})
    if not isinstance(options, Mapping):
        return item
    if session_of(options) not in (None, name):
        raise InvalidInput(
            f"a memory of the session {name!r:.80} says that it is part of another",
            hint="give the session once",
        )
    return (*given, {**options, SESSION: name})


def check_key(key: object) -> str:
    """``key`` itself if a memory can be stored under it, or :class:`InvalidInput`."""
    if isinstance(key, str) and key.strip() and len(key) <= _LONGEST_KEY:
        return check_text(key, "key")
    raise InvalidInput(
        f"a key is a text of 1 to {_LONGEST_KEY} characters, not {key!r:.40}",
        hint="use a name such as diet",
    )


def action_text(action_type: object, details: object, success: object) -> str:
    """The text of the memory of an action, such as ``trade failed: no coins``."""
    if not isinstance(action_type, str) or not action_type.strip():
        raise InvalidContent(f"an action needs a type, as text; got {action_type!r}")
    if not isinstance(success, bool):
        raise InvalidInput(f"success is True or False, not {success!r:.40}")
    if isinstance(details, Mapping):
        try:
            details = _details(dict(details))
        except (TypeError, ValueError) as error:
            raise InvalidContent(f"an action's details must be JSON: {error}") from None
    elif not isinstance(details, str):
        raise InvalidContent(f"an action's details are text or a mapping, not {details!r:.40}")
    text = f"{action_type} {'succeeded' if success else 'failed'}"
    return f"{text}: {details}" if details else text


def _not_json(value: object) -> object:
    """For a value that JSON lacks: the plain one, if it is a scalar of NumPy."""
    plain = plain_scalar(value)
    if plain is value:
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
    return plain


_details = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, allow_nan=False, default=_not_json
).encode


# The optional fields of a new memory


class Field(NamedTuple):
    """An optional field of a new memory.

    From it are made: the check of what callers give, the JSON schema of the operations, the options
    of ``tiermem add``, and the memory action of an agent. :meth:`AgentMemory.add` names the fields
    in its signature, a world's :class:`Remark`, :class:`Observation` and :class:`Outcome` those
    ``of_worlds``; a test compares them.
    """

    name: str
    schema: Mapping[str, Any]
    """What fits, as JSON Schema with a description."""
    check: Callable[[Any], Any] | None = None
    """The value as it is kept, or an error; None if the check of the metadata is enough."""
    kept_as: str | None = None
    """Its name in the metadata; None if the memory's record has a place for it."""
    words: str = ""
    """How the list of actions that a language model reads says it; blank if it does not."""
    option: str = ""
    """How the command line says it, where that is not the schema's description."""
    metavar: str | None = None
    """What stands for its value on the command line."""
    of_worlds: bool = False
    """Whether what a world gives its agents has it, too."""
    names_memories: bool = False
    """Whether its values are ids of the agent's memories."""


MEMORY_ID: Mapping[str, Any] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 64,
    "description": "The id of one of the agent's memories.",
}
_NAME = {"type": "string", "minLength": 1, "maxLength": 256}


def _described(schema: Mapping[str, Any], description: str) -> Mapping[str, Any]:
    return {**schema, "description": description}


FIELDS: Mapping[str, Field] = MappingProxyType(
    {
        each.name: each
        for each in (
            Field(
                "kind",
                {
                    "type": "string",
                    "enum": list(KINDS),
                    "description": "What sort of memory it is.",
                },
                check_kind,
                words="kind (such as fact, decision or preference)",
                option="Such as fact, decision or preference.",
                of_worlds=True,
            ),
            Field(
                "tags",
                {
                    "type": "array",
                    "items": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 64,
                        "pattern": r"^[^\s,]([^,]*[^\s,])?$",
                    },
                    "maxItems": 32,
                    "description": "Labels of your own, without commas and without blanks around.",
                },
                check_tags,
                words="tags (a list)",
                option="A label of your own",
                of_worlds=True,
            ),
            Field(
                "ttl",
                {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 2**53,
                    "description": "Ticks after which nobody sees it any more; memory_status says "
                    "how many there are in a day.",
                },
                partial(check_whole, "ttl", least=1),
                words="ttl (ticks)",
                option="Ticks after which it expires.",
                of_worlds=True,
            ),
            Field("expires_tick", {}, partial(check_whole, "expires_tick", least=1)),
            Field(
                "temperature",
                {
                    "type": "string",
                    "enum": list(TEMPERATURE_NAMES.values()),
                    "description": "How active it is: hot is always in view, warm is searched, "
                    "cold only if asked.",
                },
                parse_temperature,
                words="temperature (hot, warm or cold)",
                option="hot, warm or cold; without it the settings decide.",
                of_worlds=True,
            ),
            Field(
                "session",
                _described(_NAME, "The conversation or episode it is part of."),
                kept_as=SESSION,
                words="session",
                metavar="NAME",
                of_worlds=True,
            ),
            Field(
                "speaker",
                _described(_NAME, "Who said it."),
                kept_as="speaker",
                words="speaker",
                metavar="NAME",
                of_worlds=True,
            ),
            Field(
                "key",
                _described(
                    _NAME,
                    "What it is about, such as diet: it supersedes the memory that has this key "
                    "now, and has its tier unless one is given.",
                ),
                check_key,
                KEY,
                words="key (the text replaces the one that you stored under this key before)",
                option="What it is about: it supersedes the memory of this key.",
                metavar="NAME",
            ),
            Field(
                "value",
                {
                    "type": "object",
                    "description": "JSON to keep beside the text, nested up to 64 deep, at most "
                    "1 MiB. No search looks into it.",
                },
                value_text,
                VALUE,
                words="value (JSON to keep beside the text)",
                option="Nested JSON to keep beside the text.",
                metavar="JSON",
            ),
            Field(
                "importance",
                {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 10,
                    "description": "From 1, mundane, to 10, poignant.",
                },
                check_importance,
                IMPORTANCE,
                words="importance (1 to 10)",
                option="From 1, mundane, to 10; else by the tier.",
            ),
            Field(
                "supersedes",
                _described(MEMORY_ID, "The id of a memory that it replaces."),
                words="supersedes or contradicts (the memory_id of one that it replaces or "
                "contradicts)",
                option="The memory that it supersedes.",
                metavar="ID",
                names_memories=True,
            ),
            Field(
                "contradicts",
                _described(MEMORY_ID, "The id of one that it contradicts."),
                option="A memory that it contradicts.",
                metavar="ID",
                names_memories=True,
            ),
            Field(
                "evidence",
                {
                    "type": "array",
                    "items": MEMORY_ID,
                    "minItems": 1,
                    "maxItems": 32,
                    "description": "What an insight is drawn from.",
                },
                evidence_text,
                EVIDENCE,
                option="A memory that an insight is drawn from",
                metavar="ID",
                names_memories=True,
            ),
        )
    }
)
"""The optional fields, by name. Of ``supersedes`` and ``contradicts``, only a single add knows."""

LINKS = ("supersedes", "contradicts")
WORLD_FIELDS = tuple(name for name, field in FIELDS.items() if field.of_worlds)
"""The names of the fields that a world may give."""
_NAMES = tuple(name for name in FIELDS if name not in LINKS)
