"""The table of moves, compared with what a bank does: every move in every state."""

from collections.abc import Callable
from typing import Any

import pytest

from agents import (
    AgentMemory,
    InvalidInput,
    Memory,
    MemoryBank,
    MemoryNotFound,
    MemoryPinned,
    Retention,
    Temperature,
    TierMemError,
)
from agents.memory.records import NEVER
from agents.rules.tiers import (
    PINNED,
    STATES,
    TABLE,
    Axes,
    Refusal,
    Transition,
    after,
    axes_of,
    cooler,
    demotion,
    end_after,
    entered,
    permitted,
)
from asking import asked
from banks import MakeBank

ACTIVE, ARCHIVED, DELETED = Retention
HOT, WARM, COLD = Temperature
LIFE, LATER, GRACE = 5, 10, 1000

ASKED: dict[Transition, Callable[[AgentMemory, str], object]] = {
    Transition.PIN: lambda alice, given: alice.pin(given),
    Transition.UNPIN: lambda alice, given: alice.unpin(given),
    Transition.SET_TIER: lambda alice, given: alice.set_tier(given, "important"),
    Transition.PROMOTE: lambda alice, given: asked(alice, "promote", given),
    Transition.DEMOTE_TO_WARM: lambda alice, given: asked(alice, "demote", given, "warm"),
    Transition.DEMOTE_TO_COLD: lambda alice, given: asked(alice, "demote", given, "cold"),
    Transition.WARM: lambda alice, given: asked(alice, "warm", given),
    Transition.SPILL_TO_WARM: lambda alice, given: alice.spill(ids=[given]),
    Transition.SPILL_TO_COLD: lambda alice, given: alice.spill(ids=[given]),
    Transition.ARCHIVE: lambda alice, given: asked(alice, "archive", given),
    Transition.DELETE: lambda alice, given: alice.delete(given),
    Transition.RESTORE: lambda alice, given: asked(alice, "restore", given),
    Transition.FORGET: lambda alice, given: alice.forget(given),
}
"""What somebody asks of a memory."""


def _swept(tick: int) -> Callable[[MemoryBank], object]:
    def sweep(bank: MemoryBank) -> None:
        bank.advance(tick)
        bank.sweep()

    return sweep


HAPPENING: dict[Transition, Callable[[MemoryBank], object]] = {
    Transition.EXPIRE: _swept(LATER),
    Transition.PURGE: _swept(GRACE),
    Transition.DECAY: _swept(LATER),
    Transition.COMPACT_TO_HOT: lambda bank: bank.compact(),
    Transition.COMPACT_TO_WARM: lambda bank: bank.compact(),
    Transition.COMPACT_TO_COLD: lambda bank: bank.compact(),
    Transition.PRUNE: lambda bank: bank.prune(),
}
"""What happens to memories that nobody names."""


def _rule(to: str) -> dict[str, Any]:
    return {"rules": [{"name": "all", "to": to, "when": {"age": 0}}]}


SETTINGS: dict[Transition, dict[str, Any]] = {
    Transition.SPILL_TO_WARM: {"temperature": {"rules": [], "warm_access_threshold": 0}},
    Transition.SPILL_TO_COLD: {"temperature": {"rules": [], "warm_access_threshold": 1}},
    Transition.DECAY: {
        "decay": {
            "enabled": True,
            "half_life": {"normal": 1},
            "hot_below": 0.5,
            "warm_below": 0.5,
        }
    },
    Transition.COMPACT_TO_HOT: {"temperature": _rule("hot")},
    Transition.COMPACT_TO_WARM: {"temperature": _rule("warm")},
    Transition.COMPACT_TO_COLD: {"temperature": _rule("cold")},
    Transition.PRUNE: {"temperature": {"rules": [], "max_cold_items": 0}},
}
REFUSALS = {
    Refusal.IS_PINNED: MemoryPinned,
    Refusal.IS_HIDDEN: InvalidInput,
    Refusal.IS_GONE: MemoryNotFound,
}


def made(make_bank: MakeBank, move: Transition, axes: Axes) -> tuple[MemoryBank, AgentMemory, str]:
    """A bank with one memory, which stands there."""
    bank = make_bank(
        **{"temperature": {"rules": []}, "retention": {"grace": GRACE}, **SETTINGS.get(move, {})}
    )
    alice = bank.agent("alice")
    lives = {"ttl": LIFE} if move is Transition.EXPIRE else {}
    memory = alice.add("it rains <1 0>", temperature=axes.temperature, **lives)  # type: ignore[arg-type]
    if axes.pinned:
        alice.pin(memory.id)
    if axes.retention is ARCHIVED:
        alice.update(memory.id, retention="archived")
    elif axes.retention is DELETED:
        alice.delete(memory.id)
    assert standing(alice, memory.id) == axes
    return bank, alice, memory.id


