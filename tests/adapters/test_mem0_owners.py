"""Whose memories a call of ``tiermem.mem0`` is about, and how ``reset`` purges those of all."""

from contextlib import closing
from pathlib import Path

import pytest
from mem0_calls import ANN, add, texts

from banks import MANUAL
from tiermem import AgentMemory, MemoryBank
from tiermem.mem0 import Memory

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

LONG = "swordfish" * 40
"""A user id that is longer than an agent id."""


@pytest.mark.parametrize(
    "name", ["ann", "a=b", "user_id=ann", "agent_id=x", "Zoë/7", "x" * 500, "@2F"]
)
def test_ids_of_different_kinds_never_meet(name: str) -> None:
    kinds = ("user_id", "agent_id", "run_id")
    with closing(Memory()) as memory:
        for kind in kinds:
            memory.add(f"of the {kind}", infer=False, **{kind: name})
        for kind in kinds:
            (row,) = memory.get_all(filters={kind: name})["results"]
            assert (row["memory"], row[kind]) == (f"of the {kind}", name)
            assert texts(memory.search("of the", filters={kind: name}, threshold=0.0)) == [
                row["memory"]
            ]


def test_a_user_is_the_agent_of_the_same_name() -> None:
    with MemoryBank.ephemeral() as bank:
        memory = Memory(bank)
        bank.agent("ann").add("from the simulation", metadata={"day": 3})
        add(memory, "from mem0")
        assert texts(memory.get_all(filters={**ANN, "day": 3})) == ["from the simulation"]
        assert [each.content for each in bank.agent("ann").all()][1] == "from mem0"
        memory.close()
        assert bank.agents() == ["ann"]  # a bank that was given open stays open


def test_filters_can_not_reach_another_user() -> None:
    memory = Memory()
    add(memory, "secret of bob", user_id="bob")
    add(memory, "secret of ann")
    for name in ("AND", "OR", "$and", "$or"):
        filters = {name: [{"user_id": "bob"}]}
        assert texts(memory.search("secret", filters={**ANN, **filters})) == []
        assert texts(memory.get_all(filters={**ANN, **filters})) == []


def test_a_star_stands_for_every_user_and_is_nobody() -> None:
    memory = Memory()
    add(memory, "tea of ann")
    memory.add("tea of bot", agent_id="bot", infer=False)
    assert len(texts(memory.search("tea", filters={"user_id": "*"}))) == 2
    for call in (memory.delete_all, lambda **ids: memory.add("x", infer=False, **ids)):
        with pytest.raises(ValueError, match="nobody"):
            call(user_id="*")


# Resetting


def test_reset_purges_everything() -> None:
    memory = Memory()
    first = add(memory, "tea", metadata={"tier": "pinned"})
    memory.update(first, text="coffee")
    memory.delete(add(memory, "milk"))
    memory.reset()
    assert memory.get_all(filters=ANN) == {"results": []}
    assert memory.history(first) == []
    assert memory.bank.agent("ann").count() == 0


def opened(folder: Path) -> Memory:
    return Memory(MemoryBank.open(folder, storage=MANUAL), infer=False, closes=True)


def works_as_new(memory: Memory) -> None:
    assert memory.get_all(filters={"user_id": "*"}) == {"results": []}
    memory.add("tea of bot", agent_id="bot")
    memory.add("tea of a long one", user_id=LONG)
    assert texts(memory.search("tea", filters={"agent_id": "bot"})) == ["tea of bot"]
    assert texts(memory.get_all(filters={"user_id": LONG})) == ["tea of a long one"]
    assert {row.get("user_id") for row in memory.get_all(filters={"user_id": "*"})["results"]} == {
        LONG,
        None,
    }
    memory.delete_all(agent_id="bot")
    assert texts(memory.get_all(filters={"user_id": "*"})) == ["tea of a long one"]


def test_a_memory_works_as_new_after_a_reset(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.add("tea", user_id=LONG)
        memory.add("tea", agent_id="bot")
        memory.reset()
        works_as_new(memory)
        memory.reset()
        assert memory.bank.agent("@@names").count() == 0
        assert memory.bank.vacuum() == []
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert not [path for path in files if b"swordfish" in path.read_bytes()]
    with opened(tmp_path) as memory:
        works_as_new(memory)


def test_a_reset_keeps_the_name_of_an_agent_with_notes(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.add("tea", user_id=LONG)
        (name,) = [each for each in memory.bank.agents() if each != "@@names"]
        memory.bank.agent(name).notes.write("MEMORY.md", "- likes tea")
        memory.reset()
    with opened(tmp_path) as memory:
        (row,) = memory.get_all(filters={"user_id": "*"})["results"]
        assert row["user_id"] == LONG


@pytest.mark.parametrize("step", range(3))
def test_a_reset_that_fails_half_way_changes_nothing(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget, calls = AgentMemory.forget, iter(range(100))

    def failing(self: AgentMemory, memory_id: str) -> None:
        if next(calls) == step:
            raise MemoryError
        forget(self, memory_id)

    with opened(tmp_path) as memory:
        memory.add("tea", user_id=LONG)
        memory.add("milk", agent_id="bot")
        add(memory, "coffee")
        before = memory.bank.state_hash()
        monkeypatch.setattr(AgentMemory, "forget", failing)
        with pytest.raises(MemoryError):
            memory.reset()
        monkeypatch.undo()
        assert memory.bank.state_hash() == before
    with opened(tmp_path) as memory:
        assert sorted(texts(memory.get_all(filters={"user_id": "*"}))) == ["coffee", "milk", "tea"]
        memory.reset()
    with opened(tmp_path) as memory:
        works_as_new(memory)


def test_an_agent_whose_text_nobody_knows_breaks_no_call(tmp_path: Path) -> None:
    """The resets of an earlier version left such agents, and other code may make one."""
    unknown = f"@@{'8b' * 32}"
    with opened(tmp_path) as memory:
        memory.bank.agent(unknown).add("tea of nobody")
        add(memory, "tea of ann")
        memory.add("tea of bot", agent_id="bot")
        assert texts(memory.search("tea", filters={"agent_id": "bot"})) == ["tea of bot"]
        rows = memory.get_all(filters={"user_id": "*"})["results"]
        assert {row.get("user_id") for row in rows} == {unknown, "ann", None}
        memory.delete_all(agent_id="bot")
        assert len(memory.get_all(filters={"user_id": "*"})["results"]) == 2


def test_what_is_pinned_past_its_end_is_deleted(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        for _ in range(2):
            add(memory, "milk")
            (agent_id,) = memory.bank.agents()
            agent = memory.bank.agent(agent_id)
            pinned = agent.add("tea", ttl=3)
            agent.pin(pinned.id)
            memory.bank.advance(memory.bank.tick + 10)
            assert sorted(texts(memory.get_all(filters=ANN))) == ["milk", "tea"]
            memory.delete_all(**ANN)
            assert texts(memory.get_all(filters=ANN)) == []
        again = agent.add("tea", ttl=3)
        agent.pin(again.id)
        memory.bank.advance(memory.bank.tick + 10)
        memory.delete(again.id)
        assert texts(memory.get_all(filters=ANN)) == []
