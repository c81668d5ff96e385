"""The values under the pointer, without a script: places of a chart that have a title.

A browser shows the title of an SVG element when the pointer rests on it. The places lie over the
picture of the chart; the numbers in them are the chart's own.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ..statistics import Interval
from .numbers import no_interval, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_PLACES = 120


class Place(NamedTuple):
    """A part of a chart, and what its title says."""

    left: float
    """In shares of the picture's width, as ``width``."""
    width: float
    text: str


class Chart(NamedTuple):
    """A chart as a picture, and its places."""

    png: bytes
    top: float
    """Where the places begin, in shares of the picture's height."""
    height: float
    places: tuple[Place, ...]

    @classmethod
    def of(cls, png: bytes, axes: "Axes", ends: Sequence[float], texts: Sequence[str]) -> "Chart":
        """A chart whose places lie between ``ends`` on its axis; it has been drawn already."""
        left, bottom, width, height = axes.get_position().bounds
        low, high = axes.get_xlim()
        shares = [left + width * (end - low) / (high - low) for end in ends]
        edges = [round(min(max(share, left), left + width), 4) for share in shares]
        places = [
            Place(one, round(other - one, 4), text)
            for one, other, text in zip(edges, edges[1:], texts, strict=False)
            if other > one
        ]
        return cls(png, round(1 - bottom - height, 4), round(height, 4), tuple(places))


def stretches(
    series: Mapping[str, Sequence[float | None]], x: Sequence[int]
) -> tuple[list[float], list[str]]:
    """The ends and the texts of the places of a chart over ticks; each names one tick's values.

    A chart with many ticks has a place for every few of them.
    """
    step = -(-len(x) // _MOST_PLACES) or 1
    shown = range(0, len(x), step)
    middles = [(x[one] + x[other]) / 2 for one, other in pairwise(shown)]
    ends = [x[0] - 0.5, *middles, x[-1] + 0.5] if len(x) else []
    texts = []
    for place in shown:
        head, told = f"tick {x[place]}:", [number(own[place]) for own in series.values()]
        if len(told) > 1:
            told = [f"{name} {each}" for name, each in zip(series, told, strict=True)]
        texts.append("\n".join([head, *told]) if len(told) > 1 else f"{head} {''.join(told)}")
    return ends, texts


def columns(
    points: Mapping[str, Sequence[Interval | None]], labels: Sequence[str]
) -> tuple[list[float], list[str]]:
    """The ends and the texts of the places of a chart of intervals: one for each column."""
    said = {
        name: [f"{name}: {_with_ends(point)}" if point else f"{name}: –" for point in given]
        for name, given in points.items()
    }
    if len(labels) <= 1:
        texts = [own[0] if own else name for name, own in said.items()]
    else:
        columns = zip(*said.values(), strict=True)
        texts = ["\n".join([head, *own]) for head, own in zip(labels, columns, strict=False)]
    return [place - 0.5 for place in range(len(texts) + 1)], texts


def _with_ends(point: Interval) -> str:
    mean = number(point.mean)
    if math.isfinite(point.low):
        return f"{mean} [{number(point.low)}, {number(point.high)}]"
    why = no_interval(point.n)
    return f"{mean} ({why})" if why else mean
