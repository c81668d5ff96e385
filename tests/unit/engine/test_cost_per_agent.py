"""What one agent's memories cost does not depend on how many other agents there are.

Work is counted and not timed: the instructions that Python runs inside the package, and those that
SQLite's virtual machine runs.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from agents import MemoryBank

pytestmark = pytest.mark.slow_after(1)

FEW, MANY = 40, 80
MEMORIES = 12
"""Of each agent."""
ALLOWED = 1.15
"""How much more an agent may cost among twice as many agents: B-trees grow by a level."""


class Work:
    """Counts instructions of the package, and steps of the bank's database, while it is open."""

    def __init__(self, bank: MemoryBank) -> None:
        self.instructions = 0
        self.steps = 0
        self._database = bank.engine.journal.file.db

    def __enter__(self) -> "Work":
        self._database.set_progress_handler(self._step, 1)
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        self._database.set_progress_handler(None, 1)

    def _step(self) -> int:
        self.steps += 1
        return 0

    def _call(self, frame: FrameType, event: str, argument: object) -> Any:
        if not str(frame.f_globals.get("__name__", "")).startswith("agents."):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._instruction

    def _instruction(self, frame: FrameType, event: str, argument: object) -> Any:
        self.instructions += event == "opcode"
        return self._instruction


def names(agents: int) -> list[str]:
    return [f"agent_{number:03}" for number in range(agents)]


def filled(make_bank: Callable[..., MemoryBank], agents: int, **options: object) -> MemoryBank:
    """A bank in which each agent has as many memories."""
    bank = make_bank()
    for number in range(MEMORIES):
        bank.add_many([(name, f"east {number}", "normal", None, options) for name in names(agents)])
    return bank


def compact_all(bank: MemoryBank) -> None:
    assert bank.compact().cold == MEMORIES * len(bank.agents())


def compact_again(bank: MemoryBank) -> None:
    assert bank.compact() == (0, 0, 0, 0, ())


def look_at_what_would_be_pruned(bank: MemoryBank) -> None:
    assert bank.prune(dry_run=True) == []


def count_all(bank: MemoryBank) -> None:
    assert {bank.agent(name).count() for name in bank.agents()} == {MEMORIES}


def let_all_expire(bank: MemoryBank) -> None:
    """All memories so far expire and wait for the next sweep; each agent gets a new one."""
    bank.advance(5)
    bank.add_many([(name, "west") for name in bank.agents()])


def count_the_new(bank: MemoryBank) -> None:
    assert {bank.agent(name).count() for name in bank.agents()} == {1}


def count_while_others_change(bank: MemoryBank) -> None:
    """All memories are on their way to the shelf while each agent counts its own."""
    with bank.transaction():
        bank.compact()
        count_all(bank)


@pytest.mark.parametrize(
    ("options", "before", "call"),
    [
        ({"kind": "decision"}, None, compact_all),
        ({"kind": "decision"}, compact_all, compact_again),
        ({"temperature": "cold"}, None, look_at_what_would_be_pruned),
        ({"temperature": "cold"}, None, count_all),
        ({"temperature": "cold", "ttl": 3}, let_all_expire, count_the_new),
        ({"kind": "decision"}, None, count_while_others_change),
    ],
)
def test_an_agent_costs_no_more_among_twice_as_many_agents(
    make_bank: Callable[..., MemoryBank],
    options: dict[str, object],
    before: Callable[[MemoryBank], None] | None,
    call: Callable[[MemoryBank], None],
) -> None:
    costs = {}
    for agents in (FEW, MANY):
        bank = filled(make_bank, agents, **options)
        if before is not None:
            before(bank)
        with Work(bank) as work:
            call(bank)
        costs[agents] = work.instructions / agents, work.steps / agents
    for few, many in zip(costs[FEW], costs[MANY], strict=True):
        assert many <= ALLOWED * few, costs
