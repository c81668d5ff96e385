"""LangGraph's store in async programs."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import PutOp

from agents import AsyncMemoryBank, BankClosed, EmbedderError, InvalidInput, MemoryBank
from agents.langgraph import AsyncTierMemStore, LangChainEmbedder, TierMemStore
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
            before = bank.engine.journal.head
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
            return bank.engine.journal.head - before

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


def test_each_task_gets_the_results_of_its_own_search() -> None:
    async def use() -> None:
        async with AsyncMemoryBank.ephemeral() as bank:
            store = AsyncTierMemStore(bank)
            await store.aput(ANN, "yes", {"b": True})
            await store.aput(ANN, "one", {"b": 1})
            filters: list[dict[str, Any]] = [{"b": True}, {"b": 1}, {"b": 1}]
            found = await asyncio.gather(*[store.asearch(ANN, filter=each) for each in filters])
            assert [[item.key for item in page] for page in found] == [["yes"], ["one"], ["one"]]
            assert found[1] is not found[2]

    asyncio.run(use())


def tier_of(namespace: tuple[str, ...], key: str, value: Any) -> Any:
    return value.get("tier")


@pytest.mark.parametrize(
    "wrong",
    [
        PutOp(ANN, "k", {"n": object()}),
        PutOp(ANN, "k", {"tier": "none such"}),
        PutOp(ANN, "k", {"n": 1}, index="n"),  # type: ignore[arg-type]
        PutOp(ANN, "k", {"n": 1}, ttl=-1),
    ],
)
def test_a_wrong_put_fails_though_another_one_follows(wrong: PutOp) -> None:
    async def put(store: AsyncTierMemStore) -> list[Any]:
        namespace, key, value, index, ttl = wrong
        first = store.aput(namespace, key, value or {}, index, ttl=ttl)
        after = store.aput(ANN, "k", {"n": 2})
        return await asyncio.gather(first, after, return_exceptions=True)

    async def use() -> None:
        async with AsyncMemoryBank.ephemeral() as bank:
            store = AsyncTierMemStore(bank, tier=tier_of)
            failed, done = await put(store)
            assert isinstance(failed, InvalidInput)
            assert done is None
            assert [item.value for item in await store.asearch(ANN)] == [{"n": 2}]

    asyncio.run(use())
    with MemoryBank.ephemeral() as bank:
        store = TierMemStore(bank, tier=tier_of)
        with pytest.raises(InvalidInput):
            store.batch([wrong, PutOp(ANN, "k", {"n": 2})])
        assert store.search(()) == []


def test_a_store_that_was_made_in_a_transaction_is_outside_of_it() -> None:
    async def fail(bank: AsyncMemoryBank, made: "asyncio.Future[AsyncTierMemStore]") -> None:
        async with bank.transaction():
            made.set_result(AsyncTierMemStore(bank))
            await asyncio.sleep(0.05)  # the other task asks meanwhile
            raise KeyError

    async def use() -> None:
        async with AsyncMemoryBank.ephemeral() as bank:
            made: asyncio.Future[AsyncTierMemStore] = asyncio.get_running_loop().create_future()

            async def put() -> None:
                await (await made).aput(("other",), "k", {"n": 1})

            other = asyncio.create_task(put())
            with pytest.raises(KeyError):
                await fail(bank, made)
            await other
            assert await (await made).aget(("other",), "k") is not None

    asyncio.run(use())


class Server:
    """An embedder that counts its calls, and fails for texts that it can't read or when down."""

    def __init__(self) -> None:
        self.is_down = False
        self.calls = 0

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.calls += 1
        if self.is_down or any("bad" in text for text in texts):
            raise TimeoutError("no answer")
        return [[float(len(text)), 1.0, 0.5] for text in texts]


def test_an_embedder_that_is_down_is_not_asked_for_each_that_waits() -> None:
    async def use() -> None:
        server = Server()
        async with AsyncMemoryBank.ephemeral(embedder=LangChainEmbedder(server.embed, 3)) as bank:
            store = AsyncTierMemStore(bank)
            await store.aput(ANN, "old", {"n": 0})
            server.is_down, server.calls = True, 0
            results = await asyncio.gather(
                *[store.aput(ANN, f"{n}", {"n": n}) for n in range(1, 31)],
                store.aget(ANN, "old"),
                store.adelete(ANN, "old"),
                store.asearch(ANN),
                return_exceptions=True,
            )
            assert [type(each) for each in results[:30]] == [EmbedderError] * 30
            assert (results[30].key, results[31], results[32]) == ("old", None, [])  # type: ignore[union-attr]
            assert server.calls <= 3

    asyncio.run(use())


def test_a_text_that_can_not_be_embedded_fails_for_its_caller_alone() -> None:
    async def use() -> None:
        server = Server()
        async with AsyncMemoryBank.ephemeral(embedder=LangChainEmbedder(server.embed, 3)) as bank:
            store = AsyncTierMemStore(bank)
            results = await asyncio.gather(
                *[store.aput(ANN, f"{n}", {"n": text}) for n, text in enumerate(["a", "bad", "c"])],
                *[store.aput(ANN, f"{n}", {"n": text}) for n, text in enumerate(["bad", "e"], 3)],
                return_exceptions=True,
            )
            assert [type(each) for each in results if each] == [EmbedderError] * 2
            assert sorted(item.key for item in await store.asearch(ANN)) == ["0", "2", "4"]

    asyncio.run(use())
