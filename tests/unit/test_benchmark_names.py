"""A benchmark runs as a script: its folder comes first in the import path."""

import sys
from importlib.metadata import packages_distributions

from banks import ROOT


def test_no_benchmark_hides_a_package_that_another_one_imports() -> None:
    names = {script.stem for script in (ROOT / "benchmarks").glob("*.py")}
    assert len(names) > 20
    assert not names & {"agents", "tiermem", *packages_distributions(), *sys.stdlib_module_names}
