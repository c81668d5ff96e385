"""Sweeps: variants of a scenario, run over a grid or ranges of settings and many seeds."""

import hashlib
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from ...config.load import joined_overrides, load_settings, preset_settings
from ...config.plain import Document
from ...config.settings import Settings
from ...config.yaml_files import read_file
from ...errors import ConfigError, RunError, SimulationError
from ..runs.placement import without_engine
from ..runs.run import CHANGING
from ..runs.scenario import check_settings, code_of, try_world
from ..tick.user_code import metrics_of
from .drawn import MOST_POINTS, Drawn, read_ranges

COLUMNS = ("cell", "variant", "seed", "state_hash")
"""The columns of ``results.parquet`` that are neither settings of the grid nor metrics."""
_KEYS = (
    "scenario", "question", "registration", "set", "variants", "grid", "ranges", "points",
    "baseline", "seeds", "metrics",
)  # fmt: skip
_MOST_LOOKS = 100
POINTS = 64
"""Of each of the two hypercubes that are mixed, if the file does not say."""
_MOST_POINTS = 1 << 16
_MAKE_A_WORLD = ("simulation", "llm", "reflection", "notes")
"""The sections of the settings of which a world and a policy are made."""


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep."""

    name: str
    variant: str
    point: tuple[object, ...]
    """The values of the grid's keys."""
    seed: int
    overrides: Sequence[Mapping[str, Any]]
    """What its variant, its point and its seed change; each beats those before it."""


def run_name(variant: str, at: Mapping[str, object], seed: int) -> str:
    """The name of a run, and of its folder: its variant, its place in the grid, its seed."""
    parts = [variant, *(f"{k.split('.')[-1]}={v}" for k, v in at.items()), f"seed={seed}"]
    return "_".join(re.sub(r"[^A-Za-z0-9.=-]+", "-", part) for part in parts)


def shown_value(value: object, values: Sequence[object]) -> object:
    """A grid's value for a table. All values of a column have one type."""
    types = {type(each) for each in values}
    plain = types <= {int, float} or types in ({str}, {bool})
    return value if plain else json.dumps(value)


@dataclass(frozen=True)
class Sweep:
    """A sweep's file, read and checked."""

    scenario: Path
    question: str
    common: Mapping[str, Any]
    """The settings that all variants change."""
    variants: Mapping[str, Mapping[str, Any]]
    """By name, the settings that each changes, after those of the preset that ``preset`` names.

    A mapping changes what it names, like keys with dots, however other levels spell it.
    """
    grid: Mapping[str, Sequence[Any]]
    seeds: Sequence[int]
    metrics: Sequence[str]
    """The metrics to show; all of the world's, if the file names none."""
    baseline: Mapping[str, Any]
    """What all others are compared with: ``variant`` or settings of the grid, and their values."""
    primary: str | None = None
    """The registered metric that the question is about; the others are secondary."""
    looks: int | None = None
    """How many looks at the results are registered; without a number there may always be more."""
    preset: str | None = None
    """A preset that changes the scenario and ``common``; variants and the grid change it."""
    drawn: Drawn | None = None
    """Points drawn from ranges, in place of the grid's. Those of a fit have a seed each."""

    @property
    def varied(self) -> Mapping[str, Sequence[Any]]:
        """The settings that are not the same in all runs of a variant, and their values."""
        return self.grid if self.drawn is None else self.drawn.columns

    def settings(self, planned: SweepRun | None = None) -> Settings:
        """The scenario's settings, with a run's changes."""
        changes = joined_overrides(planned.overrides) if planned else {}
        presets = [each for each in (self.preset, changes.pop("preset", None)) if each is not None]
        # Writing thousands of memories to Chroma would take longer than the runs.
        levels = [{"storage.sync": "manual"}, self.common, *map(preset_settings, presets), changes]
        return load_settings(self.scenario, overrides=joined_overrides(levels))

    def runs(self) -> list[SweepRun]:
        """Every run, in order."""
        if self.drawn is not None:
            return [
                self._run(variant, point, seed, {"point": number})
                for variant in self.variants
                for number, point in enumerate(self.drawn.values)
                for seed in (self.seeds if self.drawn.is_mixed else [self.seeds[number]])
            ]
        points = itertools.product(*self.grid.values())
        return [
            self._run(variant, point, seed)
            for variant, point, seed in itertools.product(self.variants, points, self.seeds)
        ]

    def trials(self) -> list[SweepRun]:
        """Runs in which a mistake of any run shows: all, or those at the ends of ranges."""
        if self.drawn is None:
            return self.runs()
        places = itertools.product(self.variants, self.drawn.ends)
        return [self._run(variant, point, self.seeds[0]) for variant, point in places]

    def _run(
        self,
        variant: str,
        point: tuple[object, ...],
        seed: int,
        named: Mapping[str, object] | None = None,
    ) -> SweepRun:
        at = dict(zip(self.drawn.ranges if self.drawn else self.grid, point, strict=True))
        name = run_name(variant, at if named is None else named, seed)
        changes = self.variants[variant]
        return SweepRun(name, variant, point, seed, (changes, at, {"seed": seed}))

    @property
    def preset_changes_nothing(self) -> bool:
        """Whether there is a preset, and every run would be the same without it."""
        plain = replace(self, preset=None)
        return self.preset is not None and not any(
            self.settings(planned) != plain.settings(planned) for planned in self.trials()
        )

    def to_dict(self) -> dict[str, Any]:
        """The parts that must stay the same when a sweep goes on. The seeds may change."""
        drawn = {} if self.drawn is None else {"drawn": self.drawn.to_dict()}
        return {
            **drawn,
            "scenario": lasting(self.settings()),
            "variants": {name: dict(each) for name, each in self.variants.items()},
            "grid": {name: list(each) for name, each in self.grid.items()},
            "code": {
                name: hashlib.sha256(file.read_bytes()).hexdigest()
                for name, file in code_of(self.settings(), self.scenario.parent).items()
            },
        }


