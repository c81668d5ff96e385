"""Charts as SVG: the same text for the same numbers, with the values under the pointer.

A chart needs no library, no font and no script: a browser shows the title of the place on which the
pointer rests. Each function gives an element for a page that has :data:`STYLE`; :func:`alone` makes
it a file. Its colours are those of light paper, and the style sheet has others for the dark. Labels
are data.
"""

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple
from unicodedata import east_asian_width

from ...memory.context import one_line
from ...memory.words import number
from ..statistics import Band, Interval, in_words

Values = Sequence[float | None]
Span = tuple[float, float]
Point = tuple[float, float]

# The colours of Okabe and Ito, which the colour-blind can tell apart; without yellow, which is too
# faint on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#333333")
_DASHES = ("", "6 3", "8 3 2 3", "2 2")
_GROUP_COLOURS = {
    "pinned": "#d55e00", "critical": "#e69f00", "important": "#0072b2", "normal": "#8fc5e8",
    "low": "#c8c8c8", "hot": "#d55e00", "warm": "#f0c060", "cold": "#8fc5e8",
}  # fmt: skip
INK, _SOFT, AXIS, _GRID, _PAPER = "#1d1f21", "#5f6468", "#999999", "#e6e6e6", "#ffffff"
_IN_THE_DARK = {
    "#0072b2": "#4da6e0", "#d55e00": "#f07f2e", "#009e73": "#2cc295", "#cc79a7": "#dd97bf",
    "#333333": "#d0d3d6", "#8fc5e8": "#76aed3", "#c8c8c8": "#8b9197",
    "#e8eef3": "#2b3a45", "#b3d1e6": "#34607f", "#6caad2": "#4488b5", "#2279b5": "#69b4e4",
    "#084a80": "#c4e5fa",
    INK: "#e6e7e8", _SOFT: "#a2a8ad", AXIS: "#6d7378", _GRID: "#34383c", _PAPER: "#1e2124",
}  # fmt: skip

STYLE = ".places > :hover { fill: #00578a; fill-opacity: .14; }\n" + (
    "@media screen and (prefers-color-scheme: dark) {\n"
    + "".join(
        f'  [fill="{light}"] {{ fill: {dark}; }} [stroke="{light}"] {{ stroke: {dark}; }}\n'
        for light, dark in _IN_THE_DARK.items()
    )
    + "  .places > :hover { fill: #7cc0ee; }\n}\n"
)
"""The style sheet of charts; a chart without it is drawn on light paper."""

_WIDTH, _HEIGHT, _PANEL_HEIGHT = 480.0, 270.0, 225.0
_LETTERS = 10
"""The height of letters."""
_ROW = 15.0
"""The height of a row of a legend."""
_BAR_ROW = 19.0
_MOST_BARS, _MOST_PLACES, _MOST_POINTS = 20, 120, 1_000
_PARTS = 12
"""Of a range that has a histogram."""


def curves(series: Mapping[str, Values], x: Sequence[int]) -> str:
    """One line for each series over the ticks ``x``; a gap where a value is None or not finite."""
    keys = [Key(name, _line_key(index)) for index, name in enumerate(series)]
    panel = Panel(_span_of_ticks(x), _span_of_values(*series.values()), keys, x_label="tick")
    for index, values in enumerate(series.values()):
        panel.draw_line(x, values, _colour_of(index), _DASHES[index % len(_DASHES)])
    panel.draw_places(*_told_by_tick(list(series.items()), x))
    return panel.svg()


def bands(series: Mapping[str, Band], marked: tuple[int, str] | None = None) -> str:
    """The mean of each variant's runs over their ticks, in its band; and a tick marked in words."""
    ticks = sorted({tick for each in series.values() for tick in each.ticks})
    keys = [Key(name, _line_key(index)) for index, name in enumerate(series)]
    ends = [each for own in series.values() for each in (own.low, own.high)]
    panel = Panel(_span_of_ticks(ticks), _span_of_values(*ends), keys, x_label="tick")
    for index, own in enumerate(series.values()):
        panel.draw_band(own, _colour_of(index))
    for index, own in enumerate(series.values()):
        panel.draw_line(own.ticks, own.mean, _colour_of(index), _DASHES[index % len(_DASHES)])
    if marked is not None:
        panel.draw_upright(*marked)
    by_tick = {name: dict(zip(own.ticks, own.mean, strict=True)) for name, own in series.items()}
    told = [(name, [means.get(tick) for tick in ticks]) for name, means in by_tick.items()]
    panel.draw_places(*_told_by_tick(told, ticks))
    return panel.svg()


