"""What it takes to begin, and what a command takes on a bank of 1,000 memories.

    python benchmarks/start.py

Processor time, the least of several tries, and as a ratio to `import numpy` in the same run.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from tiermem import MemoryBank

TIERMEM = str(Path(sys.executable).with_name("tiermem"))
NUMPY = "python -c 'import numpy'"
MEMORIES = 1000
GOALS = {"import tiermem": 150, "tiermem --help": 250}
GOAL_OF_A_COMMAND = 600


def processor_time(command: list[str]) -> float:
    """Seconds that the command's process computed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(bank: Path) -> dict[str, list[str]]:
    """What is measured, by its name."""
    own = [str(bank), "--agent", "alice"]
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        NUMPY: [sys.executable, "-c", "import numpy"],
        "import tiermem": [sys.executable, "-c", "import tiermem"],
        "tiermem --help": [TIERMEM, "--help"],
        "tiermem add": [TIERMEM, "add", *own, "the bridge is closed"],
        "tiermem pin": [TIERMEM, "pin", *own, "7"],
        "tiermem search": [TIERMEM, "search", *own, "which bridge is closed?"],
        "tiermem status": [TIERMEM, "status", str(bank)],
        "tiermem show": [TIERMEM, "show", *own],
        "tiermem status --tiers": [TIERMEM, "status", str(bank), "--tiers"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tries", type=int, default=7)
    tries = parser.parse_args().tries
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bank"
        with MemoryBank.open(path, storage={"sync": "manual"}) as bank:
            bank.add_many(
                (("alice", "bob")[n % 2], f"event {n} at the bridge in the {n % 7}th week")
                for n in range(MEMORIES)
            )
        each = commands(path)
        least = dict.fromkeys(each, float("inf"))
        for round_ in range(tries + 1):  # in turn, so that all have the same noise
            for name, command in each.items():
                took = processor_time(command)
                if round_:  # the byte code may have to be written first
                    least[name] = min(least[name], took)
    for name, took in least.items():
        goal = GOALS.get(name, GOAL_OF_A_COMMAND if name.startswith("tiermem ") else None)
        met = f"  goal {goal} ms: {'met' if 1000 * took <= goal else 'missed'}" if goal else ""
        print(f"{name:26} {1000 * took:6.0f} ms  {took / least[NUMPY]:5.2f}×{met}")


if __name__ == "__main__":
    main()
