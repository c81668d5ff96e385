"""Run agent_ecology2's own tests of memory with TierMem's classes in the place of its module.

The tests are fetched by git from the public repository, as of the commit that brought the tiers, or
from another one, if ``--source`` names it; they run in an environment of their own. The line says
how many tests passed, how many were expected to, and the names of those that failed. The exit code
is 0 if exactly those fail that ``INSIDE`` names, and where the repository can't be reached: then
nothing was tested, and the line says so.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import suites

COMMIT = "4b9c089215204f4d3c67a748595a78c6825c9907"
SOURCE = "https://github.com/BrianMills2718/agent_ecology2"
TESTS = ("test_memory.py", "test_memory_tiering.py", "test_artifact_memory_checkpoint.py")
PASSING = 50
PACKAGES = ("python-dotenv", "pydantic", "simpleeval", "litellm", "pytest-asyncio")
SWAP = ("-p", "agent_ecology_swap", "-o", "addopts=", "-W", "ignore")
_MEMORY = "tests/unit/test_memory.py::"
_CALLS = "it wants certain calls of a mock in the place of mem0's Memory"
_ANSWERS = "it wants the answer of a mock in the place of mem0's Memory"
_CLEANUP = "it calls _cleanup_memories, which closes clients of Qdrant"
INSIDE = {
    f"{_MEMORY}TestAgentMemoryAdd::test_add_calls_memory_with_content": _CALLS,
    f"{_MEMORY}TestAgentMemoryAdd::test_add_returns_error_on_exception": _ANSWERS,
    f"{_MEMORY}TestAgentMemorySearch::test_search_returns_results": _ANSWERS,
    f"{_MEMORY}TestAgentMemorySearch::test_search_uses_default_limit": _CALLS,
    f"{_MEMORY}TestGetRelevantMemories::test_formats_memories_as_list": _ANSWERS,
    f"{_MEMORY}TestGetRelevantMemories::test_passes_limit_to_search": _CALLS,
    f"{_MEMORY}TestRecordAction::test_records_successful_write_artifact": _CALLS,
    f"{_MEMORY}TestRecordAction::test_records_successful_read_artifact": _CALLS,
    f"{_MEMORY}TestRecordAction::test_records_successful_transfer": _CALLS,
    f"{_MEMORY}TestRecordAction::test_records_other_action_type": _CALLS,
    f"{_MEMORY}TestRecordAction::test_records_failed_action": _CALLS,
    f"{_MEMORY}TestRecordObservation::test_records_observation": _CALLS,
    f"{_MEMORY}TestAgentMemorySingleton::test_returns_same_instance": (
        "each AgentMemory() is an object of its own, over the one bank"
    ),
    f"{_MEMORY}TestAgentMemorySingleton::test_initializes_only_once": _CALLS,
    f"{_MEMORY}TestAgentMemoryConfig::test_uses_server_mode_config": _CALLS,
    f"{_MEMORY}TestAgentMemoryConfig::test_uses_local_mode_config": _CALLS,
    f"{_MEMORY}TestCleanupMemories::test_cleanup_handles_missing_attributes": _CLEANUP,
    f"{_MEMORY}TestCleanupMemories::test_cleanup_handles_close_exception": _CLEANUP,
    "tests/unit/test_memory_tiering.py::TestAgentMemoryTiering::"
    "test_add_passes_tier_as_metadata": _CALLS,
}
"""The tests that look inside the originals, each with what it looks for."""


def fetched(work: Path, source: str) -> Path | None:
    """A checkout of the commit; None if the repository can't be reached."""
    folder = work / f"agent_ecology2-{COMMIT[:8]}"
    if not (folder / "tests").exists():
        folder.mkdir(parents=True, exist_ok=True)
        suites.run("git", "-C", folder, "init", "--quiet")
        fetch = ("git", "-C", str(folder), "fetch", "--quiet", "--depth", "1", source, COMMIT)
        if subprocess.run(fetch).returncode:
            return None
        suites.run("git", "-C", folder, "checkout", "--quiet", "FETCH_HEAD")
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    work = suites.ROOT / ".venv-upstream" / "agent-ecology"
    parser.add_argument("--work", type=Path, default=work, help="where the environment is kept")
    parser.add_argument("--source", default=SOURCE, help="the repository, if it is elsewhere")
    options = parser.parse_args()
    work = options.work.resolve()
    folder = fetched(work, options.source)
    if folder is None:
        print(f"agent_ecology2: skipped, nothing was tested: {options.source} can't be reached")
        return 0
    python = suites.environment(work, "testing", PACKAGES)
    tests = [Path("tests/unit") / name for name in TESTS]
    results = suites.tried(python, folder, tests, *SWAP)
    return 0 if suites.line("agent_ecology2", results, PASSING, INSIDE) else 1


if __name__ == "__main__":
    sys.exit(main())
