"""Run LangGraph's own tests of stores with a bank in the place of LangGraph's stores.

The tests come from the source distributions on PyPI, and run in an environment of their own. Then
come our own tests that need LangMem. Each suite gets a line: how many tests passed, how many were
expected to, and the names of those that failed. The exit code is 0 if all is as expected.
"""

import argparse
import sys
from pathlib import Path

import suites

CHECKPOINT, SQLITE = "langgraph-checkpoint==4.3.1", "langgraph-checkpoint-sqlite==3.1.2"
PACKAGES = [
    *(CHECKPOINT, SQLITE, "langmem==0.0.30"),
    *("pytest-asyncio", "pytest-mock", "pytest-retry"),
]
_QUOTES = "it wants a ValueError for a key with quotes, which would be SQL"
SQLITES_OWN = {
    "test_vector_store_initialization": "it reads SQLite's tables",
    "test_nonnull_migrations": "it reads the migrations of SQLite's tables",
    "test_sql_injection_vulnerability[memory]": _QUOTES,
    "test_sql_injection_vulnerability[file]": _QUOTES,
}
READS_REFRESH = {
    "test_ttl_override_default": "SQLite's reads refresh a ttl only if told to; LangGraph's "
    "documents say: unless told not to",
}
SUITES: tuple[tuple[str, str, int, int, dict[str, str]], ...] = (
    (CHECKPOINT, "tests/test_store.py", 114, 24, {}),
    (SQLITE, "tests/test_store.py", 99, 96, SQLITES_OWN),
    (SQLITE, "tests/test_async_store.py", 39, 39, {}),
    (SQLITE, "tests/test_ttl.py", 10, 10, READS_REFRESH),
)
"""The source distribution, a file of tests, how many pass, reach our code, and fail, and why."""
LANGMEM = [f"tests/adapters/test_langgraph_{name}.py" for name in ("langmem", "graph")]
SWAP = ("-p", "langgraph_stores", "-o", "asyncio_mode=auto", "-o", "addopts=")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    work = suites.ROOT / ".venv-upstream" / "langgraph"
    parser.add_argument("--work", type=Path, default=work, help="where the environment is kept")
    work = parser.parse_args().work.resolve()
    python = suites.environment(work, "langgraph", PACKAGES)
    is_good = True
    for package, tests, expected, reaching, failing in SUITES:
        folder = suites.source(work, python, package, "langgraph")
        results = suites.tried(python, folder, [tests], *SWAP, reaches="tiermem.langgraph")
        names = [f"{tests}::{name}" for name in failing]
        is_good &= suites.line(f"{package} {tests}", results, expected, names, reaching=reaching)
    results = suites.tried(python, suites.ROOT, LANGMEM, "-o", "filterwarnings=")
    is_good &= suites.line("LangMem", results, 6)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
