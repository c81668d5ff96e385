"""What tests of searching share: agents of banks in memory, closed afterwards."""

from collections.abc import Iterator
from typing import Any

import pytest
from hybrid import Make

from agents import AgentMemory, MemoryBank


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes a bank in memory with these options, and gives an agent of it."""
    banks: list[MemoryBank] = []

    def make(**options: Any) -> AgentMemory:
        banks.append(MemoryBank.ephemeral(**options))
        return banks[-1].agent("alice")

    yield make
    for bank in banks:
        bank.close()
