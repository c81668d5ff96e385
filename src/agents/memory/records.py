"""What a memory is, and what may become one."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import add
from types import MappingProxyType
from typing import Any, NamedTuple

from ..errors import InvalidAgentId, InvalidContent, InvalidInput
from .retention import Retention
from .temperature import Temperature
from .tiers import Tier

__all__ = [
    "NEVER",
    "NEW_RELEVANCE",
    "NO_METADATA",
    "UNUSED",
    "Explanation",
    "Hit",
    "Hits",
    "Memory",
    "Metadata",
    "Scalar",
    "are_plain_texts",
    "check_agent_id",
    "check_content",
    "check_query",
    "check_text",
    "check_whole",
    "digits",
    "digits_of_all",
    "id_prefix",
    "known_ids",
    "memories_of",
    "memory_id",
    "sequence_of",
]

Scalar = str | int | float | bool | None
Metadata = Mapping[str, Scalar]

NO_METADATA: Metadata = MappingProxyType({})
NEW_RELEVANCE = 0.5
"""How relevant a memory is that no search has given yet: nobody knows."""
NEVER = 1 << 62
"""The tick in which a memory expires that doesn't."""
UNUSED = -1
"""The tick of last access of a memory that no search gave yet."""


# Records are named tuples and not dataclasses: a tick makes thousands, and these take a fifth of
# the time.
class Memory(NamedTuple):
    """One memory of one agent, as it was when asked for. It can't be changed.

    Two are equal that say the same of a memory; how often it was used is not compared.
    """

    id: str
    agent_id: str
    content: str
    tier: Tier
    created_tick: int
    tier_tick: int
    """The tick in which it entered its tier."""
    sequence: int
    """1 for the agent's first memory, 2 for its second, and so on; never given twice."""
    metadata: Metadata
    kind: str = "fact"
    tags: tuple[str, ...] = ()
    temperature: Temperature = Temperature.WARM
    retention: Retention = Retention.ACTIVE
    expires_tick: int | None = None
    """The tick from which on nobody sees it."""
    access_count: int = 0
    """How many searches gave it to the agent."""
    last_access_tick: int | None = None
    relevance: float = NEW_RELEVANCE
    """The mean of what it was before and of its score, search after search; from 0 to 1."""

    @property
    def session(self) -> Scalar:
        """The conversation or episode that it is part of, if its metadata says so."""
        return self.metadata.get("session")

    @property
    def speaker(self) -> Scalar:
        """Who said it, if its metadata says so."""
        return self.metadata.get("speaker")

    def is_expired(self, tick: int) -> bool:
        """Whether its lifetime is over by ``tick``; while pinned or archived, it does not end."""
        return (
            self.expires_tick is not None
            and self.expires_tick <= tick
            and self.tier is not Tier.PINNED
            and self.retention is Retention.ACTIVE
        )

    # A search changes how often a memory was used. The same search again gives equal memories all
    # the same: use is no part of equality. ``tuple(memory)`` has all of it.
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Memory):
            return NotImplemented
        return tuple.__eq__(self[:_UNCOMPARED], other[:_UNCOMPARED])

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.id, self.tier, self.tier_tick))  # metadata has no hash


