"""What batches leave in the journal and in the state, however they came to be one commit."""

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import orjson
import pytest

from agents import MemoryBank, Temperature
from agents.simulation.kept_ticks import ticks_of
from embedders import Directions

Step = Callable[[MemoryBank], object]

FAR, QUERY = "far <1 -126 127>", "who <127 1 0>"

"""Their similarity is 4.4e-05: a number that JSON may have with and without an exponent."""


def vector_bank() -> MemoryBank:
    """One in which every memory that a search gives counts as used."""
    settings = {"temperature": {"min_score": 0.0}}
    return MemoryBank.ephemeral(settings, preset="vector", embedder=Directions())


def texts(bank: MemoryBank) -> list[str]:
    return [commit.events for commit in bank.engine.journal.commits(after=0)]


def assert_written_in_one_way(written: Iterable[str]) -> None:
    """Each text is what its values give again, and any reader of JSON finds the same values."""
    for text in written:
        assert orjson.dumps(json.loads(text)).decode() == text
        assert orjson.loads(text) == json.loads(text)


def smallest(text: str) -> float:
    numbers: list[float] = []
    json.loads(text, parse_float=lambda number: numbers.append(float(number)))
    return min(number for number in numbers if number > 0)


def search_together(bank: MemoryBank) -> None:
    bank.search_many([("alice", QUERY), ("bob", QUERY)])


def search_alone(bank: MemoryBank) -> None:
    bank.agent("alice").search(QUERY)


def recall(bank: MemoryBank) -> None:
    bank.agent("alice").recall(QUERY)


def add_with_metadata(bank: MemoryBank) -> None:
    bank.add_many([("alice", "plain"), ("alice", "measured", 3, {"weight": 1e-7})])


def add_plain(bank: MemoryBank) -> None:
    bank.add_many([("alice", "plain"), ("bob", "plain")])


def search_near(bank: MemoryBank) -> None:
    bank.search_many([("alice", "who <1 1>"), ("bob", "who <1 1>")])


class Undone(Exception):
    pass


def undo(bank: MemoryBank) -> None:
    with suppress(Undone), bank.transaction():
        add_with_metadata(bank)
        search_together(bank)
        raise Undone


@pytest.mark.parametrize("first", [search_together, search_alone, recall, add_with_metadata])
@pytest.mark.parametrize(
    "then", [(), (add_plain,), (search_near,), (undo,), (add_plain, search_near, undo)]
)
def test_a_small_number_is_written_in_one_way(first: Step, then: tuple[Step, ...]) -> None:
    with vector_bank() as bank:
        bank.add_many([("alice", FAR), ("bob", FAR)])
        with bank.transaction():
            for step in (first, *then, add_plain):
                step(bank)
        written = texts(bank)
    assert_written_in_one_way(written)
    assert smallest(written[-1]) < 1e-4


@pytest.mark.parametrize("far", ["alice", "bob", "carol"])
def test_so_it_is_whichever_group_of_searches_has_it(far: str) -> None:
    with vector_bank() as bank:  # agents of similar size are searched together
        for agent, size in (("alice", 1), ("bob", 300), ("carol", 3000)):
            near = [(agent, f"memory {n} <1 1>") for n in range(size - 1)]
            bank.add_many([(agent, FAR if agent == far else "first <1 1>"), *near])
        with bank.transaction():
            bank.search_many([(agent, QUERY) for agent in ("alice", "bob", "carol")], 3000)
            add_plain(bank)
        written = texts(bank)
    assert_written_in_one_way(written)
    assert smallest(written[-1]) < 1e-4


@pytest.mark.parametrize("initial", ["hot", "cold"])
def test_a_pinned_memory_among_plain_ones_begins_as_a_pinned_one(initial: str) -> None:
    with MemoryBank.ephemeral({"temperature": {"initial": initial}}, preset="vector") as bank:
        pinned, _ = bank.add_many([("alice", "pin", "pinned"), ("alice", "plain")])
        assert pinned.temperature is Temperature.HOT
        starts = [row[6] for text in texts(bank) for row in json.loads(text) if row[0] == "add"]
    assert starts[0] is None
    assert starts[1] is not None


def test_a_hot_memory_among_plain_ones_is_noticed() -> None:
    with MemoryBank.ephemeral(preset="vector") as bank:
        alice = bank.agent("alice")
        alice.add("first")
        assert "second" not in alice.get_relevant_memories()
        hot = ("alice", "second", 3, None, {"temperature": "hot"})
        bank.add_many([("alice", "plain"), hot, ("bob", "plain")])
        assert "second" in alice.get_relevant_memories()


def test_what_is_added_and_forgotten_in_one_commit_is_not_in_its_hash() -> None:
    hashes = set()
    for secret in ("the secret", "another one"):
        with MemoryBank.ephemeral(preset="vector", seed=3) as bank:
            with bank.transaction():
                first, _ = bank.add_many([("alice", secret), ("alice", "kept")])
                bank.agent("alice").forget(first.id)
            assert secret not in "".join(texts(bank))
            hashes.add(ticks_of(bank).hash())
    assert len(hashes) == 1


def test_new_memories_of_agents_that_were_hashed_and_of_others_have_their_own_hashes() -> None:
    new = [("alice", "one"), ("bob", "two"), ("carol", "three"), ("bob", "four")]
    hashes = set()
    for look in (True, False):
        with MemoryBank.ephemeral(preset="vector", seed=3) as bank:
            bank.agent("bob").add("here")
            if look:
                bank.state_hash()
            bank.add_many(new)
            hashes.add(bank.state_hash())
    assert len(hashes) == 1


def test_an_interrupt_right_after_a_commit_hides_no_cold_memory(
    bank: MemoryBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = bank.agent("alice")
    alice.add("first")
    journal = bank.engine.journal
    append = journal.append

    def interrupted(*arguments: Any) -> None:
        append(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(journal, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        alice.add("frozen", temperature="cold")
    monkeypatch.undo()
    (cold,) = alice.all(temperature="cold")
    assert alice.get(cold.id).content == "frozen"
    assert alice.update(cold.id, temperature="hot")
