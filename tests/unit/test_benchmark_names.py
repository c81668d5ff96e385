"""A benchmark runs as a script: its folder comes first in the import path."""

import ast
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from banks import ROOT


def test_no_benchmark_hides_a_package_that_another_one_imports() -> None:
    names = {script.stem for script in (ROOT / "benchmarks").glob("*.py")}
    assert len(names) > 20
    assert not names & {"agents", "tiermem", *packages_distributions(), *sys.stdlib_module_names}


@pytest.mark.parametrize("script", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda p: p.stem)
def test_no_list_names_its_elements_like_something_imported(script: Path) -> None:
    """Python 3.12.1 takes an imported name for that of the elements in the whole function."""
    nodes = list(ast.walk(ast.parse(script.read_text())))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {name.asname or name.name for node in imports for name in node.names}
    targets = [node.target for node in nodes if isinstance(node, ast.comprehension)]
    names = {each.id for node in targets for each in ast.walk(node) if isinstance(each, ast.Name)}
    assert not names & imported
