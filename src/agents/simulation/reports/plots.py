"""Charts as PNG bytes, the same bytes for the same numbers.

The first chart imports Matplotlib. A chart neither uses nor changes the user's own Matplotlib
settings. Labels are data: no label is drawn as mathematics, and □ stands for a character that the
font does not have.
"""

import io
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..statistics import Interval
from .hover import Chart, columns, stretches
from .numbers import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["bars", "curves", "intervals", "number", "side_by_side", "stacked"]

Values = Sequence[float | None]

# The colours of Okabe and Ito, which the colour-blind can tell apart; without yellow, which is too
# faint on white.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#333333")
_DASHES = ("-", "--", "-.", ":")
_MARKERS = "osD^vPX"
_INK, _FAINT, _GRID = "#222222", "#666666", "#e4e4e4"
_GROUP_COLOURS = {
    "pinned": "#d55e00",
    "critical": "#e69f00",
    "important": "#0072b2",
    "normal": "#8fc5e8",
    "low": "#c8c8c8",
    "hot": "#d55e00",
    "warm": "#f0c060",
    "cold": "#8fc5e8",
}
_WIDTH, _HEIGHT = 4.8, 2.7
_LEGEND, _HANDLE, _ROW = 60, 5, 0.17
"""The width of a legend and of the line beside a name, in characters; a row's height, in inches."""
_STEPS = [1, 2, 2.5, 5, 10]
_MOST_BARS = 20
_MOST_POINTS = 1_000

_SETTINGS: Any = {  # Matplotlib has a type for each name
    "font.family": ["DejaVu Sans"],  # Matplotlib brings it along, so it is the same everywhere
    "font.size": 9,
    "text.parse_math": False,
    "text.color": _INK,
    "axes.edgecolor": "#999999",
    "axes.labelcolor": _FAINT,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.xmargin": 0.02,
    "xtick.color": "#999999",
    "ytick.color": "#999999",
    "xtick.labelcolor": _FAINT,
    "ytick.labelcolor": _FAINT,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.handlelength": 1.6,
    "legend.borderaxespad": 0,
    "legend.columnspacing": 1.4,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
}


def curves(series: Mapping[str, Values], x: Sequence[int]) -> Chart:
    """One line for each series over the ticks ``x``; a gap where a value is None or not finite."""
    with _figure() as (figure, png):
        axes = _axes(figure, "tick")
        for index, (name, values) in enumerate(series.items()):
            _line(axes, x, values, index, name)
        _span(axes, x)
        _fit(axes, *series.values())
        _legend(axes, len(series))
    return Chart.of(png[0], axes, *stretches(series, x))


def stacked(series: Mapping[str, Values], x: Sequence[int]) -> Chart:
    """The memories of each tier or temperature over the ticks ``x``, the first at the bottom."""
    with _figure() as (figure, png):
        axes = _axes(figure, "tick", "memories")
        bottom = [0.0] * len(x)
        for name, values in series.items():
            top = [
                low + (0.0 if math.isnan(value) else value)
                for low, value in zip(bottom, _floats(values), strict=True)
            ]
            colour, label = _GROUP_COLOURS.get(name, _INK), _drawable(name)
            if len(x) == 1:
                height = top[0] - bottom[0]
                axes.bar([x[0]], [height], 0.4, bottom=bottom, color=colour, label=label)
            else:
                axes.fill_between(x, bottom, top, color=colour, linewidth=0, label=label)
            bottom = top
        _span(axes, x)
        axes.set_ylim(0, 1.05 * max(bottom, default=0) or 1)
        _legend(axes, len(series))
    # The first is at the bottom, and the last line of a title is.
    upwards = dict(reversed(list(series.items())))
    return Chart.of(png[0], axes, *stretches(upwards, x))


def bars(values: Mapping[str, float | None], x_label: str = "") -> bytes:
    """One bar for each name, largest first. The chart shows 20 bars at most, and says so."""
    pairs = zip(values, _floats(list(values.values())), strict=True)
    known = {name: value for name, value in pairs if not math.isnan(value)}
    names = sorted(known, key=lambda name: (-known[name], name))[:_MOST_BARS]
    shown = [known[name] for name in names]
    if len(names) < len(known):
        note = f"the {len(names)} largest of {number(len(known))}"
        x_label = f"{x_label} ({note})" if x_label else note
    with _figure(height=0.5 + 0.21 * max(len(names), 2)) as (figure, png):
        axes = _axes(figure, x_label)
        axes.barh(range(len(names)), shown, 0.68, color=_COLOURS[0])
        axes.set_yticks(range(len(names)), [_drawable(name) for name in names], color=_INK)
        axes.set_ylim(max(len(names), 2) - 0.4, -0.6)
        # Every bar has its number, so the axis needs none.
        axes.grid(visible=False)
        axes.set_xticks([])
        axes.tick_params(axis="y", length=0)
        axes.spines[["left", "bottom"]].set_visible(False)
        for row, value in enumerate(shown):
            axes.annotate(
                number(value), (value, row), (3 if value >= 0 else -3, 0),
                textcoords="offset points", va="center", ha="left" if value >= 0 else "right",
                fontsize=8, color=_FAINT,
            )  # fmt: skip
        low, high = min([0.0, *shown]), max([0.0, *shown])
        room = 0.13 * (high - low) or 1
        axes.set_xlim(low - room if low < 0 else 0, high + room)
        axes.axvline(0, color="#999999", linewidth=0.8)
    return png[0]