def stacked(series: Mapping[str, Values], x: Sequence[int]) -> str:
    """The memories of each tier or temperature over the ticks ``x``, the first at the bottom."""
    colours = {name: _GROUP_COLOURS.get(name, _SOFT) for name in series}
    bottoms, tops = [0.0] * len(x), dict[str, list[float]]()
    for name, values in series.items():
        rises = (max(0.0, _known(value) or 0.0) for value in values)
        bottoms = tops[name] = [bottom + rise for bottom, rise in zip(bottoms, rises, strict=True)]
    keys = [Key(name, box_key(colour)) for name, colour in colours.items()]
    span = (0.0, 1.05 * max(bottoms, default=0.0) or 1.0)
    panel = Panel(_span_of_ticks(x), span, keys, x_label="tick", y_label="memories")
    # The highest first: each lies over the ones above it, so that no seam shows between two.
    for name in reversed(tops):
        panel.draw_area(x, tops[name], colours[name])
    # The first is at the bottom, and the last line of a title is.
    panel.draw_places(*_told_by_tick(list(series.items())[::-1], x))
    return panel.svg()


def bars(values: Mapping[str, float | None], x_label: str = "") -> str:
    """One bar for each name, largest first. The chart shows 20 bars at most, and says so."""
    known = {name: size for name, value in values.items() if (size := _known(value)) is not None}
    names = sorted(known, key=lambda name: (-known[name], name))[:_MOST_BARS]
    if len(names) < len(known):
        note = f"the {len(names)} largest of {number(len(known))}"
        x_label = f"{x_label} ({note})" if x_label else note
    figures = {name: number(known[name]) for name in names}
    left = 12 + min(190.0, max((_width(name) for name in names), default=0.0))
    room = 10 + max((_width(text) for text in figures.values()), default=0.0)
    sizes = [0.0, *(known[name] for name in names)]
    span = (min(sizes), max(sizes) if any(sizes) else 1.0)
    across = _Scale(span, (left + (room if span[0] < 0 else 0), _WIDTH - room))
    height = _BAR_ROW * max(len(names), 2) + (22 if x_label else 8)
    parts = []
    for row, name in enumerate(names):
        top, end, zero = _BAR_ROW * row + 4, across(known[name]), across(0)
        at, anchor = (end + 4, "start") if end >= zero else (end - 4, "end")
        title = f"<title>{_escaped(name)}: {figures[name]}</title>"
        parts += [
            text_at(left - 6, top + 10, name, "end", room=left - 10, colour=INK),
            _rect(min(end, zero), top, abs(end - zero), 13, f'fill="{COLOURS[0]}"', title),
            text_at(at, top + 10, figures[name], anchor),
        ]
    parts.append(path([(across(0), 0), (across(0), _BAR_ROW * max(len(names), 2))], AXIS, 0.8))
    parts.append(text_at(left, height - 6, x_label, room=_WIDTH - left))
    return drawing(_WIDTH, height, parts)