def lasting(settings: Settings) -> dict[str, Any]:
    """The settings that a run keeps when it goes on, without secrets."""
    values: dict[str, Any] = without_engine(settings).to_dict(redact=True)
    for section, _, name in (each.partition(".") for each in CHANGING):
        del values[section][name]
    return values


def read_sweep(path: Path, preset: str | None = None) -> Sweep:
    """Read and check the sweep in a YAML file."""
    document = read_file(path)
    value = document.value
    if not isinstance(value, dict) or "scenario" not in value:
        raise ConfigError(
            f"{document.source}: this is not a sweep",
            hint="a sweep is a mapping with scenario, and then variants, grid and seeds as needed",
        )
    for key in value:
        if key not in _KEYS:
            raise ConfigError(
                f"{document.place((key,))}: unknown key {key!r:.40}",
                hint=f"known: {', '.join(_KEYS)}",
            )
    variants = value.get("variants") or {"scenario": {}}
    grid = value.get("grid") or {}
    common = value.get("set") or {}
    registration = {} if value.get("registration") is None else value["registration"]
    points = value.get("points", POINTS)
    seeds = value.get("seeds", 10 if "ranges" not in value else 1)
    if isinstance(seeds, int) and not isinstance(seeds, bool) and 1 <= seeds <= 100_000:
        seeds = list(range(1, seeds + 1))
    checks: tuple[tuple[str, bool, str], ...] = (
        ("scenario", isinstance(value["scenario"], str), "the path of a scenario"),
        (
            "registration",
            _is_registration(registration),
            f"a mapping with primary (a metric) or looks (1 to {_MOST_LOOKS}), or both",
        ),
        ("set", isinstance(common, dict), "settings that all variants change"),
        ("variants", _is_mapping_of(variants, dict), "names with the settings that each changes"),
        ("grid", _is_mapping_of(grid, list), "settings with a list of values for each"),
        (
            "points",
            type(points) is int and 8 <= points <= _MOST_POINTS and points & (points - 1) == 0,
            "a power of two from 8 on, such as 64",
        ),
        ("seeds", _is_list_of(seeds, int), "a number of seeds, or a list of different ones"),
        ("metrics", _is_list_of(value.get("metrics", ["x"]), str), "a list of metrics"),
    )
    for key, fine, wanted in checks:
        if not fine:
            raise ConfigError(f"{document.place((key,))}: {key} must be {wanted}")
    levels: list[tuple[tuple[str, ...], Mapping[str, Any]]] = [
        (("set",), common),
        (("grid",), grid),
    ]
    levels += [(("variants", name), changes) for name, changes in variants.items()]
    for place, level in levels:
        if "seed" in level:  # each run has a seed of its own, which beats all of these
            raise ConfigError(
                f"{document.place((*place, 'seed'))}: {place[0]} can't give the seed of a run",
                hint="give seeds: their number, or a list of them",
            )
    drawn = None
    if "ranges" in value:
        for key in ("grid", "registration", "baseline"):
            if key in value:
                raise ConfigError(
                    f"{document.place((key,))}: a sweep over ranges has no {key}",
                    hint="it says what the metrics depend on, and compares nothing",
                )
        ranges = read_ranges(document, value["ranges"], ("seed", *COLUMNS))
        drawn = Drawn(ranges, points, is_mixed=True)
        runs = points * (len(ranges) + 2) * len(variants) * len(seeds)
        if runs > MOST_POINTS:
            raise ConfigError(
                f"{document.source}: these are {runs:,} runs, and {MOST_POINTS:,} are the most",
                hint="give fewer points, ranges or seeds",
            )
    elif "points" in value:
        raise ConfigError(
            f"{document.place(('points',))}: there are no ranges to draw points from",
            hint="give ranges: settings, each with its lowest and its highest value",
        )
    sweep = Sweep(
        scenario=path.parent / value["scenario"],
        question=str(value.get("question", "")),
        common=common,
        variants={name: dict(changes) for name, changes in variants.items()},
        grid=grid,
        seeds=seeds,
        metrics=value.get("metrics", ()),
        baseline=_baseline(document, variants, grid),
        primary=registration.get("primary"),
        looks=registration.get("looks"),
        preset=preset,
        drawn=drawn,
    )
    names = [planned.name for planned in sweep.runs()]
    if len(set(names)) < len(names):
        raise ConfigError(
            f"{document.source}: two runs of the sweep would have the same name",
            hint="rename a variant, or leave out a value of grid that is there twice",
        )
    known = world_metrics(sweep, document.source)
    primary = [] if sweep.primary is None else [("registration", sweep.primary)]
    for key, name in [*(("metrics", name) for name in sweep.metrics), *primary]:
        if name not in known:
            raise ConfigError(
                f"{document.place((key,))}: the world has no metric {name!r:.60}",
                hint=f"it has {', '.join(known)}",
            )
    return sweep


