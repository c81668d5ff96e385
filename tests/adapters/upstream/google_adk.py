"""Run ADK's own tests of its memory service in memory with TierMem's in its place.

The source distribution has no tests: they run only if ``--source`` names a checkout of version
2.0.0, with that version. Our own tests that need ADK always run, with a newer one, and what is
broken on purpose. All runs in environments of its own. Each suite gets a line: how many tests
passed and reached our code, how many were expected to, and the names of those that failed. The exit
code is 0 if all that ran is as expected.
"""

import argparse
import shutil
import sys
from pathlib import Path

import mutations
import suites

PACKAGES = ("google-adk==2.13.0",)
OLDER = "google-adk==2.0.0"
TESTS = "tests/unittests/memory/test_in_memory_memory_service.py"
PASSING, REACHING = 8, 8
_NEAREST = "it wants the matches alone, where ours gives the nearest as well"
INSIDE = {
    f"{TESTS}::test_search_memory_{name}": _NEAREST
    for name in ("simple_match", "case_insensitive_match", "no_match", "is_scoped_by_user")
}
"""The tests that can't pass, each with the reason."""
OUR_OWN = suites.ROOT / "tests/adapters/test_google_adk_memory.py"
SWAP = ("-p", "google_adk_swap", "-o", "addopts=")
OPTIONS = ("-o", "filterwarnings=")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    work = suites.ROOT / ".venv-upstream" / "google-adk"
    parser.add_argument("--work", type=Path, default=work, help="where the environment is kept")
    parser.add_argument("--source", type=Path, help="a checkout of google/adk-python 2.0.0")
    options = parser.parse_args()
    work = options.work.resolve()
    python = suites.environment(work, "google-adk", PACKAGES, constrained=False)
    is_good = True
    if options.source is None:
        print("google-adk: its own tests were not run; --source names them", flush=True)
    else:
        packages = (OLDER, "pytest-asyncio")
        older = suites.environment(work / "older", "google-adk", packages, constrained=False)
        # Beside its tests, the checkout's package and settings would count.
        apart = work / "checkout"
        shutil.rmtree(apart, ignore_errors=True)
        (apart / TESTS).parent.mkdir(parents=True)
        shutil.copy(options.source / TESTS, apart / TESTS)
        (apart / "pytest.ini").write_text("[pytest]\n")
        results = suites.tried(older, apart, [TESTS], *SWAP, reaches="tiermem.google_adk")
        is_good &= suites.line(OLDER, results, PASSING, INSIDE, reaching=REACHING)
    results = suites.tried(python, suites.ROOT, [OUR_OWN], *OPTIONS)
    is_good &= suites.line("tiermem.google_adk", results, None)
    is_good &= mutations.noticed(python, "google_adk", [OUR_OWN], *OPTIONS)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
