"""Run the OpenAI Agents SDK's own tests of sessions with TierMem's in the place of SQLiteSession.

The tests come from the source distribution on PyPI, and run in an environment of their own. Then
come our own tests that need the SDK, and what is broken on purpose. Each suite gets a line: how
many tests passed and reached our code, how many were expected to, and the names of those that
failed. The exit code is 0 if all is as expected.
"""

import argparse
import sys
from pathlib import Path

import mutations
import suites

PACKAGE = "openai-agents==0.24.0"
# What the conftest of the SDK's tests imports.
PACKAGES = (PACKAGE, "pytest-asyncio", "inline-snapshot", "aiosqlite", "sqlalchemy")
TESTS = ("tests/memory/test_session.py", "tests/memory/test_session_limit.py")
PASSING, REACHING = 52, 44
_OWN = "tests/memory/test_session.py::test_sqlite_session_"
INSIDE = {
    "tests/memory/test_session.py::test_session_settings_rejects_unknown_dictionary_fields": (
        "settings as a dictionary are read by SQLiteSession, and here by the plugin"
    ),
    **dict.fromkeys(
        [
            f"{_OWN}close_closes_worker_thread_connections",
            f"{_OWN}reaps_connections_from_exited_worker_threads",
            f"{_OWN}closes_retired_connections_before_the_next_allocation",
            f"{_OWN}keeps_connections_of_live_worker_threads",
            f"{_OWN}closed_rejects_empty_add_items",
            f"{_OWN}file_lock_is_shared_across_instances",
            f"{_OWN}rollback_failure_evicts_connection",
            f"{_OWN}close_retries_quarantined_connection",
        ],
        "it looks at SQLite's connections",
    ),
    **dict.fromkeys(
        [
            f"{_OWN}pop_item_skips_corrupt_most_recent",
            f"{_OWN}pop_item_returns_none_after_dropping_only_corrupt_rows",
            f"{_OWN}get_items_limit_skips_corrupt_newest_rows",
            f"{_OWN}get_items_session_settings_limit_skips_corrupt_rows",
            f"{_OWN}failed_add_items_releases_write_lock",
            f"{_OWN}failed_clear_session_rolls_back",
            f"{_OWN}failed_pop_item_releases_write_lock",
            f"{_OWN}post_commit_cancellation_propagates_after_known_outcome[add]",
            f"{_OWN}post_commit_cancellation_propagates_after_known_outcome[pop]",
            f"{_OWN}post_commit_cancellation_propagates_after_known_outcome[clear]",
        ],
        "it writes into SQLite's tables, or lets SQLite fail",
    ),
}
"""The tests that look inside the original, each with what it looks for."""
OUR_OWN = suites.ROOT / "tests/adapters/test_openai_agents_session.py"
SWAP = ("-p", "openai_agents_swap", "-o", "addopts=")
# The conftest of TierMem's tests imports TierMem as agents, which is the SDK's name here.
ALONE = ("-p", "no:asyncio", "--noconftest")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    work = suites.ROOT / ".venv-upstream" / "openai-agents"
    parser.add_argument("--work", type=Path, default=work, help="where the environment is kept")
    work = parser.parse_args().work.resolve()
    python = suites.environment(work, "openai-agents", PACKAGES, constrained=False)
    folder = suites.source(work, python, PACKAGE, "src")
    results = suites.tried(python, folder, TESTS, *SWAP, reaches="tiermem.openai_agents")
    is_good = suites.line(PACKAGE, results, PASSING, INSIDE, reaching=REACHING)
    results = suites.tried(python, suites.ROOT, [OUR_OWN], *ALONE)
    is_good &= suites.line("tiermem.openai_agents", results, None)
    is_good &= mutations.noticed(python, "openai_agents", [OUR_OWN], *ALONE)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
