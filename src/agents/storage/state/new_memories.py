"""New memories: as what they are asked for, as events, and as the records that callers get."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import count, repeat
from operator import add
from types import MappingProxyType
from typing import NamedTuple, final, overload

from ...memory.events import Additions, Start
from ...memory.ids import digits_of_all
from ...memory.metadata import KeptMetadata
from ...memory.records import NEW_RELEVANCE, NO_METADATA, Memory
from ...memory.retention import Retention
from ...memory.temperature import Temperature
from ...memory.tiers import Tier
from ...rules.caps import Caps
from ..resident.agent_rows import AgentRows

__all__ = ["New", "NewMemories", "number", "which_matter"]


class New(NamedTuple):
    """New memories, column by column."""

    agents: Sequence[str]
    contents: Sequence[str]
    tiers: Sequence[Tier]
    metadata: Sequence[KeptMetadata | None]
    starts: Sequence[Start | None]
    """How each differs from a plain one."""

    def is_hot(self, place: int) -> bool:
        """Whether this one, which is not pinned, begins hot."""
        start = self.starts[place]
        return start is not None and start[0] == _HOT


_HOT, _WARM = int(Temperature.HOT), int(Temperature.WARM)
_TEMPERATURES = tuple(Temperature)
_PLAIN = Start(_WARM, "fact", (), None)


def which_matter(new: New, caps: Caps) -> list[int]:
    """The places of those that change more than themselves: they are hot, or in a tier with a cap.

    Others may have to make room for them.
    """
    capped = [tier for tier in Tier if caps.of(tier) is not None]
    if not any(map(new.tiers.count, capped)) and new.starts.count(None) == len(new.starts):
        return []  # as in most batches
    has_cap = [tier in capped for tier in Tier]
    return [
        place
        for place, (tier, start) in enumerate(zip(new.tiers, new.starts, strict=True))
        if has_cap[tier] or (start is not None and start[0] == _HOT)
    ]


def number(
    new: New, blocks_of: Callable[[Collection[str]], Sequence[AgentRows]]
) -> tuple[Additions, dict[str, str]]:
    """The events that add these memories, each with the number that follows in its agent's block.

    And how the ids of each agent begin.
    """
    agents, contents, tiers, metadata, starts = new
    blocks = blocks_of(dict.fromkeys(agents))
    following = {own.agent_id: count(own.next_sequence) for own in blocks}
    sequences = list(map(next, map(following.__getitem__, agents)))
    events = Additions(agents, sequences, list(map(int, tiers)), contents, metadata, starts)
    return events, {own.agent_id: own.prefix for own in blocks}


@final
class NewMemories(Sequence[Memory]):
    """These memories as they were when they were stored; made when somebody looks at them.

    Few do who store thousands, and to make them takes as long as to store them in the table.
    """

    __slots__ = ("_made", "_new", "_other", "_prefixes", "_sequences", "_tick")

    def __init__(
        self, new: New, sequences: Sequence[int], prefixes: dict[str, str], tick: int
    ) -> None:
        self._new = new
        self._sequences = sequences
        self._prefixes = prefixes
        self._tick = tick
        self._other: dict[int, Memory] = {}
        self._made: list[Memory] | None = None

    def replace(self, place: int, memory: Memory) -> None:
        """This one is not what was asked for."""
        self._other[place] = memory

    def __len__(self) -> int:
        return len(self._sequences)

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
            prefixes = map(self._prefixes.__getitem__, self._new.agents)
            made = _memories_of(self._new, self._sequences, prefixes, self._tick)
            for place, memory in self._other.items():
                made[place] = memory
            self._made = made
        return self._made


def _memories_of(
    new: New, sequences: Sequence[int], prefixes: Iterable[str], tick: int
) -> list[Memory]:
    """These memories as they are in their first tick."""
    agents, contents, tiers, metadata, starts = new
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
    # tuple.__new__ is what Memory(…) comes down to, at half its cost.
    return list(map(tuple.__new__, repeat(Memory), fields))
