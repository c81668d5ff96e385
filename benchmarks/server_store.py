"""Syncing memories to mem0's store on a server, beside the database's own batch insert.

Both write the same rows to the same server in the same run: the bank by ``sync()``, through its
journal, its child process and mem0's provider; the database's client straight from memory.
"""

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from report import Goal, console, goals, machine, number, table
from workload import TableEmbedder, Workload

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from server_stores import ChromaServer, Postgres, running

_BATCH = 2000
_MEMORIES_PER_AGENT = 100


def synced(bank: Any) -> tuple[float, list[tuple[str, dict[str, Any], list[float]]]]:
    """Seconds that a sync takes, and the rows that it wrote."""
    from tiermem.storage.embedding import unit
    from tiermem.storage.mem0.store import payload

    start = perf_counter()
    bank.sync()
    seconds = perf_counter() - start
    rows: list[tuple[str, dict[str, Any], list[float]]] = []
    for agent in bank.agents():
        memories = bank.agent(agent).all()
        vectors = unit(bank.engine.state.block(agent).vectors()).tolist()
        for memory, vector in zip(memories, vectors, strict=True):
            entry = {**payload(memory), "text_lemmatized": memory.content}
            rows.append((memory.id, entry, vector))
    return seconds, rows


def postgres(server: Postgres, rows: list[Any], hnsw: bool) -> float:
    """Seconds for the same rows by psycopg's own batches, in a table like mem0's."""
    import psycopg

    own = server.store["config"]
    with psycopg.connect(**{key: own[key] for key in own}, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE bare (id UUID PRIMARY KEY, vector vector(256), payload JSONB)"
        )
        if hnsw:
            connection.execute("CREATE INDEX ON bare USING hnsw (vector vector_cosine_ops)")
        words = "to_tsvector('simple', payload->>'text_lemmatized')"
        connection.execute(f"CREATE INDEX ON bare USING gin({words})")
        start = perf_counter()
        for first in range(0, len(rows), _BATCH):
            values = [
                (identifier, str(vector), json.dumps(entry))
                for identifier, entry, vector in rows[first : first + _BATCH]
            ]
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany("INSERT INTO bare VALUES (%s, %s, %s)", values)
        seconds = perf_counter() - start
        connection.execute("DROP TABLE bare")
    return seconds


def chroma(server: ChromaServer, rows: list[Any], _: bool) -> float:
    """Seconds for the same rows by Chroma's own client."""
    import chromadb

    client = chromadb.HttpClient("127.0.0.1", server.port)
    collection = client.get_or_create_collection("bare", embedding_function=None)
    start = perf_counter()
    for first in range(0, len(rows), _BATCH):
        identifiers, entries, vectors = zip(*rows[first : first + _BATCH], strict=True)
        collection.add(ids=list(identifiers), embeddings=list(vectors), metadatas=list(entries))
    return perf_counter() - start


_SERVERS: dict[str, tuple[Any, Callable[[Any, list[Any], bool], float]]] = {
    "postgres": (Postgres, postgres),
    "chroma": (ChromaServer, chroma),
}


def measure(name: str, memories: int, hnsw: bool, folder: Path | None) -> dict[str, float]:
    """Rows a second of a bank and of the database itself, on one server."""
    from tiermem import MemoryBank

    kind, bare = _SERVERS[name]
    workload = Workload(max(1, memories // _MEMORIES_PER_AGENT), _MEMORIES_PER_AGENT)
    with running(kind) as server, tempfile.TemporaryDirectory(dir=folder) as place:
        store = server.store
        if name == "postgres":
            store["config"]["hnsw"] = hnsw
        bank = MemoryBank.open(
            place, {"storage": {"sync": "close"}}, preset="vector", store=store,
            embedder=TableEmbedder(4096),
        )  # fmt: skip
        with bank:
            for agent in range(workload.agents):
                bank.add_many(workload.seed(range(agent, agent + 1)))
            ours, rows = synced(bank)
            theirs = bare(server, rows, hnsw)
    return {"rows": len(rows), "ours": len(rows) / ours, "bare": len(rows) / theirs}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--only", nargs="+", choices=_SERVERS, default=list(_SERVERS))
    parser.add_argument("--hnsw", action="store_true", help="with PostgreSQL's index for searches")
    parser.add_argument("--small", action="store_true", help="5,000 memories")
    parser.add_argument("--folder", type=Path, help="where the bank is written")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    console.quiet = options.json
    warnings.simplefilter("ignore")  # of other people's packages
    memories = 5000 if options.small else options.memories
    results = {name: measure(name, memories, options.hnsw, options.folder) for name in options.only}
    if options.json:
        print(json.dumps({"machine": machine(), "results": results}))
        return
    rows = [
        (name, f"{each['rows']:,}", number(each["ours"]), number(each["bare"]))
        for name, each in results.items()
    ]
    table("Rows a second", ("server", "memories", "sync()", "its own batch insert"), rows)
    goals(
        [
            Goal(f"{name}, sync to its own", 0.5, each["ours"] / each["bare"], at_least=True)
            for name, each in results.items()
        ]
    )
    console.print(machine())


if __name__ == "__main__":
    main()
