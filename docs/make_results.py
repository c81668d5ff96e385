"""Writes docs/results.md, which design of memory wins where: ``make results``.

It runs the sweeps ``simulations/*_classics.yaml``, all of them each time: a change of the package
may change their results.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tiermem.simulation.reports.sweep_report import SweepResults
from tiermem.simulation.statistics import in_words, interval_of
from tiermem.simulation.sweeps.run_sweep import engine_for, run_all, write_results
from tiermem.simulation.sweeps.sweep import Sweep, read_sweep

PAGE = Path(__file__).with_name("results.md")
SIMULATIONS = Path(__file__).parents[1] / "simulations"
WORLDS = {
    "market": ("loss", "coins lost to scammers", False),
    "household": ("mistakes", "standing orders broken", False),
    "rumor": ("accuracy_mean", "share of true answers over all ticks", True),
}
"""By world: its metric, what the metric counts, and whether more of it is better."""
_CLEAR = 0.05

_INTRODUCTION = """\
# Which design of memory wins where

`make results` made this page: {worlds} worlds, {variants} designs, {seeds} seeds each, {runs} runs.
The sweeps are `simulations/*_classics.yaml`; `make test-long` runs them again, and compares.
Within a world, agents, seeds and decisions by rule are the same; only the memory differs. A search
gives five memories in each.

| design | what it is |
|---|---|
| tiers | the defaults: meaning and words, boosts by tier, pinned memories first |
| flat | the same search; agents keep what matters as a normal memory |
| vector | similarity of vectors alone, no tiers: as plain mem0 searches |
| generative-agents | recency, importance, by tier, and relevance; reflection by rule |
| generative-agents without reflection | the same, and nobody reflects |
| memorybank | similarity times the forgetting curve; tiers say nothing |
| recency | the last five memories |

[How the classic agents are built](howto/classic-agents.md), and where papers and code differ. Means
have 95 % intervals of Student. Differences are from `tiers`, paired by seed; p is corrected for the
comparisons of a world (Holm). A design *wins* or *loses* where p is below 0.05. The worlds `site`
and `town` ask about temperature and about spread, and are not here.
"""

_CAUTION = """\
## What this does not say

- The worlds are [ours](architecture/worlds.md), and small. They were made to show what tiers do:
  something that mattered once must come to mind later, asked for in other words. Where a query
  names what it looks for, flat search finds it too.
- In `tiers` and `generative-agents` the agent says what matters, and it is right. A language model
  that rates importance makes errors, which are not in these numbers.
- MemoryBank was made for chats over days. A day has 24 ticks here, and a run less than a week.
- Insights by rule quote memories, and a policy must understand them. That of `household` compares
  whole texts: an insight takes the place of an order and is not read. Tried by hand on seeds 1 and
  2, a policy that reads each quotation made 6 and 14 mistakes in place of 172 and 156; without
  reflection there were 2 and 0. A language model may conclude more, or less.
- "Not told apart" is no proof of equality: the intervals say how large a difference may be.
"""


def sweep(world: str, folder: Path) -> SweepResults:
    """The results of a world's sweep, which is run in this folder."""
    plan = read_sweep(SIMULATIONS / f"{world}_classics.yaml")
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
    """The page for these results, by world."""
    first = next(iter(results.values()))
    parts = [
        _INTRODUCTION.format(
            worlds=len(results),
            variants=len(first.variants),
            seeds=len(first.seeds),
            runs=sum(len(each.rows) for each in results.values()),
        )
    ]
    parts += [_section(world, each) for world, each in results.items()]
    return "\n".join([*parts, _CAUTION])


def _section(world: str, results: SweepResults) -> str:
    metric, counted, more_is_better = WORLDS[world]
    better = "more is better" if more_is_better else "less is better"
    title = f"## {world}: {counted} ({better})"
    return "\n".join([title, "", table(results, metric, more_is_better), ""])


def table(results: SweepResults, metric: str, more_is_better: bool) -> str:
    """The designs of a sweep, best first, and which of them differ from the baseline."""
    (base,) = results.baseline.values()
    apart = {row["variant"]: row for row in results.compared if row["metric"] == metric}
    means = [row for row in results.statistics if row["metric"] == metric]
    means.sort(key=lambda row: -row["mean"] if more_is_better else row["mean"])
    verdicts = {name: _verdict(row, more_is_better) for name, row in apart.items()}
    rows = [_row(row, apart.get(row["variant"]), verdicts) for row in means]
    return "\n".join(
        [
            f"| design | mean | 95 % | difference from {base} | 95 % | p (Holm) | |",
            "|---|---:|---|---:|---|---:|---|",
            *rows,
            "",
            _told(verdicts, base),
        ]
    )


def _row(
    row: Mapping[str, Any], other: Mapping[str, Any] | None, verdicts: Mapping[str, str]
) -> str:
    cells = [row["variant"], number(row["mean"]), interval(row)]
    if other is None:
        cells += ["", "", "", ""]
    else:
        cells += [number(other["mean"]), interval(other), _p(other)]
        cells += [verdicts[row["variant"]]]
    return f"| {' | '.join(cells)} |"


def _verdict(row: Mapping[str, Any], more_is_better: bool) -> str:
    if row["p_holm"] is None or row["p_holm"] >= _CLEAR:
        return "not told apart"
    return "wins" if (row["mean"] > 0) == more_is_better else "loses"


def _told(verdicts: Mapping[str, str], base: str) -> str:
    """The verdicts in a sentence each."""
    words = {
        "wins": f"Better than {base}: {{}}.",
        "not told apart": f"Not told apart from {base}: {{}}.",
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


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def write(worlds: Iterable[str] = WORLDS) -> None:
    """Run the sweeps, and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page({world: sweep(world, Path(folder) / world) for world in worlds}))
    print(f"wrote {PAGE}")  # noqa: T201 - a command


if __name__ == "__main__":
    write()
