"""What it costs to search by words as well, to search cold memories, and to index notes.

Real texts and the offline embedder. What is compared takes turns in one process, and the median of
the rounds counts.
"""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from report import Goal, console, goals, machine, number, table

_MANUAL = {"storage": {"sync": "manual"}, "seed": 7}
_NAMES = [f"agent_{agent:03}" for agent in range(200)]
_VERBS = ("sold", "bought", "promised", "stole", "repaired", "found", "carried", "praised", "hid")
_THINGS = (
    "a basket of fish", "three sacks of salt", "the old mill", "an iron gate", "two goats",
    "a letter", "the bridge", "a bag of coins", "the map of the cellar", "a broken wheel",
)  # fmt: skip
_PLACES = ("at the market", "by the river", "behind the chapel", "near the lake", "in the hall")


def texts(count: int, seed: int) -> list[str]:
    """Invented sentences, most of them different."""
    rng = random.Random(seed)
    return [
        f"{rng.choice(_NAMES)} {rng.choice(_VERBS)} {rng.choice(_THINGS)} {rng.choice(_PLACES)} "
        f"for {rng.randrange(1000)} coins, deal {rng.randrange(100_000)}"
        for _ in range(count)
    ]


def in_turns(rounds: int, parts: dict[str, Callable[[int], float]]) -> dict[str, float]:
    """The median of what each part measures, in seconds; each is given the round's number."""
    taken: dict[str, list[float]] = {name: [] for name in parts}
    for turn in range(rounds):
        for name, part in parts.items():
            taken[name].append(part(turn))
    return {name: median(values) for name, values in taken.items()}


