"""Tiers and moves: how many memories a tier may hold, and what each move makes of a memory."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from ..errors import InvalidInput, MemoryNotFound, MemoryPinned, TierFull
from ..memory.records import NEVER, Memory
from ..memory.tiers import RETENTION_NAMES, TIER_NAMES, Retention, Temperature, Tier

# Caps: which memory makes room in a full tier

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


def demote_over_cap(tier: Tier, caps: Caps, occupants: Occupants) -> list[Demotion]:
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


# Transitions
#
# What each move makes of a memory: tier × temperature × retention, every legal move in one table.
#
# A pinned memory is active and hot, and only unpinning ends that. All other memories have any of
# the three temperatures, and keep their temperature while they are archived or deleted. That makes
# six columns: pinned, the three temperatures of an active memory, archived, deleted.
#
# The table says what a move does to one memory. Whether there is room for the memory (caps, the
# limits of hot), whether its time has come (lifetime, decay, grace) and where a rule sends it is
# decided elsewhere, before the move is made.


class Axes(NamedTuple):
    """Where a memory stands."""

    pinned: bool
    temperature: Temperature
    retention: Retention


class Transition(StrEnum):
    """What may be done to a memory, or happen to it."""

    PIN = "pin"
    UNPIN = "unpin"
    SET_TIER = "set_tier"
    """To any tier but pinned; also because the tier had to make room."""
    PROMOTE = "promote"
    DEMOTE_TO_WARM = "demote to warm"
    DEMOTE_TO_COLD = "demote to cold"
    WARM = "warm"
    SPILL_TO_WARM = "spill to warm"
    SPILL_TO_COLD = "spill to cold"
    ARCHIVE = "archive"
    DELETE = "delete"
    RESTORE = "restore"
    FORGET = "forget"
    EXPIRE = "expire"
    PURGE = "purge"
    DECAY = "decay"
    COMPACT_TO_HOT = "compact to hot"
    COMPACT_TO_WARM = "compact to warm"
    COMPACT_TO_COLD = "compact to cold"
    PRUNE = "prune"


class Refusal(Enum):
    """Why a move is refused."""

    IS_PINNED = auto()
    """:class:`MemoryPinned`: the memory has to be unpinned first."""
    IS_HIDDEN = auto()
    """:class:`InvalidInput`: the memory has to be restored first."""
    IS_GONE = auto()
    """:class:`MemoryNotFound`: the memory is deleted."""


class _Cell(Enum):
    STAYS = auto()
    IS_PINNED = auto()
    IS_PURGED = auto()


Outcome = _Cell | Temperature | Retention | Refusal
"""The temperature or the retention that the memory has then, or one of the words above."""

PINNED: Final = Axes(True, Temperature.HOT, Retention.ACTIVE)

STATES: Final = (PINNED, *[Axes(False, heat, kept) for kept in Retention for heat in Temperature])
"""All that a memory can be."""

_HOT, _WARM, _COLD = Temperature
_ACTIVE, _ARCHIVED, _DELETED = Retention
_STAYS, _PINNED, _PURGED = _Cell
_NO, _HIDDEN, _GONE = Refusal

# fmt: off
TABLE: Final[Mapping[Transition, tuple[Outcome, ...]]] = MappingProxyType({
    # what is done to a memory that is:
    #                           pinned   hot        warm       cold       archived  deleted
    Transition.PIN:             (_STAYS, _PINNED,   _PINNED,   _PINNED,   _PINNED,  _GONE),
    Transition.UNPIN:           (_WARM,  _STAYS,    _STAYS,    _STAYS,    _STAYS,   _GONE),
    Transition.SET_TIER:        (_WARM,  _STAYS,    _STAYS,    _STAYS,    _STAYS,   _GONE),
    Transition.PROMOTE:         (_STAYS, _STAYS,    _HOT,      _HOT,      _HIDDEN,  _GONE),
    Transition.DEMOTE_TO_WARM:  (_NO,    _WARM,     _STAYS,    _STAYS,    _HIDDEN,  _GONE),
    Transition.DEMOTE_TO_COLD:  (_NO,    _COLD,     _COLD,     _STAYS,    _HIDDEN,  _GONE),
    Transition.WARM:            (_STAYS, _STAYS,    _STAYS,    _WARM,     _HIDDEN,  _GONE),
    Transition.SPILL_TO_WARM:   (_NO,    _WARM,     _STAYS,    _STAYS,    _STAYS,   _GONE),
    Transition.SPILL_TO_COLD:   (_NO,    _COLD,     _STAYS,    _STAYS,    _STAYS,   _GONE),
    Transition.ARCHIVE:         (_NO,    _ARCHIVED, _ARCHIVED, _ARCHIVED, _STAYS,   _GONE),
    Transition.DELETE:          (_NO,    _DELETED,  _DELETED,  _DELETED,  _DELETED, _GONE),
    Transition.RESTORE:         (_STAYS, _STAYS,    _STAYS,    _STAYS,    _ACTIVE,  _ACTIVE),
    Transition.FORGET:          (_NO,    _PURGED,   _PURGED,   _PURGED,   _PURGED,  _PURGED),
    # what happens to a memory that is:
    #                           pinned   hot        warm       cold       archived  deleted
    Transition.EXPIRE:          (_STAYS, _DELETED,  _DELETED,  _DELETED,  _STAYS,   _STAYS),
    Transition.PURGE:           (_STAYS, _STAYS,    _STAYS,    _STAYS,    _STAYS,   _PURGED),
    Transition.DECAY:           (_STAYS, _WARM,     _COLD,     _STAYS,    _STAYS,   _STAYS),
    Transition.COMPACT_TO_HOT:  (_STAYS, _STAYS,    _HOT,      _HOT,      _STAYS,   _STAYS),
    Transition.COMPACT_TO_WARM: (_STAYS, _WARM,     _STAYS,    _WARM,     _STAYS,   _STAYS),
    Transition.COMPACT_TO_COLD: (_STAYS, _COLD,     _COLD,     _STAYS,    _STAYS,   _STAYS),
    Transition.PRUNE:           (_STAYS, _STAYS,    _STAYS,    _ARCHIVED, _STAYS,   _STAYS),
})
# fmt: on
"""For each column what the memory becomes, or why the move is refused."""

_REFUSED = MappingProxyType(
    {
        Transition.DEMOTE_TO_WARM: "be demoted",
        Transition.DEMOTE_TO_COLD: "be demoted",
        Transition.SPILL_TO_WARM: "be spilled",
        Transition.SPILL_TO_COLD: "be spilled",
        Transition.ARCHIVE: "become archived",
        Transition.DELETE: "become deleted",
        Transition.FORGET: "be forgotten",
    }
)
"""What a pinned memory can't do."""


