"""What ``add`` and ``search`` cost with mem0 itself, and with ``tiermem.mem0`` in its place.

Both have 10,000 memories of 100 users in local files, on the same disk, and embed with the bank's
offline embedder; everything else is as each comes. Calls take turns in one process, so what else
the machine does slows both. mem0 is filled in batches by its vector store, because its own ``add``
would take minutes.
"""

import argparse
import logging
import random
import tempfile
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from report import Goal, console, goals, machine, number, table

_UNUSED = {"provider": "openai", "config": {"api_key": "unused"}}
_WORDS = [
    "tea",
    "coffee",
    "market",
    "scam",
    "price",
    "harbour",
    "storm",
    "ladder",
    "violin",
    "garden",
    "letter",
    "doctor",
    "winter",
    "bicycle",
    "bridge",
    "candle",
    "forest",
    "engine",
    "island",
    "pepper",
    "river",
    "lantern",
    "basket",
    "copper",
    "wagon",
    "pigeon",
    "saddle",
]


class _Embedder:
    """The bank's offline embedder, in the shape of mem0's."""

    def __init__(self) -> None:
        from tiermem.storage.embedding import OfflineEmbedder

        self._own = OfflineEmbedder()
        self.dims = self._own.dims

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str = "add") -> list[list[float]]:
        rows = np.asarray(self._own.embed(list(texts)), dtype=float)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        found: list[list[float]] = (rows / np.where(lengths, lengths, 1.0)).tolist()
        return found


def _mem0(store: str, folder: Path) -> Any:
    from tiermem.storage.mem0.package import import_mem0

    embedder = _Embedder()
    options: dict[str, Any] = {"path": str(folder / "mem0"), "collection_name": "mem0"}
    if store == "qdrant":
        options |= {"embedding_model_dims": embedder.dims, "on_disk": True}
    logging.getLogger("mem0").setLevel(logging.ERROR)
    memory = import_mem0("mem0").Memory.from_config(
        {
            "vector_store": {"provider": store, "config": options},
            "embedder": _UNUSED,
            "llm": _UNUSED,
            "history_db_path": str(folder / "history.db"),
        }
    )
    memory.embedding_model = embedder
    return memory


def _fill(theirs: Any, ours: Any, texts: dict[str, list[str]]) -> None:
    for user, own in texts.items():
        payloads = [
            {
                "data": text,
                "hash": str(i),
                "created_at": "2026-01-01T00:00:00+00:00",
                "updated_at": "2026-01-01T00:00:00+00:00",
                "user_id": user,
                "role": "user",
                "text_lemmatized": text,
            }
            for i, text in enumerate(own)
        ]
        ids = [str(uuid.uuid4()) for _ in own]
        theirs.vector_store.insert(theirs.embedding_model.embed_batch(own), payloads, ids)
        ours.add([{"role": "user", "content": text} for text in own], user_id=user, infer=False)


def _in_turns(calls: int, each: Callable[[Any], Any], *sides: Any) -> list[float]:
    """The median time of a call for each side, in milliseconds."""
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(calls):
        for side, own in zip(sides, times, strict=True):
            start = perf_counter()
            each(side)
            own.append((perf_counter() - start) * 1e3)
    return [median(own) for own in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--calls", type=int, default=30)
    parser.add_argument("--store", choices=("chroma", "qdrant"), default="chroma")
    parser.add_argument("--folder", type=Path, help="where the files are made")
    options = parser.parse_args()
    chance = random.Random(7)

    def text() -> str:
        return " ".join(chance.choice(_WORDS) for _ in range(8))

    from tiermem.mem0 import Memory

    users = [f"user_{user:03}" for user in range(options.users)]
    each = options.memories // options.users
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        theirs, ours = _mem0(options.store, Path(folder)), Memory(Path(folder) / "bank")
        _fill(theirs, ours, {user: [text() for _ in range(each)] for user in users})
        talk = [{"role": "user", "content": text()} for _ in range(50)]

        def add(memory: Any) -> None:
            memory.add(text(), user_id=chance.choice(users), infer=False)

        def add_talk(memory: Any) -> None:
            memory.add(talk, user_id=chance.choice(users), infer=False)

        def search(memory: Any) -> None:
            memory.search(text(), filters={"user_id": chance.choice(users)})

        found = {
            "search, 20 of a user's memories": _in_turns(options.calls, search, theirs, ours),
            "add, one message": _in_turns(options.calls, add, theirs, ours),
            "add, a talk of 50 messages": _in_turns(
                max(3, options.calls // 10), add_talk, theirs, ours
            ),
        }
        theirs.vector_store.client.close()
        theirs.close()
        ours.bank.close(sync=False)
    console.print(machine())
    rows = [
        [name, number(one), number(other), f"{one / other:,.0f}x"]
        for name, (one, other) in found.items()
    ]
    what = f"{options.memories:,} memories of {options.users:,} users, ms a call"
    table(what, ["call", f"mem0 on {options.store}", "tiermem.mem0", "ratio"], rows)
    ratios = {name: one / other for name, (one, other) in found.items()}
    goals([Goal(name, 100, ratio, at_least=True) for name, ratio in ratios.items()])


if __name__ == "__main__":
    main()