def memory_of(alice: AgentMemory, identifier: str) -> Memory | None:
    """The memory, whatever its retention is."""
    everything = [*alice.all(), *alice.all(retention=ARCHIVED), *alice.all(retention=DELETED)]
    found = [memory for memory in everything if memory.id == identifier]
    assert len(found) <= 1
    return found[0] if found else None


def standing(alice: AgentMemory, identifier: str) -> Axes | None:
    memory = memory_of(alice, identifier)
    return None if memory is None else axes_of(memory.tier, memory.temperature, memory.retention)


def each(moves: Any) -> Any:
    return pytest.mark.parametrize(
        ("move", "axes"),
        [(move, axes) for move in moves for axes in STATES],
        ids=lambda value: (
            value.value
            if isinstance(value, Transition)
            else "pinned"
            if value.pinned
            else f"{value.temperature.name}-{value.retention.name}".lower()
        ),
    )


def test_the_table_has_every_move_and_every_column() -> None:
    assert set(TABLE) == set(Transition) == {*ASKED, *HAPPENING}
    assert {len(row) for row in TABLE.values()} == {6}
    assert len(STATES) == len(set(STATES)) == 10


@each(ASKED)
def test_a_bank_does_what_is_asked_as_the_table_says(
    make_bank: MakeBank, move: Transition, axes: Axes
) -> None:
    _, alice, identifier = made(make_bank, move, axes)
    memory = memory_of(alice, identifier)
    assert memory is not None
    expected = after(move, axes)
    if isinstance(expected, Refusal):
        with pytest.raises(REFUSALS[expected]) as refused:
            ASKED[move](alice, identifier)
        assert standing(alice, identifier) == axes
        with pytest.raises(REFUSALS[expected]) as said:
            permitted(move, memory)
        assert _words(said.value) == _words(refused.value)
    else:
        assert permitted(move, memory) == expected
        ASKED[move](alice, identifier)
        assert standing(alice, identifier) == expected


def _words(error: object) -> tuple[object, ...]:
    assert isinstance(error, TierMemError)
    return type(error), error.what, error.why, error.hint, str(error)


@each(HAPPENING)
def test_what_happens_is_what_the_table_says(
    make_bank: MakeBank, move: Transition, axes: Axes
) -> None:
    bank, alice, identifier = made(make_bank, move, axes)
    HAPPENING[move](bank)
    assert standing(alice, identifier) == after(move, axes)


@each(Transition)
def test_no_move_leads_out_of_the_states(move: Transition, axes: Axes) -> None:
    found = after(move, axes)
    assert found is None or isinstance(found, Refusal) or found in STATES


def test_a_full_tier_unpins_as_the_table_says(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_pinned": 1}).agent("alice")
    first = alice.add("first <1 0>", "pinned")
    alice.add("second <0 1>", "pinned")
    assert standing(alice, first.id) == after(Transition.SET_TIER, PINNED)


def test_demotion_names_the_move_and_refuses_hot(make_bank: MakeBank) -> None:
    assert [demotion(to) for to in (WARM, COLD)] == [
        Transition.DEMOTE_TO_WARM,
        Transition.DEMOTE_TO_COLD,
    ]
    _, alice, identifier = made(make_bank, Transition.DEMOTE_TO_COLD, Axes(False, WARM, ACTIVE))
    with pytest.raises(InvalidInput) as refused:
        asked(alice, "demote", identifier, "hot")
    with pytest.raises(InvalidInput) as said:
        demotion(HOT)
    assert _words(said.value) == _words(refused.value)


def test_entering_a_tier_pins_unpins_or_changes_nothing_else() -> None:
    for axes in STATES:
        if axes.retention is DELETED:
            with pytest.raises(ValueError, match="deleted enters no tier"):
                entered(axes, 3)
            continue
        assert entered(axes, 0) == PINNED
        assert entered(axes, 3) == (Axes(False, WARM, ACTIVE) if axes.pinned else axes)


def test_hot_cools_to_warm_and_warm_to_cold() -> None:
    assert [cooler(each) for each in Temperature] == [WARM, COLD, COLD]


def test_only_what_expired_and_is_restored_gets_another_end() -> None:
    assert end_after(ACTIVE, 5, 5) == end_after(ACTIVE, NEVER, 5) == NEVER
    assert end_after(ACTIVE, 6, 5) == 6
    assert end_after(ARCHIVED, 5, 5) == end_after(DELETED, 5, 9) == 5
