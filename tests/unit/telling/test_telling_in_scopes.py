"""Nothing that is told, and no group, crosses a project or an environment."""

from collections.abc import Iterator

import pytest

from agents import MemoryBank, tools
from agents.errors import InvalidInput
from agents.tools.operations import Permission

ACME = {"project": "acme", "environment": "production"}
OTHERS = [{}, {"project": "acme"}, {"environment": "production"}, {**ACME, "project": "globex"}]


@pytest.fixture
def bank() -> Iterator[MemoryBank]:
    with MemoryBank.ephemeral() as bank:
        for scope in (ACME, *OTHERS):
            for name in ("ann", "bob"):
                bank.agent(name, **scope).add(f"{name} is here")
        yield bank


def did(memory: object, name: str, permission: Permission = "tell", **arguments: object) -> dict:
    return tools.call(memory, name, arguments, permission).to_dict()  # type: ignore[arg-type]


def test_agents_of_one_name_in_two_projects_are_two(bank: MemoryBank) -> None:
    bank.agent("ann", **ACME).add("The code is plugh", "pinned")
    for scope in OTHERS:
        found = bank.agent("ann", **scope).search("The code is plugh")
        assert [hit.memory.content for hit in found] == ["ann is here"]
    assert bank.agent("@@acme@production@ann").count() == 2


def test_an_agent_tells_those_of_its_scope_alone(bank: MemoryBank) -> None:
    ann = bank.agent("ann", **ACME)
    memory = ann.add("agent_X cheats")
    for scope in OTHERS:
        other = bank.agent("bob", **scope)
        with pytest.raises(InvalidInput, match="is not in the scope of"):
            ann.social.tell(other.agent_id, memory.id)
        with pytest.raises(InvalidInput, match="is not in the scope of"):
            other.social.tell(ann.agent_id, other.all()[0].id)
    assert ann.social.tell("@@acme@production@bob", memory.id).is_new


def test_an_operation_names_agents_and_groups_as_its_own_scope_does(bank: MemoryBank) -> None:
    ann, bob = (bank.agent(name, **ACME) for name in ("ann", "bob"))
    group = bank.group("guild", ["ann", "bob"], **ACME)
    assert group.name == "@@acme@production@guild"
    memory = ann.add("agent_X cheats")
    for name, is_new in (("bob", True), (bob.agent_id, False)):
        told = did(ann, "memory_tell", memory_id=memory.id, to=[name])
        assert told == {"told": [{"agent": "bob", "is_new": is_new}]}
    assert did(bob, "memory_trust", teller="ann", trust=0.5) == {"teller": "ann", "trust": 0.5}
    assert bob.social.trust_of(ann.agent_id) == 0.5
    assert did(ann, "group_post", group="guild", content="at noon")["content"] == "at noon"
    assert [each.content for each in group.all()] == ["at noon"]
    assert did(bob, "group_leave", group="guild") == {"groups": []}


def test_an_operation_reaches_no_other_scope_whatever_it_names(bank: MemoryBank) -> None:
    bank.group("guild", ["ann"], **ACME)
    before = [bank.agent("bob", **ACME).all(), bank.group("@@acme@production@guild").all()]
    for scope in OTHERS:
        bob = bank.agent("bob", **scope)
        (own,) = bob.all()
        for name in ("@@acme@production@ann", "acme/production/ann", "@@acme@production@guild"):
            for operation, arguments in (
                ("memory_tell", {"memory_id": own.id, "to": [name]}),
                ("group_post", {"group": name, "content": "hello"}),
                ("group_leave", {"group": name}),
            ):
                assert "error" in did(bob, operation, **arguments), (scope, operation, name)
    assert before == [bank.agent("bob", **ACME).all(), bank.group("@@acme@production@guild").all()]


def test_a_group_is_of_one_scope(bank: MemoryBank) -> None:
    for name, member in (
        ("guild", "@@acme@production@ann"),
        ("@@acme@production@guild", "ann"),
        ("@@acme@production@guild", "@@acme@@ann"),
    ):
        with pytest.raises(InvalidInput, match="is not in the scope of"):
            bank.group(name, [member])
    assert bank.groups() == []
