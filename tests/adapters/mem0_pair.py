"""A real ``mem0.Memory`` and ours, called alike, and their results compared."""

import logging
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from tiermem import MemoryBank
from tiermem.mem0 import Memory
from tiermem.storage.embedding import OfflineEmbedder
from tiermem.storage.mem0.package import import_mem0

UNUSED = {"provider": "openai", "config": {"api_key": "unused"}}
NEAR = 0.02
"""How far two scores may be apart: the bank's vectors are whole numbers."""
TIMES = ("created_at", "updated_at")


class AsMem0Embeds:
    """The bank's offline embedder, in the shape of mem0's."""

    def __init__(self) -> None:
        self._own = OfflineEmbedder()

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str = "add") -> list[list[float]]:
        vectors = np.asarray(self._own.embed(list(texts)), dtype=float)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        found: list[list[float]] = (vectors / np.where(lengths, lengths, 1.0)).tolist()
        return found


def real_mem0(store: str, folder: Path) -> Any:
    """mem0 with a local store, its history in memory, and the bank's embedder."""
    options: dict[str, Any] = {"path": str(folder / store), "collection_name": "mem0"}
    if store == "qdrant":
        options |= {"embedding_model_dims": OfflineEmbedder().dims, "on_disk": True}
    logging.getLogger("mem0").setLevel(logging.ERROR)
    memory = import_mem0("mem0").Memory.from_config(
        {
            "vector_store": {"provider": store, "config": options},
            "embedder": UNUSED,
            "llm": UNUSED,
            "history_db_path": ":memory:",
        }
    )
    memory.embedding_model = AsMem0Embeds()
    return memory


