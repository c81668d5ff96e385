"""The record of a sweep: what its folder has of its plan, its runs and its results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Self, final

from ...config.load import load_settings
from ...config.settings import Settings
from ...config.yaml_files import read_file
from ...errors import ConfigError, RunError
from ..reports.sweep_report import Look
from ..runs import outputs
from ..runs.frames import frame
from . import registration

PLAN, RESULTS, STATISTICS = "plan.yaml", "results.parquet", "statistics.parquet"


@final
@dataclass(frozen=True)
class SweepRecord:
    """A finished sweep, read from its folder; nothing is run, and no code of the sweep either."""

    folder: Path
    question: str
    settings: Settings
    """What all runs share, before a variant, a place in the grid and a seed change it."""
    variants: Mapping[str, Mapping[str, Any]]
    grid: Mapping[str, Sequence[Any]]
    baseline: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    """A row per run: its variant, its place in the grid, its seed, its hash, its metrics."""
    statistics: Sequence[Mapping[str, Any]]
    """A row per variant, place and metric: the mean, and the difference from the baseline."""
    look: Look

    @classmethod
    def read(cls, folder: str | PathLike[str]) -> Self:
        """The sweep in a folder that ``tiermem sweep`` has written its results to."""
        place = Path(folder)
        try:
            plan: Any = read_file(place / PLAN).value
            settings = load_settings(plan["scenario"])
            variants, grid = dict(plan["variants"]), dict(plan["grid"])
            question = str(plan.get("question", ""))
        except (ConfigError, LookupError, TypeError, AttributeError) as error:
            raise RunError(
                f"{place} is no folder of a sweep: {error!s:.200}", hint="name a sweep's folder"
            ) from None
        tables = [outputs.rows_of(place / name) for name in (RESULTS, STATISTICS)]
        rows, statistics = (table or [] for table in tables)
        if not rows or not statistics:
            raise RunError(
                f"the sweep {place} has no results that can be read",
                hint="run it to its end: tiermem sweep writes them after its last run",
            )
        look, baseline = registration.last_look(place)
        return cls(
            place, question, settings, variants, grid, baseline, rows, statistics, look
        )  # fmt: skip

    @property
    def name(self) -> str:
        """The name of the sweep's folder."""
        return self.folder.absolute().name

    @property
    def metrics(self) -> list[str]:
        """The metrics that the report shows, in its order."""
        return list(dict.fromkeys(row["metric"] for row in self.statistics))

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs."""
        return sorted({row["seed"] for row in self.rows})

    def frame(self, table: str = "results") -> Any:
        """A table as a data frame of pandas or polars, whichever is installed.

        ``results`` has a row per run; ``statistics`` a row per variant, place and metric.
        """
        tables = {"results": self.rows, "statistics": self.statistics}
        if table not in tables:
            raise RunError(f"a sweep has no table {table!r:.40}", hint="results or statistics")
        return frame(outputs.table(tables[table]))
