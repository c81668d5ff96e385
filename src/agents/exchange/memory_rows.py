"""A memory as one row: the fields of :func:`memory_json`, and the id of its agent.

A row of an import needs ``content``; the other fields may be missing or null. The bank gives new
ids and ticks: ``access_count`` and ``last_access_tick`` are ignored, a lifetime, from
``created_tick`` to ``expires_tick``, begins anew, and ``id`` says which memory other rows name.
"""

import difflib
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..bank.memory_bank import MemoryBank
from ..engine import groups
from ..errors import InvalidInput, InvalidMetadata
from ..memory.insights import EVIDENCE, evidence_of
from ..memory.metadata import KeptMetadata
from ..memory.records import KEY, Memory, check_text, sequence_of
from ..memory.requests import NewMemory, check_agent_id, check_new, check_whole
from ..memory.retention import Retention
from ..memory.sources import SOURCE, source_of, source_text
from ..memory.temperature import Temperature
from ..memory.tiers import Tier
from ..tools.shapes import KEPT, memory_json

FIELDS = ("agent_id", *KEPT["properties"])
MEMBERS = "members"
"""The kind of a row that says who is a member of a group."""
_NAMING = frozenset({KEY, EVIDENCE, SOURCE})
READ_OVER = frozenset({"id", "access_count", "last_access_tick"})
"""Fields that an import checks no further, because a new memory gets its own."""


class Row(NamedTuple):
    """A row of an import, and its place in the file or store, for messages."""

    place: str
    values: Mapping[str, Any]
    problem: InvalidInput | None = None
    """Why the row could not be read; then it has no values."""
    is_blank: bool = False
    """Whether the row has no text; then it is left out."""


class New(NamedTuple):
    """A row that was checked."""

    place: str
    memory: NewMemory
    is_archived: bool
    members: Sequence[str] | None = None
    """The members of a group; then the row is not a memory."""
    former_id: str | None = None
    """The memory's id where it came from."""

    @property
    def first_version(self) -> str | None:
        """Its key, if that is the id of its first version where it came from."""
        metadata, former = self.memory[3], self.former_id
        key = None if metadata is None else metadata.get(KEY)
        if not isinstance(key, str) or former is None:
            return None
        return key if len(key) == len(former) and key[:24] == former[:24] else None

    @property
    def names(self) -> frozenset[str]:
        """The ids of other memories, where they came from, that its metadata has."""
        metadata = self.memory[3]
        if metadata is None or _NAMING.isdisjoint(metadata):
            return frozenset()
        found = {*evidence_of(metadata)}
        if (source := source_of(metadata)) is not None:
            found |= {source.memory_id, source.origin_id}
        if (first := self.first_version) is not None:
            found.add(first)
        return frozenset(found)


def exported(
    bank: MemoryBank, agents: Iterable[str], *, archived: bool
) -> Iterator[dict[str, Any]]:
    """The agents' memories as rows, oldest first; chunks of notes are left out.

    A memory that an agent was told comes after the memory of its teller.
    """
    left: dict[str, deque[Memory]] = {name: deque() for name in agents}
    begun: set[str] = set()
    for name in left:
        under_way = {name: sys.maxsize}  # the last memory that is wanted, by agent
        while under_way:
            current, last = next(reversed(under_way.items()))
            own = left[current]
            if current not in begun:
                begun.add(current)
                own.extend(_memories_of(bank, current, archived))
            if not own or own[0].sequence > last:
                del under_way[current]
                continue
            before = _told_from(bank, own[0])
            if before is not None and before[0] in left and before[0] not in under_way:
                waiting = left[before[0]]
                if before[0] not in begun or (waiting and waiting[0].sequence <= before[1]):
                    under_way[before[0]] = before[1]
                    continue
            yield {"agent_id": current, **memory_json(own.popleft())}


def _memories_of(bank: MemoryBank, name: str, archived: bool) -> list[Memory]:
    agent = bank.agent(name)
    memories = agent.all()
    if archived:
        memories += agent.hidden(Retention.ARCHIVED)
    memories = [memory for memory in memories if not is_chunk(bank, memory)]
    return sorted(memories, key=lambda memory: memory.sequence)


def _told_from(bank: MemoryBank, memory: Memory) -> tuple[str, int] | None:
    """The agent that told a memory, and the sequence number of its memory."""
    source = memory.source
    if source is None:
        return None
    block = bank.engine.state.block(source.teller)
    number = sequence_of(block.prefix, source.memory_id)
    return None if number is None else (source.teller, number)


def exported_boards(bank: MemoryBank) -> Iterator[dict[str, Any]]:
    """The groups as rows: the members of each, then what is on its board, oldest first.

    ``agent_id`` is a dot and the group's name. A row of the kind ``members`` has the members as its
    metadata, each with the tick in which it joined.
    """
    for name in bank.groups():
        group = bank.group(name)
        own = {"agent_id": groups.board_of(name)}
        yield {**own, "content": name, "kind": MEMBERS, "metadata": group.members()}
        for memory in group.all():
            yield {**own, **memory_json(memory)}


