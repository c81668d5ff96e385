"""LangChain's models and functions as embedders of a bank."""

import asyncio
import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langgraph.store.base import PutOp
from langgraph.store.base.embed import EmbeddingsLambda
from langgraph.store.memory import InMemoryStore

from agents import AsyncMemoryBank, EmbedderError, InvalidInput, MemoryBank
from agents.langgraph import AsyncTierMemStore, LangChainEmbedder, TierMemStore
from banks import MANUAL
from forks import in_a_fork

ANN = ("users", "ann")
FORMER = "langchain/EmbeddingsLambda"


def lengths(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0, 0.0] for text in texts]


def spaces(texts: Sequence[str]) -> list[list[float]]:
    return [[1.0, 0.0, float(text.count(" "))] for text in texts]


async def slowly(texts: Sequence[str]) -> list[list[float]]:
    await asyncio.sleep(0)
    return lengths(texts)


class Model:
    model = "small-1"

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        return lengths(texts)


@pytest.mark.parametrize(
    ("embed", "name"),
    [
        (lengths, f"langchain/{__name__}.lengths"),
        (slowly, f"langchain/{__name__}.slowly"),
        (EmbeddingsLambda(lengths), f"langchain/{__name__}.lengths"),
        (Model().__call__, f"langchain/{__name__}.Model.__call__"),
        (Model(), "langchain/Model:small-1"),
        (DeterministicFakeEmbedding(size=3), "langchain/DeterministicFakeEmbedding"),
    ],
)
def test_the_name_says_the_function_or_the_model(embed: Any, name: str) -> None:
    embedder = LangChainEmbedder(embed)
    assert (embedder.name, embedder.dims) == (name, 3)
    assert LangChainEmbedder(embed, name="mine").name == "mine"


@pytest.mark.parametrize("embed", [lambda texts: lengths(texts), functools.partial(lengths)])
def test_a_function_without_a_name_needs_one(embed: Any) -> None:
    with pytest.raises(InvalidInput, match="name="):
        LangChainEmbedder(embed, 3)
    assert LangChainEmbedder(embed, 3, name="mine").embed(["abc"]) == [[3.0, 1.0, 0.0]]


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not 5"):
        LangChainEmbedder(5, 3)


def test_a_bank_opens_with_its_own_function_alone(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path, storage=MANUAL, embedder=LangChainEmbedder(lengths)) as bank:
        TierMemStore(bank).put(ANN, "k", {"text": "tea"})
    with pytest.raises(EmbedderError, match="lengths"):
        MemoryBank.open(tmp_path, embedder=LangChainEmbedder(spaces))
    with MemoryBank.open(tmp_path, embedder=LangChainEmbedder(lengths)) as bank:
        assert TierMemStore(bank).search(ANN, query="tea")


def test_a_bank_with_the_name_of_before_opens_with_that_name(tmp_path: Path) -> None:
    former = LangChainEmbedder(lengths, name=FORMER)
    with MemoryBank.open(tmp_path, storage=MANUAL, embedder=former) as bank:
        TierMemStore(bank).put(ANN, "k", {"text": "tea"})
    with pytest.raises(EmbedderError, match=FORMER):
        MemoryBank.open(tmp_path, embedder=LangChainEmbedder(lengths))
    with MemoryBank.open(tmp_path, embedder=LangChainEmbedder(lengths, name=FORMER)) as bank:
        assert TierMemStore(bank).search(ANN, query="tea")


def test_an_async_function_embeds_with_and_without_a_loop() -> None:
    loops = set[asyncio.AbstractEventLoop]()

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        loops.add(asyncio.get_running_loop())
        return await slowly(texts)

    async def use() -> None:
        async with AsyncMemoryBank.ephemeral(embedder=LangChainEmbedder(embed, 3)) as bank:
            store = AsyncTierMemStore(bank)
            await store.aput(ANN, "k", {"text": "tea"})
            assert len(await store.asearch(ANN, query="tea")) == 1
        assert len(loops) == 1
        with MemoryBank.ephemeral(embedder=LangChainEmbedder(embed, 3)) as other:
            TierMemStore(other).put(ANN, "k", {"text": "tea"})

    asyncio.run(use())
    assert len(loops) == 2