def intervals(
    points: Mapping[str, Sequence[Interval | None]],
    labels: Sequence[str],
    title: str = "",
    *,
    x_label: str = "",
    y_label: str = "",
    connected: bool = True,
) -> Chart:
    """Means with their intervals: a colour for each variant, over the grid's values in ``labels``.

    Each variant has one interval for each label. A line connects a variant's means, if the labels
    are steps of one scale (``connected``). With one label, the variants stand side by side.
    """
    with _figure() as (figure, png):
        if title:  # of the figure, not of the axes: the legend goes between the two
            figure.suptitle(_drawable(title, 60), x=0.02, ha="left", fontsize=10)
        axes = _axes(figure, x_label, y_label)
        alone = len(labels) <= 1
        ticks = [_drawable(name, 16) for name in (points if alone else labels)]
        for index, (name, given) in enumerate(points.items()):
            shift = 0.0 if alone else 0.4 * ((index + 0.5) / len(points) - 0.5)
            known = [(place, point) for place, point in enumerate(given) if point is not None]
            at = [(index if alone else place) + shift for place, _ in known]
            means = [point.mean for _, point in known]
            below = [_bar(point.mean - point.low) for _, point in known]
            above = [_bar(point.high - point.mean) for _, point in known]
            axes.errorbar(
                at, means, yerr=[below, above], label=_drawable(name),
                color=_COLOURS[index % len(_COLOURS)], marker=_MARKERS[index % len(_MARKERS)],
                markersize=4.5, linewidth=0.9, elinewidth=1.8, capsize=0,
                linestyle=_DASHES[index // len(_COLOURS) % len(_DASHES)] if connected else "",
            )  # fmt: skip
        crowded = sum(map(len, ticks)) > 60
        axes.set_xticks(range(len(ticks)), ticks)
        if crowded:
            for label in axes.get_xticklabels():
                label.set(rotation=35, ha="right", rotation_mode="anchor")
        axes.set_xlim(-0.5, max(len(ticks), 1) - 0.5)
        axes.grid(visible=False, axis="x")
        edges = [
            [point.mean - _bar(point.mean - point.low), point.mean + _bar(point.high - point.mean)]
            for given in points.values()
            for point in given
            if point
        ]
        _fit(axes, *edges)
        _legend(axes, 0 if alone else len(points))
    return Chart.of(png[0], axes, *columns(points, labels))


def _bar(length: float) -> float:
    """The length of an error bar; a mean without an interval has none."""
    return max(0.0, length) if math.isfinite(length) else 0.0


def side_by_side(
    left: Mapping[str, Values],
    right: Mapping[str, Values],
    *,
    left_x: Sequence[int],
    right_x: Sequence[int],
    names: tuple[str, str] = ("left", "right"),
    diverged: int | None = None,
) -> bytes:
    """The metrics of two runs over ticks, a panel for each metric.

    A line marks ``diverged``, the first tick in which the runs differ.
    """
    metrics = list(dict.fromkeys([*left, *right]))
    columns = min(2, max(1, len(metrics)))
    rows = max(1, math.ceil(len(metrics) / columns))
    with _figure(width=_WIDTH * columns, height=2.3 * rows + 0.5) as (figure, png):
        lines: list[Any] = []
        for place, metric in enumerate(metrics):
            x_label = "tick" if place >= len(metrics) - columns else ""
            axes = _axes(figure, x_label, place=(rows, columns, place + 1))
            axes.set_title(_drawable(metric, 48))
            first, second = left.get(metric, ()), right.get(metric, ())
            lines = [
                _line(axes, left_x[: len(first)], first, 0, names[0]),
                _line(axes, right_x[: len(second)], second, 1, names[1]),
            ]
            if diverged is not None:
                axes.axvline(diverged, color=_FAINT, linewidth=0.9, linestyle=":")
                axes.annotate(
                    f"differ from {diverged}", (diverged, 1), (3, -2), va="top", fontsize=7.5,
                    xycoords=("data", "axes fraction"), textcoords="offset points", color=_FAINT,
                )  # fmt: skip
            _span(axes, sorted({*left_x, *right_x}))
            _fit(axes, first, second)
        if lines:
            figure.legend(handles=lines, loc="outside upper right", ncols=2)
    return png[0]


@contextmanager
def _figure(
    width: float = _WIDTH, height: float = _HEIGHT
) -> Iterator[tuple["Figure", list[bytes]]]:
    """A figure to draw on, and the list that gets its PNG at the end."""
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)  # the first import would talk about Matplotlib's caches
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    finally:
        logger.setLevel(level)

    png: list[bytes] = []
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        figure = Figure(figsize=(width, height), dpi=200, layout="constrained", facecolor="white")
        canvas: Any = FigureCanvasAgg(figure)
        yield figure, png
        png.append(_drawn(canvas))