def is_chunk(bank: MemoryBank, memory: Memory) -> bool:
    """Whether a memory is a chunk of a note: the note's file holds its text."""
    return memory.kind == "note" and bank.agent(memory.agent_id).notes.citation(memory) is not None


def check_row(row: Row, agent_id: str | None, most_bytes: int) -> New:
    """The memory of a row, or :class:`InvalidInput`, which does not name the row's place."""
    if row.problem is not None:
        raise row.problem
    given = {name: value for name, value in row.values.items() if value is not None}
    for name in given:
        check_name(name)
    owner = given.get("agent_id", agent_id)
    group = groups.group_of(owner) if isinstance(owner, str) else None
    if group is not None:
        return _of_group(row.place, group, given, most_bytes)
    if owner is None:
        raise InvalidInput(
            "it does not say whose memory it is", hint="give agent_id, or use --agent"
        )
    if "content" not in given:
        raise InvalidInput(
            "it has no content, which is the memory's text", hint="give it a content"
        )
    options: dict[str, Any] = {"ttl": _lifetime(given)}
    options |= {name: given.get(name) for name in ("kind", "tags", "temperature")}
    metadata, source = _apart(given.get("metadata"))
    item = (owner, given["content"], given.get("tier"), metadata, options)
    memory = check_new(item, most_bytes)
    if source is not None:
        own = {**(memory[3] or {}), SOURCE: source}
        memory = (*memory[:3], KeptMetadata({key: own[key] for key in sorted(own)}), memory[4])
    is_archived = _is_archived(given)
    if memory[2] is Tier.PINNED:
        _check_pinned(memory[4].temperature, is_archived)
    former = given.get("id")
    return New(
        row.place, memory, is_archived, former_id=former if isinstance(former, str) else None
    )


def _of_group(place: str, name: str, given: Mapping[str, Any], most_bytes: int) -> New:
    """The members of a group, or what one of them wrote on its board."""
    board = groups.board_of(name)
    metadata = given.get("metadata")
    if not isinstance(metadata, Mapping):
        raise InvalidInput(
            "a row of a group has metadata: who is a member, or the speaker", hint="give it some"
        )
    if given.get("kind") == MEMBERS:
        members = [check_agent_id(each) for each in metadata]
        memory = check_new((name, name), most_bytes)
        return New(place, (board, *memory[1:]), False, members)
    if _is_archived(given):
        raise InvalidInput("nothing on a board is archived", hint="leave retention out")
    author = check_agent_id(metadata.get("speaker"))
    own = check_row(Row(place, {**given, "agent_id": author}), None, most_bytes)
    groups.check_board_tier(own.memory[2])
    return own._replace(memory=(board, *own.memory[1:]))


def _apart(metadata: object) -> tuple[object, str | None]:
    """Metadata without the memory's source, and the source: only an import may give one."""
    if not isinstance(metadata, Mapping) or SOURCE not in metadata:
        return metadata, None
    source = source_of(metadata)
    if source is None:
        raise InvalidMetadata(
            f"metadata {SOURCE} is not a memory's source", hint="leave it out, or export it again"
        )
    for field in source:
        if isinstance(field, str):
            check_text(field, f"text in {SOURCE}")
    rest = {key: value for key, value in metadata.items() if key != SOURCE}
    return rest, source_text(source)


def check_name(name: str) -> None:
    """Raise :class:`InvalidInput` for a name that is not a field of a memory."""
    if name not in FIELDS:
        near = difflib.get_close_matches(str(name), FIELDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(FIELDS)}"
        raise InvalidInput(f"{name!r:.60} is not a field of a memory", hint=hint)


def _lifetime(given: Mapping[str, Any]) -> int | None:
    if "expires_tick" not in given:
        return None
    if "created_tick" not in given:
        raise InvalidInput(
            "expires_tick needs created_tick: a lifetime is from one to the other",
            hint="give both, or neither",
        )
    expires = check_whole("expires_tick", given["expires_tick"], least=1)
    created = check_whole("created_tick", given["created_tick"])
    if expires <= created:
        raise InvalidInput(
            f"expires_tick {expires} is not after created_tick {created}",
            hint="give a later expires_tick, or leave both out",
        )
    return expires - created


def _is_archived(given: Mapping[str, Any]) -> bool:
    retention = given.get("retention", "active")
    if retention not in ("active", "archived"):
        raise InvalidInput(
            f"retention is active or archived, not {retention!r:.40}", hint="use one of the two"
        )
    return bool(retention == "archived")


def _check_pinned(temperature: Temperature | None, is_archived: bool) -> None:
    if is_archived or temperature not in (None, Temperature.HOT):
        raise InvalidInput(
            "a pinned memory is active and hot", hint="give it another tier, or neither"
        )
