"""What a sweep runs: the settings of its cells, and what is refused before the first run."""

from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from agents.config.load import load_settings
from agents.errors import ConfigError, RunError, TierMemError
from agents.simulation.sweeps.run_sweep import write_results
from agents.simulation.sweeps.sweep import Sweep, read_sweep

Options = dict[str, Any]


def plan(folder: Path, preset: str | None = None, world: str = "market", **values: Any) -> Sweep:
    """A sweep of a small scenario, read from its file."""
    simulation = {"world": world, "agents": 6, "ticks": 3}
    (folder / "own.yaml").write_text(yaml.safe_dump({"simulation": simulation}))
    (folder / "sweep.yaml").write_text(
        yaml.safe_dump({"scenario": "own.yaml", "seeds": 1, **values}, sort_keys=False)
    )
    return read_sweep(folder / "sweep.yaml", preset)


def world_options(sweep: Sweep) -> list[Options]:
    return [dict(sweep.settings(cell).simulation.world_options) for cell in sweep.runs()]


WORLD = "simulation.world_options"
SPELLINGS: list[tuple[Options, Options]] = [
    (
        {"memory": {"default_limit": 2}, WORLD: {"turnover": 10, "gossip": 1}},
        {"memory": {"max_pinned": 1}, WORLD: {"scammers": 1, "gossip": 2}},
    ),
    (
        {"memory.default_limit": 2, f"{WORLD}.turnover": 10, f"{WORLD}.gossip": 1},
        {"memory.max_pinned": 1, f"{WORLD}.scammers": 1, f"{WORLD}.gossip": 2},
    ),
    (
        {"memory.default_limit": 2, "simulation": {"world_options": {"turnover": 10, "gossip": 1}}},
        {"memory": {"max_pinned": 1}, f"{WORLD}.scammers": 1, f"{WORLD}.gossip": 2},
    ),
    (
        {f"{WORLD}.gossip": 0, WORLD: {"turnover": 10, "gossip": 1}, "memory.default_limit": 2},
        {f"{WORLD}.gossip": 2, "simulation": {"world_options": {"scammers": 1}},
         "memory.max_pinned": 1},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("common", "variant"), SPELLINGS)
def test_a_variant_changes_what_it_names_however_it_is_spelt(
    tmp_path: Path, common: Options, variant: Options
) -> None:
    sweep = plan(tmp_path, set=common, variants={"a": variant, "b": {}})
    changed, plain = (sweep.settings(cell) for cell in sweep.runs())
    assert (changed.memory.default_limit, changed.memory.max_pinned) == (2, 1)
    assert plain.memory.default_limit == 2
    assert world_options(sweep) == [
        {"turnover": 10, "gossip": 2, "scammers": 1},
        {"turnover": 10, "gossip": 1},
    ]


def test_a_point_of_the_grid_changes_what_it_names_of_a_variant(tmp_path: Path) -> None:
    sweep = plan(
        tmp_path,
        set={f"{WORLD}.gossip": 1},
        variants={"a": {WORLD: {"scammers": 2}}, "b": {}},
        grid={WORLD: [{"turnover": 2}, {"gossip": 2}]},
    )
    assert world_options(sweep) == [
        {"gossip": 1, "scammers": 2, "turnover": 2},
        {"gossip": 2, "scammers": 2},
        {"gossip": 1, "turnover": 2},
        {"gossip": 2},
    ]
    names = ["a_world-options=-turnover-2-_seed=1", "a_world-options=-gossip-2-_seed=1"]
    assert [cell.name for cell in sweep.runs()][:2] == names


def test_levels_of_a_sweep_join_as_assignments_do(tmp_path: Path) -> None:
    """Mappings join, also those of a provider; a list replaces the list before it."""
    common = {"embedder.config": {"a": 1, "b": 2}, "simulation.agents": ["x", "y", "z", "v", "w"]}
    variant = {
        "embedder": {"config": {"b": 3}},
        "simulation": {"agents": ["v", "w", "u", "t", "s"]},
    }
    sweep = plan(tmp_path, set=common, variants={"a": variant})
    given = [
        "storage.sync=manual", "embedder.config={a: 1, b: 2}", "simulation.agents=[x, y, z, v, w]",
        "embedder.config={b: 3}", "simulation.agents=[v, w, u, t, s]", "seed=1",
    ]  # fmt: skip
    assert sweep.settings(sweep.runs()[0]) == load_settings(sweep.scenario, assignments=given)


def test_a_preset_of_a_sweep_beats_set_and_lies_below_what_is_varied(tmp_path: Path) -> None:
    """The order that docs/simulations.md tells."""
    common = {"temperature": {"hot_max_facts": 7, "max_cold_items": 33}}
    variants: Options = {
        "plain": {},
        "preset": {"preset": "hot-warm-cold"},
        "own": {"temperature": {"hot_max_facts": 9}, "preset": "hot-warm-cold"},
    }
    sweep = plan(tmp_path, set=common, variants=variants)
    used = [sweep.settings(cell).temperature for cell in sweep.runs()]
    assert [each.hot_max_facts for each in used] == [7, 50, 9]
    assert {each.max_cold_items for each in used} == {33}
    named = plan(tmp_path, "hot-warm-cold", set=common, variants=variants)
    used = [named.settings(cell).temperature for cell in named.runs()]
    assert [each.hot_max_facts for each in used] == [50, 50, 9]


OWN_WORLD = '''
from pathlib import Path

from tiermem.simulation import Observation


class Own:
    """Its option says what its metrics are called."""

    def __init__(self, metrics=("luck",), made_in=None, value=1):
        if made_in:
            with Path(made_in).open("a") as file:
                file.write("made\\n")
        self._names, self._value = metrics, value

    def setup(self, rng, agent_ids):
        if not self._names:
            raise RuntimeError("no ground")

    def observe(self, agent_id):
        return Observation("a street")

    def apply(self, agent_id, action):
        return None

    def end_tick(self):
        pass

    def metrics(self):
        return dict.fromkeys(self._names, self._value)

    def get_state(self):
        return {}

    def set_state(self, state):
        pass

    def rules(self):
        return Rests()


class Rests:
    def decide(self, observation, memories, rng):
        return []
'''
NAMES = "simulation.world_options.metrics"


def own_plan(folder: Path, **values: Any) -> Sweep:
    """A sweep over a world of the user's own."""
    (folder / "own_world.py").write_text(OWN_WORLD)
    return plan(folder, world="own_world:Own", **values)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    ("wrong", "kind", "said"),
    [
        ({"simulation.world_options.colour": 1}, ConfigError, "unexpected keyword .*'colour'"),
        ({"simulation.policy_options": {"typo": 1}}, ConfigError, "policy_options: .*'typo'"),
        ({"simulation.policy": "own_world:Nobody"}, ConfigError, "no class 'Nobody'"),
        ({"simulation.policy": "llm"}, ConfigError, "no LLM is configured"),
        ({"simulation.memories": [{"content": ""}]}, ConfigError, "memories.0."),
        ({"notes.transcripts": True}, ConfigError, "notes.transcripts: a run has none"),
        ({NAMES: []}, RunError, "setup\\(\\) raised RuntimeError in tick 0: no ground"),
        ({NAMES: 5}, RunError, "metrics\\(\\) raised TypeError"),
        ({"simulation.world_options.value": "x"}, RunError, "tick 0 what can't be kept: 'x'"),
    ],
)  # fmt: skip
def test_the_world_of_each_run_is_tried_before_the_first(
    tmp_path: Path, place: int, wrong: Options, kind: type[TierMemError], said: str
) -> None:
    variants: Options = {"a": {}, "b": {}, "c": {}, "abc"[place]: wrong}
    with pytest.raises(kind, match=f"sweep.yaml: run {'abc'[place]}_seed=1: .*{said}") as wrongly:
        own_plan(tmp_path, variants=variants)
    error = wrongly.value
    assert kind is ConfigError or "no run was made" in error.hint
    assert "resume" not in error.hint
    assert "whole ticks are kept" not in error.what


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"grid": {"seed": [11, 12]}}, "grid"),
        ({"grid": {"memory.max_pinned": [1, 2], "seed": [11]}}, "grid"),
        ({"set": {"seed": 5}}, "set"),
        ({"variants": {"a": {}, "b": {"memory.max_pinned": 1, "seed": 5}}}, "variants"),
    ],
)
def test_the_seed_of_a_run_is_given_by_seeds_alone(
    tmp_path: Path, values: Options, line: str
) -> None:
    """Each run has a seed of its own, which would beat the seed that is named elsewhere."""
    with pytest.raises(ConfigError, match=rf"sweep.yaml:\d+: {line} can't .*give seeds:"):
        plan(tmp_path, **values)


