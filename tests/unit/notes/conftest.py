"""What tests of notes share: a bank with files, and an agent in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agents import AgentMemory, MemoryBank
from banks import MANUAL


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[MemoryBank]:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as opened:
        yield opened


@pytest.fixture
def alice(bank: MemoryBank) -> AgentMemory:
    return bank.agent("alice")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where alice's main note is."""
    return tmp_path / "bank/notes/alice/MEMORY.md"
