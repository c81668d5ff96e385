"""Run AutoGen's own tests of memory with TierMem's memory in the place of two of AutoGen's.

Each ``ListMemory`` and each ``ChromaDBVectorMemory`` is a ``TierMemory`` then. The tests come from
the source distributions on PyPI, and run in an environment of their own. Then come our own tests
that need AutoGen. Each suite gets a line: how many tests passed, how many were expected to, and the
names of those that failed. The exit code is 0 if all is as expected.
"""

import argparse
import sys
from pathlib import Path

import mutations
import suites

CORE, EXTENSIONS = "autogen-core==0.7.5", "autogen-ext==0.7.5"
PACKAGES = (CORE, "autogen-ext[chromadb]==0.7.5", "autogen-agentchat==0.7.5", "pytest-asyncio")
REFUSES_BYTES = {"test_error_handling": "it wants an error for bytes, which a bank keeps"}
SUITES: tuple[tuple[str, str, int, int, dict[str, str]], ...] = (
    (CORE, "tests/test_memory.py", 10, 8, {}),
    (EXTENSIONS, "tests/memory/test_chroma_memory.py", 14, 10, REFUSES_BYTES),
)
"""The source distribution, a file of tests, how many pass, reach our code, and fail, and why."""
OUR_OWN = suites.ROOT / "tests/adapters/test_autogen_memory.py"
SWAP = ("-p", "autogen_swap", "-o", "addopts=")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    work = suites.ROOT / ".venv-upstream" / "autogen"
    parser.add_argument("--work", type=Path, default=work, help="where the environment is kept")
    work = parser.parse_args().work.resolve()
    # AutoGen needs an older protobuf than constraints.txt has.
    python = suites.environment(work, "autogen", PACKAGES, constrained=False)
    is_good = True
    for package, tests, expected, reaching, failing in SUITES:
        folder = suites.source(work, python, package, "src")
        results = suites.tried(python, folder, [tests], *SWAP, reaches="tiermem.autogen")
        names = [f"{tests}::{name}" for name in failing]
        is_good &= suites.line(f"{package} {tests}", results, expected, names, reaching=reaching)
    results = suites.tried(python, suites.ROOT, [OUR_OWN], "-p", "no:asyncio")
    is_good &= suites.line("tiermem.autogen", results, None)
    is_good &= mutations.noticed(python, "autogen", [OUR_OWN], "-p", "no:asyncio")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