def test_a_world_is_tried_once_for_all_runs_that_have_it(tmp_path: Path) -> None:
    made = tmp_path / "made"
    own_plan(
        tmp_path,
        set={"simulation.world_options.made_in": str(made)},
        variants={"a": {}, "b": {NAMES: ["loss"]}},
        grid={"memory.max_pinned": [1, 2, 3]},
        seeds=4,
    )
    assert made.read_text().count("made") == 2


def test_a_metric_that_one_of_the_worlds_has_may_be_compared(tmp_path: Path) -> None:
    variants: Options = {"a": {NAMES: ["loss"]}, "b": {}}
    assert own_plan(tmp_path, variants=variants, metrics=["loss"]).metrics == ["loss"]
    with pytest.raises(ConfigError, match=r"no metric 'gain'.*it has loss, luck"):
        own_plan(tmp_path, variants=variants, metrics=["gain"])


@pytest.mark.parametrize("name", ["cell", "variant", "seed", "state_hash", "memory.max_pinned"])
def test_a_metric_with_the_name_of_a_column_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=f"run b_.*metric {name!r} .*results.parquet"):
        own_plan(
            tmp_path,
            variants={"a": {NAMES: ["loss"]}, "b": {NAMES: ["luck", name]}, "c": {}},
            grid={"memory.max_pinned": [1, 2]},
        )
    assert own_plan(tmp_path, variants={"b": {NAMES: ["memory.max_pinned"]}}).variants


