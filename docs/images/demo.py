"""Draws docs/images/demo.svg from the figures of `make demo`: flat memory against tiers."""

import json
from itertools import product
from pathlib import Path
from statistics import fmean

from tiermem.simulation.reports.plots import Key, Panel, alone, drawing, legend, path, text_at

FIGURES = Path("runs/demo.json")
TITLES = {
    "market: coins lost": "market: coins lost",
    "household: orders broken": "household: orders broken",
    "market, asking about the seller: coins lost": "market, asking about the seller",
}
COLOURS = {"flat": "#d55e00", "tiers": "#0072b2"}
DASHES = {"default": "", "vector": "3 2"}
WIDTH, HEIGHT = 300.0, 240.0


def main() -> None:
    """One panel for each regime: the mean of each memory and search, and the range of all seeds."""
    runs: dict[tuple[str, str, str], list[list[float]]] = {}
    for row in json.loads(FIGURES.read_text()):
        of = row["regime"], row["search"], row["memory"]
        runs.setdefault(of, []).append(row["by_tick"])
    tops = {
        regime: max(max(run) for of, seeds in runs.items() if of[0] == regime for run in seeds)
        for regime in TITLES
    }
    first, _, last = TITLES
    tops[last] = tops[first]  # the two markets have one scale
    parts, top = legend(
        [
            Key(f"{memory}, {search} search", path([(0, 0), (16, 0)], colour, 1.8, dash))
            for (memory, colour), (search, dash) in product(COLOURS.items(), DASHES.items())
        ],
        WIDTH * len(TITLES),
        6,
    )
    for place, (regime, title) in enumerate(TITLES.items()):
        panel = panel_of(regime, title, runs, tops[regime])
        move = f"translate({WIDTH * place:g} {top:g})"
        parts.append(f'<g transform="{move}">{"".join(panel.parts)}</g>')
    picture = drawing(WIDTH * len(TITLES), top + HEIGHT, parts)
    Path(__file__).with_name("demo.svg").write_text(alone(picture))


def panel_of(
    regime: str, title: str, runs: dict[tuple[str, str, str], list[list[float]]], top: float
) -> Panel:
    """The curves of a regime, with the last mean of each memory in figures."""
    ticks = range(1, len(runs[regime, "default", "flat"][0]) + 1)
    panel = Panel(
        (0, ticks[-1]), (0, 1.05 * top), [], x_label="tick", title=title, width=WIDTH, height=HEIGHT
    )
    ends = {}
    for (search, dash), (memory, colour) in product(DASHES.items(), COLOURS.items()):
        by_tick = list(zip(*runs[regime, search, memory], strict=True))
        lows, highs = map(min, by_tick), map(max, by_tick)
        around = [
            *(panel.place(*at) for at in zip(ticks, highs, strict=True)),
            *reversed([panel.place(*at) for at in zip(ticks, lows, strict=True)]),
        ]
        way = "L".join(f"{x:.1f} {y:.1f}" for x, y in around)
        panel.parts.append(f'<path d="M{way}z" fill="{colour}" fill-opacity=".1"/>')
        means = [fmean(values) for values in by_tick]
        panel.draw_line(ticks, means, colour, dash)
        if search == "default":
            ends[memory] = means[-1]
    apart = ends["flat"] != ends["tiers"]
    for memory, end in ends.items() if apart else [("tiers", ends["tiers"])]:
        x, y = panel.place(ticks[-1], end)
        words = f"{memory if apart else 'flat and tiers'}: {end:,.1f}"
        colour = COLOURS[memory] if apart else "#333333"
        bold = ' font-weight="bold"'
        panel.parts.append(text_at(x, y - 6, words, "end", size=11, colour=colour, more=bold))
    return panel


if __name__ == "__main__":
    main()
