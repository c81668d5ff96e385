"""A spread run whose processes are killed at any instant becomes the run it would have been."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import IO, NamedTuple

import pytest

from agents import MemoryBank
from agents.simulation.runs.placement import LOCAL, Placement, is_over_workers
from agents.simulation.runs.run import Run
from agents.simulation.workers.log import read_log
from spread_runs import results, run_to_the_end, scenario

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("TIERMEM_SPREAD_KILLS", "50"))
TICKS = 40
HERE = Path(__file__).parents[1]
GO_ON = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from tiermem.simulation.runs.run import Run
from tiermem.simulation.runs.placement import Placement
with Run.open(Path(sys.argv[1]), engine=Placement("processes", int(sys.argv[2]))) as run:
    if run.driver is None:
        run._begin_workers()
    assert run.driver is not None
    for link in run.driver._links:
        print(link.process.pid, flush=True)
    print("begun", flush=True)
    for record in run.advance(run.settings.simulation.ticks):
        print("tick", flush=True)
    print("gathers", flush=True)
    run.finish(report=False)
print("done", flush=True)
"""


class Hit(NamedTuple):
    """What a kill found."""

    victim: str
    workers: int
    when: str
    """In a tick; after some cells have it, and others not; or while the bank is brought up."""


def go_on_and_kill(folder: Path, chance: random.Random) -> Hit | None:
    """Go on with the run, and kill its driver or a worker; None if it came to its end first."""
    workers = chance.choice([1, 2, 3, 5])
    arguments = [sys.executable, "-c", GO_ON, str(folder), str(workers), str(HERE)]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        pids = []
        for line in process.stdout:
            if line == "begun\n":
                break
            pids.append(int(line))
        _wait_for_an_instant(process.stdout, chance)
        victim = chance.choice([process.pid, *pids])
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            return None
        rest = process.stdout.read()
        process.wait()
    if rest.endswith("done\n"):
        return None
    return Hit("driver" if victim == process.pid else "worker", workers, _when(folder, rest))


def _wait_for_an_instant(said: IO[str], chance: random.Random) -> None:
    """Wait for one to three ticks, and for a part of another, by the time that the last one took.

    A fixed time would always fall into the first phase of a tick on a busy machine.
    """
    took = 0.0
    for _ in range(chance.randint(1, 3)):
        begun = time.monotonic()
        if said.readline() != "tick\n":
            return
        took = time.monotonic() - begun
    time.sleep(chance.random() * took)


def _when(folder: Path, said: str) -> str:
    if "gathers" in said:
        return "bringing up"
    shards = folder / "shards"
    if not is_over_workers(folder):
        return "after the end"
    last = max((entry.tick for entry in read_log(shards / "ticks.log")), default=0)
    ticks = set()
    for cell in shards.glob("cell-*"):
        with MemoryBank.at(cell) as bank:
            ticks.add(bank.tick)
    assert ticks <= {last - 1, last}
    if len(ticks) > 1:
        return "some cells behind"
    return "all cells behind" if ticks == {last - 1} and last else "before the log"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("local") / "run"
    run_to_the_end(folder, scenario(ticks=TICKS), workers=0)
    return folder


@pytest.mark.long
def test_any_process_may_be_killed_at_any_instant(tmp_path: Path, local: Path) -> None:
    settings, chance, round_ = scenario(ticks=TICKS), random.Random(1), 0
    hits: list[Hit] = []
    while len(hits) < KILLS:
        folder = tmp_path / f"run-{round_}"
        Run.create(folder, settings, scenario=HERE, engine=LOCAL).close()
        while len(hits) < KILLS and (hit := go_on_and_kill(folder, chance)):
            hits.append(hit)
        with Run.open(folder, engine=chance.choice([LOCAL, Placement("processes", 2)])) as run:
            list(run.advance(TICKS))
            run.finish(report=False)
        assert results(folder) == results(local)
        round_ += 1
    print(f"\n{len(hits)} kills, {round_} runs")
    for (victim, when), count in sorted(Counter((hit[0], hit[2]) for hit in hits).items()):
        print(f"  {victim:<8} {when:<20} {count:3}")
    if len(hits) >= 50:
        assert {hit.victim for hit in hits} == {"driver", "worker"}
        assert len({hit.when for hit in hits}) > 1, "all kills hit the same phase"


def test_a_worker_that_is_stopped_for_a_while_changes_nothing(tmp_path: Path) -> None:
    settings = scenario(ticks=6)
    run_to_the_end(tmp_path / "local", settings, workers=0)
    folder, chance = tmp_path / "run", random.Random(3)
    with Run.create(folder, settings, scenario=HERE, engine=Placement("processes", 3)) as run:
        list(run.advance(1))
        assert run.driver is not None
        pids = [link.process.pid for link in run.driver._links]
        for tick in range(2, 7):
            slow = chance.choice(pids)
            os.kill(slow, signal.SIGSTOP)
            wake = subprocess.Popen(["sh", "-c", f"sleep 0.4; kill -CONT {slow}"])
            list(run.advance(tick))
            wake.wait()
        run.finish(report=False)
    assert results(folder) == results(tmp_path / "local")
