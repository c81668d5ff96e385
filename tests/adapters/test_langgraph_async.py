"""LangGraph's store in async programs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import PutOp

from agents import AsyncMemoryBank, BankClosed, InvalidInput, MemoryBank
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


def test_a_wrong_operation_fails_for_its_caller_alone(tmp_path: Path) -> None:
    def tier(namespace: tuple[str, ...], key: str, value: Any) -> str:
        return str(value["tier"]) if value else next(iter([]))

    async def use(store: AsyncTierMemStore) -> list[Any]:
        await store.aput(("bob",), "x", {"tier": "low", "text": "tea"})
        return await asyncio.gather(
            store.aput(("ann",), "k", {"tier": "low", "text": "good"}),
            store.aput(("ann",), "k", {"tier": "low", "text": {1, 2}}),
            store.aput(("eve",), "k", {"text": "no tier"}),
            store.aput(("eve",), "k", {}),
            store.aget(("bob",), "x"),
            store.asearch(("bob",), query="tea"),
            store.asearch((), filter={"a": {"$in": [1]}}),
            store.aput(("bob",), "y", {"tier": "low", "text": "good too"}),
            return_exceptions=True,
        )

    with MemoryBank.open(tmp_path, storage=MANUAL, preset="vector") as bank:

        async def main() -> list[Any]:
            return await use(AsyncTierMemStore(AsyncMemoryBank(bank), fields=["text"], tier=tier))

        results = asyncio.run(main())
        errors = [type(each) for each in results if isinstance(each, Exception)]
        assert errors == [InvalidInput, KeyError, RuntimeError, InvalidInput]
        assert (results[0], results[4].key, results[5][0].key, results[7]) == (None, "x", "x", None)
        items = TierMemStore(bank).search(())
        assert {each.value["text"] for each in items} == {"good", "tea", "good too"}
        (found,) = [each for each in bank.agent("bob").all() if each.key == "x"]
        assert found.access_count == 1


def test_an_explicit_batch_is_stored_whole_or_not_at_all() -> None:
    async def use() -> None:
        async with AsyncMemoryBank.ephemeral() as bank:
            store = AsyncTierMemStore(bank)
            with pytest.raises(InvalidInput):
                await store.abatch([PutOp(ANN, "k", {"n": 1}), PutOp(ANN, "bad", {"n": {1}})])
            assert await store.asearch(()) == []

    asyncio.run(use())


def test_in_a_closed_bank_all_that_waits_is_told_so() -> None:
    async def use() -> None:
        async with AsyncMemoryBank.ephemeral() as bank:
            store = AsyncTierMemStore(bank)
        waits = [store.aput(ANN, "k", {"n": 1}), store.aget(ANN, "k")]
        errors = await asyncio.gather(*waits, return_exceptions=True)
        assert [type(each) for each in errors] == [BankClosed, BankClosed]

    asyncio.run(use())


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