def after(move: Transition, axes: Axes) -> Axes | Refusal | None:
    """Where a memory stands after a move; None once it is purged.

    >>> after(Transition.PIN, Axes(False, Temperature.COLD, Retention.ARCHIVED)) == PINNED
    True
    """
    cell = TABLE[move][_column(axes)]
    if isinstance(cell, Temperature):
        return Axes(False, cell, axes.retention)
    if isinstance(cell, Retention):
        return axes._replace(retention=cell)
    if isinstance(cell, Refusal):
        return cell
    return axes if cell is _STAYS else PINNED if cell is _PINNED else None


def permitted(move: Transition, memory: Memory) -> Axes | None:
    """Where a memory stands after a move that somebody asks for; raises what the table refuses."""
    axes = after(move, axes_of(memory.tier, memory.temperature, memory.retention))
    if axes is Refusal.IS_PINNED:
        raise MemoryPinned(
            f"memory {memory.id} is pinned and can't {_REFUSED[move]}", hint="unpin it first"
        )
    if axes is Refusal.IS_HIDDEN:
        raise InvalidInput(
            f"memory {memory.id} is {RETENTION_NAMES[memory.retention]}",
            hint="restore it first, which makes it active again",
        )
    if axes is Refusal.IS_GONE:
        raise MemoryNotFound(
            f"{memory.agent_id} has no memory {memory.id!r:.80}",
            hint="it was deleted; restore it first, which makes it active again",
        )
    return axes


def demotion(to: Temperature) -> Transition:
    """The move that demotes a memory to this temperature, which is warm or cold."""
    if to is Temperature.HOT:
        raise InvalidInput(
            "to demote a memory makes it warm or cold", hint="promote it to make it hot"
        )
    warm = to is Temperature.WARM
    return Transition.DEMOTE_TO_WARM if warm else Transition.DEMOTE_TO_COLD


def entered(axes: Axes, tier: int) -> Axes:
    """Where a memory stands after it entered a tier; ValueError for one that is deleted."""
    axes_inside = after(Transition.PIN if tier == Tier.PINNED else Transition.SET_TIER, axes)
    if not isinstance(axes_inside, Axes):
        raise ValueError(f"a memory that is {RETENTION_NAMES[axes.retention]} enters no tier")
    return axes_inside


def cooler(temperature: Temperature) -> Temperature:
    """The temperature to which an active memory fades."""
    axes = after(Transition.DECAY, Axes(False, temperature, Retention.ACTIVE))
    return axes.temperature if isinstance(axes, Axes) else temperature


def end_after(retention: Retention, expires: int, tick: int) -> int:
    """When a memory that got this retention in ``tick`` expires, if it would at ``expires``.

    A memory that is restored after it expired never expires again.
    """
    return NEVER if retention is Retention.ACTIVE and expires <= tick else expires


def axes_of(tier: int, temperature: int, retention: int = Retention.ACTIVE) -> Axes:
    """Where a memory with these numbers stands."""
    return Axes(tier == Tier.PINNED, Temperature(temperature), Retention(retention))


def _column(axes: Axes) -> int:
    if axes.pinned:
        return 0
    return 1 + axes.temperature if axes.retention is _ACTIVE else 3 + axes.retention
