"""LangChain's models and functions as embedders of a bank."""

import asyncio
import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langgraph.store.base.embed import EmbeddingsLambda

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
