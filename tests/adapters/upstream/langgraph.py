"""Run LangGraph's own tests of stores with a bank in place of LangGraph's stores.

The tests come from the source distributions on PyPI, and run in an environment of their own. The
script prints a line: the name, how many tests passed, how many were expected to, and the names of
the tests that failed. It exits with 0 if exactly the tests fail that are about SQLite.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CHECKPOINT, SQLITE, LANGMEM = "4.3.1", "3.1.2", "0.0.30"
PACKAGES = [
    f"langgraph-checkpoint=={CHECKPOINT}",
    f"langgraph-checkpoint-sqlite=={SQLITE}",
    f"langmem=={LANGMEM}",
    "pytest",
    "pytest-asyncio",
    "pytest-mock",
    "pytest-retry",
    "hypothesis",
]
SQLITES_OWN = {
    "test_vector_store_initialization": "it reads SQLite's tables",
    "test_nonnull_migrations": "it reads the migrations of SQLite's tables",
    "test_sql_injection_vulnerability[memory]": "it wants a ValueError for a key with quotes",
    "test_sql_injection_vulnerability[file]": "it wants a ValueError for a key with quotes",
}
READS_REFRESH = {
    "test_ttl_override_default": "SQLite's reads refresh a ttl only if told to; LangGraph's "
    "documents say: unless told not to",
}
SUITES: dict[str, dict[str, dict[str, str]]] = {
    f"langgraph_checkpoint-{CHECKPOINT}": {"tests/test_store.py": {}},
    f"langgraph_checkpoint_sqlite-{SQLITE}": {
        "tests/test_store.py": SQLITES_OWN,
        "tests/test_async_store.py": {},
        "tests/test_ttl.py": READS_REFRESH,
    },
}
"""By source distribution: the files of tests, and why which tests of a file fail."""
LANGMEMS = ("tests/adapters/test_langgraph_langmem.py", "tests/adapters/test_langgraph_graph.py")


def run(*command: str | Path, **options: object) -> None:
    subprocess.run(list(map(str, command)), check=True, **options)  # type: ignore[call-overload]


def environment(work: Path) -> Path:
    """The Python of an environment that has TierMem, LangGraph and the tools of its tests."""
    python = work / "venv" / "bin" / "python"
    wanted = json.dumps(PACKAGES)
    stamp = work / "venv" / "packages.json"
    if not stamp.exists() or stamp.read_text() != wanted:
        venv.create(work / "venv", with_pip=True, clear=True)
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(*pip, "-c", ROOT / "constraints.txt", "-e", f"{ROOT}[langgraph]", *PACKAGES)
        stamp.write_text(wanted)
    return python


def sources(work: Path, python: Path) -> None:
    """Bring the source distributions with the tests, unless they are there."""
    for name in SUITES:
        if (work / name).exists():
            continue
        package = "==".join(name.replace("_", "-").rsplit("-", 1))
        fetch = ("download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", work)
        run(python, "-m", "pip", *fetch, package)
        with tarfile.open(work / f"{name}.tar.gz") as archive:
            archive.extractall(work, filter="data")
        shutil.rmtree(work / name / "langgraph")  # the installed package is tested


def tried(folder: Path, python: Path, test: str, *options: str) -> dict[str, str]:
    """What became of each test, by its name."""
    told = subprocess.run(
        [
            python,
            "-m",
            "pytest",
            "-rA",
            "-q",
            "--tb=no",
            "-p",
            "no:cacheprovider",
            *options,
            test,
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(HERE / "plugins")},
        capture_output=True,
        text=True,
    )
    lines = re.findall(r"^(PASSED|FAILED|ERROR|SKIPPED) (\S+)", told.stdout, re.MULTILINE)
    if not lines:
        raise SystemExit(told.stdout + told.stderr)
    return {name.partition("::")[2]: outcome for outcome, name in lines}


def line(name: str, results: dict[str, str], expected: set[str]) -> bool:
    """Say what became of a suite; whether exactly the expected tests failed."""
    failed = {test for test, outcome in results.items() if outcome != "PASSED"}
    passed = len(results) - len(failed)
    names = ", ".join(sorted(failed)) or "none"
    print(f"{name}: {passed} passed, {len(results) - len(expected)} expected; failed: {names}")
    return failed == expected


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=ROOT / ".venv-upstream" / "langgraph")
    work = parser.parse_args().work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    python = environment(work)
    sources(work, python)
    is_good = True
    swap = ("-p", "langgraph_stores", "-o", "asyncio_mode=auto", "-o", "addopts=")
    for name, files in SUITES.items():
        for test, expected in files.items():
            results = tried(work / name, python, test, *swap)
            is_good &= line(f"{name}/{test}", results, set(expected))
    for test in LANGMEMS:
        results = tried(ROOT, python, test, "-o", "filterwarnings=")
        is_good &= line(f"LangMem: {test}", results, set())
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
