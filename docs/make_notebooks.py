"""Runs the notebooks of examples/ and writes what comes out into them: ``make notebooks``.

Only what is the same in every run is kept, so a test can compare.
"""

from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

EXAMPLES = Path(__file__).parents[1] / "examples"
_SECONDS = 600


def executed(file: Path) -> NotebookNode:
    """A notebook with the outputs of all cells; an error in one of them is raised."""
    notebook = nbformat.read(file, as_version=4)
    place = {"metadata": {"path": str(file.parent)}}
    NotebookClient(notebook, timeout=_SECONDS, record_timing=False, resources=place).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if _is_of_every_run(each)]
    return notebook


def _is_of_every_run(output: NotebookNode) -> bool:
    """Whether it is no warning about this machine, and not what is left of a bar."""
    if output.output_type == "stream":
        return bool(output.name == "stdout")
    return output.output_type != "display_data" or output.data.get("text/html") != ""


if __name__ == "__main__":
    for file in sorted(EXAMPLES.glob("*.ipynb")):
        nbformat.write(executed(file), file)
