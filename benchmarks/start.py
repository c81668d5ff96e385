"""What it takes to begin: importing the package, and `tiermem --help`, beside an empty Python.

    python benchmarks/start.py

Processor time, the least of several tries.
"""

import argparse
import resource
import subprocess
import sys
from pathlib import Path

HELP = [str(Path(sys.executable).with_name("tiermem")), "--help"]
# The command, and its goal in milliseconds.
COMMANDS = {
    "python -c pass": ([sys.executable, "-c", "pass"], None),
    "import agents": ([sys.executable, "-c", "import agents"], 150),
    "tiermem --help": (HELP, 250),
}


def processor_time(command: list[str]) -> float:
    """Seconds that the command's process computed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tries", type=int, default=7)
    tries = parser.parse_args().tries
    for name, (command, goal) in COMMANDS.items():
        processor_time(command)  # the byte code may have to be written first
        least = 1000 * min(processor_time(command) for _ in range(tries))
        met = f"  goal {goal} ms: {'met' if least <= goal else 'missed'}" if goal else ""
        print(f"{name:16} {least:6.0f} ms{met}")


if __name__ == "__main__":
    main()