def test_what_an_async_function_raises_is_the_embedders_error() -> None:
    async def fail(texts: Sequence[str]) -> list[list[float]]:
        raise ConnectionError("no server")

    with (
        MemoryBank.ephemeral(embedder=LangChainEmbedder(fail, 3)) as bank,
        pytest.raises(EmbedderError, match="no server"),
    ):
        TierMemStore(bank).put(ANN, "k", {"text": "tea"})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # threads and fork, as users mix them
def test_an_async_function_embeds_in_a_forked_process() -> None:
    embedder = LangChainEmbedder(slowly)

    def embeds() -> None:
        assert embedder.embed(["abc"]) == [[3.0, 1.0, 0.0]]

    in_a_fork(embeds)


# Queries


class Asymmetric(Embeddings):
    """Turns a query towards its answers, as models do that are told what a text is for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[0.0, 1.0] if "?" in text else [1.0, 0.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.asked.append(text)
        return [1.0, 0.0]


PUTS = [
    PutOp(ANN, "question", {"text": "where is the key?"}),
    PutOp(ANN, "answer", {"text": "under the mat"}),
]


def test_a_model_embeds_queries_as_queries() -> None:
    theirs = InMemoryStore(index={"embed": Asymmetric(), "dims": 2, "fields": ["text"]})
    model = LangChainEmbedder(Asymmetric(), 2)
    with MemoryBank.ephemeral(preset="vector", embedder=model) as bank:
        ours = TierMemStore(bank, fields=["text"])
        for query in ("where is the key?", "under the mat", "key?"):  # two of them are texts, too
            found = []
            for store in (theirs, ours):
                store.batch(PUTS)
                page = store.search(ANN, query=query)
                found.append([(item.key, round(item.score or 0.0, 6)) for item in page])
            assert found[0] == found[1] == [("answer", 1.0), ("question", 0.0)]


def test_the_vector_of_a_query_is_kept_in_the_bank(tmp_path: Path) -> None:
    model = Asymmetric()
    for _ in range(2):
        own = LangChainEmbedder(model, 2)
        with MemoryBank.open(tmp_path, storage=MANUAL, preset="vector", embedder=own) as bank:
            store = TierMemStore(bank, fields=["text"])
            store.batch(PUTS)
            for _ in range(2):
                assert store.search(ANN, query="key?")[0].key == "answer"
            many = [(ANN[0] + "." + ANN[1], query) for query in ("key?", "mat?", "door?")]
            assert [hits[0].memory.key for hits in bank.search_many(many)] == ["answer"] * 3
    assert sorted(model.asked) == ["door?", "key?", "mat?"]


def test_a_forgotten_text_leaves_no_vector_of_a_query(tmp_path: Path) -> None:
    model = Asymmetric()
    own = LangChainEmbedder(model, 2)
    with MemoryBank.open(tmp_path, storage=MANUAL, preset="vector", embedder=own) as bank:
        ann = bank.agent("ann")
        for is_committed in (False, True):
            memory = ann.add("a secret")
            ann.search("a secret")
            if is_committed:
                bank.commit()
            ann.forget(memory.id)
            bank.commit()
            assert bank.engine.journal.embeddings() == {}
        ann.search("a secret")
        assert model.asked == ["a secret"] * 3


def test_a_query_that_can_not_be_embedded_is_found_by_words() -> None:
    class Failing(Asymmetric):
        def embed_query(self, text: str) -> list[float]:
            raise ConnectionError("no server")

    with MemoryBank.ephemeral(embedder=LangChainEmbedder(Failing(), 2)) as bank:
        store = TierMemStore(bank, fields=["text"])
        store.batch(PUTS)
        assert store.search(ANN, query="mat")[0].key == "answer"
        assert "no server" in bank.agent("users.ann").search("mat").note
