"""New memories: numbered, as events, in the table, and as the records that callers get."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import compress, count, repeat
from operator import add
from typing import final, overload

import numpy as np
from numpy.typing import NDArray

from ...memory.events import Added, Additions, Row, Start, named
from ...memory.records import Memory, memories_of
from ...memory.requests import NewMemories
from ...memory.tiers import Temperature, Tier
from ...rules.lifetime import begun
from ..vectors import Quantised
from .agent_columns import AgentColumns
from .hashes import limbs_of, of_new, sums_of

_FEW = 48
"""Fewer hashes are added one by one."""
_HOT, _WARM = int(Temperature.HOT), int(Temperature.WARM)
_CAPPED = (int(Tier.PINNED), int(Tier.CRITICAL))
_TIERS, _TEMPERATURES = tuple(Tier), tuple(Temperature)


def numbered(
    new: NewMemories, starts: Sequence[Start | None], blocks: Iterable[AgentColumns]
) -> Additions:
    """The events that add these memories, each with the number that follows in its agent's block.

    ``starts`` says how each memory begins.
    """
    following = {own.agent_id: count(own.next_sequence) for own in blocks}
    sequences = list(map(next, map(following.__getitem__, new.agents)))
    tiers = list(map(int, new.tiers))
    return Additions(new.agents, sequences, tiers, new.contents, new.metadata, starts)


def needs_room(new: Additions) -> list[int]:
    """The places of new memories that are hot or in a tier with a cap: other ones may make room."""
    if not any(map(new.tiers.count, _CAPPED)) and new.starts.count(None) == len(new.starts):
        return []  # as in most batches
    return [
        place
        for place, (tier, start) in enumerate(zip(new.tiers, new.starts, strict=True))
        if tier in _CAPPED or (start is not None and start.temperature == _HOT)
    ]


def add_all(
    blocks: Mapping[str, AgentColumns],
    counts: Mapping[str, int],
    new: Additions,
    tick: int,
    vectors: Quantised,
    lengths: NDArray[np.float64],
) -> None:
    """Add new memories of this tick, as many of each agent as ``counts`` says.

    Each agent's memories have the next sequence numbers. ``lengths`` has the vectors' lengths.
    """
    table = blocks[new.agents[0]].table
    table.make_room([(block, counts[agent]) for agent, block in blocks.items()])
    to_row = {}
    """What makes a row of the table from a sequence number, by agent."""
    for agent, block in blocks.items():
        count = counts[agent]
        to_row[agent] = block.start + block.size - block.next_sequence
        block.size += count
        block.next_sequence += count
    rows = list(map(add, map(to_row.__getitem__, new.agents), new.sequences))
    table.write(rows, new, tick, vectors, lengths)
    if 0 in new.tiers or new.starts.count(None) < len(new.starts):
        for agent, tier, start in zip(new.agents, new.tiers, new.starts, strict=True):
            block = blocks[agent]
            if start is not None and start.expires_tick is not None:
                block.next_expiry = min(block.next_expiry, start.expires_tick)
            if tier == 0 or (start is not None and start.temperature == _HOT):
                block.front_changed()
    if table.sums.known:
        _hash(blocks, new, tick, vectors)


def _hash(
    blocks: Mapping[str, AgentColumns], new: Additions, tick: int, vectors: Quantised
) -> None:
    """Add the hashes over new memories to the sums of the agents that are hashed."""
    sums = blocks[new.agents[0]].table.sums
    slots = {agent: block.slot for agent, block in blocks.items()}
    if unknown := set(sums.unknown(list(slots.values()))):
        slots = {agent: slot for agent, slot in slots.items() if slot not in unknown}
        is_hashed = [agent in slots for agent in new.agents]
        new = Additions._make([list(compress(column, is_hashed)) for column in new])
        vectors = vectors[is_hashed]
    if not slots:
        return
    owners = list(map(slots.__getitem__, new.agents))
    marks = of_new(new, tick, vectors.tobytes())
    if len(owners) < _FEW:
        for owner, mark in zip(owners, marks, strict=True):
            sums.add(owner, int.from_bytes(mark, "big"))
    elif len(slots) < len(owners):  # the memories of an agent have to lie together
        order = sorted(range(len(owners)), key=owners.__getitem__)
        marks = [marks[place] for place in order]
        counts = Counter(owners)
        owners = sorted(counts)
        sums.add_all(owners, sums_of(marks, [counts[owner] for owner in owners]))
    else:
        sums.add_all(owners, limbs_of(marks))


def forget_texts(
    events: list[Row], vectors: Sequence[Quantised], gone: Set[tuple[str, int]]
) -> Quantised:
    """Blank the events that add memories which are purged in the same commit; all their vectors.

    ``gone`` has the agent and the sequence number of each purged memory.
    """
    kept = np.concatenate(vectors)
    place = -1
    for index, event in enumerate(named(events)):
        if isinstance(event, Added):
            place += 1
            if (event.agent_id, event.sequence) in gone:
                events[index] = event._replace(content=None, metadata=None, start=None)
                kept[place] = 0
    return kept


@final
class AddedMemories(Sequence[Memory]):
    """The records of new memories, as these were stored; made when somebody looks at them.

    Few callers that store thousands look at them, and to make the records takes as long as to store
    the memories. ``others`` has the records that are not what was asked for, by their place.
    """

    __slots__ = ("_made", "_new", "_others", "_prefixes", "_tick")

    def __init__(
        self, new: Additions, prefixes: Mapping[str, str], tick: int, others: Mapping[int, Memory]
    ) -> None:
        self._new = new
        self._prefixes = prefixes
        self._tick = tick
        self._others = others
        self._made: list[Memory] | None = None

    def __len__(self) -> int:
        return len(self._new.agents)

    @overload
    def __getitem__(self, place: int) -> Memory: ...
    @overload
    def __getitem__(self, place: slice) -> list[Memory]: ...
    def __getitem__(self, place: int | slice) -> Memory | list[Memory]:
        return self._memories()[place]

    def __iter__(self) -> Iterator[Memory]:
        return iter(self._memories())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list | tuple | AddedMemories):
            return self._memories() == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a list's

    def __repr__(self) -> str:
        return repr(self._memories())

    def _memories(self) -> list[Memory]:
        if self._made is None:
            new = self._new
            heats: Iterable[int] = repeat(_WARM)
            kinds = expires = None  # as of most memories
            if 0 in new.tiers or new.starts.count(None) < len(new.starts):
                heats, kinds, expires = zip(*map(begun, new.tiers, new.starts), strict=True)
            made = memories_of(
                prefixes=map(self._prefixes.__getitem__, new.agents),
                agents=new.agents,
                contents=new.contents,
                tiers=map(_TIERS.__getitem__, new.tiers),
                created=repeat(self._tick),
                entered=repeat(self._tick),
                sequences=new.sequences,
                temperatures=map(_TEMPERATURES.__getitem__, heats),
                metadata=new.metadata,
                traits=kinds,
                expires=expires,
            )
            for place, memory in self._others.items():
                made[place] = memory
            self._made = made
        return self._made
