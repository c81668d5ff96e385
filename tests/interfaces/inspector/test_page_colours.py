"""The page's colours are told apart, also by people with a colour deficiency."""

import math
import re
from itertools import combinations
from pathlib import Path

import pytest

from agents.interfaces.inspector import page_files

PAGE = Path(page_files.__file__).parent / "page"
_LEAST = 18
"""The least difference, in CIE76: about 2.3 is just seen where two colours touch."""
_SEEN = {
    "all colours": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""What becomes of linear red, green and blue: Machado, Oliveira and Fernandes 2009, severity 1."""
_XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
_WHITE = (0.95047, 1.0, 1.08883)
Rows = tuple[tuple[float, ...], ...]


def _times(rows: Rows, values: list[float]) -> list[float]:
    return [sum(each * value for each, value in zip(row, values, strict=True)) for row in rows]


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def _bent(value: float) -> float:
    return value ** (1 / 3) if value > 216 / 24389 else (24389 / 27 * value + 16) / 116


def _lab(colour: str, seen: Rows) -> tuple[float, float, float]:
    linear = [_linear(int(colour[at : at + 2], 16) / 255) for at in (1, 3, 5)]
    shown = [min(1.0, max(0.0, each)) for each in _times(seen, linear)]
    x, y, z = (_bent(each / white) for each, white in zip(_times(_XYZ, shown), _WHITE, strict=True))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _palette(name: str) -> dict[str, str]:
    text = (PAGE / "palette.js").read_text()
    (body,) = re.findall(rf"export const {name} = [{{[](.*?)[}}\]];", text, re.DOTALL)
    found = re.findall(r'(?:(\w+): )?"(#[0-9a-f]{6})"', body)
    return {key or str(place): colour for place, (key, colour) in enumerate(found)}


@pytest.mark.parametrize("name", ["TIERS", "TEMPERATURES", "RUNS", "RUNS_DARK"])
@pytest.mark.parametrize("eyes", _SEEN)
def test_colours_of_one_legend_are_told_apart(name: str, eyes: str) -> None:
    colours = _palette(name)
    assert len(colours) == (2 if name.startswith("RUNS") else 5)
    seen = {key: _lab(colour, _SEEN[eyes]) for key, colour in colours.items()}
    apart = {
        (one, other): math.dist(seen[one], seen[other]) for one, other in combinations(seen, 2)
    }
    assert {pair: far for pair, far in apart.items() if far < _LEAST} == {}


def test_the_style_sheet_has_the_colours_of_the_curves() -> None:
    sheet = (PAGE / "page.css").read_text()
    for name, kind in (("TIERS", "tier"), ("TEMPERATURES", "temperature")):
        dots = dict(re.findall(rf"\.{kind}\.(\w+)::before {{ background: (#\w+); }}", sheet))
        assert dots
        assert dots.items() <= _palette(name).items()
