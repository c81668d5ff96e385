"""The suite itself: what is marked slow is there, and files have names of their own."""

import re
from collections import Counter

import pytest

import slow
from banks import ROOT, TESTS

FILES = {path.name: path.read_text() for path in TESTS.rglob("test_*.py")}


def test_no_two_files_of_tests_have_the_same_name() -> None:
    names = Counter(path.name for path in TESTS.rglob("*.py") if path.name != "conftest.py")
    assert {name for name, number in names.items() if number > 1} == set()


@pytest.mark.parametrize(
    "name", sorted(slow.FILES | slow.FILES_OF_CASES | slow.LONG_FILES | slow.AGAIN)
)
def test_a_slow_file_is_there(name: str) -> None:
    assert name in FILES


@pytest.mark.parametrize(
    ("file", "test"),
    [
        (file, test)
        for table in (slow.TESTS, slow.TESTS_OF_CASES)
        for file, tests in table.items()
        for test in sorted(tests)
    ],
)
def test_a_slow_test_is_there_and_not_alone(file: str, test: str) -> None:
    tests = set(re.findall(r"^def (test_\w+)", FILES[file], re.MULTILINE))
    assert test in tests
    assert tests > slow.TESTS.get(file, set())


def test_what_is_long_is_slow_as_well() -> None:
    for file, tests in slow.LONG.items():
        names = {test.partition("[")[0] for test in tests}
        known = slow.TESTS.get(file, set()) | slow.TESTS_OF_CASES.get(file, set())
        assert file in slow.FILES or names <= known
        assert all(re.search(rf"^def {name}\(", FILES[file], re.MULTILINE) for name in names)


def test_tests_of_which_some_cases_are_long_are_there() -> None:
    every = "\n".join(FILES.values())
    assert [each for each in slow.CASES if f"\ndef {each}(" not in every] == []


def test_what_is_promised_is_not_long() -> None:
    """``make test-all`` tries each promise, as docs/promises.md says."""
    promised = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/promises.md").read_text("utf-8")))
    assert len(promised) > 50
    assert promised.isdisjoint(set().union(*slow.LONG.values()))
    of_long_files = "\n".join(FILES[name] for name in slow.LONG_FILES)
    assert promised.isdisjoint(re.findall(r"def (test_\w+)", of_long_files))
