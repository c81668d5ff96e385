"""Run CAMEL's own tests of memory with TierMem's memory in the place of two of CAMEL's.

Each ``ChatHistoryMemory`` and ``VectorDBMemory`` is a ``TierMemory`` then, and tokens are words,
because CAMEL downloads a table of tokens. The source distribution has no tests: they run only if
``--source`` names a checkout. Our own tests that need CAMEL always run. All runs in an environment
of its own. Each suite gets a line: how many tests passed, how many were expected to, and the names
of those that failed. The exit code is 0 if all that ran is as expected.
"""

import argparse
import sys
from pathlib import Path

import mutations
import suites

VERSION = "0.2.90"
PACKAGES = (f"camel-ai=={VERSION}", "pytest-asyncio")
TESTS = (
    "test/memories/test_agent_memories.py::TestChatHistoryMemoryCleanToolCalls",
    "test/memories/test_chat_history_memory.py",
    "test/memories/test_vector_db_memory.py",
)
PASSING, REACHING = 8, 8
OUR_OWN = suites.ROOT / "tests/adapters/test_camel_memory.py"
SWAP = ("-p", "camel_swap", "-o", "addopts=")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    work = suites.ROOT / ".venv-upstream" / "camel"
    parser.add_argument("--work", type=Path, default=work, help="where the environment is kept")
    parser.add_argument("--source", type=Path, help="a checkout of camel-ai/camel")
    options = parser.parse_args()
    # CAMEL needs older packages than constraints.txt has.
    python = suites.environment(options.work.resolve(), "camel", PACKAGES, constrained=False)
    is_good = True
    if options.source is None:
        print("camel-ai: its own tests were not run; --source names them", flush=True)
    else:
        source = options.source.resolve()
        results = suites.tried(python, source, TESTS, *SWAP, reaches="tiermem.camel")
        is_good &= suites.line(f"camel-ai {VERSION}", results, PASSING, reaching=REACHING)
    results = suites.tried(python, suites.ROOT, [OUR_OWN], "-p", "no:asyncio")
    is_good &= suites.line("tiermem.camel", results, None)
    is_good &= mutations.noticed(python, "camel", [OUR_OWN], "-p", "no:asyncio")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
