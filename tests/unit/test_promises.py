"""Each promise of the documents names the tests that show it, and these tests exist."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from banks import ROOT

PROMISES = ROOT / "docs/promises.md"
README = ROOT / "README.md"
DECISIONS = [ROOT / "docs/architecture" / name for name in ("journal-as-truth.md", "ways-in.md")]
PAGES = [PROMISES, README, *DECISIONS]

# [`test_name`](path), or [words] with a line [words]: path "test_name" at the end of the page.
DIRECT = re.compile(r"\[`(?P<name>[Tt]est\w+)`\]\((?P<path>[^)\s]+\.py)\)")
REFERENCE = re.compile(r'^\[(?P<words>[^\]]+)\]: (?P<path>\S+\.py) "(?P<name>[Tt]est\w+)"$', re.M)

NO_PROMISES = {"Why not mem0's store alone.", "What it costs.", "Measured", "Left out."}
"""Paragraphs of the decisions that tell of a reason, a price or a figure."""


class Link(NamedTuple):
    """A link from a document to a test."""

    page: Path
    path: str
    name: str

    def __str__(self) -> str:
        return f"{self.page.name}: {self.name}"


def links_of(page: Path) -> list[Link]:
    found = [*DIRECT.finditer(page.read_text()), *REFERENCE.finditer(page.read_text())]
    return [Link(page, match["path"], match["name"]) for match in found]


def names_a_test(text: str, page: Path) -> bool:
    words = [match["words"] for match in REFERENCE.finditer(page.read_text())]
    return bool(DIRECT.search(text)) or any(f"[{each}]" in text for each in words)


def section(page: Path, heading: str) -> str:
    (text,) = re.findall(rf"^#+ {heading}\n(.*?)(?=^## |\Z)", page.read_text(), re.M | re.S)
    return str(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tests_that_a_page_names_exist(page: Path) -> None:
    links = links_of(page)
    assert len(links) >= 5
    for link in links:
        file = (page.parent / link.path).resolve()
        assert file.is_relative_to(ROOT / "tests"), link
        assert file.is_file(), link
        assert re.search(
            rf"^(async )?def {link.name}\(|^{link.name} = ", file.read_text(), re.MULTILINE
        ), link


def test_each_row_of_the_promises_names_a_test() -> None:
    promised = PROMISES.read_text().partition("## What is not promised")[0]
    rows = [row for row in re.findall(r"^\|(.*)\|$", promised, re.MULTILINE) if "|---" not in row]
    rows = [row for row in rows if "shown by" not in row]
    assert len(rows) > 40
    assert [row for row in rows if not DIRECT.search(row.split("|")[-1])] == []


def test_each_promise_of_the_readme_names_a_test_and_is_explained() -> None:
    promises = re.findall(
        r"^- .*?(?=^- |^\n|\Z)", section(README, "What you can rely on"), re.M | re.S
    )
    assert len(promises) >= 5
    explained = re.findall(r"^## (.*)$", PROMISES.read_text(), re.MULTILINE)
    for promise in promises:
        assert names_a_test(promise, README), promise
        (title,) = re.findall(r"\*\*(.*?)\*\*", promise)
        assert title in explained


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.name)
def test_each_paragraph_of_a_decision_names_a_test_or_promises_nothing(page: Path) -> None:
    paragraphs = re.findall(r"^\*\*(.*?)\*\*(.*?)(?=^\*\*|^\[|\Z)", page.read_text(), re.M | re.S)
    assert len(paragraphs) >= 9
    silent = {title for title, text in paragraphs if not names_a_test(text, page)}
    assert silent <= NO_PROMISES


@pytest.mark.parametrize("page", [README, *DECISIONS], ids=lambda page: page.name)
def test_each_test_that_is_named_below_stands_beside_a_sentence(page: Path) -> None:
    text = page.read_text()
    words = [match["words"] for match in REFERENCE.finditer(text)]
    assert len(set(words)) == len(words)
    assert [each for each in words if len(re.findall(rf"\[{re.escape(each)}\]", text)) < 2] == []