class Pair:
    """mem0 and ours, which get the same calls. Ids and times differ, and nothing else may."""

    def __init__(self, store: str, folder: Path) -> None:
        self.store = store
        self.theirs = real_mem0(store, folder)
        self.ours = Memory(MemoryBank.ephemeral(preset="vector"))
        self.ids: list[tuple[str, str]] = []
        self.calls: list[str] = []

    def close(self) -> None:
        self.theirs.vector_store.client.close()
        self.theirs.close()
        self.ours.close()

    def both(self, call: Callable[[Any, int], Any]) -> tuple[Any, Any]:
        """The results of a call; ``call`` gets the object, and which of two ids to use."""
        return _result(call, self.theirs, 0), _result(call, self.ours, 1)

    # Calls

    def add(self, messages: Any, **options: Any) -> None:
        self.calls.append(f"add({messages!r}, **{options!r})")
        theirs, ours = self.both(lambda it, _: it.add(messages, infer=False, **options))
        if isinstance(theirs, dict) and isinstance(ours, dict):
            pairs = zip(theirs["results"], ours["results"], strict=True)
            self.ids += [(one["id"], other["id"]) for one, other in pairs]
        self.same(theirs, ours)

    def change(self, name: str, which: int, *args: Any, **options: Any) -> None:
        self.calls.append(f"{name}(ids[{which}], *{args!r}, **{options!r})")
        ids = self.ids[which] if which < len(self.ids) else ("no-id", "no-id")
        if which >= len(self.ids) and self.store == "qdrant":
            return  # an id that is not a UUID is an error of the store's own
        self.same(*self.both(lambda it, i: getattr(it, name)(ids[i], *args, **options)))

    def delete_all(self, **ids: Any) -> None:
        self.calls.append(f"delete_all(**{ids!r})")
        self.same(*self.both(lambda it, _: it.delete_all(**ids)))

    def search(self, query: Any, **options: Any) -> None:
        self.calls.append(f"search({query!r}, **{options!r})")
        theirs, ours = self.both(lambda it, _: it.search(query, **options))
        if not isinstance(theirs, dict) or not isinstance(ours, dict):
            return self.same(theirs, ours)
        self._same_hits(theirs["results"], ours["results"], options)
        return None

    def listed(self, **options: Any) -> None:
        self.calls.append(f"get_all(**{options!r})")
        theirs, ours = self.both(lambda it, _: it.get_all(**options))
        if isinstance(theirs, dict) and isinstance(ours, dict):
            assert len(theirs["results"]) == len(ours["results"]), self._story(theirs, ours)
            if len(theirs["results"]) == options.get("top_k", 20):
                return  # which ones, mem0 does not say
            for one in (theirs, ours):
                one["results"].sort(key=lambda row: self._number(row["id"]))
        self.same(theirs, ours)

    # Comparing

    def same(self, theirs: Any, ours: Any) -> None:
        assert self._plain(theirs) == self._plain(ours), self._story(theirs, ours)

    def _same_hits(
        self, theirs: list[dict[str, Any]], ours: list[dict[str, Any]], options: Any
    ) -> None:
        story = self._story(theirs, ours)
        by_id = [{self._number(row["id"]): row for row in rows} for rows in (theirs, ours)]
        scores = [
            [self._score(row["score"], i) for row in rows] for i, rows in enumerate((theirs, ours))
        ]
        for own in scores:
            assert own == sorted(own, reverse=True), story
        for number in by_id[0].keys() & by_id[1].keys():
            one, other = (dict(rows[number]) for rows in by_id)
            assert abs(self._score(one.pop("score"), 0) - self._score(other.pop("score"), 1)) < NEAR
            self.same(one, other)
        # A memory that only one of them found is as near as the last place, or as the threshold.
        limit = options.get("top_k", 20)
        edge = options.get("threshold", 0.1)
        for i, _rows in enumerate((theirs, ours)):
            for number in by_id[i].keys() - by_id[1 - i].keys():
                score = self._score(by_id[i][number]["score"], i)
                lasts = [own[-1] for own in scores if len(own) == limit] or [edge]
                assert min(abs(score - each) for each in [*lasts, edge]) < NEAR, story

    def _score(self, score: float, which: int) -> float:
        """A score of mem0's Chroma is 1/(1+d²): the cosine is 1 - d²/2."""
        if which == 0 and self.store == "chroma":
            return max(0.0, 1 - (1 / score - 1) / 2)
        return max(0.0, score)

    def _number(self, memory_id: str) -> int:
        return next(i for i, pair in enumerate(self.ids) if memory_id in pair)

    def _plain(self, result: Any) -> Any:
        """A result without ids and times: an id is its number, a time whether there is one."""
        if isinstance(result, list):
            return [self._plain(each) for each in result]
        if not isinstance(result, dict):
            return result
        found = {}
        for name, value in result.items():
            if name in ("id", "memory_id") and "event" in result and "old_memory" in result:
                value = "history" if name == "id" else self._number(value)
            elif name == "id" and isinstance(value, str):
                value = self._number(value)
            elif name in TIMES:
                value = isinstance(value, str) and "T" in value
            found[name] = self._plain(value)
        if "old_memory" in result:
            return found
        # mem0 lists a memory without metadata once with None, and once without the key.
        return {
            name: value
            for name, value in found.items()
            if not (name == "metadata" and value is None)
        }

    def _story(self, theirs: Any, ours: Any) -> str:
        return "\n".join([*self.calls[-40:], f"theirs: {theirs!r}", f"ours:   {ours!r}"])


def _result(call: Callable[[Any, int], Any], it: Any, which: int) -> Any:
    """What a call gives: its result, or the kind of error that a program would catch."""
    try:
        return call(it, which)
    except Exception as error:  # whatever mem0 raises
        theirs = import_mem0("mem0.exceptions")
        if isinstance(error, theirs.ValidationError):
            return "ValidationError", error.error_code
        if isinstance(error, ValueError):
            return "ValueError"
        raise


# Random calls

USERS, AGENTS, RUNS = ("ann", "bob=1", "Zoë/7"), ("bot", "ann"), ("r1", "r2")
WORDS = [
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
]
PLACES = ("bay", "hill", "town")


