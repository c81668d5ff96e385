"""What a store of LangGraph is made of: a bank, fields, tiers."""

import asyncio
import copy
import pickle
from typing import Any

import pytest

from agents import AsyncMemoryBank, BankError, InvalidInput, MemoryBank
from agents.langgraph import AsyncTierMemStore, TierMemStore

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"fields": "text"}, "fields is a list"),
    ({"fields": ["text", 5]}, "fields is a list"),
    ({"fields": {"text": 1}}, "fields is a list"),
    ({"tier": "pinned"}, "tier is a function"),
    ({"now": 0}, "now is a function"),
]


@pytest.mark.parametrize(("options", "why"), WRONG)
def test_wrong_options_are_refused_at_once(options: dict[str, Any], why: str) -> None:
    async def use() -> None:
        async with AsyncMemoryBank.ephemeral() as bank:
            with pytest.raises(InvalidInput, match=why):
                AsyncTierMemStore(bank, **options)

    with MemoryBank.ephemeral() as bank, pytest.raises(InvalidInput, match=why):
        TierMemStore(bank, **options)
    asyncio.run(use())


def test_what_is_no_bank_is_refused_at_once() -> None:
    async def use() -> None:
        with pytest.raises(InvalidInput, match="AsyncMemoryBank, not 'folder'"):
            AsyncTierMemStore("folder")  # type: ignore[arg-type]
        with MemoryBank.ephemeral() as bank, pytest.raises(InvalidInput, match="MemoryBank, not <"):
            AsyncTierMemStore(bank)  # type: ignore[arg-type]
        async with AsyncMemoryBank.ephemeral() as other:
            with pytest.raises(InvalidInput, match="AsyncTierMemStore takes"):
                TierMemStore(other)  # type: ignore[arg-type]

    with pytest.raises(InvalidInput, match="MemoryBank, not 'folder'"):
        TierMemStore("folder")  # type: ignore[arg-type]
    asyncio.run(use())


@pytest.mark.parametrize("how", [copy.deepcopy, pickle.dumps])
def test_a_store_is_not_copied(how: Any) -> None:
    async def use() -> None:
        async with AsyncMemoryBank.ephemeral() as bank:
            with pytest.raises(BankError, match="copied or pickled"):
                how(AsyncTierMemStore(bank))

    with MemoryBank.ephemeral() as bank, pytest.raises(BankError, match="copied or pickled"):
        how(TierMemStore(bank))
    asyncio.run(use())
