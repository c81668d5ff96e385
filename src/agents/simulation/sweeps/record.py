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
from ...memory.views import Table, View
from ...memory.words import counted
from ..reports.sweep_report import Look
from ..runs import outputs
from ..runs.frames import frame
from ..statistics import in_words, interval_of
from . import registration
from .drawn import Drawn

PLAN = "plan.yaml"
_TABLES = ("results", "statistics", "indices", "posterior", "predictions")
"""Of a sweep's runs; of what differs; of a sweep over ranges; of a fit, the last two."""


@final
@dataclass(frozen=True)
class SweepRecord:
    """A finished sweep or fit, read from its folder; nothing is run, and no code of it either."""

    folder: Path
    question: str
    settings: Settings
    """What all runs share, before a variant, a place in the grid and a seed change it."""
    variants: Mapping[str, Mapping[str, Any]]
    grid: Mapping[str, Sequence[Any]]
    baseline: Mapping[str, Any]
    drawn: Drawn | None
    """The points of a fit, or of a sweep over ranges."""
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    """The rows of each table that the folder has, by the name of its file."""
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
            drawn = Drawn.from_dict(plan["drawn"]) if "drawn" in plan else None
        except (ConfigError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise RunError(
                f"{place} is no folder of a sweep: {error!s:.200}", hint="name a sweep's folder"
            ) from None
        read = {name: outputs.rows_of(place / f"{name}.parquet") for name in _TABLES}
        tables = {name: rows for name, rows in read.items() if rows}
        if "results" not in tables or len(tables) == 1:
            raise RunError(
                f"the sweep {place} has no results that can be read",
                hint="run it to its end: tiermem sweep writes them after its last run",
            )
        # A fit, and a sweep over ranges, test nothing.
        look, baseline = (Look(), {}) if drawn else registration.last_look(place)
        return cls(place, question, settings, variants, grid, baseline, drawn, tables, look)

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """A row per run: its variant, its place in the grid, its seed, its hash, its metrics."""
        return self.tables["results"]

    @property
    def statistics(self) -> Sequence[Mapping[str, Any]]:
        """A row per variant, place and metric: the mean, and the difference from the baseline."""
        return self.tables.get("statistics", ())

    @property
    def name(self) -> str:
        """The name of the sweep's folder."""
        return self.folder.absolute().name

    @property
    def metrics(self) -> list[str]:
        """The metrics that the report shows, in its order."""
        shown = (
            self.statistics,
            self.tables.get("indices", ()),
            self.tables.get("predictions", ()),
        )
        return list(dict.fromkeys(row["metric"] for table in shown for row in table))

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs."""
        return sorted({row["seed"] for row in self.rows})

    def __repr__(self) -> str:
        return self._view().text()

    def _repr_html_(self) -> str:
        return self._view().html()

    def _view(self) -> View:
        title = f"{self.name}: {counted(len(self.rows), 'run')}, {counted(len(self.seeds), 'seed')}"
        shown = [self.question] if self.question else []
        if not self.statistics:  # of a fit, or of ranges
            others = (rows for name, rows in self.tables.items() if name != "results")
            tables = [Table(list(rows[0]), [list(row.values()) for row in rows]) for rows in others]
            return View(title, [*shown, *tables])
        apart = next((name for name in self.statistics[0] if name.endswith("_p_holm")), "")
        against = apart.removesuffix("_p_holm")
        compared = any(row.get(against) is not None for row in self.statistics)
        heads = ["variant", *self.grid, "metric", "runs", "mean", "95 % interval"]
        rows = [
            [
                *(str(row[name]) for name in ("variant", *self.grid, "metric")),
                row["n"],
                row["mean"],
                in_words(interval_of(row)),
                *([row.get(against), row.get(apart)] if compared else []),
            ]
            for row in self.statistics
        ]
        heads += [against.replace("_", " "), "p, by Holm"] if compared else []
        return View(title, [*shown, Table(heads, rows)])

    def frame(self, table: str = "results") -> Any:
        """A table as a data frame of pandas or polars, whichever is installed.

        ``results`` has a row per run; ``statistics`` a row per variant, place and metric. A sweep
        over ranges has ``indices``, and a fit ``posterior`` and ``predictions``.
        """
        if table not in self.tables:
            raise RunError(
                f"a sweep has no table {table!r:.40}", hint=f"it has {', '.join(self.tables)}"
            )
        return frame(outputs.table(self.tables[table]))
