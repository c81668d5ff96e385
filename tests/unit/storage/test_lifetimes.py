"""A memory that exists lives until another tick."""

from contextlib import suppress
from pathlib import Path

import pytest

from agents import MemoryBank, Temperature
from banks import MANUAL


def prolonged(bank: MemoryBank, temperature: str) -> str:
    """The id of a memory that was to live for 5 ticks, and lives for 20 now."""
    memory = bank.agent("alice").add("the shop is open", ttl=5, temperature=temperature)
    with bank.transaction():
        bank.engine.ledger.last("alice", [memory.sequence], 20)
    return memory.id


@pytest.mark.parametrize("temperature", ["hot", "warm", "cold"])
def test_a_memory_lives_until_the_tick_that_was_said_last(temperature: str) -> None:
    with MemoryBank.ephemeral() as bank:
        own = prolonged(bank, temperature)
        bank.pass_time(19)
        memory = bank.agent("alice").get(own)
        assert (memory.expires_tick, bank.agent("alice").count()) == (20, 1)
        bank.pass_time(20)
        assert bank.agent("alice").count() == 0


@pytest.mark.parametrize("temperature", ["hot", "cold"])
def test_the_new_end_is_in_the_journal(temperature: str, tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        own, before = prolonged(bank, temperature), bank.state_hash()
        bank.checkpoint(tmp_path / "checkpoint")
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        memory = bank.agent("alice").get(own)
        assert memory.expires_tick == 20
        assert memory.temperature is Temperature[temperature.upper()]
        assert bank.state_hash() == before
    with MemoryBank.restore(tmp_path / "checkpoint", tmp_path / "again", storage=MANUAL) as bank:
        assert bank.state_hash() == before


def test_an_error_takes_the_new_end_back() -> None:
    with MemoryBank.ephemeral() as bank:
        memory = bank.agent("alice").add("the shop is open", ttl=5)
        with suppress(KeyError), bank.transaction():
            bank.engine.ledger.last("alice", [memory.sequence], 20)
            raise KeyError
        assert bank.agent("alice").get(memory.id).expires_tick == 5


def test_mem0s_store_has_the_new_end(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        memory = bank.agent("alice").add("the shop is open", ttl=5)
        bank.sync()
        with bank.transaction():
            bank.engine.ledger.last("alice", [memory.sequence], 20)
        assert bank.sync() == 1
