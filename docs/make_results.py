"""Writes docs/results.md, which design of memory wins where: ``make results``.

It runs the sweeps ``simulations/*_classics.yaml``, all of them each time: a change of the package
may change their results.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tiermem.simulation.reports.sweep_report import SweepResults
from tiermem.simulation.statistics import equivalence, in_words, interval_of
from tiermem.simulation.sweeps.run_sweep import engine_for, run_all, write_results
from tiermem.simulation.sweeps.sweep import Sweep, read_sweep

PAGE = Path(__file__).with_name("results.md")
SIMULATIONS = Path(__file__).parents[1] / "simulations"
METRICS = {
    "loss": (-1, 20),
    "loss_tick": (-1, 2),
    "welfare": (1, 20),
    "trades": (1, 4),
    "scams": (-1, 4),
    "mistakes": (-1, 8),
    "kept": (1, 0.01),
    "accuracy": (1, 0.02),
    "accuracy_mean": (1, 0.02),
    "false_answers": (-1, 10),
    "corrections": (0, 10),
}
"""By metric: 1 if more is better, −1 if less is; and the margin below which a difference matters to
nobody: about a hundredth of all choices, answers or coins at stake."""
WORLDS = {
    "market": ("market: coins lost to scammers", "loss"),
    "household": ("household: standing orders broken", "mistakes"),
    "rumor": ("rumor: share of true answers over all ticks", "accuracy_mean"),
    "market_seller": ("market, asking about the seller, 7 scammers of 14: coins lost", "loss"),
    "household_orders": ("household, six orders for five pins: orders broken", "mistakes"),
}
"""By sweep: what the section is called, and the metric of its first table."""
_CLEAR = 0.05

_INTRODUCTION = """\
# Which design of memory wins where

`make results` made this page: {worlds} sweeps, {seeds} seeds each, {runs} runs. The sweeps are
`simulations/*_classics.yaml`; `make test-long` runs them again, and compares. Within a sweep,
agents, seeds and decisions by rule are the same; only the memory differs. In the last two sweeps
pins are scarce, or in the way.

| design | what it is | memories in a search |
|---|---|--:|
| tiers | the defaults: meaning and words, boosts by tier, pinned memories first | 5 |
| flat | the same search; agents keep what matters as a normal memory | 5 |
| worded | flat; an agent that keeps what matters words it like the question that will come | 5 |
| vector | similarity of vectors alone, no tiers: as plain mem0 searches | 5 |
| generative-agents | recency, importance, by tier, and relevance; reflection by rule | 30 |
| generative-agents without reflection | the same, and nobody reflects | 30 |
| memorybank | similarity times the forgetting curve; tiers say nothing | 5 |
| recency | the last memories | 5 |
| … at 100 tokens | the same; what a search finds may fill 100 tokens | as many as fit |

Thirty is what the code of generative agents takes. A hundred tokens are more than five warnings or
five orders have.

[How the classic agents are built](howto/classic-agents.md), and where papers and code differ.
Means have 95 % intervals of Student. Differences are from `tiers`, paired by seed. The metric of
the first table, its seeds and one look at them are registered in the sweep's file. Its p is
corrected for that table's comparisons (Holm), that of any other metric for all comparisons of the
sweep; tests that skew does no harm judge [skewed differences](architecture/statistics.md). A
design *wins* or *loses* where p is below 0.05. It is *equal* where two one-sided tests (TOST, p
below 0.05 each) say that the difference is below the metric's margin. It is the *same* where
every seed gives the same number: that has no interval, and other seeds may differ. Else it is
*open*.
The margins:
{margins}.
The worlds `site` and `town` ask about temperature and about spread, and are not here.
"""

_CAUTION = """\
## What this does not say

- The worlds are [ours](architecture/worlds.md), and small. They were made to show what tiers do:
  something that mattered once must come to mind later, asked for in other words. Where a query
  names what it looks for, flat search finds it too; and so it does where a memory is worded like
  the question (`worded`).
- In `tiers` and `generative-agents` the agent says what matters, and it is right. Whoever rates
  importance makes errors, which are not in these numbers; `make demo` shows what they cost.
