"""The table of what is broken on purpose: it is of the code as it is, and complete.

``make adapters`` breaks the code, and sees whether the tests of adapters notice.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from banks import ROOT

UPSTREAM = ROOT / "tests/adapters/upstream"
SOURCE = ROOT / "src/agents"


def table() -> ModuleType:
    sys.path.insert(0, str(UPSTREAM))
    try:
        spec = importlib.util.spec_from_file_location("mutations", UPSTREAM / "mutations.py")
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules["mutations"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(UPSTREAM))
    return module


MUTATIONS = table()


@pytest.mark.parametrize("adapter", sorted(MUTATIONS.TABLE))
def test_what_is_broken_is_in_the_code_once_and_can_be_compiled(adapter: str) -> None:
    for mutation in MUTATIONS.TABLE[adapter]:
        file = SOURCE.joinpath(*mutation.module.split(".")).with_suffix(".py")
        code = file.read_text()
        assert code.count(mutation.code) == 1, mutation
        compile(code.replace(mutation.code, mutation.instead), str(file), "exec")


def test_each_adapter_is_broken_and_its_search_finds_nothing_or_the_oldest() -> None:
    extras = {"agent_ecology", "mem0_agentscope", "resolve"}
    scripts = {path.stem for path in UPSTREAM.glob("*.py")} - {"every", "suites", "mutations"}
    assert scripts - extras | {"mem0"} == set(MUTATIONS.TABLE)
    for adapter, mutations in MUTATIONS.TABLE.items():
        assert {"nothing", "oldest"} <= {each.kind for each in mutations}, adapter
        assert len(set(mutations)) == len(mutations)


@pytest.mark.parametrize("adapter", sorted(MUTATIONS.HERE_TOO))
@pytest.mark.long
def test_the_tests_of_an_adapter_notice_what_is_broken(adapter: str) -> None:
    tests = MUTATIONS.HERE_TOO[adapter]
    assert MUTATIONS.noticed(Path(sys.executable), adapter, tests, "-p", "no:schemathesis")