def world_metrics(sweep: Sweep, source: str) -> list[str]:
    """The metrics of all worlds of a sweep; a mistake in any run shows before the first run."""
    by_world: dict[str, list[str]] = {}
    for planned in sweep.trials():
        try:
            settings = sweep.settings(planned)
            if planned.seed == sweep.seeds[0]:
                check_settings(settings)
                values = settings.to_dict()
                world = json.dumps([values[each] for each in _MAKE_A_WORLD], sort_keys=True)
                if world not in by_world:  # many runs may have the same world
                    by_world[world] = _metrics_in(settings, sweep)
        except ConfigError as error:
            said = error.why.removeprefix("keyword argument: ")
            raise ConfigError(f"{source}: run {planned.name}: {said}", hint=error.hint) from None
        except SimulationError as error:
            raise RunError(
                f"{source}: run {planned.name}: {error.why}",
                hint="no run was made; mend the world or the policy, then give the same command "
                "again",
            ) from error
    return list(dict.fromkeys(itertools.chain.from_iterable(by_world.values())))


def _metrics_in(settings: Settings, sweep: Sweep) -> list[str]:
    names = list(metrics_of(try_world(settings, [sweep.scenario.parent]), 0, None))
    for name in names:
        if name in (*COLUMNS, *sweep.varied):
            raise ConfigError(
                f"the world's metric {name!r:.60} has the name of a column of results.parquet",
                hint="rename the metric in metrics()",
            )
    return names


def _baseline(
    document: Document, variants: Mapping[str, Any], grid: Mapping[str, Sequence[Any]]
) -> dict[str, Any]:
    """What the file says to compare with; else the first variant, or the grid's first point."""
    value = cast(dict[str, Any], document.value)
    if "baseline" not in value:
        first = {key: values[0] for key, values in grid.items()}
        return first if first and len(variants) == 1 else {"variant": next(iter(variants))}
    said, at = value["baseline"], document.place(("baseline",))
    if isinstance(said, dict) and said:
        for key, setting in said.items():
            if key not in grid:
                raise ConfigError(
                    f"{at}: the grid has no {key!r:.60}",
                    hint=f"it has {', '.join(grid)}" if grid else "this sweep has no grid",
                )
            if repr(setting) not in map(repr, grid[key]):
                raise ConfigError(
                    f"{at}: the grid does not try {setting!r:.60} for {key}",
                    hint=f"it tries {', '.join(map(str, grid[key]))}",
                )
        return said
    if said not in list(variants):
        raise ConfigError(
            f"{at}: {said!r:.60} is neither a variant nor a point of the grid",
            hint=f"name a variant ({', '.join(variants)}), or settings of the grid with a value",
        )
    return {"variant": said}


def _is_registration(value: object) -> bool:
    if not isinstance(value, dict) or not value.keys() <= {"primary", "looks"}:
        return False
    looks = value.get("looks", 1)
    is_number = isinstance(looks, int) and not isinstance(looks, bool)
    return is_number and 1 <= looks <= _MOST_LOOKS and isinstance(value.get("primary", ""), str)


def _is_mapping_of(value: object, kind: type) -> bool:
    return (
        isinstance(value, dict)
        and all(value)
        and all(isinstance(each, kind) and (kind is dict or each) for each in value.values())
    )


def _is_list_of(value: object, kind: type) -> bool:
    if not isinstance(value, list) or not value or len(set(map(str, value))) < len(value):
        return False
    return all(isinstance(each, kind) and not isinstance(each, bool) for each in value)
