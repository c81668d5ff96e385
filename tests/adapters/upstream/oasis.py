"""Run OASIS's own tests of agents with TierMem's memory in each agent.

CAMEL's stub is the model, because OASIS's tests ask OpenAI's. The source distribution has no tests:
they run only if ``--source`` names a checkout of version 0.2.5. Our own tests that need OASIS
always run, and see to it that what is broken on purpose is noticed. All runs in an environment of
its own, with Python 3.11, which OASIS needs. Each suite gets a line: how many tests passed and
reached our code, how many were expected to, and the names of those that failed. The exit code is 0
if all that ran is as expected.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

import mutations
import suites

VERSION = "0.2.5"
PACKAGES = (f"camel-oasis=={VERSION}", "mcp<2")
PASSING, REACHING = 10, 9
_ACTS = "it wants a model to act, and the stub does not"
_GENERATOR, _GRAPH = "test/agent/test_agent_generator.py:58:", "test/agent/test_agent_graph.py:91:"
INSIDE = {
    "test/agent/test_agent_custom_prompt.py::test_agents_posting": _ACTS,
    "test/agent/test_agent_tools.py::test_agents_posting": _ACTS,
    "test/agent/test_interview_action.py::test_interview_with_environment": (
        "it reads data that OASIS does not publish with its tests"
    ),
    _GENERATOR: "OASIS skips it",
    _GRAPH: "OASIS skips it without a server of neo4j",
}
"""The tests that can't pass, each with the reason."""
OUR_OWN = suites.ROOT / "tests/adapters/test_oasis_memory.py"
SWAP = ("-p", "oasis_swap", "-o", "addopts=")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    work = suites.ROOT / ".venv-upstream" / "oasis"
    parser.add_argument("--work", type=Path, default=work, help="where the environment is kept")
    parser.add_argument("--source", type=Path, help="a checkout of camel-ai/oasis")
    options = parser.parse_args()
    work = options.work.resolve()
    # OASIS names the versions of many packages.
    packages = (*PACKAGES, "pytest-asyncio==0.23.6")
    python = suites.environment(
        work, "oasis", packages, constrained=False, python=suites.python_of("3.11")
    )
    is_good = True
    os.environ["HF_HUB_OFFLINE"] = "1"  # no test here needs what it would download
    if options.source is None:
        print("camel-oasis: its own tests were not run; --source names them", flush=True)
    else:
        # Beside its tests, the checkout's package would hide the installed one.
        apart = work / "checkout"
        shutil.rmtree(apart, ignore_errors=True)
        shutil.copytree(options.source / "test", apart / "test")
        (apart / "log").mkdir()
        (apart / "pytest.ini").write_text("[pytest]\n")  # or else TierMem's own settings count
        results = suites.tried(python, apart, ["test/agent"], *SWAP, reaches="tiermem.oasis")
        name = f"camel-oasis {VERSION}"
        is_good &= suites.line(name, results, PASSING, INSIDE, reaching=REACHING)
    results = suites.tried(python, suites.ROOT, [OUR_OWN], "-p", "no:asyncio")
    is_good &= suites.line("tiermem.oasis", results, None)
    is_good &= mutations.noticed(python, "oasis", [OUR_OWN], "-p", "no:asyncio")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
