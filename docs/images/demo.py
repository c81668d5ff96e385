"""Draws docs/images/demo.svg from the figures of `make demo`: flat memory against tiers."""

import json
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

FIGURES = Path("runs/demo.json")
TITLES = {
    "market: coins lost": "market: coins lost",
    "household: orders broken": "household: orders broken",
    "market, asking about the seller: coins lost": "market, asking about the seller",
}
COLOURS = {"flat": "#d55e00", "tiers": "#0072b2"}
LINES = {"default": "-", "vector": (0, (2, 2))}
SETTINGS = {
    "font.family": ["sans-serif"],
    "font.size": 10,
    "svg.fonttype": "none",  # words stay words
    "svg.hashsalt": "tiermem",  # the same runs give the same file
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def main() -> None:
    """One panel for each regime: the mean of each memory and search, and the range of all seeds."""
    rows = json.loads(FIGURES.read_text())
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(9, 3.1), layout="constrained")
        for axes, (regime, title) in zip(figure.subplots(1, 3), TITLES.items(), strict=True):
            ends = {}
            for search, line in LINES.items():
                for memory, colour in COLOURS.items():
                    runs = np.array(
                        [
                            row["by_tick"]
                            for row in rows
                            if (row["regime"], row["search"], row["memory"])
                            == (regime, search, memory)
                        ]
                    )
                    ticks, mean = np.arange(1, runs.shape[1] + 1), runs.mean(axis=0)
                    axes.fill_between(
                        ticks, runs.min(axis=0), runs.max(axis=0), color=colour, alpha=0.12, lw=0
                    )
                    axes.plot(ticks, mean, color=colour, ls=line, lw=1.8)
                    if search == "default":
                        ends[memory] = mean[-1]
            apart = ends["flat"] != ends["tiers"]
            for memory, end in ends.items() if apart else [("tiers", ends["tiers"])]:
                axes.annotate(
                    f"{memory if apart else 'flat and tiers'}: {end:,.1f}",
                    (ticks[-1], end),
                    xytext=(0, 8),
                    textcoords="offset points",
                    ha="right",
                    color=COLOURS[memory] if apart else "#333333",
                    weight="bold",
                )
            axes.set_title(title, loc="left", fontsize=10.5)
            axes.set_xlabel("tick")
            axes.set_xlim(0, ticks[-1])
            axes.grid(axis="y", color="#e4e4e4")
            axes.set_axisbelow(True)
        first, last = figure.axes[0], figure.axes[2]
        last.set_ylim(first.set_ylim(bottom=0))
        figure.axes[1].set_ylim(bottom=0)
        for search, line in LINES.items():
            last.plot([], [], color="#555555", ls=line, lw=1.8, label=f"{search} search")
        last.legend(frameon=False, loc="upper left", fontsize=9)
        target = Path(__file__).with_name("demo.svg")
        figure.savefig(target, metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