def intervals(
    points: Mapping[str, Sequence[Interval | None]],
    labels: Sequence[str],
    title: str = "",
    *,
    x_label: str = "",
    y_label: str = "",
    connected: bool = True,
    dots: Mapping[str, Sequence[Sequence[float]]] | None = None,
) -> str:
    """Means with their intervals: a colour for each variant, over the grid's values in ``labels``.

    Beside each interval stand its ``dots``, one for each seed.

    Each variant has one interval for each label. A line connects a variant's means, if the labels
    are steps of one scale (``connected``). With one label, the variants stand side by side.
    """
    alone = len(labels) <= 1
    names = list(points) if alone else list(labels)
    ends = [end for given in points.values() for point in given if point for end in _ends(point)]
    dots = dots or {}
    ends += [value for given in dots.values() for column in given for value in column]
    keys = [Key(name, _mark_key(index)) for index, name in enumerate(points)]
    panel = Panel(
        (-0.5, max(len(names), 1) - 0.5), _span_of_values(ends), [] if alone else keys,
        x_label=x_label, y_label=y_label, title=title, columns=names,
    )  # fmt: skip
    for index, (name, row) in enumerate(points.items()):
        shift = index if alone else 0.4 * ((index + 0.5) / len(points) - 0.5)
        at = [column + shift for column in range(len(row))]
        if connected and not alone:
            means = [point.mean if point else None for point in row]
            dash = _DASHES[index // len(COLOURS) % len(_DASHES)]
            panel.draw_line(at, means, _colour_of(index), dash, width=1.0)
        for x, column in zip(at, dots.get(name, ()), strict=False):
            panel.draw_dots(x, column, _colour_of(index))
        for x, point in zip(at, row, strict=True):
            if point is not None and _known(point.mean) is not None:
                panel.draw_interval(x, point, index)
    panel.draw_places(*_told_by_column(points, labels))
    return panel.svg()


def histogram(
    values: Sequence[float], low: float, high: float, *, whole: bool, marked: Interval, words: str
) -> str:
    """How many values lie in each part of a range, and an interval over them.

    ``words`` name the values. A dashed line shows what even values would give. A range of few whole
    numbers has a bar for each.
    """
    few = whole and high - low < _MOST_BARS
    parts = int(high - low) + 1 if few else _PARTS
    start, width = (low - 0.5, 1.0) if few else (low, (high - low) / parts)
    counts = [0] * parts
    for value in values:
        counts[min(max(int((value - start) / width), 0), parts - 1)] += 1
    middles = [start + (part + 0.5) * width for part in range(parts)]
    names = [number(value, 3) for value in middles]
    most = 1.2 * max(counts, default=0) or 1.0
    keys = [Key(words, box_key(COLOURS[0])), Key("if even", _line_key(1))]
    panel = Panel((-0.5, parts - 0.5), (0.0, most), keys, columns=names)
    for part, count in enumerate(counts):
        (left, base), (right, top) = panel.place(part - 0.42, 0), panel.place(part + 0.42, count)
        panel.parts.append(
            _rect(left, top, right - left, base - top, f'fill="{COLOURS[0]}" fill-opacity=".7"')
        )
    even = len(values) / parts
    panel.draw_line([-0.5, parts - 0.5], [even, even], _colour_of(1), _DASHES[1], width=1.2)
    ends = [(end - middles[0]) / width for end in (marked.low, marked.mean, marked.high)]
    level = 0.93 * most
    panel.parts.append(path([panel.place(end, level) for end in (ends[0], ends[2])], INK, 1.6))
    panel.parts.append(_mark(0, *panel.place(ends[1], level), INK))
    texts = [f"{name}: {count}" for name, count in zip(names, counts, strict=True)]
    panel.draw_places([part - 0.5 for part in range(parts + 1)], texts)
    return panel.svg()


def side_by_side(
    left: Mapping[str, Values],
    right: Mapping[str, Values],
    *,
    left_x: Sequence[int],
    right_x: Sequence[int],
    names: tuple[str, str] = ("left", "right"),
    diverged: int | None = None,
) -> str:
    """The metrics of two runs over ticks, a panel for each metric.

    A line marks ``diverged``, the first tick in which the runs differ.
    """
    marked = None if diverged is None else (diverged, f"differ from {diverged}")
    return panels([Lines(names[0], left_x, left), Lines(names[1], right_x, right)], marked)


class Lines(NamedTuple):
    """The metrics of a run over its ticks."""

    name: str
    ticks: Sequence[int]
    metrics: Mapping[str, Values]


def panels(runs: Sequence[Lines], marked: tuple[int, str] | None = None) -> str:
    """The metrics of runs over ticks, a panel for each metric; and a tick marked in words."""
    ticks = sorted({tick for run in runs for tick in run.ticks})
    metrics = list(dict.fromkeys(name for run in runs for name in run.metrics))
    columns = min(2, max(1, len(metrics)))
    keys = [Key(run.name, _line_key(index)) for index, run in enumerate(runs)]
    parts, top = legend(keys, _WIDTH * columns, 8) if len(keys) > 1 else (list[str](), 0.0)
    for place, metric in enumerate(metrics):
        values = [run.metrics.get(metric, ()) for run in runs]
        shown = [run.ticks[: len(given)] for run, given in zip(runs, values, strict=True)]
        panel = Panel(
            _span_of_ticks(ticks), _span_of_values(*values), [],
            x_label="tick", title=metric, height=_PANEL_HEIGHT,
        )  # fmt: skip
        for index, (x, given) in enumerate(zip(shown, values, strict=True)):
            panel.draw_line(x, given, _colour_of(index), _DASHES[index % len(_DASHES)])
        if marked is not None:
            panel.draw_upright(*marked)
        by_tick = [dict(zip(x, given, strict=True)) for x, given in zip(shown, values, strict=True)]
        by_run = [[values_at.get(tick) for tick in ticks] for values_at in by_tick]
        names = [run.name for run in runs]
        panel.draw_places(*_told_by_tick(list(zip(names, by_run, strict=True)), ticks))
        at = f"{_WIDTH * (place % columns):g} {top + _PANEL_HEIGHT * (place // columns):g}"
        parts.append(f'<g transform="translate({at})">{"".join(panel.parts)}</g>')
    rows = max(1, math.ceil(len(metrics) / columns))
    return drawing(_WIDTH * columns, top + _PANEL_HEIGHT * rows, parts)


def alone(chart: str) -> str:
    """A chart as a file of its own, with its style sheet and with paper behind it."""
    inside = chart.removeprefix("<svg ")
    head, rest = inside.split(">", 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {head}><style>\n{html.escape(STYLE, quote=False)}'
        f'</style><rect width="100%" height="100%" fill="{_PAPER}"/>{rest}\n'
    )


class Key(NamedTuple):
    """An entry of a legend."""

    name: str
    sample: str
    """What stands beside the name: a drawing 16 wide, with its middle at a height of 0."""


class _Scale:
    """Values of an axis become places on the drawing."""

    def __init__(self, values: Span, places: Span) -> None:
        self._low, self._start = values[0], places[0]
        self._rate = (places[1] - places[0]) / (values[1] - values[0])

    def __call__(self, value: float) -> float:
        return self._start + (value - self._low) * self._rate


class Panel:
    """The part of a chart between two axes, with its title, legend and labels."""

    def __init__(
        self,
        x: Span,
        y: Span,
        keys: Sequence[Key],
        *,
        x_label: str = "",
        y_label: str = "",
        title: str = "",
        columns: Sequence[str] | None = None,
        width: float = _WIDTH,
        height: float = _HEIGHT,
    ) -> None:
        self.parts: list[str] = []
        top = 8.0
        if title:
            self.parts.append(text_at(8, 17, title, room=width - 16, size=12, colour=INK))
            top = 28.0
        if len(keys) > 1:
            names_above, below = legend(keys, width, top)
            self.parts += names_above
            height += max(0.0, below - top - 2 * _ROW)  # many names make the chart higher
            top = below
        names = [_cut(name, 120) for name in columns or ()]
        steps, step = _round_steps(*y, 5)
        figures = [_figure(value, step) for value in steps]
        left = 14 + max((_width(text) for text in figures), default=0.0) + (16 if y_label else 0)
        right = width - 14
        slanted = sum(_width(name) + 8 for name in names) > right - left
        deep = 0.57 * max(map(_width, names), default=0.0) if slanted else 0.0  # the sine of 35°
        if slanted:
            reach = 8 + 0.82 * _width(names[0])  # the cosine of 35°
            left = max(left, reach - (right - left) / (2 * len(names)))
        self._width, self._height = width, height + deep
        self._left, self._right = left, right
        self._top, self._base = top, height - (34 if x_label else 22)
        self._x, self._y = _Scale(x, (left, right)), _Scale(y, (self._base, top))
        for value, text in zip(steps, figures, strict=True):
            at = self._y(value)
            self.parts.append(path([(left, at), (right, at)], AXIS if value == 0 else _GRID, 0.8))
            self.parts.append(text_at(left - 6, at + 3.5, text, "end"))
        self.parts.append(path([(left, self._base), (right, self._base)], AXIS, 0.8))
        if columns is None:
            self._name_ticks(x)
        else:
            self._name_columns(names, slanted=slanted)
        middle = (left + right) / 2
        self.parts.append(text_at(middle, self._height - 6, x_label, "middle", room=right - left))
        if y_label:
            across = (top + self._base) / 2
            turned = f' transform="rotate(-90 12 {across:.1f})"'
            room = self._base - top
            self.parts.append(text_at(12, across, y_label, "middle", room=room, more=turned))

    def _name_ticks(self, x: Span) -> None:
        room = 24 + max(_width(_figure(end, 1)) for end in x)
        steps, step = _round_steps(*x, min(6, (self._right - self._left) / room), whole=True)
        for value in steps:
            at, name = self._x(value), _figure(value, step)
            half = _width(name) / 2
            anchor = "start" if at < half else "end" if at + half > self._width else "middle"
            self.parts.append(path([(at, self._base), (at, self._base + 4)], AXIS, 0.8))
            self.parts.append(text_at(at, self._base + 15, name, anchor))

    def _name_columns(self, names: Sequence[str], *, slanted: bool) -> None:
        every = math.ceil(18 * len(names) / (self._right - self._left)) if slanted else 1
        for column in range(0, len(names), every):
            at, below = self._x(column), self._base + (12 if slanted else 15)
            turned = f' transform="rotate(-35 {at:.1f} {below:.1f})"' if slanted else ""
            anchor = "end" if slanted else "middle"
            self.parts.append(text_at(at, below, names[column], anchor, more=turned))

    def place(self, x: float, value: float) -> Point:
        """Where a value is drawn."""
        return self._x(x), self._y(value)

    def draw_line(
        self, x: Sequence[float], values: Values, colour: str, dash: str, width: float = 1.8
    ) -> None:
        """A line through the values, with gaps; a value between two gaps is a dot."""
        for stretch in _stretches(_thinned(x, values)):
            places = [self.place(*point) for point in stretch]
            if len(places) > 1:
                self.parts.append(path(places, colour, width, dash))
            else:
                self.parts.append(_mark(0, *places[0], colour))

    def draw_area(self, x: Sequence[int], tops: Sequence[float], colour: str) -> None:
        """The area below a line; over a single tick it is a bar."""
        wide = [(x[0] - 0.2, tops[0]), (x[0] + 0.2, tops[0])] if len(x) == 1 else None
        points = wide or [point for part in _stretches(_thinned(x, tops)) for point in part]
        if points:
            places = [self.place(*point) for point in points]
            ends = [(places[-1][0], self._base), (places[0][0], self._base)]
            self.parts.append(f'<path d="{_way([*places, *ends])}z" fill="{colour}"/>')

    def draw_interval(self, x: float, point: Interval, index: int) -> None:
        """A mean and its interval, if it has one."""
        at, colour = self._x(x), _colour_of(index)
        self.parts.append(path([(at, self._y(end)) for end in _ends(point)], colour, 1.8))
        self.parts.append(_mark(index, at, self._y(point.mean), colour))

    def draw_dots(self, x: float, values: Sequence[float], colour: str) -> None:
        """A dot for each value, beside its interval; equal ones lie on each other."""
        at = _short(self._x(x) + 7)
        for value in dict.fromkeys(values):
            if _known(value) is not None:
                look = f'r="1.8" fill="{colour}" fill-opacity=".5"'
                self.parts.append(f'<circle cx="{at}" cy="{_short(self._y(value))}" {look}/>')

    def draw_band(self, band: Band, colour: str) -> None:
        """The area of a band, which lets what is behind it be seen."""
        tops = [self.place(*each) for each in zip(band.ticks, band.high, strict=True)]
        bottoms = [self.place(*each) for each in zip(band.ticks, band.low, strict=True)]
        if len(tops) > 1:
            way = _way([*tops, *bottoms[::-1]])
            self.parts.append(f'<path d="{way}z" fill="{colour}" fill-opacity=".18"/>')

    def draw_upright(self, x: float, words: str) -> None:
        """A dotted line at a tick, with words beside it."""
        at = self._x(x)
        self.parts.append(path([(at, self._top), (at, self._base)], _SOFT, 0.9, "2 2"))
        fits = at + 3 + _width(words) < self._width
        beside, anchor = (at + 3, "start") if fits else (at - 3, "end")
        self.parts.append(text_at(beside, self._top + 9, words, anchor))

    def draw_places(self, ends: Sequence[float], texts: Sequence[str]) -> None:
        """Places between ``ends`` on the axis, each with the text that the pointer shows."""
        edges = [min(max(self._x(end), self._left), self._right) for end in ends]
        places = [
            f'<path d="M{_short(start)} {_short(self._top)}H{_short(end)}V{_short(self._base)}'
            f'H{_short(start)}z"><title>{text}</title></path>'
            for (start, end), text in zip(pairwise(edges), map(_lines, texts), strict=True)
        ]
        inside = "".join(places)
        self.parts.append(f'<g class="places" fill="none" pointer-events="all">{inside}</g>')

    def svg(self) -> str:
        """The panel as a chart."""
        return drawing(self._width, self._height, self.parts)


def legend(keys: Sequence[Key], width: float, top: float) -> tuple[list[str], float]:
    """The names above the plot, in rows as wide as the chart, and where the rows end.

    A name that is wider than a row is cut.
    """
    parts, at, middle = list[str](), 8.0, top + 6
    for key in keys:
        name = _cut(key.name, width - 40)
        if at > 8 and at + 22 + _width(name) > width - 8:
            at, middle = 8.0, middle + _ROW
        parts.append(f'<g transform="translate({at:.1f} {middle:.1f})">{key.sample}</g>')
        parts.append(text_at(at + 22, middle + 3.5, key.name, room=width - 40))
        at += 38 + _width(name)
    return parts, middle + 18


def _colour_of(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def _line_key(index: int) -> str:
    return path([(0, 0), (16, 0)], _colour_of(index), 1.8, _DASHES[index % len(_DASHES)])


def _mark_key(index: int) -> str:
    return _mark(index, 8, 0, _colour_of(index))


def box_key(colour: str) -> str:
    return _rect(2, -4, 12, 8, f'fill="{colour}"')


# Numbers


def _known(value: float | None) -> float | None:
    """The value as a float; None for one that is not finite, or so large that sums overflow."""
    if value is None or not abs(value) < 1e200:
        return None
    return float(value) if abs(value) > 1e-200 else 0.0


def _span_of_ticks(x: Sequence[int]) -> Span:
    """The ends of an axis of ticks, with room around a single one."""
    if len(x) > 1:
        return x[0], x[-1]
    single = x[0] if x else 0
    return single - 0.9, single + 0.9


def _span_of_values(*series: Values) -> Span:
    """The ends of the y axis; it shows zero unless the values are far from it."""
    known = [value for values in series for value in map(_known, values) if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if low == high == 0:
        return -0.05, 1.0
    if 0 <= low < 0.5 * high:
        low = 0.0
    elif 0 >= high > 0.5 * low:
        high = 0.0
    apart = high - low if high - low > 1e-12 * max(abs(low), abs(high)) else 0.0
    room = 0.06 * apart or 0.1 * abs(high)
    return low - (room if low else 0), high + (room if high else 0)


def _round_steps(
    low: float, high: float, most: float, *, whole: bool = False
) -> tuple[list[float], float]:
    """Round numbers from ``low`` to ``high``, about ``most``, and the step between two."""
    rough = (high - low) / most
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(times * size for times in (1, 2, 2.5, 5, 10) if times * size >= 0.999 * rough)
    if whole:
        step = max(1.0, 5.0 if step == 2.5 else step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [place * step for place in range(first, last + 1)], step


def _figure(value: float, step: float) -> str:
    """A number at an axis, with as many decimals as tell it from the next one."""
    if value == 0:
        return "0"
    if abs(value) >= 1e15 or step < 1e-6:
        return number(value)
    exponent = math.floor(math.log10(step) + 1e-9)
    quarter = 2 < step / 10.0**exponent < 3  # a step such as 0.25
    places = max(0, quarter - exponent)
    return f"{value:,.{places}f}".replace("-", "−")


def _ends(point: Interval) -> Span:
    """The ends of an interval; a mean without one is a point."""
    ends = _known(point.low), _known(point.high)
    return (point.mean if ends[0] is None else ends[0], point.mean if ends[1] is None else ends[1])


def _thinned(x: Sequence[float], values: Values) -> list[tuple[float, float | None]]:
    """The points of a line, or of a long one the lowest and highest of each stretch."""
    line = list(zip(x, map(_known, values), strict=True))
    size = math.ceil(2 * len(line) / _MOST_POINTS)
    if size <= 2:
        return line
    thin = list[tuple[float, float | None]]()
    for start in range(0, len(line), size):
        part = line[start : start + size]
        known = [(value, at) for at, value in part if value is not None]
        ends = {(at, value) for value, at in (min(known), max(known))} if known else {part[0]}
        thin += sorted(ends, key=lambda point: point[0])
    return thin


def _stretches(line: Iterable[tuple[float, float | None]]) -> Iterator[list[Point]]:
    """The parts of a line between its gaps."""
    for is_known, part in groupby(line, lambda point: point[1] is not None):
        if is_known:
            yield [(at, value) for at, value in part if value is not None]


# Texts under the pointer


def _told_by_tick(
    series: Sequence[tuple[str, Values]], x: Sequence[int]
) -> tuple[list[float], list[str]]:
    """The ends and the texts of the places of a chart over ticks; each names one tick's values.

    A chart with many ticks has a place for every few of them.
    """
    shown = range(0, len(x), -(-len(x) // _MOST_PLACES) or 1)
    middles = [(x[place] + x[after]) / 2 for place, after in pairwise(shown)]
    ends = [x[0] - 0.5, *middles, x[-1] + 0.5] if len(x) else []
    texts = []
    for place in shown:
        pairs = [(name, number(values[place])) for name, values in series]
        if len(pairs) > 1:
            lines = [f"{name} {value}" for name, value in pairs]
            texts.append("\n".join([f"tick {x[place]}:", *lines]))
        else:
            texts.append(f"tick {x[place]}: {''.join(value for _, value in pairs)}")
    return ends, texts


def _told_by_column(
    points: Mapping[str, Sequence[Interval | None]], labels: Sequence[str]
) -> tuple[list[float], list[str]]:
    """The ends and the texts of the places of a chart of intervals: one for each column."""
    said = {
        name: [f"{name}: {_with_ends(point)}" if point else f"{name}: –" for point in given]
        for name, given in points.items()
    }
    if len(labels) <= 1:
        texts = [given[0] if given else name for name, given in said.items()]
    else:
        columns = zip(*said.values(), strict=True)
        texts = ["\n".join([head, *given]) for head, given in zip(labels, columns, strict=False)]
    return [place - 0.5 for place in range(len(texts) + 1)] if texts else [], texts


def _with_ends(point: Interval) -> str:
    ends = in_words(point)
    return f"{number(point.mean)} ({ends})" if ends else number(point.mean)


# SVG


def drawing(width: float, height: float, parts: Iterable[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'font-family="system-ui, sans-serif" font-size="{_LETTERS}" fill="{_SOFT}">'
        f"{''.join(parts)}</svg>"
    )


def _width(text: str, size: float = _LETTERS) -> float:
    """How wide a text is, about, in a font of the browser's: rather too wide than too narrow."""
    widths = 0.0
    for letter in one_line(text):
        if letter in "fijlrtI.,:;'|!()[]{} ":
            widths += 0.38
        elif letter in "mwMW@%…–" or east_asian_width(letter) in "WF":
            widths += 1.0
        else:
            widths += 0.72 if letter.isupper() else 0.62
    return widths * size


def _cut(text: str, room: float, size: float = _LETTERS) -> str:
    """The text, or as much of it as there is room for, and an ellipsis."""
    if _width(text, size) <= room:
        return text
    cut = text[: int(room / (0.3 * size))]
    while cut and _width(cut + "…", size) > room:
        cut = cut[:-1]
    return cut.rstrip() + "…"


def text_at(
    x: float,
    y: float,
    text: str,
    anchor: str = "start",
    *,
    room: float = _WIDTH,
    size: float = _LETTERS,
    colour: str = "",
    more: str = "",
) -> str:
    """A text; one that is cut has the whole of it under the pointer."""
    if not text:
        return ""
    shown = _cut(text, room, size)
    title = f"<title>{_escaped(text)}</title>" if shown != text else ""
    more += "" if anchor == "start" else f' text-anchor="{anchor}"'
    more += "" if size == _LETTERS else f' font-size="{size:g}"'
    more += f' fill="{colour}"' if colour else ""
    return f'<text x="{_short(x)}" y="{_short(y)}"{more}>{_escaped(shown)}{title}</text>'


def _rect(x: float, y: float, width: float, height: float, more: str, inside: str = "") -> str:
    box = f'x="{_short(x)}" y="{_short(y)}" width="{_short(width)}" height="{_short(height)}"'
    return f"<rect {box} {more}>{inside}</rect>" if inside else f"<rect {box} {more}/>"


def path(places: Sequence[Point], colour: str, width: float, dash: str = "") -> str:
    more = f' stroke-dasharray="{dash}"' if dash else ""
    line = f'stroke="{colour}" stroke-width="{width:g}" stroke-linejoin="round"{more}'
    return f'<path d="{_way(places)}" fill="none" {line}/>'


_MARKS = (
    "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",  # a circle
    "m-2.6-2.6h5.2v5.2h-5.2z",
    "m0-3.6l3.6 3.6l-3.6 3.6l-3.6-3.6z",
    "m0-3.4l3.4 6h-6.8z",
    "m0 3.4l3.4-6h-6.8z",
    "m-1-3.2h2v2.2h2.2v2h-2.2v2.2h-2v-2.2h-2.2v-2h2.2z",  # a plus
    "m0-1.4l1.9-1.9l1.4 1.4l-1.9 1.9l1.9 1.9l-1.4 1.4l-1.9-1.9l-1.9 1.9l-1.4-1.4l1.9-1.9l-1.9-1.9"
    "l1.4-1.4z",  # a cross
)


def _mark(index: int, x: float, y: float, colour: str) -> str:
    shape = _MARKS[index % len(_MARKS)]
    return f'<path d="M{_short(x)} {_short(y)}{shape}" fill="{colour}"/>'


def disc(x: float, y: float, radius: float, colour: str, title: str) -> str:
    """A filled circle with an edge of paper, which says its title under the pointer."""
    at = f'cx="{_short(x)}" cy="{_short(y)}" r="{radius:g}"'
    inside = f"<title>{_lines(title)}</title>"
    return f'<circle {at} fill="{colour}" stroke="{_PAPER}" stroke-width="1">{inside}</circle>'


def _way(places: Iterable[Point]) -> str:
    return "M" + "L".join(f"{_short(x)} {_short(y)}" for x, y in places)


def _short(place: float) -> str:
    """A place on the drawing, to a tenth."""
    return f"{place:.1f}".removesuffix(".0")


def _lines(text: str) -> str:
    """Lines of text as lines of a title."""
    return "\n".join(map(_escaped, text.split("\n")))


def _escaped(text: str) -> str:
    return html.escape(one_line(text))
