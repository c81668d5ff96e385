"""What callers give, checked: texts, numbers, metadata, new memories; and the records they get."""

import functools
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
from operator import add
from types import MappingProxyType
from typing import Any, NamedTuple, Self, final

from ..errors import InvalidAgentId, InvalidContent, InvalidInput, InvalidMetadata
from .records import (
    KEY,
    KINDS,
    NEVER,
    NEW_RELEVANCE,
    NO_METADATA,
    PLAIN,
    SESSION,
    UNUSED,
    VALUE,
    Memory,
    Metadata,
    Scalar,
    sequence_digits,
    session_of,
    shown,
)
from .sources import EVIDENCE, IMPORTANCE, SOURCE, check_importance, evidence_of, evidence_text
from .tiers import TEMPERATURE_NAMES, Retention, Temperature, Tier, parse_temperature, parse_tier

_AGENT_ID = re.compile(r"[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,127}")
_MOST_QUERY = 1_000_000
_MOST = 2**62  # leaves room to add in 64 bits
_MOST_TAGS, _LONGEST_TAG = 32, 64


# Texts, ids and numbers


def check_text(text: object, what: str) -> str:
    """``text`` itself if every byte of it can be kept, or :class:`InvalidContent`."""
    if type(text) is str and text.isascii() and "\0" not in text:  # most texts are like this
        return text
    if not isinstance(text, str):
        raise InvalidContent(f"a {what} is text, not {type(text).__name__}")
    if type(text) is not str:  # the journal returns no subclass of str
        text = str.__str__(text)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidContent(
                f"a {what} can't hold the lone surrogate {text[error.start]!a} "
                f"(character {error.start})"
            ) from None
    if "\0" in text:
        raise InvalidContent(f"a {what} can't hold a NUL (character {text.index(chr(0))})")
    return text


def check_agent_id(agent_id: object) -> str:
    """``agent_id`` itself, or :class:`InvalidAgentId`.

    The alphabet has no character with a meaning for mem0's filters, a file system or a terminal:
    ``*`` would match every agent in mem0.
    """
    # Most ids are plain identifiers, which Python itself tells faster than a pattern does.
    if (
        type(agent_id) is str
        and len(agent_id) <= 128
        and agent_id.isascii()
        and agent_id.isidentifier()
    ):
        return agent_id
    if isinstance(agent_id, str) and _AGENT_ID.fullmatch(agent_id):
        return str.__str__(agent_id)  # never a subclass of str
    shown = repr(agent_id) if len(repr(agent_id)) <= 160 else repr(agent_id)[:150] + "…"
    raise InvalidAgentId(
        f"{shown} is not an agent id",
        hint="use 1 to 128 of the characters A–Z a–z 0–9 . _ - @, not starting with a dot",
    )


def is_of_agent(owner: str) -> bool:
    """Whether what is stored under this id is an agent's.

    An id that begins with a dot is no agent's. What is stored under it counts with no agent.
    """
    return owner[:1] != "."


def check_content(content: object, max_bytes: int) -> str:
    """``content`` itself if a memory can have this text, or :class:`InvalidContent`."""
    text = check_text(content, "memory")
    if not text or text.isspace():
        raise InvalidContent("a memory needs some text; this one is blank")
    # A character is at most 4 bytes, so a short text fits without a look at its bytes.
    if len(text) * 4 > max_bytes:
        size = len(text.encode())
        if size > max_bytes:
            raise InvalidContent(
                f"a memory of {size:,} bytes is over memory.max_content_bytes ({max_bytes:,})"
            )
    return text


def check_query(query: object) -> str:
    """``query`` itself, blank or not, or :class:`InvalidContent`."""
    text = check_text(query, "query")
    if len(text) > _MOST_QUERY:
        raise InvalidContent(f"a query of {len(text):,} characters is over {_MOST_QUERY:,}")
    return text


