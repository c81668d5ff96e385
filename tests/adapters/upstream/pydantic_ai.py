"""Run our own tests that need Pydantic AI, which has no interface, and so no tests, of memories.

They run in an environment of their own; then comes what is broken on purpose. Each gets a line. The
exit code is 0 if all is as expected.
"""

import argparse
import sys
from pathlib import Path

import mutations
import suites

PACKAGES = ("pydantic-ai-slim==2.68.0",)
OUR_OWN = suites.ROOT / "tests/adapters/test_pydantic_ai_memory.py"
# Its run_sync leaves an event loop open, which a filter of TierMem's tests makes an error.
OPTIONS = ("-o", "filterwarnings=")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    work = suites.ROOT / ".venv-upstream" / "pydantic-ai"
    parser.add_argument("--work", type=Path, default=work, help="where the environment is kept")
    work = parser.parse_args().work.resolve()
    python = suites.environment(work, "pydantic-ai", PACKAGES, constrained=False)
    results = suites.tried(python, suites.ROOT, [OUR_OWN], *OPTIONS)
    is_good = suites.line("tiermem.pydantic_ai", results, None)
    is_good &= mutations.noticed(python, "pydantic_ai", [OUR_OWN], *OPTIONS)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
