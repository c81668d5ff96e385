"""Rules that move memories between hot, warm and cold.

A rule says which memories it is about and which temperature they get. For each memory the first
rule that holds decides; where none holds, it stays. A pinned memory is never moved.

A rule may ask how warm a memory is now, so a move can make another rule hold. The rules are
followed to the end: "hot becomes warm" and "warm becomes cold" take a hot memory to cold at once.
Where they lead round in a circle, the memory stays. So a second run finds nothing to do.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..memory.records import Traits
from ..memory.tiers import TEMPERATURE_VALUES, Temperature, Tier, parse_tier
from .temperature import HotLimits

__all__ = [
    "Condition",
    "Facts",
    "HotLimits",
    "Move",
    "Rule",
    "Sessions",
    "parse_rules",
    "plan",
    "resting_places",
]

Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]
Ticks = Callable[[int | str], int]
"""Translates a duration, such as 168 or "7d", to ticks."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What must be true of a memory: all that is given. An empty condition is always true."""

    kinds: frozenset[str] | None = None
    """Its kind is one of these."""
    tags: frozenset[str] | None = None
    """It has one of these tags."""
    temperatures: frozenset[int] | None = None
    tiers: frozenset[int] | None = None
    idle: int = 0
    """Not retrieved for at least this many ticks."""
    idle_below: int | None = None
    """Retrieved or created less than this many ticks ago."""
    age: int = 0
    """Created at least this many ticks ago."""
    accesses: int = 0
    """Retrieved at least this many times."""
    accesses_below: int | None = None
    """Retrieved fewer times than this."""
    any: "tuple[Condition, ...]" = ()
    """One of these holds."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Where ``when`` holds and ``unless`` does not, the temperature becomes ``to``."""

    name: str
    when: Condition
    unless: Condition | None
    to: Temperature


class Facts(NamedTuple):
    """The memories of one agent, one row each, oldest first."""

    tiers: NDArray[np.int8]
    temperatures: NDArray[np.int8]
    ages: NDArray[np.int64]
    idles: NDArray[np.int64]
    accesses: NDArray[np.int64]
    traits: Sequence[Traits]


class Move(NamedTuple):
    """A row of :class:`Facts` gets another temperature, by the rule of this name."""

    row: int
    to: Temperature
    rule: str


def parse_rules(rules: Sequence[Mapping[str, Any]], ticks: Ticks) -> tuple[Rule, ...]:
    """The rules as written in a config, which was checked against its schema."""
    return tuple(
        Rule(
            rule["name"],
            _parse_condition(rule["when"], ticks),
            _parse_condition(rule["unless"], ticks) if "unless" in rule else None,
            TEMPERATURE_VALUES[rule["to"]],
        )
        for rule in rules
    )


def _parse_condition(declared: Mapping[str, Any], ticks: Ticks) -> Condition:
    def one_of(key: str) -> Iterable[str] | None:
        value = declared.get(key)
        return [value] if isinstance(value, str) else value

    kinds, tags = one_of("kind"), one_of("tag")
    temperatures, tiers = one_of("temperature"), one_of("tier")
    return Condition(
        kinds=None if kinds is None else frozenset(kinds),
        tags=None if tags is None else frozenset(tags),
        temperatures=None
        if temperatures is None
        else frozenset(map(TEMPERATURE_VALUES.__getitem__, temperatures)),
        tiers=None if tiers is None else frozenset(map(parse_tier, tiers)),
        idle=ticks(declared.get("idle", 0)),
        idle_below=ticks(declared["idle_below"]) if "idle_below" in declared else None,
        age=ticks(declared.get("age", 0)),
        accesses=declared.get("accesses", 0),
        accesses_below=declared.get("accesses_below"),
        any=tuple(_parse_condition(each, ticks) for each in declared.get("any", ())),
    )


class Sessions(NamedTuple):
    """Which session each row is part of, and what a session may have in hot."""

    numbers: Rows
    """-1 for no session."""
    limits: HotLimits
    only: int | None = None
    """The session of which rows may move; None for all rows."""


def plan(
    facts: Facts,
    rules: Sequence[Rule],
    limits: HotLimits,
    cost: Callable[[int], int],
    sessions: Sessions | None = None,
) -> list[Move]:
    """The moves that ``rules`` ask for, ordered by row.

    Into hot go the newest first, each only if hot then stays within ``limits``, with what is there
    already, pinned included, and without what leaves; one that does not fit is skipped, and a
    smaller one may still go in. ``cost`` gives the tokens of a row; it is asked only about rows
    that are hot or might become so. With ``sessions``, hot stays within the limits of each session
    as well. Applying the moves and planning again gives none.
    """
    if not rules:
        return []
    targets, deciders = _follow(facts, rules)
    hot = facts.temperatures == Temperature.HOT
    moving = (targets != facts.temperatures) & (facts.tiers != Tier.PINNED)
    if sessions is not None and sessions.only is not None:
        moving &= sessions.numbers == sessions.only
    entering = moving & (targets == Temperature.HOT)
    if entering.any():
        staying = np.flatnonzero(hot & ~moving)
        admitted = _admit(np.flatnonzero(entering), staying, limits, cost, sessions)
        moving[entering] = False
        moving[admitted] = True
    rows = np.flatnonzero(moving)
    chosen = [rules[number] for number in deciders[rows].tolist()]
    return [Move(row, rule.to, rule.name) for row, rule in zip(rows.tolist(), chosen, strict=True)]


