"""New memories: as what they are asked for, as events, and as the records that callers get."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from operator import add
from types import MappingProxyType
from typing import NamedTuple, final, overload

from agents.memory.caps import Caps
from agents.memory.events import Added, Start
from agents.memory.metadata import KeptMetadata
from agents.memory.records import NEW_RELEVANCE, NO_METADATA, Memory, digits_of_all
from agents.memory.retention import Retention
from agents.memory.temperature import Temperature
from agents.memory.tiers import Tier
from agents.storage.rows import AgentRows

__all__ = ["New", "NewMemories", "events_of", "is_hot", "number", "which_matter"]

New = tuple[str, str, Tier, KeptMetadata | None, Start | None]
"""A new memory: agent, text, tier, metadata, and how it differs from a plain one."""


Columns = tuple[
    Sequence[str], Sequence[str], Sequence[Tier], Sequence[KeptMetadata | None],
    Sequence[Start | None],
]  # fmt: skip
"""The same of many new memories."""


class Numbered(NamedTuple):
    """The sequence number of each new memory, and how its id begins."""

    sequences: list[int]
    prefixes: list[str]


_HOT, _WARM = int(Temperature.HOT), int(Temperature.WARM)
_TEMPERATURES = tuple(Temperature)
_PLAIN = Start(_WARM, "fact", (), None)


def is_hot(item: New) -> bool:
    """Whether a new memory begins hot."""
    start = item[4]
    return item[2] is Tier.PINNED or (start is not None and start.temperature == Temperature.HOT)


def which_matter(items: Sequence[New], caps: Caps) -> list[int]:
    """The places of those that change more than themselves: they are hot, or in a tier with a cap.

    Others may have to make room for them.
    """
    has_cap = [caps.of(tier) is not None for tier in Tier]
    return [
        place
        for place, (_, _, tier, _, start) in enumerate(items)
        if has_cap[tier] or (start is not None and start[0] == _HOT)
    ]


def number(items: Sequence[New], block: Callable[[str], AgentRows]) -> Numbered:
    """Give each new memory the number that follows in its agent's block."""
    following: dict[str, int] = {}
    prefixes: dict[str, str] = {}
    sequences = []
    for agent, _, _, _, _ in items:
        sequence = following.get(agent)
        if sequence is None:
            own = block(agent)
            sequence, prefixes[agent] = own.next_sequence, own.prefix
        following[agent] = sequence + 1
        sequences.append(sequence)
    return Numbered(sequences, [prefixes[item[0]] for item in items])


# tuple.__new__ is what the records' own constructors come down to, at half their cost.


def events_of(columns: Columns, numbered: Numbered) -> list[Added]:
    """The events that add these memories."""
    agents, contents, tiers, metadata, starts = columns
    fields = zip(
        repeat("add"),
        agents,
        numbered.sequences,
        map(int, tiers),
        contents,
        metadata,
        starts,
        strict=False,
    )
    return list(map(tuple.__new__, repeat(Added), fields))


@final
class NewMemories(Sequence[Memory]):
    """These memories as they were when they were stored; made when somebody looks at them.

    Few do who store thousands, and to make them takes as long as to store them in the table.
    """

    __slots__ = ("_columns", "_made", "_numbered", "_other", "_tick")

    def __init__(self, columns: Columns, numbered: Numbered, tick: int) -> None:
        self._columns = columns
        self._numbered = numbered
        self._tick = tick
        self._other: dict[int, Memory] = {}
        self._made: list[Memory] | None = None

    def replace(self, place: int, memory: Memory) -> None:
        """This one is not what was asked for."""
        self._other[place] = memory

    def __len__(self) -> int:
        return len(self._numbered.sequences)

    @overload
    def __getitem__(self, place: int) -> Memory: ...
    @overload
    def __getitem__(self, place: slice) -> list[Memory]: ...
    def __getitem__(self, place: int | slice) -> Memory | list[Memory]:
        return self._memories()[place]

    def __iter__(self) -> Iterator[Memory]:
        return iter(self._memories())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list | tuple | NewMemories):
            return self._memories() == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a list's

    def __repr__(self) -> str:
        return repr(self._memories())

    def _memories(self) -> list[Memory]:
        if self._made is None:
            made = _memories_of(self._columns, self._numbered, self._tick)
            for place, memory in self._other.items():
                made[place] = memory
            self._made = made
        return self._made


def _memories_of(columns: Columns, numbered: Numbered, tick: int) -> list[Memory]:
    """These memories as they are in their first tick."""
    agents, contents, tiers, metadata, starts = columns
    sequences, prefixes = numbered
    heats: Iterable[int] = repeat(_WARM)
    kinds: Iterable[str] = repeat(_PLAIN.kind)
    tags: Iterable[tuple[str, ...]] = repeat(_PLAIN.tags)
    expires: Iterable[int | None] = repeat(None)
    if starts.count(None) < len(starts):
        begun = [start or _PLAIN for start in starts]
        heats, kinds, tags, expires = zip(*begun, strict=True)
    fields = zip(
        map(add, prefixes, digits_of_all(sequences, max(sequences))),  # memory_id()
        agents,
        contents,
        tiers,
        repeat(tick),
        repeat(tick),
        sequences,
        [NO_METADATA if own is None else MappingProxyType(own) for own in metadata],
        kinds,
        tags,
        [
            _TEMPERATURES[heat] if tier else Temperature.HOT
            for heat, tier in zip(heats, tiers, strict=False)
        ],
        repeat(Retention.ACTIVE),
        expires,
        repeat(0),
        repeat(None),
        repeat(NEW_RELEVANCE),
        strict=False,
    )
    return list(map(tuple.__new__, repeat(Memory), fields))
