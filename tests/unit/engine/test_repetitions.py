"""With memory.merge_duplicates, a text that an agent has already is counted, not stored again."""

import pytest

from agents import AgentMemory, Memory, MemoryBank, Retention
from agents.exchange.importing import store_rows
from agents.exchange.row_files import Row
from banks import MakeBank, everything, undone

MERGING = {"merge_duplicates": True, "max_pinned": 1}


@pytest.fixture
def bank(make_bank: MakeBank) -> MemoryBank:
    return make_bank(memory=MERGING)


def texts(memories: list[Memory]) -> list[str]:
    return [memory.content for memory in memories]


def test_a_repetition_is_a_use(bank: MemoryBank, alice: AgentMemory) -> None:
    first = alice.add("Bob likes fish")
    bank.advance(4)
    again = alice.add(" bob likes\n FISH ")
    assert (again.id, again.content) == (first.id, "Bob likes fish")
    assert (again.access_count, again.last_access_tick) == (1, 4)
    assert alice.all() == [first]


@pytest.mark.parametrize("text", ["Straße <1 0>", "STRASSE <1 0>", "strasse\u00a0<1  0>"])
def test_capitals_of_all_languages_and_all_blanks(alice: AgentMemory, text: str) -> None:
    alice.add("Strasse <1 0>")
    alice.add(text)
    assert alice.count() == 1


def test_the_higher_tier_wins(alice: AgentMemory) -> None:
    first = alice.add("x")
    assert alice.add("X", "important").tier.name == "IMPORTANT"
    assert alice.add("x", "low").tier.name == "IMPORTANT"
    assert alice.add("x").tier.name == "IMPORTANT"
    alice.add("other", "pinned")
    assert alice.add("x", "pinned").temperature.name == "HOT"
    assert [each.id for each in alice.get_pinned_memories()] == [first.id]
    assert texts(alice.all("critical")) == ["other"]


def test_a_batch_gives_the_same_as_single_calls(make_bank: MakeBank) -> None:
    rows = ["a", "b", "A", ("b ", "critical"), "c", ("a", "pinned"), "C"]
    one, many = make_bank(memory=MERGING), make_bank(memory=MERGING)
    made = many.agent("alice").add_many(rows)
    for row in rows:
        one.agent("alice").add_many([row])
    assert everything(one) == everything(many)
    assert [each.sequence for each in made] == [1, 2, 1, 2, 3, 1, 3]


@pytest.mark.parametrize("temperature", ["hot", "warm", "cold"])
def test_a_memory_of_any_temperature_is_repeated(alice: AgentMemory, temperature: str) -> None:
    alice.add("x", temperature=temperature)
    again = alice.add("x")
    assert (alice.count(), again.access_count) == (1, 1)
    assert again.temperature.name.lower() == temperature


def test_what_is_hidden_or_somebody_elses_is_not_repeated(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    bank.agent("bob").add("x")
    alice.update(alice.add("x").id, retention="archived")
    alice.delete(alice.add("x").id)
    alice.forget(alice.add("x").id)
    alice.add("x", ttl=2)
    bank.advance(3)
    assert alice.add("x").sequence == 5
    assert (alice.count(), bank.agent("bob").count()) == (1, 1)


def test_a_memory_that_ends_earlier_does_not_stand_for_one_that_lives_longer(
    bank: MemoryBank, alice: AgentMemory
) -> None:
    alice.add("x", ttl=5)
    assert alice.add("x", ttl=5).sequence == 1
    assert alice.add("x", ttl=2).sequence == 1
    assert alice.add("x", ttl=6).sequence == 2
    assert alice.add("x").sequence == 3
    assert alice.add("x", ttl=9).sequence == 3
    bank.advance(20)
    assert texts(alice.all()) == ["x"]


def test_a_key_is_repeated_by_its_own_text_alone(alice: AgentMemory) -> None:
    first = alice.add("I eat meat", key="diet")
    assert alice.add("i eat MEAT", "important", key="diet").id == first.id
    plain = alice.add("I eat meat")
    assert plain.id != first.id
    alice.add("I am vegan", key="diet")
    assert texts(alice.all()) == ["I eat meat", "I am vegan"]
    assert alice.history("diet")[0].tier.name == "IMPORTANT"


def test_a_note_and_a_memory_do_not_stand_for_each_other(open_bank: MakeBank) -> None:
    alice = open_bank(memory=MERGING).agent("alice")
    alice.add("Never trade fish.")
    alice.notes.write("MEMORY.md", "Never trade fish.")
    alice.notes.write("memory/a.md", "Never trade fish.")
    assert alice.count() == 3
    alice.notes.write("MEMORY.md", "Other.")
    alice.notes.write("memory/a.md", "Other.")
    assert texts(alice.all())[0] == "Never trade fish."


def test_repetitions_are_undone_and_replayed(open_bank: MakeBank) -> None:
    bank = open_bank(memory=MERGING)
    alice = bank.agent("alice")
    alice.add("x")
    alice.add("x", temperature="hot")
    before = everything(bank)
    with undone(bank):
        alice.add("X", "pinned")
    assert everything(bank) == before
    assert everything(open_bank()) == before
    assert open_bank().agent("alice").all()[0].access_count == 1


def test_an_archived_row_of_an_import_is_stored_beside_the_active_one(bank: MemoryBank) -> None:
    rows = [{"content": "x"}, {"content": "x", "retention": "archived"}, {"content": "X"}]
    store_rows(bank, [Row(str(n), row) for n, row in enumerate(rows)], "alice")
    alice = bank.agent("alice")
    assert [each.sequence for each in alice.all()] == [1]
    assert [each.sequence for each in alice.all(retention=Retention.ARCHIVED)] == [2]


def test_an_update_is_never_a_repetition(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    first = alice.add("x is y", "important", {"a": 1})
    second = alice.update(first.id, "x is y", tier="low", metadata={"a": 2})
    assert (second.tier, second.metadata["a"]) == (4, 2)
    assert alice.update(second.id, "X  is Y").content == "X  is Y"
    assert [each.content for each in alice.history(first.id)] == ["x is y", "x is y", "X  is Y"]
