"""Every benchmark still runs: at a size that says nothing about speed."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from banks import ROOT

SIZES = {
    "analyse": ["--agents", "25", "--ticks", "20"],
    "calibration": ["--trials", "4", "--bootstraps", "2"],
    "call_paths": [],
    "compaction": ["--agents", "3", "6", "--memories", "9", "--turns", "1"],
    "effects": ["--trials", "1", "--pairs", "3"],
    "fits": ["--runs", "40", "--agents", "8", "--ticks", "6"],
    "http_load": ["--clients", "2", "--seconds", "2"],
    "inspector": ["--agents", "5", "--ticks", "12", "--questions", "3", "--no-export"],
    "languages": ["--only", "de", "zh"],
    "many_agents": ["--agents", "60", "--few", "6", "--memories", "300", "--ticks", "3"],
    "mem0_facade": ["--memories", "30", "--users", "3", "--calls", "3"],
    "million": ["--agents", "5", "--memories", "200"],
    "model_effects": ["--trials", "1", "--pairs", "3", "--models", "coin", "--over", "one run"],
    "nearness": [],
    "recall": ["--memories", "300", "--rounds", "2"],
    "safety": ["--agents", "5", "--memories", "9", "--ticks", "6"],
    "scaling": ["--agents", "3", "6", "--memories", "9", "--ticks", "3"],
    "shards": ["--small"],
    "simulation": ["--agents", "9", "--memories", "9", "--ticks", "6", "--long", "30"],
    "start": ["--tries", "1"],
    "survival": ["--trials", "2"],
    "tells": ["--tells", "400", "--agents", "9"],
    "temperature": ["--agents", "5", "--memories", "20", "--many", "2000", "--cold", "2000"],
    "tick_loop": ["--agents", "4", "--memories", "8", "--ticks", "4", "--seconds", "1"],
    "why": ["--agents", "9", "--memories", "9", "--ticks", "6"],
}
OTHERS = {
    "llm_prompts": "needs a model, which make llm installs and asks",
    "load": "takes half a minute of the processor; test_load.py runs it",
    "probability": "needs LoCoMo's file; test_quality_benchmark.py shows that it counts",
    "quality": "needs LoCoMo's file; test_quality_benchmark.py shows that it counts",
    "server_store": "needs servers, which make bench WHAT=server_store installs",
}


def test_every_benchmark_is_known_here() -> None:
    scripts = (ROOT / "benchmarks").glob("*.py")
    programs = {each.stem for each in scripts if "__main__" in each.read_text(encoding="utf-8")}
    assert programs == SIZES.keys() | OTHERS.keys()


def test_make_lists_the_benchmarks_if_there_is_none_of_a_name() -> None:
    # The suite may be run by make itself, whose flags would reach this make.
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    env.pop("MFLAGS", None)
    done = subprocess.run(
        ["make", "--old-file=.venv/.installed", "bench", "WHAT=bank"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    said, *lines = done.stderr.splitlines()
    assert said == "WHAT=bank is not a benchmark; these are:"
    assert {line.split()[0] for line in lines if line.startswith("  ")} == {*SIZES, *OTHERS}
    assert done.returncode == 2


def _names_of_ours(script: Path) -> set[tuple[str, str]]:
    """What a script imports of the package, also inside functions: modules and their names."""
    nodes = list(ast.walk(ast.parse(script.read_text(encoding="utf-8"))))
    modules = {(each.name, "") for node in nodes if isinstance(node, ast.Import)
               for each in node.names}  # fmt: skip
    names = {(node.module or "", each.name) for node in nodes if isinstance(node, ast.ImportFrom)
             for each in node.names}  # fmt: skip
    return {each for each in modules | names if each[0].partition(".")[0] == "tiermem"}


def test_what_a_benchmark_imports_of_the_package_is_there() -> None:
    wanted = {
        each for script in (ROOT / "benchmarks").glob("*.py") for each in _names_of_ours(script)
    }
    assert wanted
    for module, name in sorted(wanted):
        found = importlib.import_module(module)
        assert not name or hasattr(found, name) or importlib.import_module(f"{module}.{name}")


@pytest.mark.long
@pytest.mark.parametrize("name", SIZES)
def test_it_runs(name: str, tmp_path: Path) -> None:
    script = ROOT / "benchmarks" / f"{name}.py"
    done = subprocess.run(
        [sys.executable, script, *SIZES[name]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
