"""New memories: as what they are asked for, as events, and as the records that callers get."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from types import MappingProxyType

from agents.memory.caps import Caps
from agents.memory.events import Added, Start
from agents.memory.metadata import KeptMetadata
from agents.memory.records import NEW_RELEVANCE, NO_METADATA, Memory, memory_id
from agents.memory.retention import Retention
from agents.memory.temperature import Temperature
from agents.memory.tiers import Tier

__all__ = ["New", "events_of", "is_hot", "memories_of", "which_are_plain"]

New = tuple[str, str, Tier, KeptMetadata | None, Start | None]
"""A new memory: agent, text, tier, metadata, and how it differs from a plain one."""

_HOT, _WARM = int(Temperature.HOT), int(Temperature.WARM)
_TEMPERATURES = tuple(Temperature)
_PLAIN = Start(_WARM, "fact", (), None)


def is_hot(item: New) -> bool:
    """Whether a new memory begins hot."""
    start = item[4]
    return item[2] is Tier.PINNED or (start is not None and start.temperature == Temperature.HOT)


def which_are_plain(items: Sequence[New], caps: Caps) -> list[bool]:
    """Of each new memory, whether it is not hot, and in a tier without a cap."""
    is_free = [caps.of(tier) is None for tier in Tier]
    return [is_free[item[2]] and (item[4] is None or item[4][0] != _HOT) for item in items]


# tuple.__new__ is what the records' own constructors come down to, at half their cost.


def events_of(items: Sequence[New], sequences: Sequence[int]) -> list[Added]:
    """The events that add these memories, with these sequence numbers."""
    agents, contents, tiers, metadata, starts = zip(*items, strict=True)
    fields = zip(
        repeat("add"), agents, sequences, map(int, tiers), contents, metadata, starts, strict=False
    )
    return list(map(tuple.__new__, repeat(Added), fields))


def memories_of(
    items: Sequence[New], sequences: Sequence[int], prefixes: Iterable[str], tick: int
) -> list[Memory]:
    """These memories as they are in their first tick; their ids have these beginnings."""
    agents, contents, tiers, metadata, starts = zip(*items, strict=True)
    begun = [start or _PLAIN for start in starts]
    fields = zip(
        map(memory_id, prefixes, sequences),
        agents,
        contents,
        tiers,
        repeat(tick),
        repeat(tick),
        sequences,
        [NO_METADATA if own is None else MappingProxyType(own) for own in metadata],
        [own[1] for own in begun],
        [own[2] for own in begun],
        [
            _TEMPERATURES[own[0]] if tier else Temperature.HOT
            for own, tier in zip(begun, tiers, strict=True)
        ],
        repeat(Retention.ACTIVE),
        [own[3] for own in begun],
        repeat(0),
        repeat(None),
        repeat(NEW_RELEVANCE),
        strict=False,
    )
    return list(map(tuple.__new__, repeat(Memory), fields))