def test_plots_lie_in_the_sweeps_folder_whatever_a_metric_is_called(tmp_path: Path) -> None:
    long = "long " * 60
    names = ["a/b", "accuracy_mean", "a-b", "../up", "größe in m", "a\\b", "", "\x1b[2J", long]
    sweep = own_plan(tmp_path, set={NAMES: names})
    folder = tmp_path / "above" / "swept"
    folder.mkdir(parents=True)
    (cell,) = sweep.runs()
    write_results(
        sweep, folder, {cell.name: {"state_hash": "0", "metrics": dict.fromkeys(names, 1)}}
    )
    assert [each.name for each in folder.parent.iterdir()] == ["swept"]
    plots = {each.name for each in folder.glob("*.svg")}
    assert {"accuracy_mean.svg", "a-b.svg", "größe in m.svg"} <= plots
    assert {"a-b-2.svg", "a-b-3.svg", "..-up.svg", "metric.svg", "-2J.svg"} <= plots
    assert len(plots) == len(names)
    report = (folder / "report.html").read_text()
    for name in ("a/b", "../up", "größe in m"):
        assert f"<h3>{name}</h3>" in report
    assert list(pq.read_table(folder / "results.parquet").column_names)[4:] == names


def test_plots_have_names_that_differ_in_more_than_case(tmp_path: Path) -> None:
    names = ["Loss", "loss", "a/b", "A-b", "STRASSE", "straße"]
    sweep = own_plan(tmp_path, set={NAMES: names})
    (cell,) = sweep.runs()
    write_results(
        sweep, tmp_path, {cell.name: {"state_hash": "0", "metrics": dict.fromkeys(names, 1)}}
    )
    plots = {each.stem for each in tmp_path.glob("*.svg")}
    assert plots == {"Loss", "loss-2", "A-b", "a-b-2", "STRASSE", "straße-2"}


@pytest.mark.slow
def test_results_have_all_metrics_whichever_run_ends_first(tmp_path: Path) -> None:
    variants: Options = {"a": {NAMES: ["loss", "both"]}, "b": {NAMES: ["both", "gain"]}, "c": {}}
    sweep = own_plan(tmp_path, variants=variants, seeds=3)
    metrics: Options = {
        "a": {"loss": 1, "both": 2},
        "b": {"both": 4.5, "gain": 3},
        "c": {"luck": 1},
    }
    summaries = {
        cell.name: {"state_hash": cell.name, "metrics": metrics[cell.variant]}
        for cell in sweep.runs()
    }
    made = []
    for number, variant_order in enumerate(permutations("abc")):
        folder = tmp_path / str(number) / "swept"
        folder.mkdir(parents=True)
        ended = sorted(summaries, key=lambda name: variant_order.index(name[0]))
        write_results(sweep, folder, {name: summaries[name] for name in ended})
        made.append({each.name: each.read_bytes() for each in folder.iterdir()})
    assert all(each == made[0] for each in made)
    assert {f"{name}.svg" for name in ("loss", "both", "gain", "luck")} <= made[0].keys()
    rows = pq.read_table(tmp_path / "0" / "swept" / "results.parquet").to_pylist()
    assert list(rows[0])[4:] == ["loss", "both", "gain", "luck"]
    assert [[row[name] for name in list(row)[4:]] for row in rows[::3]] == [
        [1, 2, None, None], [None, 4.5, 3, None], [None, None, None, 1],
    ]  # fmt: skip
    rows = pq.read_table(tmp_path / "0" / "swept" / "statistics.parquet").to_pylist()
    means = {(row["variant"], row["metric"]): row["mean"] for row in rows}
    assert means == {
        ("a", "loss"): 1, ("a", "both"): 2, ("b", "both"): 4.5, ("b", "gain"): 3, ("c", "luck"): 1,
    }  # fmt: skip
    compared = {(row["variant"], row["metric"]): row["against_a"] for row in rows}
    assert {place: value for place, value in compared.items() if value} == {("b", "both"): 2.5}
    report = made[0]["report.html"].decode()
    assert all(f"<h3>{name}</h3>" in report for name in ("loss", "both", "gain", "luck"))
    assert "None" not in report


def test_a_metric_that_no_finished_run_has_is_shown_as_nothing(tmp_path: Path) -> None:
    variants: Options = {"a": {NAMES: ["loss"]}, "b": {NAMES: ["gain"]}}
    sweep = own_plan(tmp_path, variants=variants, metrics=["gain", "loss"])
    first, _ = sweep.runs()
    results = write_results(
        sweep, tmp_path, {first.name: {"state_hash": "0", "metrics": {"loss": 1}}}
    )
    assert [row["metric"] for row in results.statistics] == ["loss"]
    assert (tmp_path / "gain.svg").is_file()
