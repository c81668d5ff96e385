"""How long the inspector takes to open a large run, and to answer.

A run of 1,000 agents and 2,000 ticks is made first, which takes a while; ``--run`` looks at one
that exists. ``tiermem inspect`` is a process of its own, and is asked over HTTP, as the page asks
it. Times are by the clock: work beside it is in them.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from statistics import median
from time import process_time
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

from report import Goal, console, goals, machine, number, table

from tiermem.interfaces.inspector.export import exported
from tiermem.interfaces.inspector.inspection import Inspection

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
    with Inspection([run]) as site:
        size = len(exported(site))
    return {"export_megabytes": size / 1e6, "exported": process_time() - start}


class Took(NamedTuple):
    """An answer, None if it has to be asked again, and the seconds that it took."""

    found: dict[str, Any] | None
    seconds: float


class Server:
    """``tiermem inspect`` in a process of its own, asked over HTTP as the page asks it."""

    def __init__(self, folders: Sequence[Path]) -> None:
        command = [Path(sys.executable).with_name("tiermem"), "inspect", *folders, "--port", "0"]
        self._began = time.perf_counter()
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout
        found = None
        while found is None:
            line = self._process.stdout.readline()
            if not line:
                raise SystemExit("the inspector did not start")
            found = re.search(r"http://([^/:]+):(\d+)(/[^/\s]+/)", line)
        self._path = found[3]
        self._http = HTTPConnection(found[1], int(found[2]))
        self.started = time.perf_counter() - self._began

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()
        self._process.send_signal(signal.SIGINT)
        self._process.wait(60)

    def ask(self, name: str, given: Mapping[str, str]) -> Took:
        """Ask once."""
        start = time.perf_counter()
        self._http.request("GET", f"{self._path}api/{name}?{urlencode(given)}")
        response = self._http.getresponse()
        body = response.read()
        took = time.perf_counter() - start
        if response.status == HTTPStatus.ACCEPTED:
            return Took(None, took)
        if response.status != HTTPStatus.OK:
            raise SystemExit(f"{name} {dict(given)}: {response.status} {body[:500]!r}")
        return Took(json.loads(body), took)

    def wait(self, name: str, given: Mapping[str, str]) -> dict[str, Any]:
        """Ask until it is answered."""
        while (found := self.ask(name, given).found) is None:
            time.sleep(0.03)
        return found

    def seconds(self) -> float:
        """Since it was started."""
        return time.perf_counter() - self._began

    def megabytes(self) -> float:
        """The most memory that it and the processes that read had so far."""
        texts = [Path(f"/proc/{each}/status").read_text() for each in self._processes()]
        return sum(int(re.search(r"VmHWM:\s+(\d+)", text)[1]) for text in texts) / 1e3

    def processor(self) -> list[float]:
        """The seconds of the processor that it took so far, and the processes that read."""
        texts = [Path(f"/proc/{each}/stat").read_text() for each in self._processes()]
        fields = [text.rpartition(")")[2].split() for text in texts]
        return [(int(own[11]) + int(own[12])) / os.sysconf("SC_CLK_TCK") for own in fields]

    def _processes(self) -> list[int]:
        main = self._process.pid
        children = Path(f"/proc/{main}/task").glob("*/children")
        return [main, *(int(each) for file in children for each in file.read_text().split())]


def questions(
    about: Mapping[str, Any], random: Random, count: int
) -> Iterator[tuple[str, dict[str, str]]]:
    """Questions at random places, as somebody asks who clicks around."""
    run = about["runs"][0]
    for _ in range(count):
        agent = random.choice(run["agents"])
        tick = str(random.randint(1, run["last_tick"]))
        here = {"agent": agent, "tick": tick}
        yield "tick", {"tick": tick}
        yield "agent", here
        yield "memories", here
        yield "explain", {**here, "query": "is the bridge safe?"}
        yield "explain", {**here, "when": "deciding"}
        yield "population", {"tick": tick}
        yield "search", {"q": random.choice(("mill", "new owners", "tick 7", "walk", "zz"))}
        yield "heat", {"of": random.choice(run["per_agent"])}
        yield "series", {}
        yield "follow", {}
        if len(about["runs"]) > 1:
            yield "compare", here


def measure(folders: Sequence[Path], count: int) -> dict[str, Any]:
    """Open the run, and the one that it is compared with, and ask."""
    random = Random(1)
    with Server(folders) as server:
        about = server.wait("about", {})
        server.wait("series", {})
        opened = server.seconds()
        early = [server.ask(*each).seconds for each in questions(about, random, 5)]
        for place, run in enumerate(about["runs"]):
            end = {"agent": run["agents"][0], "tick": str(run["last_tick"])}
            server.wait("memories", {"run": str(place), **end})
        read, reading, again = server.seconds(), server.processor(), 0
        times: dict[str, list[float]] = {}
        waited = 0.0
        for name, given in questions(about, random, count):
            found, began = None, time.perf_counter()
            while found is None:
                found, took = server.ask(name, given)
                times.setdefault(name, []).append(took)
                again += found is None
            waited = max(waited, time.perf_counter() - began)
            if name == "memories" and found["rows"]:
                own = {"id": random.choice(found["rows"])["id"]}
                times.setdefault("memory", []).append(server.ask("memory", own).seconds)
        peak, processor = server.megabytes(), server.processor()
    return {
        "started": server.started,
        "opened": opened,
        "read": read,
        "early": max(early),
        "slowest": max(each for own in times.values() for each in own),
        "waited": waited,
        "again": again,
        "reading_processor": sum(reading),
        "answers_processor": processor[0] - reading[0],
        "peak_megabytes": peak,
        "requests": {
            name: {"n": len(own), "median": median(own), "most": max(own)}
            for name, own in times.items()
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
        (name, str(each["n"]), *(number(each[own] * 1e3) for own in ("median", "most")))
        for name, each in found["requests"].items()
    ]
    table("Requests, ms by the clock", ("", "asked", "median", "most"), rows)
    console.print(
        f"started in {found['started']:.2f} s, and open after {found['opened']:.2f} s; read whole "
        f"after {found['read']:.0f} s; {found['peak_megabytes']:.0f} MB of memory at most; "
        f"{found['again']} questions were asked again, and the longest wait for an answer was "
        f"{found['waited']:.2f} s; all until it was read took {found['reading_processor']:.0f} s "
        f"of processor time, and the answers {found['answers_processor']:.1f} s"
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
            Goal("the slowest request", 0.2, found["slowest"], "s"),
            Goal("the same, while the journal is read", 0.2, found["early"], "s"),
            *wanted,
        ]
    )


if __name__ == "__main__":
    main()
