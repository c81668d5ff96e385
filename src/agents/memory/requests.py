"""What callers give for new memories and searches. A call for one is a batch of one."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from ..errors import InvalidAgentId, InvalidContent, InvalidInput, InvalidMetadata
from .metadata import KeptMetadata, SharedMetadata, check_metadata, plain_scalar, value_text
from .records import KEY, VALUE, check_kind, check_tags, check_text
from .sources import EVIDENCE, IMPORTANCE, check_importance, evidence_of, evidence_text
from .tiers import TIER_VALUES, Temperature, Tier, parse_temperature, parse_tier

_AGENT_ID = re.compile(r"[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,127}")
_LONGEST_ID = 128
_MOST_QUERY = 1_000_000
_MOST = 2**62  # leaves room to add in 64 bits
_SEQUENCES = (tuple, list)
_FEW = 8
"""A batch with fewer memories is checked one by one, which is faster."""


class Options(NamedTuple):
    """The optional properties of a new memory, checked."""

    kind: str = "fact"
    tags: tuple[str, ...] = ()
    temperature: Temperature | None = None
    """None: the settings choose the temperature."""
    ttl: int | None = None
    expires_tick: int | None = None
    key: str | None = None
    """The memory supersedes the agent's memory with this key. The metadata has the key, too."""
    keeps_tier: bool = False
    """Whether no tier was given: the memory has the tier of the one that it supersedes."""
    evidence: tuple[str, ...] = ()
    """The memories that it is drawn from, where they are given as an option: the agent must have
    them. The metadata has their ids, too; if nothing but the metadata has, nobody checks them.
    """


PLAIN_OPTIONS = Options()
_IN_METADATA = {
    "session": "session",
    "speaker": "speaker",
    "key": KEY,
    "value": VALUE,
    "importance": IMPORTANCE,
    "evidence": EVIDENCE,
}
"""Options that the metadata keeps, and their names there."""
_NAMES = (
    *[name for name in Options._fields if name != "keeps_tier"],
    "session",
    "speaker",
    "value",
    "importance",
)
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


def check_iterable(items: Iterable[object]) -> Iterable[object]:
    """``items`` itself if it is a batch; a text or a mapping is :class:`InvalidInput`."""
    if isinstance(items, Iterable) and not isinstance(items, str | bytes | Mapping):
        return items
    raise InvalidInput(f"a batch is a list of tuples; got {items!r:.80}")


def check_new(item: object, most_bytes: int, shared: SharedMetadata | None = None) -> NewMemory:
    """Agent, text, tier, metadata and options from a tuple. The last three may be missing.

    With ``shared``, memories with equal metadata share one object.
    """
    if not isinstance(item, _SEQUENCES) or not 2 <= len(item) <= 5:
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
    metadata, options = item[3], item[4] if len(item) > 4 else None
    has_evidence = False
    if type(options) is not Options and isinstance(options, Mapping):
        has_evidence = options.get("evidence") is not None
        metadata, options = _with_talk(metadata, options)
    kept = None
    if metadata is not None:
        kept = check_metadata(metadata) if shared is None else shared.check(metadata)
    checked = check_options(options)
    if kept is not None and KEY in kept:
        checked = checked._replace(key=check_key(kept[KEY]), keeps_tier=given is None)
    if kept is not None and has_evidence:
        checked = checked._replace(evidence=evidence_of(kept))
    return agent, content, tier, kept, checked


def check_all_new(
    items: Iterable[object], most_bytes: int, shared: SharedMetadata | None = None
) -> NewMemories:
    """A batch of new memories; each item is what :func:`check_new` takes."""
    plain = _check_plain(items, most_bytes)
    if plain is not None:
        return plain
    return NewMemories.of([check_new(item, most_bytes, shared) for item in check_iterable(items)])


def _check_plain(items: Any, most_bytes: int) -> NewMemories | None:
    """The batch of a long list of plain tuples (agent, text) or (agent, text, tier); else None.

    Plain texts are ASCII, plain tiers are ``Tier`` values or full names. A check by columns takes a
    third of the time of a check by memory.
    """
    if type(items) is not list or len(items) < _FEW or set(map(type, items)) != {tuple}:
        return None
    if set(map(len, items)) not in ({2}, {3}):
        return None
    size = len(items)
    agents, contents, *rest = zip(*items, strict=True)
    tiers = rest[0] if rest else (Tier.NORMAL,) * size
    if set(map(type, tiers)) == {str}:
        tiers = tuple(map(TIER_VALUES.get, tiers))
    if (
        set(map(type, tiers)) == {Tier}
        and are_agent_ids(agents)
        and are_plain_texts(contents, most_bytes)  # each character of a plain text is a byte
        and all(contents)
        and not any(map(str.isspace, contents))
    ):
        return NewMemories(agents, contents, tiers, (None,) * size, (PLAIN_OPTIONS,) * size)
    return None