def _drawn(canvas: Any) -> bytes:
    buffer = io.BytesIO()
    # The PNG does not name Matplotlib's version. ``savefig`` would lay the figure out twice.
    canvas.print_png(buffer, metadata={"Software": None})
    return buffer.getvalue()


def _axes(
    figure: "Figure", x_label: str, y_label: str = "", place: tuple[int, int, int] = (1, 1, 1)
) -> "Axes":
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes = figure.add_subplot(*place)
    axes.set_xlabel(_drawable(x_label, 60))
    axes.set_ylabel(_drawable(y_label, 40))
    axes.grid(visible=True, axis="both", color=_GRID, linewidth=0.7)
    for axis, steps in ((axes.yaxis, 5), (axes.xaxis, 6)):
        axis.set_major_locator(MaxNLocator(steps, steps=_STEPS))
        axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    return axes


def _line(axes: "Axes", x: Sequence[int], values: Values, index: int, name: str) -> Any:
    xs, ys = _thin(list(x), _floats(values))
    gap = [True, *(math.isnan(y) for y in ys), True]
    # A value between two gaps has no line, and gets a marker.
    lonely = [place for place in range(len(ys)) if gap[place] and gap[place + 2]]
    (line,) = axes.plot(
        xs, ys, label=_drawable(name), color=_COLOURS[index % len(_COLOURS)],
        linestyle=_DASHES[index % len(_DASHES)], marker="o" if lonely else None,
        markevery=lonely or None, markersize=5,
    )  # fmt: skip
    return line


def _thin(x: list[int], y: list[float]) -> tuple[list[int], list[float]]:
    """The line with fewer points: the lowest and highest point of each stretch."""
    size = math.ceil(2 * len(x) / _MOST_POINTS)
    if size <= 2:
        return x, y
    kept: list[int] = []
    for start in range(0, len(x), size):
        stretch = range(start, min(start + size, len(x)))
        known = [place for place in stretch if not math.isnan(y[place])] or [start]
        kept += sorted({min(known, key=y.__getitem__), max(known, key=y.__getitem__)})
    return [x[place] for place in kept], [y[place] for place in kept]


def _span(axes: "Axes", x: Sequence[int]) -> None:
    """Fit the x axis to the ticks; leave room around a single tick, and name whole ticks only."""
    from matplotlib.ticker import FixedLocator, MaxNLocator

    if len(x) < 2:
        only = x[0] if x else 0
        axes.set_xlim(only - 1, only + 1)
        axes.xaxis.set_major_locator(FixedLocator([only]))
        return
    axes.set_xlim(x[0], x[-1])
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=_STEPS, integer=True))


def _fit(axes: "Axes", *series: Values) -> None:
    """Fit the y axis to the values; show zero unless the values are far from it."""
    known = [value for values in series for value in _floats(values) if not math.isnan(value)]
    if not any(known):
        axes.set_ylim(-0.05, 1)
        return
    low, high = min(known), max(known)
    if low >= 0 and low < 0.5 * high:
        low = 0.0
    elif high <= 0 and high > 0.5 * low:
        high = 0.0
    room = 0.06 * (high - low) or 0.1 * abs(high)
    axes.set_ylim(low - (room if low else 0), high + (room if high else 0))


def _legend(axes: "Axes", entries: int) -> None:
    """The names of the lines above the plot, in as many columns as its width has room for.

    A legend that is wider than the figure would squeeze the plot. Names that need more than two
    rows make the figure higher.
    """
    from matplotlib.figure import Figure

    if entries < 2:
        return
    longest = max(len(str(label)) for label in axes.get_legend_handles_labels()[1])
    columns = min(entries, 3 if entries <= 6 else 4, max(1, _LEGEND // (longest + _HANDLE)))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.03), ncols=columns)
    more = math.ceil(entries / columns) - 2
    figure = axes.figure
    if more > 0 and isinstance(figure, Figure):
        figure.set_figheight(figure.get_figheight() + _ROW * more)


def _floats(values: Values) -> list[float]:
    """The values as floats; NaN for None and for values that Matplotlib can't draw."""
    largest = 1e200  # a larger one overflows in Matplotlib
    return [
        float(value) if value is not None and abs(value) < largest else math.nan for value in values
    ]


def _drawable(text: str, most: int = 26) -> str:
    from matplotlib import font_manager

    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    if len(text) > most:
        text = text[: most - 1] + "…"
    return "".join(c if c.isprintable() and font.get_char_index(ord(c)) else "□" for c in text)
