"""What a simulation costs beside what can't be avoided: embedding, and writing bytes to a disk.

Each part runs in a process of its own, on the market world with the offline embedder.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from report import Goal, console, goals, machine, number, table

_SETTINGS = {"storage": {"sync": "manual"}, "seed": 7}
_COMPARED = 0.1
"""The first and the last of the ticks that are compared."""


def _market(folder: Path, agents: int, **options: Any) -> tuple[Any, Any]:
    from tiermem import MemoryBank
    from tiermem.simulation import Loop
    from tiermem.simulation.worlds.market import Market

    bank = MemoryBank.open(folder / "bank", _SETTINGS, preset="vector", **options)
    world = Market(scammers=max(1, agents // 10))
    loop = Loop(bank, world, world.rules(), [f"agent_{n:04}" for n in range(agents)])
    loop.begin()
    return bank, loop


def _memories(bank: Any) -> int:
    from tiermem.telling.groups import agent_counts

    return sum(agent_counts(bank.engine)[0].values())


def tick(folder: Path, agents: int, memories: int, ticks: int) -> dict[str, float]:
    """Whole ticks, and after each the embedding of its texts alone."""
    from tiermem.storage.embedding import OfflineEmbedder

    bank, loop = _market(folder, agents)
    while _memories(bank) < agents * memories:
        loop.tick()
    texts: list[str] = []
    encode = bank.engine.embedder.encode

    def noting(given: list[str]) -> Any:
        texts.extend(given)
        return encode(given)

    bank.engine.embedder.encode = noting
    whole, alone, new = [], [], []
    for _ in range(ticks):
        texts.clear()
        known = set(bank.engine.embedder._newest.rows)
        start = perf_counter()
        loop.tick()
        whole.append(perf_counter() - start)
        for times, each in ((alone, texts), (new, [t for t in texts if t not in known])):
            start = perf_counter()
            OfflineEmbedder().embed(each)
            times.append(perf_counter() - start)
    bank.close()
    return {
        "tick": median(whole),
        "embedding": median(alone),
        "embedding_new": median(new),
        "texts": len(texts),
        "agents": agents,
    }


def checkpoint(folder: Path, agents: int, memories: int, rounds: int) -> dict[str, float]:
    """Write checkpoints, and the same bytes to a file; then restore one."""
    from tiermem import MemoryBank

    bank, loop = _market(folder, agents)
    while _memories(bank) < agents * memories:
        loop.tick()
    ours, bare, restored = [], [], []
    for number_ in range(rounds):
        # New files, as a run's checkpoints are: none takes the place of an older one.
        path, raw = folder / f"checkpoint-{number_}.tmck", folder / f"raw-{number_}"
        os.sync()
        start = perf_counter()
        bank.checkpoint(path)
        ours.append(perf_counter() - start)
        data = path.read_bytes()
        os.sync()
        start = perf_counter()
        with raw.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        bare.append(perf_counter() - start)
        os.sync()
        start = perf_counter()
        MemoryBank.restore(path, into=folder / f"restored-{number_}").close()
        restored.append(perf_counter() - start)
    count = _memories(bank)
    bank.close()
    return {
        "write": median(ours),
        "raw": median(bare),
        "restore": median(restored),
        "megabytes": len(data) / 1e6,
        "memories": count,
    }


def flat(folder: Path, agents: int, ticks: int) -> dict[str, float]:
    """A long run: what its first and last ticks cost, and how much its memory grew.

    Processor time, which neighbours change least. Beside it, what multiplying the vectors that came
    in between with a tick's queries costs. The cache of embeddings is small, so that it is full
    before its growth could be mistaken.
    """
    bank, loop = _market(folder, agents, embedder={"cache_size": 4096})
    blocks = bank.engine.state.blocks
    seconds, sizes = [], {}
    middle, part = ticks // 2, max(1, int(ticks * _COMPARED))
    typical = part // 2, ticks - part // 2 - 1
    """A tick in the middle of the first ones, and of the last ones."""
    for index in range(ticks):
        if index == middle:
            gc.collect()
            before, had = _resident(), _taken(bank)
        start = process_time()
        loop.tick()
        seconds.append(process_time() - start)
        if index in typical:
            sizes[index] = {agent: block.size for agent, block in blocks.items()}
    gc.collect()
    grown, needed = _resident() - before, _taken(bank) - had
    stored = _memories(bank)
    reading = median(_read_added(bank, *map(sizes.__getitem__, typical)) for _ in range(20))
    bank.close()
    return {
        "first": _p95(seconds[:part]),
        "last": _p95(seconds[-part:]),
        "first_median": median(seconds[:part]),
        "last_median": median(seconds[-part:]),
        "reading": reading,
        "grown": grown,
        "needed": needed,
        "memories": stored,
        "agents": agents,
        "ticks": ticks,
    }


def _read_added(bank: Any, before: dict[str, int], after: dict[str, int]) -> float:
    """The seconds of one query of each agent, multiplied with the vectors that came in between."""
    from tiermem.storage.embedding import products

    resident = bank.engine.state
    vectors = resident.table.vectors
    added = [
        (block.start, slice(block.start + before.get(agent, 0), block.start + after[agent]))
        for agent, block in resident.blocks.items()
    ]
    start = process_time()
    for query, rows in added:
        products(vectors[rows], vectors[query])
    return process_time() - start


def _taken(bank: Any) -> int:
    """The bytes that the memories themselves take: vectors, texts and numbers."""
    resident = bank.engine.state
    row = sum(column[:1].nbytes for column in resident.table.columns)
    return sum(
        row * block.size + sum(map(sys.getsizeof, block.contents()))
        for block in resident.blocks.values()
    )


def _p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


def _resident() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("this system doesn't tell VmRSS")


def _child(part: str, folder: Path | None, *numbers: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=folder, prefix="tiermem-bench-") as scratch:
        arguments = [sys.executable, __file__, "--part", part, scratch, *map(str, numbers)]
        done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--part"]:
        part, folder, *numbers = sys.argv[2:]
        call = {"tick": tick, "checkpoint": checkpoint, "flat": flat}[part]
        print(json.dumps(call(Path(folder), *map(int, numbers))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--memories", type=int, default=200)
    parser.add_argument("--ticks", type=int, default=15)
    parser.add_argument("--long", type=int, default=2000, help="ticks of the long run, 50 agents")
    parser.add_argument("--folder", type=Path, help="where to write; a disk, not a tmpfs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    console.quiet = options.json
    console.print(machine())
    ticks = _child("tick", options.folder, options.agents, options.memories, options.ticks)
    saved = _child("checkpoint", options.folder, options.agents, options.memories, 5)
    long = _child("flat", options.folder, 50, options.long)
    if options.json:
        print(json.dumps({"tick": ticks, "checkpoint": saved, "flat": long}, indent=2))
        return
    milliseconds = [
        (f"a tick of {ticks['agents']:,} agents", ticks["tick"]),
        (f"embedding its {ticks['texts']:,} texts alone", ticks["embedding"]),
        ("embedding those that no earlier tick had", ticks["embedding_new"]),
        (f"a checkpoint of {saved['memories']:,} memories", saved["write"]),
        (f"writing its {saved['megabytes']:,.0f} MB alone", saved["raw"]),
        ("restoring it", saved["restore"]),
        (f"a tick of 50 agents, first tenth of {long['ticks']:,} (median)", long["first_median"]),
        (f"a tick of 50 agents, last tenth ({long['memories'] / 50:,.0f} memories each)",
         long["last_median"]),
        ("multiplying the vectors that came in between", long["reading"]),
    ]  # fmt: skip
    table("Simulation", ("", "ms"), [(name, number(value * 1e3)) for name, value in milliseconds])
    goals(
        [
            Goal("a tick, of embedding its texts", 1.5, ticks["tick"] / ticks["embedding"]),
            Goal("a checkpoint, of writing its bytes", 3, saved["write"] / saved["raw"]),
            Goal("restoring a checkpoint", 2, saved["restore"], "s"),
            Goal(
                "growth of a tick (median), of reading the added vectors",
                1,
                (long["last_median"] - long["first_median"]) / long["reading"],
            ),
            Goal("growth of the process, of its memories", 1.2, long["grown"] / long["needed"]),
        ]
    )


if __name__ == "__main__":
    main()