_UNCOMPARED = Memory._fields.index("access_count")
_PLAIN_TRAITS = ("fact", (), "")


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
    retentions: Iterable[Retention] = repeat(Retention.ACTIVE),
    expires: Sequence[int] | None = None,
    counts: Iterable[int] = repeat(0),
    last: Sequence[int] | None = None,
    relevance: Iterable[float] = repeat(NEW_RELEVANCE),
) -> list[Memory]:
    """The records of memories that are given column by column, as storage keeps them.

    An id begins with the memory's prefix. ``entered`` has the ticks in which the memories entered
    their tiers, ``expires`` NEVER for one that stays, ``last`` UNUSED for one that no search gave.
    ``metadata`` and ``traits`` have None for a memory without. A column that is left out says of
    each memory what is true of a new one.
    """
    given: Iterable[Metadata] = repeat(NO_METADATA)
    if metadata is not None and metadata.count(None) < len(metadata):
        given = [NO_METADATA if own is None else MappingProxyType(own) for own in metadata]
    kinds: Iterable[str] = repeat("fact")
    tags: Iterable[tuple[str, ...]] = repeat(())
    if traits is not None and traits.count(None) < len(traits):
        kinds, tags, _ = zip(*[own or _PLAIN_TRAITS for own in traits], strict=True)
    ends: Iterable[int | None] = repeat(None)
    if expires is not None and expires.count(NEVER) < len(expires):
        ends = [None if tick == NEVER else tick for tick in expires]
    used: Iterable[int | None] = repeat(None)
    if last is not None:
        used = [None if tick == UNUSED else tick for tick in last] if UNUSED in last else last
    fields = zip(
        map(add, prefixes, digits_of_all(sequences, max(sequences, default=0))),  # memory_id()
        agents,
        contents,
        tiers,
        created,
        entered,
        sequences,
        given,
        kinds,
        tags,
        temperatures,
        retentions,
        ends,
        counts,
        used,
        relevance,
        strict=False,
    )
    # tuple.__new__ is what Memory(…) comes down to, at half its cost.
    return list(map(tuple.__new__, repeat(Memory), fields))


class Hit(NamedTuple):
    """A memory that a search returned, and why it stands where it does."""

    memory: Memory
    score: float
    """How well it matches the query, from 0 to 1; ``explain()`` shows what it is made of."""
    boost: float
    """What its tier adds."""
    boosted_score: float
    """Their sum, by which all but the pinned are ordered."""


class Explanation(NamedTuple):
    """What a search made of one memory."""

    memory: Memory
    score: float
    boost: float
    boosted_score: float
    rank: int | None
    """Its place in the result, from 1; None if it was dropped."""
    reason: str
    """Why it was chosen or dropped."""
    vector: float = 0.0
    """The similarity of its vector to the query's."""
    keyword: float = 0.0
    """How well its words match."""
    fusion: float = 0.0
    """Both, made one."""
    context: float = 0.0
    """What its session and its speaker add or take: the score less ``fusion``."""


class Hits(list[Hit]):
    """A search's result: a list of :class:`Hit`, pinned first.

    ``pinned_left_out`` holds the pinned memories that the token budget had no room for,
    oldest pin first. It is empty unless the pinned alone exceed the budget. ``note`` says what a
    search could not do, such as embed the query; then it was found by words alone.
    """

    pinned_left_out: tuple[Memory, ...] = ()
    note: str = ""


_AGENT_ID = re.compile(r"[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,127}")


_SEEN: dict[str, str] = {}
"""Ids that are known to be some; a tick asks it three times of every agent. Given back are these
and not what was asked: to look up the same object again and again takes half the time.
"""
_MOST_SEEN = 65_536


def check_agent_id(agent_id: object) -> str:
    """``agent_id`` itself, or :class:`InvalidAgentId`.

    The alphabet leaves out whatever mem0's filters, a file system or a terminal could take for
    something else: ``*`` would match every agent in mem0.
    """
    if type(agent_id) is str and agent_id in _SEEN:
        return _SEEN[agent_id]
    if isinstance(agent_id, str) and _AGENT_ID.fullmatch(agent_id):
        own = str.__str__(agent_id)  # a subclass would come back as something else
        if len(_SEEN) < _MOST_SEEN:
            _SEEN[own] = own
        return own
    shown = repr(agent_id) if len(repr(agent_id)) <= 160 else repr(agent_id)[:150] + "…"
    raise InvalidAgentId(
        f"{shown} is not an agent id",
        hint="use 1 to 128 of the characters A–Z a–z 0–9 . _ - @, not starting with a dot",
    )


