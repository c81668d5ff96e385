"""On a broken bank, every public call but ``close`` raises BankBroken."""

import inspect
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from agents import BankBroken, BankClosed, MemoryBank
from agents.bank.agent_memory import AgentMemory
from agents.bank.agent_session import AgentSession
from agents.bank.agent_social import AgentSocial
from agents.bank.memory_bank import Group
from agents.memory.tiers import Retention
from agents.notes.agent_notes import AgentNotes
from embedders import Directions

ANSWERS: dict[type, set[str]] = {
    MemoryBank: {"close", "settings", "folder", "engine"},  # what is known without the memories
    AgentMemory: {"agent_id", "engine"},
    AgentSession: {"agent", "name"},
    Group: {"name", "engine"},
    AgentSocial: {"agent_id", "engine"},
    AgentNotes: {"agent_id"},
}
VIEWS: dict[type, set[str]] = {MemoryBank: {"agent"}, AgentMemory: {"notes", "session", "social"}}
"""Members that give another view, whose calls raise."""
ARGUMENTS: dict[str, Any] = {
    "agent_id": "alice",
    "agents": ["alice"],
    "content": "text",
    "group": "friends",
    "items": [("alice", "text")],
    "key": "a key",
    "messages": [{"role": "user", "content": "text"}],
    "name": "friends",
    "new": "new",
    "old": "old",
    "query": "text",
    "requests": [("alice", "text")],
    "action_type": "text",
    "retention": Retention.ARCHIVED,
    "sequence": 1,
    "teller": "bob",
    "text": "text",
    "tick": 9,
    "tier": 2,
    "to": "bob",
    "trust": 0.5,
}

SPECIAL: dict[str, dict[str, Any]] = {
    "broadcast": {"to": ["bob"]},
    "call": {"name": "memory_status"},
    "link": {"supersedes": "an id"},
    "update": {"content": "text"},
}
"""The arguments of methods that need others."""


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[MemoryBank]:
    with MemoryBank.open(
        tmp_path / "bank", embedder=Directions(), storage={"sync": "manual"}
    ) as bank:
        bank.agent("alice").add("one <1 0>")
        bank.agent("alice").notes.append("Never trade fish with Bob.", "MEMORY.md")
        bank.group("friends", ["alice"])
        bank.advance(3)
        yield bank


def _members(view: object) -> Iterable[str]:
    """The public members of a view that are not made from the class alone."""
    kind = type(view)
    of_class = classmethod | staticmethod
    return [
        name
        for name in sorted(set(dir(kind)) - ANSWERS[kind] - VIEWS.get(kind, set()))
        if name[0] != "_" and not isinstance(inspect.getattr_static(kind, name), of_class)
    ]


def _use(view: object, name: str, given: dict[str, Any]) -> object:
    """Read a property, or call a method with the arguments that it needs."""
    found = getattr(view, name)
    if not callable(found):
        return found
    known = ARGUMENTS | given | SPECIAL.get(name, {})
    parameters = inspect.signature(found).parameters.values()
    needed = [
        each.name
        for each in parameters
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    ]
    wanted = {each: known[each] for each in [*needed, *SPECIAL.get(name, {})]}
    by_place = [wanted.pop(each.name) for each in parameters if each.kind is each.POSITIONAL_ONLY]
    answer = found(*by_place, **wanted)
    if isinstance(answer, AbstractContextManager):
        with answer:
            return None
    return list(answer) if isinstance(answer, Iterator) else answer


def test_every_public_member_of_a_broken_bank_says_so(bank: MemoryBank, tmp_path: Path) -> None:
    alice = bank.agent("alice")
    views = (
        bank, alice, alice.session("talk"), alice.social, alice.notes, bank.group("friends")
    )  # fmt: skip
    memory, file = alice.all()[0], tmp_path / "written"
    given = {"memory": memory, "memory_id": memory.id, "path": "MEMORY.md"}
    bank.engine.ledger.begin(lambda: None)  # a transaction that nothing will end
    broken, answers = [], []
    for view in views:
        for name in _members(view):
            try:
                _use(view, name, {**given, "path": file} if view is bank else given)
            except BankBroken:
                broken.append(name)
            else:
                answers.append(f"{type(view).__name__}.{name}")
    assert not answers
    assert len(broken) > 75
    assert not file.exists()
    assert repr(bank).endswith("broken>")
    bank.close()
    with pytest.raises(BankClosed):  # what it has in memory may be wrong
        _ = bank.tick


def test_the_tick_is_known_while_another_thread_changes_the_bank(bank: MemoryBank) -> None:
    """An event loop asks for it, and must not wait."""
    with bank.transaction(), ThreadPoolExecutor(1) as other:
        bank.advance(9)
        assert other.submit(lambda: bank.tick).result(timeout=60) == 9
