"""The suite itself: what is promised is tried in time, and files have names of their own."""

import ast
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from banks import ROOT, TESTS
from selection import is_left_out, mark
from warm_children import run

FILES = {path.name: path.read_text() for path in TESTS.rglob("test_*.py")}
QUICK, SLOW = "not slow", "(slow or again) and not long"


def test_no_two_files_of_tests_have_the_same_name() -> None:
    names = Counter(path.name for path in TESTS.rglob("*.py") if path.name != "conftest.py")
    assert {name for name, number in names.items() if number > 1} == set()


@pytest.mark.parametrize(("target", "expression"), [("test", QUICK), ("test-all", SLOW)])
def test_a_target_asks_for_the_markers_by_which_files_are_left_out(
    target: str, expression: str
) -> None:
    (recipe,) = re.findall(rf"^{target}:.*\n\t(.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert f'-m "{expression}"' in recipe


@pytest.mark.parametrize(
    ("text", "in_test", "in_test_all"),
    [
        ("def test_x(): ...", True, False),
        ("pytestmark = pytest.mark.slow\n", False, True),
        ("pytestmark = [\n    pytest.mark.slow,\n]\n", False, True),
        ("pytestmark = pytest.mark.slow_after(1)\n", True, True),
        ("pytestmark = pytest.mark.long\n", False, False),
        ("pytestmark = pytest.mark.again\n", True, True),
        ("@pytest.mark.slow\ndef test_x(): ...", True, True),
        ("@pytest.mark.long\ndef test_x(): ...", True, False),
    ],
)
def test_a_file_of_which_a_command_wants_no_test_is_left_out(
    tmp_path: Path, text: str, in_test: bool, in_test_all: bool
) -> None:
    file = tmp_path / "test_x.py"
    file.write_text(text)
    assert is_left_out(file, QUICK) is not in_test
    assert is_left_out(file, SLOW) is not in_test_all
    assert not is_left_out(file, "")
    assert not is_left_out(tmp_path / "conftest.py", QUICK)


@cache
def _marks(text: str) -> dict[str, set[str]]:
    """The names of the markers at each test of a file."""
    return {
        node.name: {ast.unparse(each).removeprefix("pytest.mark.") for each in node.decorator_list}
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_a_slow_test_is_not_alone() -> None:
    """A file of which every test is slow says it once, and is then not even imported."""
    for name, text in FILES.items():
        marks = _marks(text)
        slow = [test for test, names in marks.items() if names & {"slow", "long"}]
        assert len(slow) < max(len(marks), 2), name


class _Case:
    """A case of a test, as much of it as is marked."""

    path = Path("test_x.py")
    name = originalname = "test_x"

    def __init__(self, *marks: pytest.MarkDecorator) -> None:
        self.marks = {each.name: each.mark for each in marks}

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.marks.get(name)

    def add_marker(self, name: str) -> None:
        self.marks[name] = getattr(pytest.mark, name).mark


def _marked(*marks: pytest.MarkDecorator) -> list[set[str]]:
    cases = [_Case(*marks) for _ in range(3)]
    mark(cases)  # type: ignore[arg-type]
    return [{"slow", "long"} & case.marks.keys() for case in cases]


def test_cases_after_the_first_are_slow_or_long() -> None:
    assert _marked(pytest.mark.slow_after(1)) == [set(), {"slow"}, {"slow"}]
    assert _marked(pytest.mark.slow_after(1), pytest.mark.long_after(2)) == [
        set(),
        {"slow"},
        {"slow", "long"},
    ]


def test_what_is_long_is_slow_as_well() -> None:
    assert _marked(pytest.mark.long) == [{"slow", "long"}] * 3


def test_what_is_promised_is_not_long() -> None:
    """``make test-all`` tries each promise, as docs/promises.md says."""
    promised = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/promises.md").read_text("utf-8")))
    assert len(promised) > 50
    for name, text in FILES.items():
        of_file = re.search(r"^pytestmark = .*\bmark\.long\b", text, re.MULTILINE)
        long = {test for test, marks in _marks(text).items() if of_file or "long" in marks}
        assert promised.isdisjoint(long), name


def test_a_warm_process_has_the_temporary_folder_that_its_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = [sys.executable, "-c", "import tempfile; print(tempfile.gettempdir())"]
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv("TMPDIR", str(tmp_path / name))
        assert run(where, capture_output=True, text=True).stdout.strip() == str(tmp_path / name)