def ids_of(chance: random.Random) -> dict[str, str]:
    given = {
        "user_id": chance.choice(USERS),
        "agent_id": chance.choice(AGENTS),
        "run_id": chance.choice(RUNS),
    }
    names = chance.sample(list(given), chance.choice((1, 1, 1, 2, 3)))
    return {name: given[name] for name in given if name in names}


def filters_of(chance: random.Random) -> dict[str, Any]:
    day, place = chance.randrange(6), chance.choice(PLACES)
    some: list[dict[str, Any]] = [
        {"day": day},
        {"day": {"gte": day}},
        {"day": {"gt": 1, "lt": 5}},
        {"day": {"in": [0, 2, 4]}},
        {"place": {"ne": place}},
        {"place": {"nin": [place, "bay"]}},
        {"place": place, "day": {"lte": day}},
        {"mood": "glad"},
        {"mood": {"in": ["glad", "sad"]}},
        {"role": "user"},
        {"place": "*"},
        {"place": {"eq": place}},
    ]
    return chance.choice(some)


def joined_of(chance: random.Random) -> dict[str, Any]:
    days = chance.choice(({"day": {"gte": 2}}, {"day": 1}))
    places = chance.choice(({"place": "bay"}, {"place": {"in": ["hill", "bay"]}}))
    return {chance.choice(("AND", "OR", "NOT", "$or", "$not")): [days, places]}


def text_of(chance: random.Random) -> str:
    return " ".join(chance.sample(WORDS, chance.randrange(2, 6)))


def metadata_of(chance: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"day": chance.randrange(6), "place": chance.choice(PLACES)}
    if chance.random() < 0.4:
        found["mood"] = chance.choice(("glad", "sad"))
    if chance.random() < 0.2:
        found |= {"user_id": "somebody", "hash": "x", "kind": "mine", "mem0_x": 1}
    return found


def a_date(chance: random.Random) -> str:
    return (
        datetime.now(UTC).date() + timedelta(days=chance.choice((-400, -2, 2, 400)))
    ).isoformat()


def a_message(chance: random.Random) -> dict[str, Any]:
    message = {"role": chance.choice(("user", "assistant", "system")), "content": text_of(chance)}
    return message | ({"name": "carl"} if chance.random() < 0.3 else {})


def step(pair: Pair, chance: random.Random) -> None:
    """One random call to both."""
    kind = chance.random()
    which = chance.randrange(len(pair.ids) + 1)
    if kind < 0.4:
        messages: Any = [a_message(chance) for _ in range(chance.randrange(1, 4))]
        options: dict[str, Any] = {"metadata": metadata_of(chance), **ids_of(chance)}
        if chance.random() < 0.3:
            options["expiration_date"] = a_date(chance)
        pair.add(chance.choice((text_of(chance), messages[0], messages)), **options)
    elif kind < 0.5:
        changes = [
            {"text": text_of(chance)},
            {"metadata": metadata_of(chance)},
            {"expiration_date": a_date(chance)},
            {"data": text_of(chance)},
            {},
        ]
        pair.change("update", which, **chance.choice(changes))
    elif kind < 0.55:
        pair.change("delete", which)
    elif kind < 0.57:
        pair.delete_all(**ids_of(chance))
    elif kind < 0.65:
        pair.change("get", which)
        pair.change("history", which)
    elif kind < 0.8:
        shown = chance.random() < 0.3
        pair.listed(filters=ids_of(chance) | filters_of(chance), top_k=1000, show_expired=shown)
    else:
        rest = filters_of(chance) if chance.random() < 0.7 else joined_of(chance)
        pair.search(
            text_of(chance),
            filters=ids_of(chance) | rest,
            top_k=chance.choice((1, 3, 20)),
            threshold=chance.choice((0.0, 0.1, 0.3)) if pair.store == "qdrant" else 0.0,
            show_expired=chance.random() < 0.3,
        )
