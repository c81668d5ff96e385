"""Ask whether TierMem can be installed beside other frameworks, and whether Pythons run its engine.

First, uv looks for versions that satisfy TierMem with MCP, HTTP, a framework and the extra for this
framework; nothing is installed. A line says how many packages there are, and the versions of those
that others pin. Then a quick part of the tests runs in an environment of its own for each Python
that uv finds, and once with the pre-releases of tokenizers; tests of MCP run with mcp 1 and with
mcp 2. The exit code is 0 if every framework resolves and every Python passes; Python 3.14 is only
reported.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import suites

PYTHON = "3.12"
FRAMEWORKS = {
    "mesa": "mesa",
    "gdm-concordia": "concordia",
    "mesa-llm": "mesa-llm",
    "langgraph": "langgraph",
    "autogen-core": "autogen",
    "camel-ai": "camel",
    "llama-index-core": "llama-index",
    "agentsociety2": "agent-society",
    "google-adk": "google-adk",
    "openai-agents": "openai-agents",
    "pydantic-ai-slim": "pydantic-ai",
    "agentscope": "",
    "crewai": "",
}
"""The frameworks, each with the extra that installs it."""
SHOWN = ("mcp", "tokenizers", "pydantic", "numpy")
QUICK = ("tests/unit/bank/test_bank.py", "tests/unit/bank/test_agent_memory.py",
         "tests/unit/search", "tests/unit/rules", "tests/unit/memory",
         "tests/unit/storage/test_golden.py", "tests/unit/test_golden_histories.py")  # fmt: skip
MCP = ("tests/interfaces/mcp/test_mcp_server.py", "tests/interfaces/mcp/test_mcp_http.py")
TOOLS = ("pytest", "hypothesis", "httpx", "anyio")


class Trial(NamedTuple):
    """Tests in an environment."""

    name: str
    python: str
    packages: tuple[str, ...] = ()
    tests: tuple[str, ...] = QUICK
    counts: bool = True
    """Whether a failure is one of this script."""


TRIALS = (
    Trial("Python 3.11", "3.11"),
    Trial("Python 3.12", "3.12"),
    Trial("Python 3.13", "3.13"),
    Trial("Python 3.14, reported", "3.14", counts=False),
    Trial(
        "tokenizers 1", PYTHON, ("tokenizers>=1.0.0rc1",), ("tests/unit/storage/test_golden.py",)
    ),
    Trial("mcp 1", PYTHON, ("mcp<2",), MCP),
    Trial("mcp 2", PYTHON, ("mcp>=2,<3",), MCP),
)


def uv_in(work: Path) -> str:
    """The program uv: the one on the PATH, or one that is installed here."""
    found = shutil.which("uv")
    own = work / "uv" / "bin" / "uv"
    if found is None and not own.exists():
        suites.run(sys.executable, "-m", "venv", work / "uv")
        suites.run(own.with_name("python"), "-m", "pip", "install", "--quiet", "uv")
    return found or str(own)


def resolved(uv: str, framework: str, extra: str = "") -> dict[str, str] | str:
    """The versions that fit, by package; or why there are none."""
    extras = ",".join(filter(None, ("mcp", "http", extra)))
    wanted = f"tiermem[{extras}] @ file://{suites.ROOT}\n{framework}\n"
    options = ("--quiet", "--no-header", "--no-annotate", "--python-version", PYTHON, "-")
    command = [uv, "pip", "compile", *options]
    told = subprocess.run(command, input=wanted, capture_output=True, text=True)
    if told.returncode:
        return " ".join(told.stderr.split())[:400]
    return dict(re.findall(r"^([\w.-]+)==(\S+)", told.stdout, re.MULTILINE))


def beside(uv: str) -> bool:
    """Say for each framework what fits; whether something fits for all."""
    alone = resolved(uv, "")
    if isinstance(alone, str):
        raise SystemExit(alone)
    names = "  ".join(f"{each:<11}" for each in SHOWN)
    print(f"{'beside':<26} {'packages':>8} {'more':>5}  {names}".rstrip(), flush=True)
    is_good = True
    for name, extra in FRAMEWORKS.items():
        found = resolved(uv, name, extra)
        if isinstance(found, str):
            print(f"{name:<26} does not resolve: {found}", flush=True)
            is_good = False
            continue
        shown = "  ".join(f"{found.get(each, '-'):<11}" for each in SHOWN)
        label, more = f"{name} {found.get(name, '?')}", len(found.keys() - alone.keys())
        print(f"{label:<26} {len(found):>8} {more:>5}  {shown}".rstrip(), flush=True)
    return is_good


def passes(uv: str, work: Path, trial: Trial) -> bool:
    """Run the tests of a trial, and say what became of them."""
    place = work / re.sub(r"\W+", "-", trial.name.lower())
    python = place / "bin" / "python"
    only = ("--python-preference", "only-system")
    made = subprocess.run(
        [uv, "venv", "--quiet", "--clear", *only, "--python", _python(trial.python), str(place)],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        print(f"{trial.name}: no such Python here")
        return True
    install = [uv, "pip", "install", "--quiet", "--python", str(python)]
    command = [*install, "-e", f"{suites.ROOT}[mcp,http]", *TOOLS, *trial.packages]
    told = subprocess.run(command, capture_output=True, text=True)
    if told.returncode:
        print(f"{trial.name}: can't be installed: {' '.join(told.stderr.split())[:300]}")
        return not trial.counts
    tried = suites.tried(python, suites.ROOT, trial.tests, "-m", "not slow", "-W", "default")
    results = tried.outcomes
    failing = {name for name, outcome in results.items() if outcome in ("FAILED", "ERROR")}
    passed = sum(outcome == "PASSED" for outcome in results.values())
    names = ", ".join(sorted(failing)) or "none"
    print(f"{trial.name}: {passed} passed; failed: {names}", flush=True)
    return not failing or not trial.counts


def _python(version: str) -> str:
    """A Python of this version, if pyenv has one; else its number, for uv to look for."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = sorted(root.glob(f"versions/{version}*/bin/python{version}"))
    return str(found[-1]) if found else version


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    work = suites.ROOT / ".venv-upstream" / "resolve"
    parser.add_argument("--work", type=Path, default=work, help="where environments are kept")
    parser.add_argument("--only", choices=("beside", "trials"), help="one of the two parts")
    options = parser.parse_args()
    uv, is_good = uv_in(options.work.resolve()), True
    if options.only != "trials":
        is_good &= beside(uv)
    if options.only != "beside":
        for trial in TRIALS:
            is_good &= passes(uv, options.work.resolve(), trial)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
