"""LangGraph's store in async programs."""

import asyncio
from pathlib import Path

import pytest
from langgraph.store.base import PutOp

from agents import AsyncMemoryBank, MemoryBank
from agents.langgraph import AsyncTierMemStore, TierMemStore
from banks import MANUAL

ANN = ("users", "ann")


def test_the_store_of_a_bank_works_in_any_event_loop() -> None:
    async def use(store: TierMemStore, n: int) -> None:
        await asyncio.gather(*[store.aput(ANN, f"{n}.{i}", {"n": i}) for i in range(20)])
        assert await store.aget(ANN, f"{n}.7") is not None
        assert len(await store.asearch(ANN, filter={"n": 7})) == n
        await store.adelete(ANN, f"{n}.0")

    with MemoryBank.ephemeral() as bank:
        store = TierMemStore(bank)
        for n in (1, 2):
            asyncio.run(use(store, n))
        assert len(store.search(ANN, limit=100)) == 38


def test_what_waits_together_is_one_commit(tmp_path: Path) -> None:
    async def use() -> int:
        with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
            store = AsyncTierMemStore(AsyncMemoryBank(bank), fields=["text"])
            before = bank.parts.ledger.journal.head
            await asyncio.gather(
                *[store.aput((f"u{n}",), "k", {"text": f"tea {n}"}) for n in range(50)]
            )
            found = await asyncio.gather(
                *[store.asearch((f"u{n}",), query="tea") for n in range(50)]
            )
            assert [page[0].value["text"] for page in found] == [f"tea {n}" for n in range(50)]
            assert await asyncio.to_thread(store.get, ("u7",), "k") is not None
            with pytest.raises(asyncio.InvalidStateError):
                store.get(("u7",), "k")
            return bank.parts.ledger.journal.head - before

    assert asyncio.run(use()) == 1


def test_a_batch_inside_a_transaction_is_undone_with_it() -> None:
    async def fail(bank: AsyncMemoryBank, store: AsyncTierMemStore) -> None:
        async with bank.transaction():
            await store.abatch([PutOp(ANN, "k", {"n": 2}), PutOp(ANN, "new", {"n": 2})])
            raise KeyError

    async def use() -> None:
        async with AsyncMemoryBank.ephemeral() as bank:
            store = AsyncTierMemStore(bank)
            await store.aput(ANN, "k", {"n": 1})
            with pytest.raises(KeyError):
                await fail(bank, store)
            assert [item.value for item in await store.asearch(ANN)] == [{"n": 1}]

    asyncio.run(use())
