"""Whether cold memories are in packs or in rows, nobody can tell but by the time it takes."""

import contextlib
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import MemoryBank
from agents.bank.history import rewind
from agents.memory.retention import Retention
from agents.storage.shelf.pack import Pack
from agents.storage.state.ledger import Ledger
from faults.temperature_writer import AGENTS, act, open_bank, text_of
from property.model import SmallEmbedder

STEPS = 25


@contextlib.contextmanager
def packing(fewest: int, most: int = 3) -> Iterator[None]:
    """Inside, so many are packed together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pack, "FEWEST", fewest)
        patch.setattr(Pack, "MOST", most)
        patch.setattr(Ledger, "SNAPSHOT_ON_COMMIT", 40)
        yield


ROWS = 1_000_000
"""More than there are."""


def answers(bank: MemoryBank) -> dict[str, Any]:
    """All that the shelf can be asked."""
    shelf = bank.parts.ledger.resident.shelf
    found: dict[str, Any] = {"counts": shelf.counts()}
    for tick in (bank.tick, bank.tick + 3):
        found[f"due {tick}"] = shelf.due(tick, tick - 2)
    for agent in AGENTS:
        numbers = range(1, bank.parts.ledger.resident.block(agent).next_sequence)
        found[agent] = [
            [shelf.get((agent, number)) for number in numbers],
            shelf.many(agent, numbers),
            [shelf.of_agent(agent, each) for each in Retention],
            shelf.cold(agent),
            [shelf.with_words(agent, words, 3) for words in (["ZQ"], ["x1x", "x2x"], ["so"])],
            [shelf.unsynced(agent, commit) for commit in range(0, shelf.commit, 5)],
            shelf.counts(agent),
        ]
    return found


def table_answers(bank: MemoryBank) -> list[Any]:
    """What the table says by itself of what is committed."""
    table, commit = bank.parts.ledger.journal.shelf, bank.parts.ledger.journal.head + 1
    return [
        list(table.all_now()),
        list(table.active()),
        sorted(table.critical(None, commit)),
        [sorted(table.critical(agent, commit)) for agent in AGENTS],
    ]


def past(folder: Path, tick: int) -> tuple[Any, ...]:
    """What a bank was after a tick."""
    with MemoryBank.at(folder, tick, embedder=SmallEmbedder()) as copy:
        return copy.state_hash(), answers(copy), table_answers(copy)


@given(st.integers(0, 10**6), st.integers(1, 4))
@settings(max_examples=8)
def test_every_answer_is_the_same(seed: int, fewest: int) -> None:
    """In a transaction, after it, after going back, and of the past."""
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch) / "packs", Path(scratch) / "rows"]
        chance = random.Random(seed)
        banks = [open_bank(folder) for folder in folders]
        for step in range(STEPS):
            if step % 10 == 9:
                tick = chance.randint(0, banks[0].tick)
                assert past(folders[0], tick) == past(folders[1], tick)
                for place, least in enumerate((fewest, ROWS)):
                    banks[place].close()
                    with packing(least):
                        rewind(folders[place], tick)
                        banks[place] = open_bank(folders[place])
            inside: list[Any] = []
            state = chance.getstate()
            for bank, least in zip(banks, (fewest, ROWS), strict=True):
                chance.setstate(state)
                with packing(least), bank.transaction():
                    for index in range(chance.choice([1, 4, 12])):
                        act(bank, chance, text_of(seed, step, index), [])
                    if chance.random() < 0.4:
                        bank.compact()
                    inside.append(answers(bank))
            assert inside[0] == inside[1]
            assert banks[0].state_hash() == banks[1].state_hash()
            assert answers(banks[0]) == answers(banks[1])
            assert table_answers(banks[0]) == table_answers(banks[1])
        for bank in banks:
            bank.close()
