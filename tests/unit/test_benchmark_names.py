"""A benchmark runs as a script: its folder comes first in the import path."""

import sys
from importlib.machinery import PathFinder
from pathlib import Path

from banks import ROOT


def test_no_benchmark_hides_a_package_that_another_one_imports() -> None:
    folder = ROOT / "benchmarks"
    tests = ROOT / "tests"
    places = [Path(each).resolve() for each in sys.path]
    others = [str(place) for place in places if place != folder and tests not in place.parents]
    names = [script.stem for script in folder.glob("*.py")]
    assert len(names) > 20
    assert [name for name in names if PathFinder.find_spec(name, others)] == []
    assert not {name for name in names if name in sys.stdlib_module_names}
