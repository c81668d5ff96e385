"""Printing what was measured beside what was to be reached."""

import os
import platform
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

console = Console(width=None if Console().is_terminal else 120, highlight=False)


class Goal(NamedTuple):
    """Something to reach, and what was measured."""

    what: str
    goal: float
    measured: float
    unit: str = "×"
    at_least: bool = False
    """True: more is better."""

    @property
    def met(self) -> bool:
        """Whether it was reached."""
        return self.measured >= self.goal if self.at_least else self.measured <= self.goal


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose first column is a name and whose others are numbers."""
    shown = Table(title=title, title_justify="left", title_style="bold")
    for number, column in enumerate(columns):
        shown.add_column(column, justify="left" if number == 0 else "right", no_wrap=number == 0)
    for row in rows:
        shown.add_row(*row)
    console.print(shown)


def goals(reached: Sequence[Goal]) -> None:
    """Print goals, met or missed. Nothing fails: a time depends on the machine."""
    rows = [
        (
            goal.what,
            f"{'≥' if goal.at_least else '≤'} {number(goal.goal)} {goal.unit}",
            f"{number(goal.measured)} {goal.unit}",
            "met" if goal.met else "missed",
        )
        for goal in reached
    ]
    if rows:
        table("Goals", ("", "goal", "measured", ""), rows)


def number(value: float) -> str:
    """Three digits that matter."""
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def machine() -> str:
    """Where and under what load this ran."""
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}; load average {load}"
    )
