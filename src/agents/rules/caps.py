"""How many memories a tier may hold, and which memory makes room when it is full."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ..errors import TierFull
from ..memory.tiers import TIER_NAMES, Tier

Turn = tuple[int, int]
"""Orders the memories that entered a tier in one tick."""


class Occupant(Protocol):
    """A memory, as far as caps look at it."""

    @property
    def sequence(self) -> int: ...
    @property
    def tier(self) -> Tier: ...
    @property
    def tier_tick(self) -> int: ...
    @property
    def turn(self) -> Turn: ...


Occupants = Callable[[Tier], Sequence[Occupant]]
"""Gives an agent's memories in a tier, in any order."""


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that a tier holds for one agent. Tiers without an entry are unlimited."""

    pinned: int
    critical: int
    reject: bool = False
    """Refuse the newcomer instead of demoting the oldest."""

    def of(self, tier: Tier) -> int | None:
        """The cap of ``tier``, or None."""
        if tier is Tier.PINNED:
            return self.pinned
        if tier is Tier.CRITICAL:
            return self.critical
        return None


class Demotion(NamedTuple):
    """A memory that moves down to make room."""

    memory: Occupant
    to: Tier


def age(memory: Occupant) -> tuple[int, Turn]:
    """Sorts the memories of a tier from the oldest: the memory that entered it first."""
    return memory.tier_tick, memory.turn


def entering(newest: int, turns: Iterable[Turn]) -> Turn:
    """The turn of a memory that enters a tier from another one.

    A new memory has the turn ``(sequence, 0)``. A memory that enters later comes after the newest
    memory of the agent, and after all that entered since then: ``turns`` has theirs.
    """
    return newest, 1 + max((number for place, number in turns if place == newest), default=0)


def make_room(tier: Tier, caps: Caps, occupants: Occupants, newcomer: int | None) -> list[Demotion]:
    """The demotions, in order, after which ``tier`` has room for one more.

    The oldest of a full tier moves one tier down, and where that one is full too, its oldest moves
    on. ``newcomer`` is the sequence of the memory that enters ``tier``, if it exists already, in
    another tier; it is never the one to go. Raises :class:`TierFull` when the config says reject,
    or the cap is 0.
    """
    cap = caps.of(tier)
    if cap is None:
        return []
    present = occupants(tier)
    if len(present) < cap:
        return []
    if caps.reject or cap == 0:
        raise TierFull(_full_message(tier, cap, caps), tier=tier, cap=cap)
    oldest = min(present, key=age)
    return _move_down(oldest, caps, occupants, newcomer)


def _move_down(
    memory: Occupant, caps: Caps, occupants: Occupants, newcomer: int | None
) -> list[Demotion]:
    target = Tier(memory.tier + 1)
    while caps.of(target) == 0:  # a tier that holds nothing is passed through
        target = Tier(target + 1)
    demotion = Demotion(memory, target)
    cap = caps.of(target)
    if cap is None:
        return [demotion]
    # The newcomer may be leaving this very tier for a higher one: its place is free.
    present = [other for other in occupants(target) if other.sequence != newcomer]
    if len(present) < cap:
        return [demotion]
    displaced = min(present, key=age)
    return [demotion, *_move_down(displaced, caps, occupants, newcomer)]


def relieve(tier: Tier, caps: Caps, occupants: Occupants) -> list[Demotion]:
    """The demotions by which one memory leaves a ``tier`` that is over its cap; none if it is not.

    For caps that are smaller than when the agent last wrote. ``reject`` makes no difference here:
    there is no newcomer to refuse.
    """
    cap = caps.of(tier)
    present = occupants(tier)
    if cap is None or len(present) <= cap:
        return []
    return _move_down(min(present, key=age), caps, occupants, newcomer=None)


def _full_message(tier: Tier, cap: int, caps: Caps) -> str:
    name = TIER_NAMES[tier]
    if cap == 0:
        return (
            f"no memory may be {name}: memory.max_{name} is 0. Use another tier, or raise the cap"
        )
    noun = "memory" if cap == 1 else "memories"
    return (
        f"{name} is full: it holds {cap} {noun} (memory.max_{name}). Unpin or delete "
        "one or move it to another tier, raise the cap, or set memory.on_tier_full: demote"
    )
