"""Six agents of a small real model at the market, ten ticks; then the replay, which asks nobody."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCENARIO = Path(__file__).parent / "market_llm.yaml"


def tiermem(*arguments: object) -> None:
    """Run a command, and say it."""
    words = [str(each) for each in arguments]
    print(f"\n$ tiermem {' '.join(words)}", flush=True)
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "tiermem", *words], check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    print(f"({time.perf_counter() - began:.0f} s)", flush=True)


def main() -> None:
    """The arguments go to ``tiermem run``, such as ``--ticks 2``."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "market"
        tiermem("run", SCENARIO, "--out", run, *sys.argv[1:])
        tiermem("why", run, "--agent", "agent_00", "--tick", 2)
        tiermem("replay", run)


if __name__ == "__main__":
    main()
