"""Draws docs/images/demo.svg from the two runs of `make demo`: what scammers took, tick by tick."""

from pathlib import Path

import matplotlib
import pyarrow.parquet
from matplotlib.figure import Figure

RUNS = {"flat": Path("runs/demo-flat"), "tiers": Path("runs/demo-tiers")}
NAMES = {"flat": "flat memory", "tiers": "tiers: warnings are pinned"}
COLOURS = {"flat": "#d55e00", "tiers": "#0072b2"}
SETTINGS = {
    "font.family": ["sans-serif"],
    "font.size": 11,
    "svg.fonttype": "none",  # words stay words
    "svg.hashsalt": "tiermem",  # the same runs give the same file
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def main() -> None:
    """Read the losses of both runs and draw one line for each."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(8, 3.3), layout="constrained")
        axes = figure.add_subplot()
        for name, run in RUNS.items():
            table = pyarrow.parquet.read_table(run / "metrics.parquet")
            ticks, losses = table["tick"].to_pylist(), table["loss"].to_pylist()
            axes.plot(ticks, losses, color=COLOURS[name], linewidth=2.2)
            axes.annotate(
                f"{NAMES[name]}: {losses[-1]:.0f}",
                (ticks[-1], losses[-1]),
                xytext=(-4, 9),
                textcoords="offset points",
                ha="right",
                color=COLOURS[name],
                weight="bold",
            )
        axes.set_title("Coins that scammers took from honest traders", loc="left", fontsize=12)
        axes.set_xlabel("tick")
        axes.set_xlim(0, 120)
        axes.set_ylim(0, 1600)
        axes.grid(axis="y", color="#e4e4e4")
        axes.set_axisbelow(True)
        target = Path(__file__).with_name("demo.svg")
        figure.savefig(target, metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
