"""Where a memory comes from: who told it, how much it matters, what evidence it is drawn from."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import InvalidInput

SOURCE = "memory_source"
"""The name under which the metadata keeps a memory's source, as JSON text."""
HEARD = "heard"
"""The topic under which an agent holds how often it was told a memory again.

A value has the three fields of :class:`Heard` and, where a memory had more tellers than its source
and the last one, the names of these others.
"""
SUPERSEDED = "superseded"
"""The topic under which an agent holds which memory superseded which, by a link."""
CONTRADICTS = "contradicts"
"""The topic under which an agent holds which memories contradict each other."""
OF_A_MEMORY = (HEARD, SUPERSEDED, CONTRADICTS)
"""The topics whose names are the sequence numbers of memories."""
TRUST = "trust"
"""The topic under which an agent holds how much it trusts each teller."""
TOLD_NOTE = "told_note"
"""The name under which the metadata keeps what the teller said about the memory."""


class Source(NamedTuple):
    """Who told a memory, and where the chain of tellers began."""

    teller: str
    tick: int
    """The tick in which the memory was told."""
    memory_id: str
    """The teller's memory of which this one is a copy."""
    origin_agent: str
    """The agent whose memory was the first of the chain."""
    origin_id: str
    hands: int
    """Through how many hands the memory came: 1 if its origin told it."""


class Telling(NamedTuple):
    """What crosses from a teller to a listener. A list of them is delivered in their order."""

    receiver: str
    sender: str
    number: int
    """The place among what the sender tells in a tick."""
    content: str
    source: Source
    tier: int
    kind: str
    tags: Sequence[str]
    expires_tick: int | None
    metadata: Mapping[str, Any]
    corrects: str | None = None
    """The sender's memory that this one corrects, for listeners that the sender told it."""
    corrects_origin: str | None = None
    """The origin of the memory that this one corrects; None if it is that memory itself."""
    instead_of: Sequence[str] = ()
    """The origins of what the sender said of that memory before: of its earlier corrections."""

    @classmethod
    def of(cls, row: Sequence[Any]) -> "Telling":
        """The telling that was written as a JSON list."""
        made = cls(*row)  # a row of before may end earlier
        return made._replace(
            source=Source._make(made.source),
            tags=tuple(made.tags),
            instead_of=tuple(made.instead_of),
        )


class Told(NamedTuple):
    """What became of a memory that was told."""

    listener: str
    memory_id: str
    """The listener's memory: the copy, or the memory that the listener had already."""
    is_new: bool
    """Whether the listener stored a copy. Otherwise the tell was counted."""


class Heard(NamedTuple):
    """How often an agent was told one of its memories."""

    times: int
    teller: str | None
    """The last teller; None for a memory that nobody told."""
    tick: int | None
    """The tick in which it was told last."""


class Links(NamedTuple):
    """How a memory is linked to other memories of its agent, by their ids."""

    superseded_by: str | None
    contradicts: tuple[str, ...]
    flags: tuple[str, ...] = ()
    """Which of the memory's evidence no longer holds, and why.

    That is evidence which was superseded, contradicted, deleted or purged, or rests on such
    evidence itself. It is empty for a memory whose evidence holds, and for one without.
    """


class Chain(NamedTuple):
    """The way of a memory from teller to teller, followed backwards."""

    memories: tuple[Any, ...]
    """The :class:`Memory` that was asked for, its teller's, and so on, as far as they exist."""
    missing: str | None
    """The id of the memory at which the chain breaks off, because it is forgotten; None if the
    last of ``memories`` is the origin."""

    @property
    def is_whole(self) -> bool:
        """Whether the chain ends at its origin."""
        return self.missing is None


def source_text(source: Source) -> str:
    """The source as the metadata keeps it."""
    return json.dumps(source, ensure_ascii=False, separators=(",", ":"))


def source_of(metadata: Mapping[str, object]) -> Source | None:
    """The source that the metadata keeps; None if it keeps none."""
    text = metadata.get(SOURCE)
    if not isinstance(text, str):
        return None
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, list) or tuple(map(type, fields)) != _TYPES:
        return None
    return Source._make(fields)


def own_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata without what says that the memory was told: for a text of the agent's own."""
    if SOURCE not in metadata:
        return dict(metadata)
    told = (SOURCE, TOLD_NOTE, "speaker")
    return {key: value for key, value in metadata.items() if key not in told}


_TYPES = (str, int, str, str, str, int)


INSIGHT = "insight"
"""The kind of a memory that a reflection made."""
IMPORTANCE = "importance"
"""The name under which the metadata keeps a memory's importance."""
EVIDENCE = "memory_evidence"
"""The name under which the metadata keeps the ids of an insight's evidence, as JSON text."""
MOST_EVIDENCE = 32
_LEAST, _MOST = 1, 10
_LONGEST_ID = 64


def check_importance(value: object) -> int:
    """``value`` itself if it is a whole number from 1 to 10, or :class:`InvalidInput`."""
    if isinstance(value, int) and not isinstance(value, bool) and _LEAST <= value <= _MOST:
        return int(value)
    raise InvalidInput(
        f"importance {value!r:.40} is not a whole number from {_LEAST} to {_MOST}",
        hint="1 is mundane, 10 is poignant; leave it out to go by the tier",
    )


def given_importance(metadata: Mapping[str, object]) -> float | None:
    """The importance in a memory's metadata; None where there is no number from 1 to 10."""
    value = metadata.get(IMPORTANCE)
    if isinstance(value, int | float) and not isinstance(value, bool) and _LEAST <= value <= _MOST:
        return float(value)
    return None


def evidence_text(ids: object) -> str:
    """The ids of memories as JSON text, each once; or :class:`InvalidInput`."""
    if isinstance(ids, str | bytes | Mapping) or not isinstance(ids, Iterable):
        raise InvalidInput(f"evidence is a list of memory ids; got {ids!r:.60}")
    found: dict[Any, None] = {}
    for each in ids:
        if not isinstance(each, str) or not 0 < len(each) <= _LONGEST_ID:
            raise InvalidInput(f"evidence is a list of memory ids; one is {each!r:.60}")
        found[each] = None
    if not 0 < len(found) <= MOST_EVIDENCE:
        raise InvalidInput(
            f"an insight has 1 to {MOST_EVIDENCE} memories as evidence; got {len(found)}",
            hint="name the memories that it is drawn from",
        )
    return json.dumps(list(found))


def evidence_of(metadata: Mapping[str, object]) -> tuple[str, ...]:
    """The ids in a memory's metadata; none where it has no evidence."""
    text = metadata.get(EVIDENCE)
    if not isinstance(text, str):
        return ()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # somebody else wrote the metadata
        return ()
    return tuple(each for each in found if isinstance(each, str)) if type(found) is list else ()
