"""How many seeds a sweep needs, before its first run: of its own test, comparisons and looks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from ...errors import ConfigError, RunError
from ..runs import outputs
from ..statistics import (
    Difference,
    Needed,
    differences,
    needed_seeds,
    power,
    seeds_to_show,
    share_of_look,
)
from .run_sweep import compared_with, result_rows
from .sweep import Sweep, world_metrics


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep needs to show its differences four times out of five."""

    rows: Sequence[Mapping[str, Any]]
    """For each metric and comparison: ``difference``, ``spread``, the ``level`` of its test,
    ``seeds_needed`` and the ``power`` that the sweep's own seeds have."""
    share: float
    """The part of the 5 % that the first look spends."""
    looks: int | None
    seeds: int
    """How many seeds the sweep has."""
    places: int
    """How many runs each seed has."""
    seconds: float | None = None
    """What a run of the earlier sweep took; None if its files do not tell."""

    @property
    def seeds_needed(self) -> int | None:
        """The seeds of the comparison that needs most; None if one needs more than can be run."""
        needed = [row["seeds_needed"] for row in self.rows]
        return None if None in needed else max(needed)


def plan_sweep(
    sweep: Sweep,
    *,
    like: Path | None = None,
    difference: float | None = None,
    spread: float | None = None,
) -> SweepPlan:
    """Say how many seeds would show the differences of a sweep; nothing is run.

    Differences and how much they vary from seed to seed come from ``like``, the folder of an
    earlier sweep with these variants and metrics. ``difference`` is the smallest that matters, and
    ``spread`` the standard deviation of the differences between runs of the same seed; both are of
    the primary metric, or of the only one.
    """
    if sweep.drawn is not None:
        raise ConfigError("a sweep over ranges compares nothing, so it needs no seeds to do so")
    for name, value in (("--difference", difference), ("--spread", spread)):
        if value is not None and not 0 < value < math.inf:
            raise ConfigError(f"{name} is {value}: it must be a number above 0")
    if like is None and (difference is None or spread is None):
        raise ConfigError(
            "nothing says how large the differences are, and how much they vary",
            hint="give --like with the folder of an earlier sweep, or --difference and --spread",
        )
    metrics = list(sweep.metrics) or world_metrics(sweep, str(sweep.scenario))
    if sweep.primary is not None:
        metrics = list(dict.fromkeys([sweep.primary, *metrics]))
    stated = [sweep.primary or metrics[0]]
    if difference is not None or spread is not None:
        if sweep.primary is None and len(metrics) > 1:
            raise ConfigError(
                f"whose difference is it? The sweep has {', '.join(metrics):.200}",
                hint="register a primary metric, or name one in metrics",
            )
        metrics = stated
    share = share_of_look(1, sweep.looks)
    here = _here(sweep, metrics)
    if not here:
        raise ConfigError("the sweep compares nothing: it has one variant at one point")
    rows = []
    for metric in metrics:
        family = 1 if metric == sweep.primary else len(metrics) - (sweep.primary is not None)
        level = share / (len(here) * family)
        if like is None:
            own = Difference(0, difference or 0.0, 0.0, 0.0, 1.0, spread or 0.0)
            need = Needed(own, seeds_to_show(own, level))
            found = [(where, need) for where in here]
        else:
            found = _as_earlier(sweep, like, metric, here, level, difference, spread)
        for where, need in found:
            gap = need.difference
            known = None if need.by_median else power(gap, len(sweep.seeds), level)
            rows.append(
                {
                    "metric": metric,
                    **where,
                    "difference": gap.mean,
                    "spread": gap.deviation,
                    "level": level,
                    "by": "median" if need.by_median else "mean",
                    "seeds_needed": need.seeds,
                    "power": known,
                }
            )
    places = len(sweep.runs()) // len(sweep.seeds)
    seconds = None if like is None else _seconds(like)
    return SweepPlan(rows, share, sweep.looks, len(sweep.seeds), places, seconds)


def _here(sweep: Sweep, metrics: Sequence[str]) -> list[dict[str, Any]]:
    """The places of the comparisons that the sweep will make of each metric."""
    empty = {"state_hash": "", "metrics": dict.fromkeys(metrics, 0.0)}
    rows = result_rows(sweep, {planned.name: empty for planned in sweep.runs()})
    baseline, keys = compared_with(sweep)
    found = differences(rows, keys, metrics[:1], baseline=baseline)
    return [{key: row[key] for key in (*baseline, *keys)} for row in found]


def _as_earlier(
    sweep: Sweep,
    like: Path,
    metric: str,
    here: Sequence[dict[str, Any]],
    level: float,
    difference: float | None,
    spread: float | None,
) -> list[tuple[dict[str, Any], Needed]]:
    """What the comparisons of an earlier sweep say of those here."""
    rows = outputs.rows_of(like / "results.parquet")
    if not rows:
        raise RunError(
            f"{like} has no results of a sweep",
            hint="name the folder of a finished sweep; its runs are in results.parquet",
        )
    baseline, keys = compared_with(sweep)
    for name in (*baseline, *keys, "seed", metric):
        if name not in rows[0]:
            raise RunError(
                f"the sweep in {like} has no {name!r:.60}",
                hint="name the folder of a sweep with these variants, grid and metrics",
            )
    found = []
    for where, need in needed_seeds(
        rows, keys, metric, baseline=baseline, alpha=level, size=difference
    ):
        if where in here:
            own = need.difference
            if spread is not None:
                own = own._replace(deviation=spread)
                need = Needed(own, seeds_to_show(own, level))
            found.append((where, need))
    if not found:
        raise RunError(
            f"the sweep in {like} compares nothing that this one compares, by {metric}",
            hint="name the folder of a sweep with these variants and points, and the same baseline",
        )
    return found


def _seconds(folder: Path) -> float | None:
    """How long a run of a sweep usually took, by the times of its first and its last file."""
    took = []
    for summary in folder.glob("cells/*/summary.json"):
        try:
            begun = (summary.parent / "config.yaml").stat().st_mtime
            took.append(summary.stat().st_mtime - begun)
        except OSError:
            continue
    return median(took) if took and min(took) > 0 else None
