"""Run Mesa-LLM's own tests with TierMem's memory in the place of two of Mesa-LLM's memories.

Each ``STLTMemory`` and each ``EpisodicMemory`` is a ``TierMemory`` then, also in the tests of these
classes. The tests come from the source distribution on PyPI, and run in an environment of their
own, with Python 3.12 or later. Then come our own tests that need Mesa-LLM. Each suite gets a line:
how many tests passed, how many were expected to, and the names of those that failed. The exit code
is 0 if exactly those fail that ``INSIDE`` names.
"""

import argparse
import os
import sys
import tarfile
from pathlib import Path

import mutations
import suites

VERSION = "0.3.2"
PASSING, REACHING = 357, 25
# Its tests call AgentSet.to_list, which Mesa has since 3.4, though it asks for 3.0.
PACKAGES = (f"mesa-llm=={VERSION}", "mesa>=3.4,<4", "pytest-asyncio", "pytest-mock")
SWAP = ("-p", "mesa_llm_swap", "-o", "addopts=", "-W", "ignore")
OUR_OWN = suites.ROOT / "tests/adapters/test_mesa_llm.py"

_STLT = "tests/test_memory/test_STLT_memory.py::TestSTLTMemory::"
_EPISODIC = "tests/test_memory/test_episodic_memory.py::TestEpisodicMemory::"
_HISTORY = "tests/test_memory/test_memory_staging.py::TestEpisodicCommunicationHistory::"
_REASONING = "tests/test_integration/test_memory_reasoning.py::"
_ENTRIES = "it writes to the deque memory_entries"
_GRADE = "it wants a grade from a language model for each event"
_SUMMARY = "it wants a summary from a language model"
_NO_STEPS = "it wants steps that do nothing, since each event is stored by itself"
_IMPORTANCE = "it calls _extract_importance"
INSIDE = {
    f"{_STLT}test_memory_initialization": "it reads the prompt of the model for summaries",
    f"{_STLT}test_format_memories": "it wants the assigned long term memory alone, as it is",
    f"{_STLT}test_update_long_term_memory": _SUMMARY,
    f"{_STLT}test_long_term_memory_stores_string_not_response_object": _SUMMARY,
    f"{_STLT}test_consolidation_receives_evicted_entries": _SUMMARY,
    f"{_STLT}test_aupdate_long_term_memory": _SUMMARY,
    f"{_STLT}test_consolidation_stops_when_deque_exhausted": _SUMMARY,
    f"{_EPISODIC}test_memory_init": "it reads the length of the deque memory_entries",
    f"{_EPISODIC}test_add_memory_entry": _GRADE,
    f"{_EPISODIC}test_async_add_memory_entry": _GRADE,
    f"{_EPISODIC}test_finalize_entry_consistency": "it calls _finalize_entry",
    f"{_EPISODIC}test_grade_event_importance": _GRADE,
    f"{_EPISODIC}test_build_grade_prompt_no_previous_entries": _GRADE,
    f"{_EPISODIC}test_retrieve_top_k_entries": _ENTRIES,
    f"{_EPISODIC}test_retrieve_empty_memory": "it calls retrieve_top_k_entries",
    f"{_EPISODIC}test_process_step_pre_step": _NO_STEPS,
    f"{_EPISODIC}test_process_step_pre_step_does_not_append_entries": _NO_STEPS,
    f"{_EPISODIC}test_aprocess_step_pre_step": _NO_STEPS,
    f"{_EPISODIC}test_aprocess_step_pre_step_does_not_append_entries": _NO_STEPS,
    f"{_EPISODIC}test_get_communication_history": _ENTRIES,
    f"{_EPISODIC}test_get_communication_history_nested_dict": _ENTRIES,
    f"{_EPISODIC}test_get_communication_history_skips_non_message_entries": _ENTRIES,
    f"{_EPISODIC}test_extract_importance_flat": _IMPORTANCE,
    f"{_EPISODIC}test_extract_importance_nested": _IMPORTANCE,
    f"{_EPISODIC}test_extract_importance_missing": _IMPORTANCE,
    f"{_HISTORY}test_episodic_communication_history_with_list_messages": _ENTRIES,
    f"{_HISTORY}test_episodic_communication_history_with_scalar_message": _ENTRIES,
    f"{_HISTORY}test_episodic_communication_history_skips_non_message_entries": _ENTRIES,
    f"{_REASONING}TestCoTWithEpisodicMemory::test_plan_records_to_memory": _GRADE,
    f"{_REASONING}TestCoTWithEpisodicMemory::test_async_plan_works": _GRADE,
    f"{_REASONING}TestReWOOWithEpisodicMemory::test_plan_records_to_memory": _GRADE,
    f"{_REASONING}TestReWOOWithEpisodicMemory::test_async_plan_works": _GRADE,
}
"""The tests that look inside the originals, each with what it looks for."""


def sources(work: Path, python: Path) -> Path:
    """The folder with the tests; they are fetched unless they are there."""
    version = suites.version(python, "mesa-llm") if suites.NEWEST else VERSION
    folder = work / f"mesa_llm-{version}"
    if not folder.exists():
        suites.run(python, "-m", "pip", "install", "--quiet", "hatchling", "setuptools")
        options = ("--quiet", "--no-deps", "--no-binary", ":all:", "--no-build-isolation")
        suites.run(python, "-m", "pip", "download", *options, "-d", work, f"mesa-llm=={version}")
        with tarfile.open(work / f"{folder.name}.tar.gz") as archive:
            tests = [each for each in archive if "/mesa_llm/" not in each.name]
            archive.extractall(work, tests, filter="data")  # the installed package is tested
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    work = suites.ROOT / ".venv-upstream" / "mesa-llm"
    parser.add_argument("--work", type=Path, default=work, help="where the environment is kept")
    work = parser.parse_args().work.resolve()
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else litellm asks the network for prices
    python = suites.environment(work, "mesa-llm", PACKAGES, constrained=False)
    tests = sources(work, python)
    results = suites.tried(python, tests, ["tests"], *SWAP, reaches="tiermem.mesa_llm")
    is_good = suites.line(f"mesa-llm {VERSION}", results, PASSING, INSIDE, reaching=REACHING)
    results = suites.tried(python, suites.ROOT, [OUR_OWN], "-p", "no:asyncio")
    is_good &= suites.line("tiermem.mesa_llm", results, None)
    is_good &= mutations.noticed(python, "mesa_llm", [OUR_OWN], "-p", "no:asyncio")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
