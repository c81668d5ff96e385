"""What others offer for the same work, each called as its own documents say."""

import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from contestants import Split
from workload import BATCH, DIMS, LIMIT, Item, Request, TableEmbedder, batches


class PlainMem0:
    """mem0's ``Memory`` on Chroma, called as its documents say."""

    title = "mem0 + Chroma"
    durable = True
    stores_in_batches = False

    def __init__(self, folder: Path, embedder: TableEmbedder) -> None:
        from tiermem.storage.mem0.package import import_mem0

        unused = {"provider": "openai", "config": {"api_key": "unused"}}
        config = {
            "vector_store": {
                "provider": "chroma",
                "config": {"collection_name": "bench", "path": str(folder / "mem0")},
            },
            "llm": unused,
            "embedder": unused,
            "history_db_path": str(folder / "history.db"),
        }
        memory_class = import_mem0("mem0").Memory
        logging.getLogger("mem0").setLevel(logging.ERROR)
        self._memory = memory_class.from_config(config)
        self._memory.embedding_model = _Mem0Embedder(embedder)
        self._embedder = embedder

    def seed(self, items: list[Item]) -> None:
        # What Memory.add writes, in batches: added one by one this would take hours.
        when = "2025-01-01T00:00:00+00:00"
        for start, part in zip(range(0, len(items), BATCH), batches(items), strict=True):
            self._memory.vector_store.insert(
                vectors=self._embedder.lists([text for _, text, _ in part]),
                payloads=[
                    {
                        "data": text,
                        "hash": hashlib.md5(text.encode()).hexdigest(),
                        "created_at": when,
                        "updated_at": when,
                        "user_id": agent,
                        "role": "user",
                    }
                    for agent, text, _ in part
                ],
                ids=[str(uuid5(NAMESPACE_OID, str(start + n))) for n in range(len(part))],
            )

    def tick(self, tick: int, requests: list[Request], items: list[Item]) -> Split:
        start = self._embedder.clock()
        for agent, query in requests:
            self._memory.search(query, filters={"user_id": agent}, top_k=LIMIT)
        searched = self._embedder.clock()
        for agent, text, _ in items:
            self._memory.add(text, user_id=agent, infer=False)
        return Split(searched - start, self._embedder.clock() - searched)


class _Mem0Embedder:
    def __init__(self, table: TableEmbedder) -> None:
        self._table = table

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self._table.lists([text])[0]

    def embed_batch(self, texts: list[str], memory_action: str = "add") -> list[list[float]]:
        return self._table.lists(texts)


class PlainChroma:
    """Chroma on disk: one collection, filtered by agent, a tick's memories added in one call."""

    title = "Chroma"
    durable = True
    stores_in_batches = True

    def __init__(self, folder: Path, embedder: TableEmbedder) -> None:
        import chromadb
        from chromadb.config import Settings

        client = chromadb.PersistentClient(
            str(folder / "chroma"), Settings(anonymized_telemetry=False)
        )
        self._collection = client.create_collection("bench", embedding_function=None)
        self._embedder = embedder
        self._stored = 0

    def seed(self, items: list[Item]) -> None:
        for part in batches(items):
            self._add(part)

    def tick(self, tick: int, requests: list[Request], items: list[Item]) -> Split:
        start = self._embedder.clock()
        for agent, query in requests:
            self._collection.query(
                query_embeddings=self._embedder.embed([query]),
                where={"agent": agent},
                n_results=LIMIT,
            )
        searched = self._embedder.clock()
        for part in batches(items):
            self._add(part)
        return Split(searched - start, self._embedder.clock() - searched)

    def _add(self, items: Sequence[Item]) -> None:
        self._collection.add(
            ids=[str(self._stored + n) for n in range(len(items))],
            embeddings=self._embedder.embed([text for _, text, _ in items]),
            metadatas=[{"agent": agent, "tier": tier} for agent, _, tier in items],
            documents=[text for _, text, _ in items],
        )
        self._stored += len(items)


class LangGraph:
    """LangGraph's InMemoryStore: a namespace per agent, a tick in its batch call."""

    title = "LangGraph InMemoryStore"
    durable = False
    stores_in_batches = True

    def __init__(self, folder: Path, embedder: TableEmbedder) -> None:
        from langgraph.store.memory import InMemoryStore

        self._embedder = embedder
        self._store = InMemoryStore(
            index={"dims": DIMS, "embed": self._embed(embedder), "fields": ["text"]}
        )
        self._stored = 0

    def seed(self, items: list[Item]) -> None:
        for part in batches(items):
            self._store.batch(self._puts(part))

    def tick(self, tick: int, requests: list[Request], items: list[Item]) -> Split:
        from langgraph.store.base import SearchOp

        start = self._embedder.clock()
        self._store.batch(
            [SearchOp((agent,), query=query, limit=LIMIT) for agent, query in requests]
        )
        searched = self._embedder.clock()
        self._store.batch(self._puts(items))
        return Split(searched - start, self._embedder.clock() - searched)

    @staticmethod
    def _embed(embedder: TableEmbedder) -> Any:
        return embedder.lists

    def _puts(self, items: Sequence[Item]) -> list[Any]:
        from langgraph.store.base import PutOp

        first = self._stored
        self._stored += len(items)
        return [
            PutOp((agent,), str(first + n), {"text": text, "tier": tier})
            for n, (agent, text, tier) in enumerate(items)
        ]


class LangGraphArrays(LangGraph):
    """The same with an embedder that breaks its word and gives NumPy rows, which is faster."""

    title = "LangGraph, NumPy rows"

    @staticmethod
    def _embed(embedder: TableEmbedder) -> Any:
        return lambda texts: list(embedder.embed(texts))