def resting_places(facts: Facts, rules: Sequence[Rule]) -> NDArray[np.int8]:
    """The temperature at which ``rules`` leave each row, if hot had room for all."""
    return _follow(facts, rules)[0] if rules else facts.temperatures


def _follow(facts: Facts, rules: Sequence[Rule]) -> tuple[NDArray[np.int8], Rows]:
    """For each row the temperature at which the rules leave it, and the rule that says so."""
    traits = _Distinct.among(facts.traits)
    # The deciding rule at each of the three temperatures; the first rule is written last.
    decided = np.full((len(Temperature), len(facts.tiers)), -1, np.intp)
    for number in reversed(range(len(rules))):
        rule = rules[number]
        holds = _holds(rule.when, facts, traits)
        if rule.unless is not None:
            holds = holds & ~_holds(rule.unless, facts, traits)
        decided = np.where(holds, number, decided)
    to = np.array([rule.to for rule in rules], np.int8)
    following = np.where(decided < 0, _EACH_TEMPERATURE, to[decided])

    # There are three temperatures: a memory that still moves after two moves goes in a circle.
    rows, now = np.arange(len(facts.tiers)), facts.temperatures
    first = following[now, rows]
    second = following[first, rows]
    rests = following[second, rows] == second
    deciders = np.where(first == second, decided[now, rows], decided[first, rows])
    return np.where(rests, second, now), deciders


_EACH_TEMPERATURE = np.array(Temperature, np.int8)[:, None]


class _Distinct(NamedTuple):
    """The distinct traits, and for each row which of them it has."""

    each: list[Traits]
    numbers: Rows

    @classmethod
    def among(cls, traits: Sequence[Traits]) -> "_Distinct":
        objects = np.fromiter(map(id, traits), np.uint64, len(traits))
        _, first, numbers = np.unique(objects, return_index=True, return_inverse=True)
        return cls([traits[row] for row in first.tolist()], numbers)

    def where(self, true: Callable[[Traits], bool]) -> Mask:
        """The rows of which ``true`` says yes; it is asked once for each distinct traits."""
        return np.fromiter(map(true, self.each), np.bool_, len(self.each))[self.numbers]


def _holds(condition: Condition, facts: Facts, traits: _Distinct) -> Mask:
    """Where a condition holds, by temperature and row; one line if it does not ask for any."""
    holds: Mask = np.ones((1, len(facts.tiers)), np.bool_)
    kinds, tags = condition.kinds, condition.tags
    if kinds is not None:
        holds = holds & traits.where(lambda each: each.kind in kinds)
    if tags is not None:
        holds = holds & traits.where(lambda each: not tags.isdisjoint(each.tags))
    if condition.tiers is not None:
        holds = holds & np.isin(facts.tiers, list(condition.tiers))
    if condition.temperatures is not None:
        holds = holds & np.isin(_EACH_TEMPERATURE, list(condition.temperatures))
    if condition.idle:
        holds = holds & (facts.idles >= condition.idle)
    if condition.idle_below is not None:
        holds = holds & (facts.idles < condition.idle_below)
    if condition.age:
        holds = holds & (facts.ages >= condition.age)
    if condition.accesses:
        holds = holds & (facts.accesses >= condition.accesses)
    if condition.accesses_below is not None:
        holds = holds & (facts.accesses < condition.accesses_below)
    if condition.any:
        one: Mask = np.zeros((1, 1), np.bool_)
        for each in condition.any:
            one = one | _holds(each, facts, traits)
        holds = holds & one
    return holds


def _admit(
    entering: Rows,
    staying: Rows,
    limits: HotLimits,
    cost: Callable[[int], int],
    sessions: Sessions | None,
) -> list[int]:
    """The rows of ``entering`` that fit into hot beside ``staying``, tried from the newest."""
    rooms = defaultdict[int, HotLimits](lambda: limits if sessions is None else sessions.limits)
    """By session, what is left of its limits; by -1, what is left of those of all of hot."""
    rooms[-1] = limits

    def around(row: int) -> set[int]:
        return {-1} if sessions is None else {-1, int(sessions.numbers[row])}

    def enter(row: int, tokens: int) -> None:
        for group in around(row):
            rooms[group] = HotLimits(rooms[group].tokens - tokens, rooms[group].facts - 1)

    for row in staying.tolist():
        enter(row, cost(row))
    admitted: list[int] = []
    for row in reversed(entering.tolist()):
        if not rooms[-1].hold(0):
            break  # nothing fits any more, however small
        more = cost(row)
        if all(rooms[group].hold(more) for group in around(row)):
            admitted.append(row)
            enter(row, more)
    return admitted