- MemoryBank was made for chats over days. A day has 24 ticks here, and a run less than a week.
- Insights by rule quote memories; a language model may conclude more, or less.
"""


def sweep(name: str, folder: Path) -> SweepResults:
    """The results of this sweep, which is run in this folder."""
    plan = read_sweep(SIMULATIONS / f"{name}_classics.yaml")
    return write_results(plan, folder, run(plan, folder))


def run(plan: Sweep, folder: Path, workers: int | None = None) -> dict[str, Any]:
    """The summary of each run of a sweep, by name."""
    done: dict[str, Any] = {}
    for cell, result in run_all(plan, folder, engine_for(plan, workers=workers), force=False):
        if isinstance(result, str):
            raise SystemExit(f"{cell.name}: {result}")
        done[cell.name] = result
    return done


def page(results: Mapping[str, SweepResults]) -> str:
    """The page for these results, by sweep."""
    first = next(iter(results.values()))
    parts = [
        _INTRODUCTION.format(
            worlds=len(results),
            seeds=len(first.seeds),
            runs=sum(len(each.rows) for each in results.values()),
            margins=", ".join(f"{name} {margin:g}" for name, (_, margin) in METRICS.items()),
        )
    ]
    parts += [_section(name, each) for name, each in results.items()]
    return "\n".join([*parts, _CAUTION])


def _section(name: str, results: SweepResults) -> str:
    title, metric = WORLDS[name]
    better = "more is better" if METRICS[metric][0] > 0 else "less is better"
    apart = {(row["variant"], row["metric"]): row for row in results.compared}
    metrics = list(dict.fromkeys(row["metric"] for row in results.compared))
    others = [
        " | ".join(
            [
                f"| {variant}",
                *(
                    f"{_signed(row['mean'])} {_verdict(row)}"
                    for row in (apart[variant, each] for each in metrics)
                ),
            ]
        )
        for variant in dict.fromkeys(row["variant"] for row in results.compared)
    ]
    return "\n".join(
        [
            f"## {title} ({better})",
            "",
            table(results, metric),
            "",
            "Every metric of the world, as the mean difference from tiers:",
            "",
            f"| design | {' | '.join(metrics)} |",
            f"|---|{'---|' * len(metrics)}",
            *(f"{line} |" for line in others),
            "",
        ]
    )


def table(results: SweepResults, metric: str) -> str:
    """The designs of a sweep, best first, and which of them differ from the baseline."""
    (base,) = results.baseline.values()
    apart = {row["variant"]: row for row in results.compared if row["metric"] == metric}
    means = [row for row in results.statistics if row["metric"] == metric]
    means.sort(key=lambda row: -METRICS[metric][0] * row["mean"])
    return "\n".join(
        [
            f"| design | mean | 95 % | difference from {base} | 95 % | p (Holm) | |",
            "|---|---:|---|---:|---|---:|---|",
            *(_row(row, apart.get(row["variant"])) for row in means),
            "",
            _told({name: _verdict(row) for name, row in apart.items()}, base),
        ]
    )


def _row(row: Mapping[str, Any], other: Mapping[str, Any] | None) -> str:
    cells = [row["variant"], number(row["mean"]), interval(row)]
    if other is None:
        cells += ["", "", "", ""]
    else:
        cells += [_signed(other["mean"]), interval(other), _p(other), _verdict(other)]
    return f"| {' | '.join(cells)} |"


def _verdict(row: Mapping[str, Any]) -> str:
    better, margin = METRICS[row["metric"]]
    if row["p_holm"] is not None and row["p_holm"] < _CLEAR:
        if not better:
            return "more" if row["mean"] > 0 else "less"
        return "wins" if row["mean"] * better > 0 else "loses"
    if row["low"] is None and not row["mean"]:
        return "same"
    return "equal" if equivalence(interval_of(row), margin) < _CLEAR else "open"


def _told(verdicts: Mapping[str, str], base: str) -> str:
    """The verdicts in a sentence each."""
    words = {
        "wins": f"Better than {base}: {{}}.",
        "equal": "Equal within the margin: {}.",
        "same": "The same in every seed: {}.",
        "open": "Open: {}.",
        "loses": f"Worse than {base}: {{}}.",
    }
    found = {
        verdict: [name for name, own in verdicts.items() if own == verdict] for verdict in words
    }
    return " ".join(words[verdict].format(_listed(names)) for verdict, names in found.items())


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"


def interval(row: Mapping[str, Any]) -> str:
    return in_words(interval_of(row), number)


def _p(row: Mapping[str, Any]) -> str:
    return "–" if row["p_holm"] is None else f"{row['p_holm']:.2g}"


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + number(value).replace("-", "−")


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def write(names: Iterable[str] = WORLDS) -> None:
    """Run the sweeps, and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page({name: sweep(name, Path(folder) / name) for name in names}))
    print(f"wrote {PAGE}")  # noqa: T201 - a command


if __name__ == "__main__":
    write()