def check_whole(name: str, value: object, least: int = 0, most: int = _MOST) -> int:
    """``value`` itself if it is a whole number from ``least`` to ``most``, or InvalidInput."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        if value <= most:
            return value
        raise InvalidInput(f"{name} {value!r:.40} is too large", hint=f"it may be {most} at most")
    raise InvalidInput(f"{name} {value!r:.40} is not a whole number from {least} on")


def check_kind(kind: object) -> str:
    """``kind`` itself, or :class:`InvalidInput`."""
    if isinstance(kind, str) and kind in KINDS:
        return str.__str__(kind)
    raise InvalidInput(
        f"{kind!r:.60} is not a kind of memory", hint=f"use one of {', '.join(KINDS)}"
    )


def check_tags(tags: object) -> tuple[str, ...]:
    """The tags in alphabetical order, each once; or :class:`InvalidInput`."""
    if isinstance(tags, str | bytes | Mapping) or not isinstance(tags, Iterable):
        raise InvalidInput(f"tags are a list of texts; got {tags!r:.60}")
    found = set()
    for tag in tags:
        try:
            text = check_text(tag, "tag")
        except InvalidContent as error:
            raise InvalidInput(error.why, hint=error.hint) from None
        if not text.strip() or text != text.strip() or len(text) > _LONGEST_TAG or "," in text:
            raise InvalidInput(
                f"{text!r:.80} is not a tag",
                hint=f"use 1 to {_LONGEST_TAG} characters without commas and without blanks around",
            )
        found.add(text)
    if len(found) > _MOST_TAGS:
        raise InvalidInput(
            f"a memory has at most {_MOST_TAGS} tags; got {len(found)}", hint="leave some out"
        )
    return tuple(sorted(found))


def plain_scalar(value: Any) -> Any:
    """The plain value of a NumPy number, truth value or text; any other value as it is."""
    import numpy as np  # whoever has such a value has imported it

    if not isinstance(value, np.generic) or isinstance(value, np.datetime64 | np.timedelta64):
        return value
    plain = value.item()
    return plain if type(plain) in (str, bool, int, float) else value


# Searches


def check_iterable(items: Iterable[object]) -> Iterable[object]:
    """``items`` itself if it is a batch; a text or a mapping is :class:`InvalidInput`."""
    if isinstance(items, Iterable) and not isinstance(items, str | bytes | Mapping):
        return items
    raise InvalidInput(f"a batch is a list of tuples; got {items!r:.80}")


def check_searches(requests: Iterable[object]) -> tuple[list[str], list[str]]:
    """Agents and queries from pairs."""
    agents, queries = list[str](), list[str]()
    for request in check_iterable(requests):
        if not isinstance(request, (tuple, list)) or len(request) != 2:
            raise InvalidInput(f"a search is a pair (agent_id, query); got {request!r:.80}")
        agents.append(check_agent_id(request[0]))
        queries.append(check_query(request[1]))
    return agents, queries


def check_session(session: object) -> str:
    """The name of a session, or :class:`InvalidInput`; 7 and "7" name the same one."""
    plain = plain_scalar(session)
    if isinstance(plain, str | int) and not isinstance(plain, bool):
        try:
            return check_text(plain if isinstance(plain, str) else str(plain), "session")
        except InvalidContent as error:
            raise InvalidInput(error.why, hint=error.hint) from None
        except ValueError:  # Python writes no number with thousands of digits
            raise InvalidInput("a session is no number of thousands of digits") from None
    raise InvalidInput(
        f"a session is a text or a whole number, not {session!r:.40}",
        hint="use the name that its memories were stored with",
    )


def optional_session(session: object) -> str | None:
    """The name of a session; None where none is given."""
    return None if session is None else check_session(session)


# What a caller keeps beside a memory: metadata, which is flat JSON, and one nested JSON value

_MOST_BYTES = 1 << 20
_DEEPEST = 64
_LONGEST_NUMBER = 1024  # bits; Python refuses to read numbers that are much longer
_sorted_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def value_text(value: object) -> str:
    """The JSON text of a value, with sorted keys, or :class:`InvalidInput`."""
    text = _sorted_json(_checked_value(value, "value", _DEEPEST))
    return _bounded(text)


def check_value_text(text: object) -> None:
    """Raise :class:`InvalidInput` unless ``text`` is what :func:`value_text` gives for a value."""
    if not isinstance(text, str):
        raise InvalidInput(f"a memory's value is kept as JSON text, not {type(text).__name__}")
    try:
        value = json.loads(_bounded(text))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"a memory's value is not JSON: {error!s:.80}") from None
    if value_text(value) != text:
        raise InvalidInput(
            "a memory's value is JSON text with sorted keys and no spaces",
            hint="give the value itself as `value`",
        )


def _bounded(text: str) -> str:
    size = len(text.encode())
    if size > _MOST_BYTES:
        raise InvalidInput(
            f"a memory's value of {size:,} bytes is over the limit of {_MOST_BYTES:,}",
            hint="keep it in a file, and the file's name in the memory",
        )
    return text


def _checked_value(value: object, place: str, depth: int) -> object:
    """The value, lists and scalars plain, or :class:`InvalidInput` that names the wrong place."""
    if value is None or type(value) is bool:
        return value
    if type(value) is int and value.bit_length() <= _LONGEST_NUMBER:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, str):
        return _text(value, place)
    if not depth:
        raise InvalidInput(f"a memory's value is nested more than {_DEEPEST} deep")
    if isinstance(value, list | tuple):
        return [_checked_value(each, f"{place}[{at}]", depth - 1) for at, each in enumerate(value)]
    if isinstance(value, dict):
        wrong = next((key for key in value if type(key) is not str), None)
        if wrong is not None:
            raise InvalidInput(f"{place:.80}: keys are text, not {type(wrong).__name__}")
        return {
            _text(key, place): _checked_value(each, f"{place}.{key:.40}", depth - 1)
            for key, each in value.items()
        }
    plain = plain_scalar(value)
    if plain is not value:
        return _checked_value(plain, place, depth)
    raise InvalidInput(
        f"{place:.80} is not JSON that can be kept: {shown(value)}",
        hint="use text, finite numbers, true, false, null, lists and mappings",
    )


def _text(text: str, place: str) -> str:
    try:
        return check_text(text, f"{place:.80}")
    except InvalidContent as error:
        raise InvalidInput(error.why, hint=error.hint) from None


# mem0 and TierMem use these keys themselves: metadata with them could change a memory's agent or
# tier.
RESERVED_METADATA_KEYS = frozenset(
    {
        "id", "memory", "data", "hash", "score", "metadata", "text_lemmatized",
        "created_at", "updated_at", "expiration_date", "attributed_to",
        "user_id", "agent_id", "run_id", "actor_id", "role",
        "tier", "tier_name", "created_tick", "tier_tick", "sequence", "tiermem_bank",
        "temperature", "retention", "kind", "tags",
        "expires_tick", "access_count", "last_access_tick", "relevance", SOURCE,
    }
)  # fmt: skip

_MAX_METADATA_BYTES = 16_384

_MOST_SHARED, _MOST_ENTRIES, _LONGEST_SHARED = 4096, 6, 100


_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class KeptMetadata(dict[str, Scalar]):
    """Checked metadata with its JSON text. It never changes: many memories may share one object."""

    __slots__ = ("json",)

    def __init__(self, values: Mapping[str, Scalar]) -> None:
        super().__init__(values)
        self.json = _json(values)


def check_metadata(metadata: object) -> KeptMetadata | None:
    """The metadata with sorted keys, None if it is empty, or :class:`InvalidMetadata`."""
    if metadata is None:
        return None
    if type(metadata) is not dict and not isinstance(metadata, Mapping):
        raise InvalidMetadata(f"metadata is a mapping, not {type(metadata).__name__}")
    if not metadata:
        return None
    return _checked(metadata, KeptMetadata)


@final
class SharedMetadata:
    """Gives memories with equal small metadata one shared object. A bank owns one.

    Thousands of memories may have the same few values: the values are checked and kept once.
    """

    __slots__ = ("_checked", "_kept")

    def __init__(self) -> None:
        remember = functools.lru_cache(maxsize=_MOST_SHARED, typed=True)
        kept = remember(lambda *flat: KeptMetadata(_unflat(flat)))
        self._kept = kept
        self._checked = remember(lambda *flat: _checked(_unflat(flat), self.keep))

    def check(self, metadata: object) -> KeptMetadata | None:
        """The result or the error of :func:`check_metadata`."""
        flat = _flat(metadata) if type(metadata) is dict and metadata else None
        return check_metadata(metadata) if flat is None else self._checked(*flat)

    def keep(self, metadata: Mapping[str, Scalar]) -> KeptMetadata:
        """Metadata that was checked before it was stored."""
        flat = _flat(metadata)
        return KeptMetadata(metadata) if flat is None else self._kept(*flat)


def _flat(metadata: Mapping[str, Scalar]) -> list[Scalar] | None:
    """Keys and values in one list if they are few and short; else None.

    A float gives None too: 0.0 and -0.0 are equal and would share one object.
    """
    if len(metadata) > _MOST_ENTRIES:
        return None
    flat: list[Scalar] = []
    for key, value in metadata.items():
        kind = type(value)
        if type(key) is not str or len(key) > _LONGEST_SHARED:
            return None
        if kind is str:
            if len(value) > _LONGEST_SHARED:  # type: ignore[arg-type]
                return None
        elif not (kind is bool or kind is int or value is None):
            return None
        flat += (key, value)
    return flat


def _unflat(flat: Sequence[Any]) -> dict[str, Scalar]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _checked(
    metadata: Mapping[str, Scalar], keep: Callable[[Mapping[str, Scalar]], KeptMetadata]
) -> KeptMetadata:
    plain = {key: _checked_entry(key, value) for key, value in metadata.items()}
    kept = keep({key: plain[key] for key in sorted(plain)})
    size = len(kept.json.encode())
    if VALUE in kept:
        check_value_text(kept[VALUE])
        size = len(_json({key: own for key, own in kept.items() if key != VALUE}).encode())
    if size > _MAX_METADATA_BYTES:
        raise InvalidMetadata(
            f"metadata of {size:,} bytes is over the limit of {_MAX_METADATA_BYTES:,}",
            hint="keep less of it, or keep it as the memory's value",
        )
    return kept


def _checked_entry(key: object, value: object) -> Scalar:
    """The value, plain if it was a scalar of NumPy, or :class:`InvalidMetadata`."""
    if not isinstance(key, str) or not key:
        raise InvalidMetadata(f"metadata keys are non-empty text, not {key!r}")
    if key in RESERVED_METADATA_KEYS:
        raise InvalidMetadata(
            f"metadata key {key!r} is reserved; it would change what the memory is",
            hint="rename it",
        )
    if key[0] in "$#" or key.startswith("chroma:"):
        raise InvalidMetadata(
            f"metadata key {key!r}: stores give $, # and chroma: a meaning", hint="rename it"
        )
    try:
        check_text(key, "metadata key")
        if isinstance(value, str):
            check_text(value, f"metadata value ({key})")
    except InvalidContent as error:
        raise InvalidMetadata(error.why, hint=error.hint) from None
    # Exact types: the journal returns no subclass of str or int.
    if value is None or type(value) is str or type(value) is bool:
        return value
    if type(value) is int and -(2**63) <= value < 2**63:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    plain = plain_scalar(value)
    if plain is not value:
        return _checked_entry(key, plain)
    raise InvalidMetadata(
        f"metadata {key}={shown(value)}: values are text, finite numbers (whole ones of 64 bits), "
        "true, false or null"
    )


# New memories. A call for one is a batch of one


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
    if not isinstance(item, (tuple, list)) or not 2 <= len(item) <= 5:
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
    rest = {name: value for name, value in options.items() if value is not None}
    kind, tags = rest.pop("kind", "fact"), rest.pop("tags", ())
    if type(kind) is not str or kind != "fact":
        kind = check_kind(kind)
    if type(tags) is not tuple or tags:
        tags = check_tags(tags)
    if not rest:
        return Options(kind, tags), metadata
    if "ttl" in rest and "expires_tick" in rest:
        raise InvalidInput("a memory has a ttl or an expires_tick, not both", hint="leave one out")
    checked: dict[str, Any] = {}
    kept: dict[str, object] = {}
    for name, value in rest.items():
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
    if "evidence" in rest:
        checked["evidence"] = evidence_of(kept)
    if kept and (metadata is None or isinstance(metadata, Mapping)):
        metadata = {**(metadata or {}), **kept}  # other metadata is refused later
    return Options(kind, tags, **checked), metadata


def with_session(item: tuple[object, ...], session: object) -> tuple[object, ...]:
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


# The records that callers get


def memories_of(
    *,
    prefixes: Iterable[str],
    agents: Iterable[str],
    contents: Iterable[str],
    tiers: Iterable[Tier],
    created: Iterable[int],
    entered: Iterable[int],
    sequences: Sequence[int],
    temperatures: Iterable[Temperature],
    metadata: Sequence[dict[str, Scalar] | None] | None = None,
    traits: Sequence[tuple[str, tuple[str, ...], str] | None] | None = None,
    expires: Sequence[int] | None = None,
    counts: Iterable[int] = repeat(0),
    last: Sequence[int] | None = None,
    relevance: Iterable[float] = repeat(NEW_RELEVANCE),
) -> list[Memory]:
    """The memories, as callers see them, of columns.

    ``prefixes`` are the first parts of the ids. ``entered`` are the ticks in which the memories
    entered their tiers. ``expires`` has NEVER for a memory without an end, ``last`` has UNUSED for
    a memory that no search has returned. ``metadata`` and ``traits`` have None for a memory that
    has none. Without a column, each record has the value of a new memory.
    """
    mappings: Iterable[Metadata] = repeat(NO_METADATA)
    if metadata is not None and metadata.count(None) < len(metadata):
        mappings = [
            NO_METADATA if values is None else MappingProxyType(values) for values in metadata
        ]
    kinds: Iterable[str] = repeat("fact")
    tags: Iterable[tuple[str, ...]] = repeat(())
    if traits is not None and traits.count(None) < len(traits):
        kinds, tags, _ = zip(*[values or PLAIN for values in traits], strict=True)
    ends: Iterable[int | None] = repeat(None)
    if expires is not None and expires.count(NEVER) < len(expires):
        ends = [None if tick == NEVER else tick for tick in expires]
    used: Iterable[int | None] = repeat(None)
    if last is not None:
        used = [None if tick == UNUSED else tick for tick in last] if UNUSED in last else last
    write, largest = sequence_digits, max(sequences, default=0)
    if largest < len(sequences):  # agents have the same numbers: to write each once takes less
        write = list(map(sequence_digits, range(largest + 1))).__getitem__
    fields = zip(
        map(add, prefixes, map(write, sequences)),  # memory_id()
        agents,
        contents,
        tiers,
        created,
        entered,
        sequences,
        mappings,
        kinds,
        tags,
        temperatures,
        repeat(Retention.ACTIVE),
        ends,
        counts,
        used,
        relevance,
        strict=False,
    )
    # Memory(…) does the same in twice the time.
    return list(map(tuple.__new__, repeat(Memory), fields))
