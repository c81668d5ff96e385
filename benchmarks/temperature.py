"""What use, decay, compaction, status and cold memories cost.

Each part runs in a process of its own. Vectors are made beforehand and looked up, so embedding is
no part of it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from report import Goal, console, goals, machine, number, table

_MANUAL = {"storage": {"sync": "manual"}, "seed": 7}


class Drawn:
    """Seeded vectors, one for each text, made when it is first seen."""

    name, dims, reproducible = "drawn", 256, True

    def __init__(self) -> None:
        self._rng = np.random.default_rng(7)
        self._known: dict[str, Any] = {}

    def embed(self, texts: list[str]) -> Any:
        for text in texts:
            if text not in self._known:
                self._known[text] = self._rng.standard_normal(256, np.float32)
        return np.stack([self._known[text] for text in texts])


def _bank(folder: Path, **settings: Any) -> Any:
    from tiermem import MemoryBank

    return MemoryBank.open(folder, {**_MANUAL, **settings}, preset="vector", embedder=Drawn())


def _fill(bank: Any, agents: int, memories: int, **options: Any) -> None:
    names = [f"agent_{n:04}" for n in range(agents)]
    for start in range(0, memories, 500):
        bank.add_many(
            [
                (name, f"text {n % 5000}", "normal", None, options or None)
                for name in names
                for n in range(start, min(start + 500, memories))
            ]
        )


def use(folder: Path, agents: int, memories: int, ticks: int) -> dict[str, float]:
    """Ticks in turns, on a bank that counts uses and looks for what fades, and on one that doesn't.

    Nothing is due yet.
    """
    return _ticks(folder, agents, memories, ticks, half_life=10 * memories)


def fading(folder: Path, agents: int, memories: int, ticks: int) -> dict[str, float]:
    """The same, but in each tick as many memories become cold as are stored."""
    return _ticks(folder, agents, memories, ticks, half_life=memories // 4)


def _off_and_on(half_life: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of a bank that neither counts uses nor has what fades, and of one with both."""
    on = {"decay": {"enabled": True, "half_life": {"normal": half_life}}}
    return {"temperature": {"min_score": 1.0}}, on


def _in_turns(ticks: list[Callable[[], object]], rounds: int) -> dict[str, float]:
    """The seconds of a tick without and with, and how many times as long the second takes.

    The machine's speed changes within seconds, so the two ticks of a round are compared.
    """
    seconds: list[list[float]] = [[], []]
    for number_ in range(rounds + 2):
        for place in (0, 1) if number_ % 2 else (1, 0):
            begun = perf_counter()
            ticks[place]()
            if number_ >= 2:
                seconds[place].append(perf_counter() - begun)
    return {
        "without": median(seconds[0]),
        "with": median(seconds[1]),
        "times": median(on / off for off, on in zip(*seconds, strict=True)),
    }


def _ticks(
    folder: Path, agents: int, memories: int, ticks: int, half_life: int
) -> dict[str, float]:
    off, on = _off_and_on(half_life)
    banks = [_bank(folder / "off", **off), _bank(folder / "on", **on)]
    names = [f"agent_{n:04}" for n in range(agents)]
    filled = memories // 2
    for bank in banks:
        for tick in range(filled):  # two of each agent in each tick, so that they age one by one
            with bank.transaction():
                bank.advance(tick)
                bank.add_many([(name, f"text {tick * 2 + m}") for name in names for m in (0, 1)])
        bank.state_hash()

    def tick_of(bank: Any) -> None:
        tick = bank.tick + 1
        with bank.transaction():
            bank.advance(tick)
            bank.context_many([(name, f"text {tick * 7 + n}") for n, name in enumerate(names)])
            bank.add_many([(name, f"text {tick + m}") for name in names for m in (0, 1)])
            bank.sweep(every=24)  # as a simulation does
            bank.state_hash()

    return {
        **_in_turns([partial(tick_of, bank) for bank in banks], ticks),
        "cold_a_tick": banks[1].engine.state.cold / ticks,
        "agents": agents,
        "memories": memories,
    }


