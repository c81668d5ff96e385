"""Draws docs/images/demo.svg from the figures of `make demo`: memories side by side, and noise."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from tiermem.simulation.reports.plots import Key, Panel, alone, drawing, path, text_at

FIGURES = Path("runs/demo/runs.json")
COLOURS = {"tiers": "#0072b2", "importance": "#009e73"}
OTHER = "#d55e00"
WIDTH, BARS, NAMES, ROW, TOP = 900.0, 560.0, 138.0, 17.0, 20.0
Rows = Sequence[Mapping[str, Any]]


def main() -> None:
    """On the left each memory as a bar, each seed as a dot; on the right what noise costs."""
    rows = json.loads(FIGURES.read_text())
    plain = [row for row in rows if not row["noise"]]
    parts, y = list[str](), 4.0
    for regime in dict.fromkeys(row["regime"] for row in plain):
        of_regime = [row for row in plain if row["regime"] == regime]
        parts.append(text_at(8, y + 13, f"{regime}, {len(seeds(of_regime))} seeds", size=12))
        y += TOP
        for memory in dict.fromkeys(row["memory"] for row in of_regime):
            own = [row["result"] for row in of_regime if row["memory"] == memory]
            parts += bar(memory, own, y, top=max(row["result"] for row in of_regime))
            y += ROW
        y += 8
    panel = noise_panel(rows, height=min(y, 330))
    parts.append(f'<g transform="translate({BARS} 0)">{"".join(panel.parts)}</g>')
    Path(__file__).with_name("demo.svg").write_text(alone(drawing(WIDTH, y, parts)))


def seeds(rows: Rows) -> set[int]:
    """The seeds of these runs."""
    return {row["seed"] for row in rows}


def bar(memory: str, values: Sequence[float], y: float, top: float) -> list[str]:
    """The mean of a memory as a bar with its figure, and each seed as a dot."""
    colour, mean = COLOURS.get(memory, OTHER), fmean(values)
    room = BARS - NAMES - 80
    end, middle = NAMES + room * mean / top, y + ROW / 2
    drawn = [
        text_at(NAMES - 6, middle + 4, memory, "end"),
        path([(NAMES, middle), (max(end, NAMES + 1.5), middle)], colour, 9),
    ]
    drawn += [
        f'<circle cx="{NAMES + room * value / top:.1f}" cy="{middle:.1f}" r="1.6" fill="#333333" '
        'fill-opacity=".45"/>'
        for value in values
    ]
    after = NAMES + room * max(*values, mean) / top + 6
    drawn.append(text_at(after, middle + 4, f"{mean:,.1f}", colour="#333333"))
    return drawn


def noise_panel(rows: Rows, height: float) -> Panel:
    """What tiers lose by the share of wrong and of missing pins; without them; each seed a dot."""
    noisy = [row for row in rows if row["noise"]]
    first, metric = noisy[0]["regime"].split(": ")
    means = {
        memory: fmean(
            row["result"]
            for row in rows
            if row["regime"] == noisy[0]["regime"] and row["memory"] == memory and not row["noise"]
        )
        for memory in ("flat", "tiers")
    }
    dashes = {"pinned wrongly": "", "not pinned": "4 3"}
    keys = [
        Key(name, path([(0, 0), (16, 0)], COLOURS["tiers"], 1.8, dash))
        for name, dash in dashes.items()
    ]
    keys.append(Key("flat", path([(0, 0), (16, 0)], OTHER, 1.8)))
    panel = Panel(
        (0, 50), (0, 1.08 * means["flat"]), keys,
        title=f"{first}, tiers, if agents err: {metric}", x_label="% wrong, or missing",
        width=WIDTH - BARS, height=height,
    )  # fmt: skip
    panel.draw_line([0, 50], [means["flat"]] * 2, OTHER, "")
    for noise, dash in dashes.items():
        by_share = {0.0: [means["tiers"]]}
        for row in noisy:
            if row["noise"] == noise:
                by_share.setdefault(row["share"], []).append(row["result"])
        shares = [100 * share for share in by_share]
        panel.draw_line(shares, [fmean(each) for each in by_share.values()], COLOURS["tiers"], dash)
        for share, values in by_share.items():
            for x, y in (panel.place(100 * share, value) for value in values):
                panel.parts.append(
                    f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.6" fill="#333333" fill-opacity=".45"/>'
                )
    return panel


if __name__ == "__main__":
    main()
