"""Run our own tests that need AgentSociety 2: its packages have no tests of its memory.

Neither the source distribution nor the wheel of 2.9.3 has a test. Among our own, made-up calls have
to give the same with our store and with AgentSociety's, but for searches. All runs in an
environment of its own; then comes what is broken on purpose. Each gets a line. The exit code is 0
if all is as expected.
"""

import argparse
import sys
from pathlib import Path

import mutations
import suites

PACKAGES = ("agentsociety2==2.9.3",)
OUR_OWN = suites.ROOT / "tests/adapters/test_agent_society.py"
OPTIONS = ("-o", "filterwarnings=")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    work = suites.ROOT / ".venv-upstream" / "agent-society"
    parser.add_argument("--work", type=Path, default=work, help="where the environment is kept")
    work = parser.parse_args().work.resolve()
    python = suites.environment(work, "agent-society", PACKAGES, constrained=False)
    results = suites.tried(python, suites.ROOT, [OUR_OWN], *OPTIONS)
    is_good = suites.line("tiermem.agent_society", results, None)
    is_good &= mutations.noticed(python, "agent_society", [OUR_OWN], *OPTIONS)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