def simulation(folder: Path, agents: int, memories: int, ticks: int) -> dict[str, float]:
    """The same as use, in whole ticks of a simulation: the market, with the offline embedder."""
    from tiermem import MemoryBank
    from tiermem.simulation import Loop
    from tiermem.simulation.worlds.market import Market

    names = [f"agent_{n:04}" for n in range(agents)]
    loops = []
    for which, settings in enumerate(_off_and_on(10 * memories)):
        bank = MemoryBank.open(folder / str(which), {**_MANUAL, **settings}, preset="vector")
        world = Market(scammers=agents // 10)
        loop = Loop(bank, world, world.rules(), names)
        loop.begin()
        for start in range(0, memories, 100):
            known = [f"agent_{n % 997:04} sold fish at {n % 83}" for n in range(start, start + 100)]
            bank.add_many([(name, text) for name in names for text in known])
        loops.append(loop)
    return {**_in_turns([loop.tick for loop in loops], ticks), "agents": agents}


def compaction(folder: Path, memories: int) -> dict[str, float]:
    """All of one agent's memories become cold; of many agents', one in ten; and nothing moves."""
    with _bank(folder / "one") as bank:
        _fill(bank, 1, memories, kind="decision")
        begun = perf_counter()
        assert bank.compact().cold == memories
        all_of_one = perf_counter() - begun
        begun = perf_counter()
        assert bank.compact().cold == 0
        again = perf_counter() - begun
    with _bank(folder / "many") as bank:
        _fill(bank, 100, memories // 100)
        _fill(bank, 100, memories // 1000, kind="decision")
        begun = perf_counter()
        assert bank.compact().cold == memories // 10
        some = perf_counter() - begun
    return {"all": all_of_one, "some": some, "again": again, "memories": memories}


def status(folder: Path, memories: int) -> dict[str, float]:
    """Of one agent with all memories, and of a thousand agents; the first time and later."""
    result: dict[str, float] = {"memories": memories}
    for name, agents in (("one", 1), ("many", 1000)):
        with _bank(folder / name) as bank:
            _fill(bank, agents, memories // agents)
            seconds = []
            for _ in range(7):
                begun = perf_counter()
                bank.status()
                seconds.append(perf_counter() - begun)
            result[f"{name}_first"], result[name] = seconds[0], median(seconds[1:])
    return result


def recall(folder: Path, memories: int, rounds: int) -> dict[str, float]:
    """A recall among cold memories in Chroma, and the store's own filtered query, in turns."""
    with _bank(folder / "bank") as bank:
        _fill(bank, 1, memories, temperature="cold")
        begun = perf_counter()
        bank.sync()
        synced = perf_counter() - begun
        agent = bank.agent("agent_0000")
        store = bank.engine.store
        agent.recall("text 1", auto_promote=False)
        whole, alone = [], []
        for n in range(rounds):
            query = f"text {n * 37}"
            vector = np.array(bank.engine.embedder.units([query])[0], np.float32)
            filters = {"user_id": "agent_0000", "temperature": "cold"}
            begun = perf_counter()
            store.search(vector, 9, filters)
            alone.append(perf_counter() - begun)
            begun = perf_counter()
            found = agent.recall(query, auto_promote=False)
            whole.append(perf_counter() - begun)
            assert found.items
            store.push()  # what the recall counted is not a change for the store
    return {"recall": median(whole), "store": median(alone), "sync": synced, "memories": memories}


def million(folder: Path, cold: int, warm: int) -> dict[str, float]:
    """Opening a bank and searching its warm memories, with very many cold ones and without."""
    result: dict[str, float] = {"cold": cold, "warm": warm}
    for name, many in (("without", 0), ("with", cold)):
        with _bank(folder / name) as bank:
            _fill(bank, 100, warm // 100)
            for start in range(0, many, 100_000):
                _fill(bank, 100, min(100_000, many - start) // 100, temperature="cold")
    order = ["without", "with"]
    opened: dict[str, list[float]] = {name: [] for name in order}
    searched: dict[str, list[float]] = {name: [] for name in order}
    for _ in range(7):
        for name in order:
            begun = perf_counter()
            bank = _bank(folder / name)
            opened[name].append(perf_counter() - begun)
            queries = [(f"agent_{n % 100:04}", f"text {n}") for n in range(100)]
            bank.search_many(queries)
            begun = perf_counter()
            for _ in range(5):
                bank.search_many(queries)
            searched[name].append((perf_counter() - begun) / 500)
            bank.close()
        order.reverse()
    for name in order:
        result[f"open_{name}"] = median(opened[name])
        result[f"search_{name}"] = median(searched[name])
    result["megabytes"] = (folder / "with" / "journal.db").stat().st_size / 1e6
    return result


_PARTS = {
    part.__name__: part for part in (use, simulation, fading, compaction, status, recall, million)
}


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
        print(json.dumps(_PARTS[part](Path(folder), *map(int, numbers))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--memories", type=int, default=1000, help="of each agent")
    parser.add_argument("--many", type=int, default=100_000, help="of compaction, status, recall")
    parser.add_argument("--cold", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="*", choices=_PARTS, default=list(_PARTS))
    parser.add_argument("--folder", type=Path, help="where to write; a disk, not a tmpfs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    console.quiet = options.json
    console.print(machine())
    sizes = {
        "use": (options.agents, options.memories, 40),
        "simulation": (options.agents, options.memories, 40),
        "fading": (options.agents, options.memories, 40),
        "compaction": (options.many,),
        "status": (options.many,),
        "recall": (options.many, 25),
        "million": (options.cold, 20_000),
    }
    found = {}
    for part in options.only:
        console.print(f"{part} …")
        found[part] = _child(part, options.folder, *sizes[part])
    if options.json:
        print(json.dumps(found, indent=2))
        return
    rows = [
        (f"{part}: {name}", number(value * 1e3))
        for part, values in found.items()
        for name, value in values.items()
        if isinstance(value, float) and name not in ("megabytes", "cold_a_tick", "times")
    ]
    table("Temperature", ("", "ms"), rows)
    goals([goal for part, values in found.items() for goal in _goals(part, values)])


def _goals(part: str, found: dict[str, float]) -> list[Goal]:
    if part in ("use", "fading"):
        what = "use and decay" if part == "use" else f"{found['cold_a_tick']:,.0f} fading"
        return [Goal(f"a tick of the bank alone with {what}, of one without", 1.1, found["times"])]
    if part == "simulation":
        return [Goal("a simulation's tick with use and decay, of one without", 1.1, found["times"])]
    if part == "compaction":
        return [
            Goal("compaction, all of one agent's", 2.5, found["all"], "s"),
            Goal("compaction, a tenth of 100 agents'", 1, found["some"], "s"),
        ]
    if part == "status":
        return [
            Goal(f"status {what}", 50, found[key] * 1e3, "ms")
            for what, key in (
                ("of one agent, first time", "one_first"),
                ("of one agent", "one"),
                ("of 1,000 agents, first time", "many_first"),
                ("of 1,000 agents", "many"),
            )
        ]
    if part == "recall":
        return [
            Goal("recall from cold, of the store's query", 1.2, found["recall"] / found["store"])
        ]
    return [
        Goal("opening with cold ones, of without", 1.2, found["open_with"] / found["open_without"]),
        Goal("a warm search, of without", 1.2, found["search_with"] / found["search_without"]),
    ]


if __name__ == "__main__":
    main()