def known_ids(ids: Sequence[object]) -> list[str] | None:
    """These ids, if all were found to be some before; if not, they may still be."""
    if set(map(type, ids)) != {str}:
        return None
    known = list(map(_SEEN.get, ids))  # type: ignore[arg-type]
    return None if None in known else known  # type: ignore[return-value]


def check_content(content: object, max_bytes: int) -> str:
    """``content`` itself if every byte of it can be kept, or :class:`InvalidContent`."""
    text = check_text(content, "memory")
    if not text or text.isspace():
        raise InvalidContent("a memory needs some text; this one is blank")
    # A character is at most 4 bytes, so most texts need no encoding to be known to fit.
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
    if len(text) > _MAX_QUERY:
        raise InvalidContent(f"a query of {len(text):,} characters is over {_MAX_QUERY:,}")
    return text


def check_text(text: object, what: str) -> str:
    if type(text) is str and text.isascii() and "\0" not in text:  # as most are
        return text
    if not isinstance(text, str):
        raise InvalidContent(f"a {what} is text, not {type(text).__name__}")
    if type(text) is not str:  # a subclass would come back from the journal as something else
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


def are_plain_texts(texts: Sequence[Any], longest: int) -> bool:
    """Whether all are texts of so many characters at most that :func:`check_text` leaves alone."""
    if set(map(type, texts)) != {str} or max(map(len, texts)) > longest:
        return False
    text = "".join(texts)
    return text.isascii() and "\0" not in text


def check_whole(name: str, value: object, least: int = 0) -> int:
    """``value`` itself if it is a whole number from ``least`` on, or :class:`InvalidInput`."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        if value <= _MOST:
            return value
        raise InvalidInput(f"{name} {value!r:.40} is too large", hint=f"it may be {_MOST} at most")
    raise InvalidInput(f"{name} {value!r:.40} is not a whole number from {least} on")


_MAX_QUERY = 1_000_000
_MOST = 2**62  # leaves room to add in 64 bits


def id_prefix(seed: int, agent_id: str) -> str:
    """The first 24 characters of every memory id of this agent, in a bank with this seed.

    An id is a UUID of version 8 (RFC 9562, "custom"): 72 bits of a hash over seed and agent, then
    the sequence number in the last 48. So an id tells whose memory it is without a lookup, and an
    agent's ids do not depend on what other agents do.
    """
    digest = hashlib.sha256(f"tiermem\0{seed}\0{agent_id}".encode()).hexdigest()
    variant = "89ab"[int(digest[15], 16) & 3]
    return f"{digest[:8]}-{digest[8:12]}-8{digest[12:15]}-{variant}{digest[16:19]}-"


def memory_id(prefix: str, sequence: int) -> str:
    """The id of the agent's ``sequence``-th memory."""
    return prefix + digits(sequence)


_DIGITS = 12


_written: list[str] = []
"""The digits of the first numbers, which a tick asks for by the thousand."""
_MOST_WRITTEN = 65_536


def digits(sequence: int) -> str:
    """The last 12 characters of a memory's id."""
    written = _written
    return written[sequence] if 0 <= sequence < len(written) else f"{sequence:012x}"


def digits_of_all(sequences: Iterable[int], largest: int) -> Iterable[str]:
    """The same for many memories, none of which has a number above ``largest``."""
    global _written
    if largest >= _MOST_WRITTEN:
        return map(digits, sequences)
    written = _written
    if largest >= len(written):
        # A new list, instead of a longer one: another thread may be here too.
        _written = written = list(map(digits, range(min(2 * largest + 64, _MOST_WRITTEN))))
    return map(written.__getitem__, sequences)


def sequence_of(prefix: str, identifier: object) -> int | None:
    """The sequence number in an id with this prefix; None for any other value."""
    if not isinstance(identifier, str) or len(identifier) != len(prefix) + _DIGITS:
        return None
    if not identifier.startswith(prefix):
        return None
    try:
        sequence = int(identifier[len(prefix) :], 16)
    except ValueError:
        return None
    return sequence if sequence > 0 and memory_id(prefix, sequence) == identifier else None
