"""How long the inspector takes to open a large run, and to answer.

A run of 1,000 agents and 2,000 ticks is made first, which takes a while; ``--run`` looks at one
that exists. Processor time of the thread that answers, which neighbours change least, and the time
by the clock, which has the waiting for the thread that reads the journal in it.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import median
from time import process_time, thread_time
from typing import Any, NamedTuple

from report import Goal, console, goals, machine, number, table

from tiermem.interfaces.inspector.export import exported
from tiermem.interfaces.inspector.parameters import Reading
from tiermem.interfaces.inspector.site import Site

_SCENARIO = """\
seed: 1
checkpoint: {{every: 1000000, keep: 1}}
storage: {{sync: manual}}
memory: {{default_limit: 5}}
simulation: {{world: "quiet_town:QuietTown", agents: {agents}, ticks: {ticks}}}
"""
_MOST_MEGABYTES = 512
"""Memory of the server that looks at the large run."""
_MARKET = """\
seed: 1
storage: {sync: manual}
simulation: {world: market, agents: 16, ticks: 200}
"""


def make(folder: Path, agents: int, ticks: int) -> Path:
    """A run of the quiet town."""
    shutil.copy(Path(__file__).with_name("quiet_town.py"), folder)
    return _made(folder, "town", _SCENARIO.format(agents=agents, ticks=ticks))


def _made(folder: Path, name: str, scenario: str) -> Path:
    (folder / f"{name}.yaml").write_text(scenario)
    command = [Path(sys.executable).with_name("tiermem"), "run", folder / f"{name}.yaml"]
    subprocess.run([*command, "--out", folder / name], check=True)
    return folder / name


def export(folder: Path) -> dict[str, float]:
    """Export a market of 16 agents and 200 ticks: its size, and the processor time."""
    run = _made(folder, "market", _MARKET)
    start = process_time()
    with Site([run]) as site:
        size = len(exported(site))
    return {"export_megabytes": size / 1e6, "exported": process_time() - start}


def questions(site: Site, random: Random, count: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Questions at random places, as somebody asks who clicks around."""
    about = site.answer("about", {})["runs"][0]
    for _ in range(count):
        agent = random.choice(about["agents"])
        tick = str(random.randint(1, about["last_tick"]))
        here = {"agent": agent, "tick": tick}
        yield "tick", {"tick": tick}
        yield "agent", here
        yield "memories", here
        yield "memories", {**here, "sort": "-uses", "text": "harbour"}
        yield "explain", {**here, "query": "is the bridge safe?"}
        yield "explain", {**here, "when": "deciding"}
        yield "population", {"tick": tick}
        yield "search", {"q": random.choice(("mill", "new owners", "tick 7", "walk", "zz"))}
        yield "heat", {"of": random.choice(about["per_agent"])}
        yield "series", {}
        yield "follow", {}
        if len(site.runs) > 1:
            yield "compare", here


class Took(NamedTuple):
    """Seconds of a request."""

    processor: float
    clock: float


def asked(site: Site, name: str, given: Mapping[str, str]) -> tuple[dict[str, Any] | None, Took]:
    """The answer, None if it has to be asked again, and how long it took."""
    start, clock = thread_time(), time.perf_counter()
    try:
        found = site.answer(name, given)
    except Reading:
        found = None
    return found, Took(thread_time() - start, time.perf_counter() - clock)


def opened(site: Site) -> None:
    """Ask what a page asks first, until it is answered."""
    for name in ("about", "series"):
        while asked(site, name, {})[0] is None:
            time.sleep(0.03)


def measure(folders: Sequence[Path], count: int) -> dict[str, Any]:
    """Open the run, and the one that it is compared with, and ask."""
    random = Random(1)
    start, wall = process_time(), time.perf_counter()
    with Site(folders) as site:
        opened(site)
        opening, opening_wall = process_time() - start, time.perf_counter() - wall
        times: dict[str, list[Took]] = {}
        early = [asked(site, *each)[1] for each in questions(site, random, 5)]
        reader = site.runs[0].reader
        for run in site.runs:
            run.need(run.last_tick(), 1e6)
        read = process_time() - start
        again = 0
        for name, given in questions(site, random, count):
            for _ in range(1000):
                found, took = asked(site, name, given)
                times.setdefault(name, []).append(took)
                if found is not None:
                    break
                again += 1
            if name == "memories" and found and found["rows"]:
                identifier = random.choice(found["rows"])["id"]
                times.setdefault("memory", []).append(asked(site, "memory", {"id": identifier})[1])
        size = reader.slices.size()
    return {
        "opened": opening,
        "opened_wall": opening_wall,
        "read": read,
        "early": max(each.processor for each in early),
        "early_wall": max(each.clock for each in early),
        "slowest": max(each.processor for own in times.values() for each in own),
        "slowest_wall": max(each.clock for own in times.values() for each in own),
        "again": again,
        "slices_megabytes": size / 1e6,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "requests": {
            name: {
                "n": len(each),
                "median": median(own.processor for own in each),
                "most": max(own.processor for own in each),
                "wall": max(own.clock for own in each),
            }
            for name, each in times.items()
        },
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--ticks", type=int, default=2000)
    parser.add_argument("--run", type=Path, help="a run that exists, of the quiet town")
    parser.add_argument("--other", type=Path, help="a run to compare it with, such as a branch")
    parser.add_argument("--questions", type=int, default=20, help="rounds of questions")
    parser.add_argument("--no-export", action="store_true", help="leave out the export's size")
    parser.add_argument("--folder", type=Path, help="where to write")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    console.quiet = options.json
    console.print(machine())
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="tiermem-bench-") as scratch:
        folder = options.run or make(Path(scratch), options.agents, options.ticks)
        folders = [folder, *([options.other] if options.other else [])]
        found = measure(folders, options.questions)
        if not options.no_export:
            found |= export(Path(scratch))
    if options.json:
        print(json.dumps(found, indent=2))
        return
    rows = [
        (name, str(each["n"]), *(number(each[own] * 1e3) for own in ("median", "most", "wall")))
        for name, each in found["requests"].items()
    ]
    heads = ("", "asked", "median", "most", "most by the clock")
    table("Requests, ms of processor time", heads, rows)
    console.print(
        f"opened in {found['opened']:.2f} s of processor time, {found['opened_wall']:.2f} s by the "
        f"clock; read whole after {found['read']:.0f} s of processor time; "
        f"{found['slices_megabytes']:.0f} MB of slices on disk, {found['peak_megabytes']:.0f} MB "
        f"of memory at most; {found['again']} questions were asked again"
    )
    wanted = [
        Goal("memory of the server at most", _MOST_MEGABYTES, found["peak_megabytes"], "MB"),
    ]
    if "exported" in found:
        console.print(
            f"a market of 16 agents and 200 ticks is exported in {found['exported']:.0f} s of "
            "processor time"
        )
        wanted.append(
            Goal("an export of 16 agents and 200 ticks", 30, found["export_megabytes"], "MB")
        )
    goals(
        [
            Goal("to open", 2.0, found["opened"], "s"),
            Goal("by the clock", 2.0, found["opened_wall"], "s"),
            Goal("the slowest request", 0.2, found["slowest"], "s"),
            Goal("by the clock", 0.2, found["slowest_wall"], "s"),
            Goal("the same, while the journal is read", 0.2, found["early"], "s"),
            Goal("by the clock", 0.2, found["early_wall"], "s"),
            *wanted,
        ]
    )


if __name__ == "__main__":
    main()
