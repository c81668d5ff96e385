"""The notebooks of examples/ run in a kernel, and show what comes out."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from banks import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.ipynb"))
pytestmark = pytest.mark.slow


SVG = "image/svg+xml"


def outputs_of(notebook: Any) -> list[Any]:
    """The outputs of the cells. Of charts, only that they are there: their style may change."""
    cells = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    for output in (each for cell in cells for each in cell):
        if SVG in output.get("data", {}):
            output.data[SVG] = output.data[SVG][:5]
    return cells


@pytest.fixture
def make_notebooks(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "docs")
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    import make_notebooks  # type: ignore[import-not-found]

    return make_notebooks


@pytest.mark.filterwarnings("default")  # of Jupyter's packages
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_a_notebook_runs_and_shows_what_comes_out(file: Path, make_notebooks: Any) -> None:
    kept = nbformat.read(file, as_version=4)
    if file.stem == "local_model" and importlib.util.find_spec("xllamacpp"):
        kept.cells.pop()  # it asks the model
    assert outputs_of(make_notebooks.executed(file))[: len(outputs_of(kept))] == outputs_of(kept)


def test_there_are_five_questions_and_each_has_answers() -> None:
    assert [file.stem for file in EXAMPLES] == [
        "effect", "local_model", "mesa", "rumour", "warnings",
    ]  # fmt: skip
    for file in EXAMPLES:
        notebook = nbformat.read(file, as_version=4)
        nbformat.validate(notebook)
        assert file.stat().st_size < 200_000
        assert any(outputs_of(notebook))
        text = file.read_text("utf-8")
        assert str(ROOT) not in text
        assert "/tmp/" not in text


def test_all_links_of_the_notebooks_lead_somewhere() -> None:
    import re

    for file in EXAMPLES:
        notebook = nbformat.read(file, as_version=4)
        texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", "\n".join(texts)):
            assert (file.parent / target).exists(), (file.name, target)


def test_the_kernel_of_the_notebooks_is_this_python() -> None:
    from jupyter_client.kernelspec import KernelSpecManager

    assert KernelSpecManager().get_kernel_spec("python3").argv[0] in ("python", sys.executable)
