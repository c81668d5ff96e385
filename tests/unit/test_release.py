"""What a release says of itself: its long description, its metadata, and what it carries."""

import importlib.util
import re
import tomllib
from types import ModuleType

import pytest

import tiermem
from banks import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REPOSITORY = "https://example.org/we/ours"


def program(name: str) -> ModuleType:
    """A file of the folder ``release``, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "release" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


README = program("readme")


# The long description


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        ("[a](docs/a.md)", "[a](https://example.org/we/ours/blob/v2/docs/a.md)"),
        ("[a](./docs/a.md#b)", "[a](https://example.org/we/ours/blob/v2/docs/a.md#b)"),
        ("![a](docs/a.svg)", "![a](https://example.org/we/ours/raw/v2/docs/a.svg)"),
        ('[a]: tests/a.py "t"', '[a]: https://example.org/we/ours/blob/v2/tests/a.py "t"'),
        ('<img src="a/b.png">', '<img src="https://example.org/we/ours/raw/v2/a/b.png">'),
        ('<a href="a/b.md">', '<a href="https://example.org/we/ours/blob/v2/a/b.md">'),
        ("[`a`](b.md)", "[`a`](https://example.org/we/ours/blob/v2/b.md)"),
    ],
)
def test_a_relative_link_is_whole_on_the_package_index(written: str, whole: str) -> None:
    assert README.with_whole_links(written, REPOSITORY, "v2") == whole


@pytest.mark.parametrize(
    "text",
    [
        "[a](https://example.org/b.md)",
        "[a](#b)",
        '<a href="#b">',
        "`[a](b.md)`",
        "```markdown\n[a](b.md)\n```",
        "```\n[a]: b.md\n```\n",
    ],
)
def test_whole_addresses_headings_and_code_stay_as_they_are(text: str) -> None:
    assert README.with_whole_links(text, REPOSITORY, "v2") == text


def test_every_link_of_the_readme_is_whole_and_leads_to_a_file() -> None:
    text = README.with_whole_links((ROOT / "README.md").read_text(), REPOSITORY, "v2")
    links = re.findall(r"\]\(([^)\s]+)|^\[[^\]]+\]: +(\S+)|(?:src|href)=\"([^\"]+)", text, re.M)
    links = [next(filter(None, each)) for each in links]
    assert len(links) >= 20
    prefix = re.compile(rf"{REPOSITORY}/(?:blob|raw)/v2/")
    for link in links:
        if path := prefix.match(link):
            assert (ROOT / link[path.end() :].partition("#")[0]).exists(), link
        else:
            assert link.startswith(("https://", "#")), link


# The metadata


def test_one_place_names_the_repository() -> None:
    source = PROJECT["urls"]["Source"]
    own = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    assert [path for path in own if source in path.read_text()] == []


def test_a_tested_python_is_a_classifier() -> None:
    said = {each.split(" :: ")[-1] for each in PROJECT["classifiers"] if "Python :: 3." in each}
    assert said == {"3.11", "3.12", "3.13"}


def test_the_version_is_whole_numbers_and_no_development_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", tiermem.__version__)