def _with_talk(metadata: object, options: Mapping[str, object]) -> tuple[object, object]:
    """Metadata with the options that it keeps, and the other options."""
    if options.keys().isdisjoint(_IN_METADATA):
        return metadata, options
    own = {
        kept: options[name] for name, kept in _IN_METADATA.items() if options.get(name) is not None
    }
    if KEY in own:
        check_key(own[KEY])
    if VALUE in own:
        own[VALUE] = value_text(own[VALUE])
    if IMPORTANCE in own:
        own[IMPORTANCE] = check_importance(own[IMPORTANCE])
    if EVIDENCE in own:
        own[EVIDENCE] = evidence_text(own[EVIDENCE])
    if isinstance(metadata, Mapping):
        for name, kept in _IN_METADATA.items():
            if kept in own and kept in metadata and metadata[kept] != own[kept]:
                raise InvalidMetadata(
                    f"metadata says another {kept} than the option {name}", hint="give it once"
                )
    rest = {name: value for name, value in options.items() if name not in _IN_METADATA}
    if own and isinstance(metadata, Mapping):
        own = {**metadata, **own}
    elif own and metadata is not None:
        return metadata, rest  # check_metadata() refuses it
    return own or metadata, rest


def check_options(options: object) -> Options:
    """Options from a mapping such as ``{"kind": "decision", "ttl": 20}``."""
    if type(options) is Options:
        return options
    if options is None:
        return PLAIN_OPTIONS
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
        return Options(kind, tags)
    if "ttl" in given and "expires_tick" in given:
        raise InvalidInput("a memory has a ttl or an expires_tick, not both", hint="leave one out")
    return Options(
        kind,
        tags,
        parse_temperature(given["temperature"]) if "temperature" in given else None,
        check_whole("ttl", given["ttl"], least=1) if "ttl" in given else None,
        check_whole("expires_tick", given["expires_tick"], least=1)
        if "expires_tick" in given
        else None,
    )


def check_key(key: object) -> str:
    """``key`` itself if a memory can be stored under it, or :class:`InvalidInput`."""
    if isinstance(key, str) and key.strip() and len(key) <= _LONGEST_KEY:
        return check_text(key, "key")
    raise InvalidInput(
        f"a key is a text of 1 to {_LONGEST_KEY} characters, not {key!r:.40}",
        hint="use a name such as diet",
    )


def check_search(request: object) -> tuple[str, str]:
    """Agent and query from a pair."""
    if not isinstance(request, _SEQUENCES) or len(request) != 2:
        raise InvalidInput(f"a search is a pair (agent_id, query); got {request!r:.80}")
    agent, query = request
    return check_agent_id(agent), check_query(query)


def check_searches(requests: Iterable[object]) -> tuple[list[str], list[str]]:
    """Agents and queries from pairs."""
    if (
        type(requests) is list
        and len(requests) >= _FEW
        and set(map(type, requests)) == {tuple}
        and set(map(len, requests)) == {2}
    ):
        agents, queries = zip(*requests, strict=True)
        if are_agent_ids(agents) and are_plain_texts(queries, _MOST_QUERY):  # as in most ticks
            return list(agents), list(queries)
    checked = [check_search(request) for request in check_iterable(requests)]
    return [agent for agent, _ in checked], [query for _, query in checked]


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


# What may become a part of a memory, or name its agent


def check_agent_id(agent_id: object) -> str:
    """``agent_id`` itself, or :class:`InvalidAgentId`.

    The alphabet has no character with a meaning for mem0's filters, a file system or a terminal:
    ``*`` would match every agent in mem0.
    """
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


def are_agent_ids(ids: Sequence[Any]) -> bool:
    """Whether :func:`check_agent_id` would return each of these ids unchanged."""
    if set(map(type, ids)) != {str}:
        return False
    # Most ids are ASCII identifiers of Python, which are within the alphabet.
    if "".join(ids).isascii() and all(map(str.isidentifier, ids)):
        return max(map(len, ids)) <= _LONGEST_ID
    return all(map(_AGENT_ID.fullmatch, ids))


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


def are_plain_texts(texts: Sequence[Any], longest: int) -> bool:
    """Whether each text has at most ``longest`` characters, and is ASCII without a NUL."""
    if set(map(type, texts)) != {str} or max(map(len, texts)) > longest:
        return False
    text = "".join(texts)
    return text.isascii() and "\0" not in text


def check_whole(name: str, value: object, least: int = 0, most: int = _MOST) -> int:
    """``value`` itself if it is a whole number from ``least`` to ``most``, or InvalidInput."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        if value <= most:
            return value
        raise InvalidInput(f"{name} {value!r:.40} is too large", hint=f"it may be {most} at most")
    raise InvalidInput(f"{name} {value!r:.40} is not a whole number from {least} on")
