"""A chart as a value: a notebook shows it, and it can be saved."""

import re
from os import PathLike
from pathlib import Path
from typing import final

from ...errors import InvalidInput, RunError
from ...storage.files import SHARED_MODE, replace_file
from .plots import alone

_SIZE = re.compile('width="([0-9.]+)" height="([0-9.]+)"')
_WIDEST = 840.0
"""A notebook's cell has so much room on most screens; a wider chart is drawn smaller."""


def _fitted(size: re.Match[str]) -> str:
    width, height = map(float, size.groups())
    share = min(1.0, _WIDEST / width)
    return f'width="{width * share:g}" height="{height * share:g}"'


@final
class Chart:
    """A chart as SVG, which shows itself in a notebook."""

    def __init__(self, drawing: str, what: str) -> None:
        """``drawing`` is what a function of :mod:`.plots` gives; ``what`` says of what it is."""
        self.svg = _SIZE.sub(_fitted, alone(drawing), count=1)
        self._what = what

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the file, and give its path; it replaces one that is there."""
        file = Path(path)
        if file.suffix != ".svg":
            raise InvalidInput(
                f"a chart is SVG, and {file} is not its name", hint=f"name it {file.stem}.svg"
            )
        try:
            replace_file(file, self.svg, SHARED_MODE)
        except OSError as error:
            raise RunError(
                f"the chart {file} can't be written: {error.strerror or error}",
                hint="name another file",
            ) from error
        return file

    def __repr__(self) -> str:
        return f"<chart of {self._what}: save(path) writes it as SVG>"

    def _repr_svg_(self) -> str:
        return self.svg
