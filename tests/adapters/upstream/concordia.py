"""Run Concordia's own tests of memory with TierMem's memory bank in the place of Concordia's.

The tests come with Concordia's wheel, and run in an environment of their own, with Python 3.12 or
later. The tests of the repository's head run as well, if ``--head`` names a checkout. Then come our
own tests that need Concordia. Each suite gets a line: how many tests passed, how many were expected
to, and the names of those that failed. The exit code is 0 if all is as expected.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import mutations
import suites

VERSION = "2.4.0"
TESTS = (
    "concordia/components/agent/agent_components_test.py",
    "concordia/prefabs/entity/prefabs_test.py",
    "concordia/prefabs/game_master/game_master_prefabs_test.py",
)
IN_HEAD = (*TESTS, "concordia/prefabs/simulation/checkpoint_test.py")
OUR_OWN = suites.ROOT / "tests/adapters"
SWAP = ("-p", "concordia_swap", "-o", "addopts=")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    work = suites.ROOT / ".venv-upstream" / "concordia"
    parser.add_argument("--work", type=Path, default=work, help="where the environment is kept")
    parser.add_argument("--head", type=Path, help="a checkout of google-deepmind/concordia")
    options = parser.parse_args()
    python = suites.environment(
        options.work.resolve(), "concordia", [f"gdm-concordia=={VERSION}", "pytest-xdist"]
    )
    where = "import concordia, pathlib; print(pathlib.Path(concordia.__path__[0]).parent)"
    installed = Path(subprocess.check_output([python, "-c", where], text=True).strip())
    results = suites.tried(python, installed, TESTS, *SWAP, reaches="tiermem.concordia")
    is_good = suites.line(f"concordia {VERSION}", results, 23, reaching=12)
    if options.head is not None:
        head = options.head.resolve()
        results = suites.tried(python, head, IN_HEAD, *SWAP, path=str(head))
        is_good &= suites.line("concordia head", results, 29)
    own = sorted(OUR_OWN.glob("test_concordia_*.py"))
    is_good &= suites.line("tiermem.concordia", suites.tried(python, suites.ROOT, own), None)
    is_good &= mutations.noticed(python, "concordia", own)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