def searching(memories: int, rounds: int) -> dict[str, float]:
    """One agent's search, new queries each time: by vectors alone, and as it is by default."""
    from tiermem import MemoryBank

    banks = {
        name: MemoryBank.ephemeral(_MANUAL, preset=preset)
        for name, preset in (("vector", "vector"), ("hybrid", "hybrid"))
    }
    banks["with sessions"] = MemoryBank.ephemeral(_MANUAL)
    for name, bank in banks.items():
        talks = name == "with sessions"
        bank.agent("alice").add_many(
            [
                (
                    text,
                    "normal",
                    {"session": n // 25, "speaker": text.split()[0]} if talks else None,
                )
                for n, text in enumerate(texts(memories, 1))
            ]
        )

    def search(name: str, turn: int) -> float:
        alice = banks[name].agent("alice")
        queries = [f"who {text}?" for text in texts(50, 1000 + turn)]
        start = perf_counter()
        for query in queries:
            alice.search(query, 10)
        return (perf_counter() - start) / len(queries)

    return in_turns(rounds, {name: lambda turn, name=name: search(name, turn) for name in banks})  # type: ignore[misc]


def cold(memories: int, rounds: int) -> dict[str, float]:
    """A search of one agent's cold memories: of the same warm, and of texts with accents."""
    from tiermem import MemoryBank

    own = texts(memories, 1)
    accented = [text.replace("e", "é") for text in own]
    kinds = {"warm": own, "cold": own, "accents": accented}
    banks = {name: MemoryBank.ephemeral(_MANUAL) for name in kinds}
    for name, bank in banks.items():
        options = {"temperature": "warm" if name == "warm" else "cold"}
        alice = bank.agent("alice")
        alice.add_many([(text, "normal", None, options) for text in kinds[name]])
        alice.search("warm up", include_cold=True)

    def search(name: str, turn: int) -> float:
        alice = banks[name].agent("alice")
        queries = [f"who {text}?" for text in texts(10, 1000 + turn)]
        if name == "accents":
            queries = [query.replace("e", "é") for query in queries]
        start = perf_counter()
        for query in queries:
            alice.search(query, 10, include_cold=True)
        return (perf_counter() - start) / len(queries)

    return in_turns(rounds, {name: lambda turn, name=name: search(name, turn) for name in banks})  # type: ignore[misc]


def ticking(agents: int, memories: int, rounds: int) -> dict[str, float]:
    """A tick of many agents, per agent: one search and two new memories each."""
    from tiermem import MemoryBank

    names = [f"agent_{agent:04}" for agent in range(agents)]
    banks = {name: MemoryBank.ephemeral(_MANUAL, preset=name) for name in ("vector", "hybrid")}
    start_texts = texts(memories, 2)
    for bank in banks.values():
        bank.add_many([(name, text) for name in names for text in start_texts])

    def tick(name: str, turn: int) -> float:
        bank = banks[name]
        new = texts(2 * agents, 5000 + turn)
        asked = texts(agents, 9000 + turn)
        start = perf_counter()
        with bank.transaction():
            bank.advance(bank.tick + 1)
            bank.search_many(list(zip(names, asked, strict=True)))
            bank.add_many(list(zip(names * 2, new, strict=True)))
        return (perf_counter() - start) / agents

    return in_turns(rounds, {name: lambda turn, name=name: tick(name, turn) for name in banks})  # type: ignore[misc]


def adding(memories: int, rounds: int) -> dict[str, float]:
    """Storing memories and having them indexed: the time until a search has seen all of them."""
    from tiermem import MemoryBank

    def add(name: str, turn: int) -> float:
        with (
            tempfile.TemporaryDirectory() as folder,
            MemoryBank.open(Path(folder) / "bank", _MANUAL, preset=name) as bank,
        ):
            alice = bank.agent("alice")
            alice.search("warm up")
            new = texts(memories, 300 + turn)
            start = perf_counter()
            for first in range(0, memories, 500):
                alice.add_many(new[first : first + 500])
            alice.search("what was sold?", 1)
            return perf_counter() - start

    parts = {name: lambda turn, name=name: add(name, turn) for name in ("vector", "hybrid")}  # type: ignore[misc]
    return in_turns(rounds, parts)


def notes(files: int, megabytes: int) -> dict[str, float]:
    """Looking at notes that did not change, and the first index of many, beside embedding them."""
    from tiermem import MemoryBank
    from tiermem.notes.markdown import cut
    from tiermem.storage.embedding import OfflineEmbedder

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "bank"
        inside = folder / "notes" / "alice" / "memory"
        inside.mkdir(parents=True)
        for n in range(files):
            (inside / f"day-{n:04}.md").write_text(f"# Day {n}\n\n" + "\n".join(texts(5, n)) + "\n")
        with MemoryBank.open(folder, _MANUAL) as bank:
            own = bank.agent("alice").notes
            unchanged = in_turns(5, {"unchanged": lambda _: timed(own.sync)})["unchanged"]

        folder = Path(place) / "large"
        inside = folder / "notes" / "alice" / "memory"
        with MemoryBank.open(folder, _MANUAL) as bank:
            inside.mkdir(parents=True)
            written: list[str] = []
            for n in range(megabytes * 4):
                lines = texts(2700, 50_000 + n)
                parts = ["\n".join(lines[at : at + 30]) for at in range(0, len(lines), 30)]
                text = "\n\n".join(f"## Part {place}\n\n{part}" for place, part in enumerate(parts))
                written.append(text)
                (inside / f"part-{n:03}.md").write_text(text)
            size = sum(len(text) for text in written) / 1e6
            chunks = [chunk.text for text in written for chunk in cut(text)]
            OfflineEmbedder().embed(chunks[:10])
            alone = timed(lambda: OfflineEmbedder().embed(chunks))
            first = timed(bank.agent("alice").notes.sync)
            alone = (alone + timed(lambda: OfflineEmbedder().embed(chunks))) / 2
    return {"unchanged": unchanged, "index": first, "embed": alone, "megabytes": size}


def timed(act: Callable[[], Any]) -> float:
    """How long it takes, in seconds."""
    start = perf_counter()
    act()
    return perf_counter() - start


def main() -> None:
    """Measure, and print it beside the goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=1000, help="of the agent that searches")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    found = {
        "search": searching(given.memories, given.rounds),
        "700": searching(700, given.rounds),
        "cold": cold(given.memories, given.rounds),
        "10 × cold": cold(10 * given.memories, given.rounds),
        "tick": ticking(200, 200, given.rounds),
        "add": adding(5000, max(3, given.rounds // 2)),
        "notes": notes(1000, 10),
    }
    if given.json:
        json.dump(found, sys.stdout, indent=1)
        return
    search, tick, add, note = found["search"], found["tick"], found["add"], found["notes"]
    table(
        f"µs by what is searched; {given.memories:,} memories",
        ("", *search),
        [
            ("a search, limit 10", *(number(value * 1e6) for value in search.values())),
            ("a tick, per agent (200 agents × 200)", *(number(v * 1e6) for v in tick.values()), ""),
            ("a memory stored and indexed", *(number(v / 5000 * 1e6) for v in add.values()), ""),
        ],
    )
    table(
        "µs of a search with cold memories",
        ("", "all warm", "all cold", "all cold, with accents"),
        [
            (f"{size:,} memories", *(number(value * 1e6) for value in found[name].values()))
            for size, name in ((given.memories, "cold"), (10 * given.memories, "10 × cold"))
        ],
    )
    speed = note["megabytes"] / note["index"]
    console.print(
        f"{note['megabytes']:.1f} MB of notes: first index {note['index']:.2f} s "
        f"({speed:.1f} MB/s), embedding its chunks alone {note['embed']:.2f} s"
    )
    goals(
        [
            Goal("hybrid search, of vectors alone", 2.0, search["hybrid"] / search["vector"]),
            Goal("hybrid search of 700 with sessions", 1.0, found["700"]["with sessions"] * 1e3,
                 "ms"),
            *(
                Goal(f"{name}: texts with accents, of others", 1.5,
                     found[name]["accents"] / found[name]["cold"])
                for name in ("cold", "10 × cold")
            ),
            Goal("throughput of storing, of that with vectors alone", 0.7,
                 add["vector"] / add["hybrid"], at_least=True),
            Goal("looking at 1,000 unchanged notes", 100, note["unchanged"] * 1e3, "ms"),
            Goal("first index of notes, of the embedder's own speed", 0.8,
                 note["embed"] / note["index"], at_least=True),
        ]
    )  # fmt: skip
    console.print(machine())


if __name__ == "__main__":
    main()
