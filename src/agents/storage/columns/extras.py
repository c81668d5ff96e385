"""Notes, recalls, turns in capped tiers, held values and origins: most agents have none of them."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple, final

from ...memory.records import Memory
from ...memory.requests import KeptMetadata
from ...memory.sources import SOURCE, source_of
from ...memory.tiers import Tier
from ...rules.tiers import Turn, entering
from ..note import Note


class Standing(NamedTuple):
    """Where a memory stands in its tier."""

    sequence: int
    tier: Tier
    tier_tick: int
    turn: Turn


def first_turn(sequence: int) -> Turn:
    """The turn of a memory in the tier that it began in."""
    return sequence, 0


class TierOrder(dict[int, Turn]):
    """By sequence number, the turns of memories that entered a tier from another one.

    All other memories have the turn of a new memory. ``state_hash()`` does not cover turns: the
    events of the journal say them, and journals of before turns keep their hashes.
    """

    newest = 0
    """The sequence number of the newest memory that an event added, if the table lacks it."""

    def standing(self, sequence: int, tier: Tier, tier_tick: int) -> Standing:
        """Where a memory that entered this tier in this tick stands there."""
        return Standing(sequence, tier, tier_tick, self.of(sequence))

    def enter(self, sequence: int, newest: int | None) -> None:
        """A memory enters a tier after ``newest`` was added; None stands for a tier without a cap.

        So the order is that of the events.
        """
        self.pop(sequence, None)
        if newest is not None:
            self[sequence] = entering(max(newest, self.newest), self.values())

    def of(self, sequence: int) -> Turn:
        """The turn of a memory."""
        return self.get(sequence) or first_turn(sequence)

    def take(self, sequence: int, place: int, number: int) -> None:
        """A memory takes over the turn of another one."""
        self[sequence] = place, number

    def forget(self, sequences: Iterable[int]) -> None:
        """These memories are gone for good."""
        for sequence in sequences:
            self.pop(sequence, None)


class Extras:
    """An agent's notes, recalls, turns in capped tiers, and cold critical memories."""

    __slots__ = ("critical_elsewhere", "notes", "recalls", "tier_order")

    def __init__(self) -> None:
        self.recalls: dict[int, tuple[int, ...]] = {}
        self.critical_elsewhere: dict[int, Memory] = {}
        self.tier_order = TierOrder()
        self.notes: dict[str, Note] = {}


NO_VALUES: Mapping[str, Any] = {}


@final
class Holdings:
    """JSON values by topic and name, with the sum of a hash over each."""

    __slots__ = ("total", "values")

    def __init__(self, values: Iterable[tuple[str, str, Any]] = ()) -> None:
        self.values: dict[str, dict[str, Any]] = {}
        self.total = 0
        for topic, name, value in values:
            self.hold(topic, name, value)

    def __bool__(self) -> bool:
        return bool(self.values)

    def of(self, topic: str) -> Mapping[str, Any]:
        """The values of a topic, by name."""
        return self.values.get(topic, NO_VALUES)

    def hold(self, topic: str, name: str, value: Any) -> None:
        """Hold another value under a name; None removes the name."""
        names = self.values.setdefault(topic, {})
        if name in names:
            self.total -= _digest(topic, name, names.pop(name))
        if value is not None:
            names[name] = value
            self.total += _digest(topic, name, value)
        if not names:
            del self.values[topic]

    def rows(self) -> list[tuple[str, str, Any]]:
        """Topic, name and value of all that is held, in the order of topics and names."""
        return [
            (topic, name, value)
            for topic, names in sorted(self.values.items())
            for name, value in sorted(names.items())
        ]


def _digest(topic: str, name: str, value: Any) -> int:
    text = json.dumps([topic, name, value], ensure_ascii=False)
    return int.from_bytes(sha256(text.encode()).digest(), "big")


@final
class Origins(dict[str, list[int]]):
    """By the id of an origin, the sequence numbers of the agent's copies of it, oldest first.

    A copy that was purged stays: no sequence number is used twice.
    """

    def __init__(self) -> None:
        super().__init__()
        self.by_teller: dict[str, list[int]] = {}
        """By the id of a teller, the sequence numbers of what it told, oldest first."""
        self.upto = 1
        """The first sequence number whose origin is not known yet."""

    def know(self, sequence: int, metadata: KeptMetadata | None) -> None:
        """Look at the metadata of a memory."""
        if metadata is not None and SOURCE in metadata:
            source = source_of(metadata)
            if source is not None:
                self.setdefault(source.origin_id, []).append(sequence)
                self.by_teller.setdefault(source.teller, []).append(sequence)
