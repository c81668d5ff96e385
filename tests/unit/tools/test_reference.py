"""The reference page is what the table makes of it, and the examples of the how-to run."""

import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

import tiermem
from agents.memory.tiers import TIER_NAMES
from agents.tools import OPERATIONS
from agents.tools.shapes import MEMORY
from banks import ROOT

PAGE = ROOT / "docs/reference/operations.md"
reference: Callable[[], str] = runpy.run_path(str(ROOT / "docs/make_reference.py"))["operations"]
HOWTO = ROOT / "docs/howto/llm-loop.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", HOWTO.read_text(), re.MULTILINE | re.DOTALL)


def section(name: str) -> str:
    """What the page says of an operation."""
    found = re.search(rf"^## {name}\n(.*?)(?=^## )", reference(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The cells of all rows of tables."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


# The page


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == reference(), "the page is not current: make reference"


def test_the_page_lists_every_operation_with_its_route() -> None:
    overview = reference().partition("\n## ")[0]
    listed = {row[0]: row[1:3] for row in rows(overview)[1:]}
    assert listed == {
        f"[`{name}`](#{name})": [each.permission, f"`{each.route.method} {each.route.path}`"]
        for name, each in OPERATIONS.items()
    }


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_described_with_its_arguments_and_an_example(name: str) -> None:
    operation, text = OPERATIONS[name], section(name)
    assert operation.description in text
    assert f"Permission: {operation.permission}." in text
    assert f"answers {operation.route.status}." in text
    (example,) = re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert json.loads(example) == operation.example
    arguments = {row[0].strip("`"): row for row in rows(text.partition("\nResult:")[0])[1:]}
    assert arguments.keys() == operation.arguments["properties"].keys()
    required = {key for key, row in arguments.items() if row[3] == "yes"}
    assert required == set(operation.arguments.get("required", ()))
    for key, row in arguments.items():
        assert row[4] == operation.arguments["properties"][key]["description"]


def test_types_and_what_is_allowed_are_told_in_words() -> None:
    tiers = ", ".join(f"`{each}`" for each in TIER_NAMES.values())
    arguments = {row[0]: row for row in rows(section("memory_query"))}
    assert arguments["`tier`"][1:3] == ["string or list of string", tiers]
    assert arguments["`limit`"][1:3] == ["integer", "1 to 1,000"]
    arguments = {row[0]: row for row in rows(section("memory_add"))}
    assert arguments["`tags`"][1:3] == [
        "list of string",
        "up to 32 entries; each 1 to 64 characters",
    ]
    assert arguments["`metadata`"][1:3] == ["object", "up to 64 entries"]


def test_results_are_told_field_by_field() -> None:
    assert "Result: [a memory](#a-memory)." in section("store_memory")
    result = section("memory_recall").partition("\nResult:")[2]
    assert [row[0] for row in rows(result)[1:]] == [
        "`results[]`", "`results[].score`", "`results[].likeness`", "`results[].match`",
        "`results[].relevance_probability`", "`promoted`", "`notes`",
    ]  # fmt: skip
    assert "\nor\n" in section("memory_get")
    fields = [row[0].strip("`") for row in rows(section("memory_status"))[1:]]
    assert {"tick", "temperatures.hot.items", "tiers.low.cap", "suggestions[].ids"} <= set(fields)
    fields = [row[0].strip("`") for row in rows(section("A memory"))[1:]]
    assert fields == list(MEMORY["properties"])


def test_the_page_says_what_an_error_looks_like() -> None:
    errors = reference().partition("## Errors")[2]
    (example,) = re.findall(r"^```json\n(.*?)^```", errors, re.MULTILINE | re.DOTALL)
    assert json.loads(example)["error"].keys() == {"type", "message"}
    named = [row[0].strip("`") for row in rows(errors)[1:]]
    assert {"InvalidInput", "MemoryNotFound", "TierFull", "InternalError"} <= set(named)
    assert {"error.type", "error.message"} <= set(named)


def test_the_page_lists_every_error_once() -> None:
    page = reference().partition("## Errors")[2]
    for name in tiermem.__all__:
        error = getattr(tiermem, name)
        if isinstance(error, type) and issubclass(error, tiermem.TierMemError):
            assert page.count(f"\n| `{name}` | ") == 1, name


def test_the_links_within_the_page_lead_somewhere() -> None:
    page = reference()
    heads = {
        head.lower().replace(" ", "-") for head in re.findall(r"^## (.*)$", page, re.MULTILINE)
    }
    assert set(re.findall(r"\(#([^)]*)\)", page)) <= heads


# The how-to


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_of_the_how_to_runs(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(EXAMPLES[number], f"{HOWTO.name} example {number}", "exec"), {})
    lines = EXAMPLES[number].splitlines()
    promised = [line.removeprefix("    # ") for line in lines if line.startswith("    # - ")]
    assert "\n".join(promised) in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_the_how_to_has_all_its_examples() -> None:
    assert len(EXAMPLES) == 4
