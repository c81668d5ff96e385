"""A spread run whose processes are killed at any instant becomes the run it would have been."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from agents.simulation.runs.run import Run
from agents.simulation.runs.sharded import LOCAL, Engine
from spread_runs import results, run_to_the_end, scenario

KILLS = int(os.environ.get("TIERMEM_SPREAD_KILLS", "50"))
TICKS = 40
GO_ON = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from tiermem.simulation.runs.run import Run
from tiermem.simulation.runs.sharded import Engine
with Run.open(Path(sys.argv[1]), engine=Engine("processes", int(sys.argv[2]))) as run:
    for link in run._driver._links if run._driver else (run._spread())._links:
        print(link.process.pid, flush=True)
    print("begun", flush=True)
    for record in run.advance(run.settings.simulation.ticks):
        pass
print("done", flush=True)
"""


def go_on_and_kill(folder: Path, chance: random.Random) -> bool:
    """Go on with the run, and kill its driver or a worker; whether it came to its end."""
    arguments = [sys.executable, "-c", GO_ON, str(folder), str(chance.choice([1, 2, 3, 5]))]
    with subprocess.Popen(
        [*arguments, str(Path(__file__).parents[1])], stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        workers = []
        for line in process.stdout:
            if line == "begun\n":
                break
            workers.append(int(line))
        time.sleep(chance.random() * 0.6)
        victim = chance.choice([process.pid, *workers])
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            return True
        rest = process.stdout.read()
        process.wait()
    return rest == "done\n"


def test_any_process_may_be_killed_at_any_instant(tmp_path: Path) -> None:
    settings = scenario(ticks=TICKS)
    run_to_the_end(tmp_path / "local", settings, workers=0)
    chance, kills, round_ = random.Random(1), 0, 0
    while kills < KILLS:
        folder = tmp_path / f"run-{round_}"
        Run.create(folder, settings, scenario=Path(__file__).parents[1], engine=LOCAL).close()
        while kills < KILLS and not go_on_and_kill(folder, chance):
            kills += 1
        with Run.open(folder, engine=chance.choice([LOCAL, Engine("processes", 2)])) as run:
            list(run.advance(TICKS))
            run.finish(report=False)
        assert results(folder) == results(tmp_path / "local")
        round_ += 1
