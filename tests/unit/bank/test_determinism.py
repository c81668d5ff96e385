"""The same calls give the same bank."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank
from banks import MANUAL, MakeBank, child
from embedders import Directions

SCRIPT = """
import sys
from embedders import Noise
from agents import MemoryBank
with MemoryBank.open(sys.argv[1], embedder=Noise(16), storage={"sync": "manual"}, seed=3) as bank:
    names = {"alice", "bob", "carol", "dave", "erin"}  # a set: its order depends on the hash seed
    for tick in range(4):
        bank.advance(tick)
        for name in names:
            agent = bank.agent(name)
            added = agent.add_many([(f"{name} {tick} {n}", n % 5, {"b": n, "a": tick})
                                    for n in range(12)])
            agent.delete(added[tick + 1].id)
            agent.pin(added[-1].id)
            agent.add_many([(f"cold {n}", 1, None, {"temperature": "cold", "tags": {"x", "y"}})
                            for n in range(12)])
            agent.search("what next?")
    bank.compact()
    ids = [m.id for m in bank.agent("alice").all()]
    found = bank.relevant_many([(name, "what now?") for name in sorted(names)], 7)
    print(bank.state_hash(), ids, found)
"""


@pytest.mark.slow
def test_state_and_results_are_equal_across_processes_and_hash_seeds(tmp_path: Path) -> None:
    outputs = {child(SCRIPT, tmp_path / seed, PYTHONHASHSEED=seed) for seed in ("0", "1", "4242")}
    assert len(outputs) == 1


def test_the_order_of_agents_does_not_change_the_state(make_bank: MakeBank) -> None:
    hashes = set()
    for order in (["a", "b", "c"], ["c", "a", "b"]):
        bank = make_bank()
        for agent in order:
            bank.agent(agent).add_many(["1", ("2", "pinned")])
        hashes.add(bank.state_hash())
    assert len(hashes) == 1


def test_how_calls_are_batched_does_not_change_the_state(make_bank: MakeBank) -> None:
    items = [(f"a{n % 4}", f"m{n}", n % 5) for n in range(40)]
    one_by_one, together, in_transaction = (make_bank() for _ in range(3))
    for agent, text, tier in items:
        one_by_one.agent(agent).add(text, tier)
    together.add_many(items)
    with in_transaction.transaction():
        for item in items:
            in_transaction.add_many([item])
    hashes = {bank.state_hash() for bank in (one_by_one, together, in_transaction)}
    assert len(hashes) == 1


CHANGES: dict[str, Callable[[MemoryBank], object]] = {
    "another text": lambda bank: bank.agent("alice").add("y"),
    "another tier": lambda bank: bank.agent("alice").pin(bank.agent("alice").all()[0].id),
    "a delete": lambda bank: bank.agent("alice").delete(bank.agent("alice").all()[0].id),
    "the tick": lambda bank: bank.advance(1),
    "another agent": lambda bank: bank.agent("bob").add("x"),
}


@pytest.mark.parametrize("step", CHANGES.values(), ids=CHANGES.keys())
def test_every_change_shows_in_the_state_hash(
    make_bank: MakeBank, step: Callable[[MemoryBank], object]
) -> None:
    bank, same = make_bank(), make_bank()
    for each in (bank, same):
        each.agent("alice").add("x", metadata={"a": 1})
    assert bank.state_hash() == same.state_hash()
    step(bank)
    assert bank.state_hash() != same.state_hash()


@pytest.mark.parametrize("metadata", [None, {"a": 2}, {"a": "1"}, {"a": 1.0}, {"b": 1}])
def test_metadata_shows_in_the_state_hash(make_bank: MakeBank, metadata: Any) -> None:
    one, other = make_bank(), make_bank()
    one.agent("alice").add("x", metadata={"a": 1})
    other.agent("alice").add("x", metadata=metadata)
    assert one.state_hash() != other.state_hash()


def test_the_order_of_metadata_keys_does_not_show(make_bank: MakeBank) -> None:
    one, other = make_bank(), make_bank()
    one.agent("alice").add("x", metadata={"a": 1, "b": 2})
    other.agent("alice").add("x", metadata={"b": 2, "a": 1})
    assert one.state_hash() == other.state_hash()


def test_the_seed_shows_in_the_state_hash(make_bank: MakeBank) -> None:
    assert make_bank(seed=1).state_hash() != make_bank(seed=2).state_hash()


def test_neither_folder_nor_wall_clock_show_in_the_state_hash(tmp_path: Path) -> None:
    hashes = set()
    for name in ("one", "two"):
        with MemoryBank.open(tmp_path / name, embedder=Directions(), storage=MANUAL) as bank:
            bank.agent("alice").add("x")
            hashes.add(bank.state_hash())
        time.sleep(0.01)
    assert len(hashes) == 1
