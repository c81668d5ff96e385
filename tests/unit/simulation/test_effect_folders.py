"""The folder of an experiment: whole or not at all, and nothing else is replaced."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from agents.config.load import load_settings
from agents.errors import BankLocked, RunError, SimulationError, TierMemError
from agents.simulation.effects import effect, which
from agents.simulation.runs.run import Run
from agents.simulation.runs.trust import is_trusted_run, trust

pytestmark = pytest.mark.slow

WORLD = '''
from tiermem.simulation import Action, Observation

class Wells:
    """Ann learns in tick 1 that the well is dry; a walk to it breaks the world, if it may."""
    def setup(self, rng, agent_ids):
        self.tick = 1
    def observe(self, agent_id):
        return Observation("the well is dry" if self.tick == 1 else "a day")
    def apply(self, agent_id, action):
        raise RuntimeError("nobody goes there")
    def end_tick(self):
        self.tick += 1
    def metrics(self):
        return {"tick": self.tick}
    def get_state(self):
        return self.tick
    def set_state(self, state):
        self.tick = state

class Walks:
    def decide(self, observation, memories, rng):
        known = any("is dry" in hit.memory.content for hit in memories)
        return [] if known or observation.text != "a day" else [Action("go", {})]
'''
CHANGE: dict[str, Any] = {"at": 2, "set": "memory.max_pinned=1"}
BREAKS: dict[str, Any] = {"at": 2, "forget": "ann:well is dry"}


@pytest.fixture(scope="module")
def wells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, which no test changes."""
    place = tmp_path_factory.mktemp("wells")
    (place / "wells.py").write_text(WORLD)
    settings = load_settings(
        {
            "seed": 7,
            "storage": {"sync": "manual"},
            "simulation": {
                "world": "wells:Wells", "policy": "wells:Walks", "agents": ["ann"], "ticks": 4,
            },
        }
    )  # fmt: skip
    with Run.create(place / "run", settings, scenario=place) as run:
        list(run.advance(4))
        run.finish(report=False)
    return place / "run"


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_an_experiment_does_not_replace_the_folder_of_its_own_run(
    wells: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    effect(wells, **CHANGE, out=out)
    before = files(out)
    for run, place in ((out / "as-it-was", out), (out / "changed", out / ".." / "out")):
        for force in (False, True):
            with pytest.raises(RunError, match="holds the run itself"):
                effect(run, at=3, set="memory.max_pinned=2", out=place, force=force)
    with pytest.raises(RunError, match="holds the run itself"):
        which(out / "as-it-was", "tick", out=out / "as-it-was", force=True)
    assert files(out) == before


@pytest.mark.parametrize(
    "name",
    [
        "thesis.txt", "as-it-was/thesis.txt", "seed-8/thesis.txt",
        "thesis.tmp", ".thesis.tmp", "as-it-was/thesis.tmp", "seed-8/thesis.1.tmp",
    ],
)  # fmt: skip
def test_an_experiment_does_not_replace_what_is_no_experiments(
    wells: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out"
    effect(wells, **CHANGE, seeds=2, workers=1, out=out)
    (out / name).write_text("mine")
    with pytest.raises(RunError, match=f"is not an experiment: it holds {name}"):
        effect(wells, **CHANGE, out=out, force=True)
    assert (out / name).read_text() == "mine"
    assert (out / "effect.json").is_file()


def test_a_run_with_a_file_of_the_users_is_not_replaced(wells: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(wells, run)
    settings = load_settings({"simulation": {"world": "market", "agents": 6, "ticks": 1}})
    for name in ("thesis.tmp", ".thesis.tmp"):
        (run / name).write_text("mine")
        with pytest.raises(RunError, match=f"it holds {name}"):
            Run.create(run, settings, force=True)
        (run / name).unlink()
    for ours in (".config.yaml.7.0a1b2c3d.tmp", ".shards.7.tmp", ".run.7.old.tmp"):
        (run / ours).write_text("half")
    Run.create(run, settings, force=True).close()
    (run / ".thesis.tmp").write_text("mine")
    (run / ".run.json.7.0a1b2c3d.tmp").write_text("half")
    Run.open(run).close()
    assert [each.name for each in run.glob(".*")] == [".thesis.tmp"]


def test_an_experiment_in_use_is_not_replaced(wells: Path, tmp_path: Path) -> None:
    effect(wells, **CHANGE, out=tmp_path / "out")
    with Run.open(tmp_path / "out" / "changed"), pytest.raises(BankLocked):
        effect(wells, **CHANGE, out=tmp_path / "out", force=True)
    effect(wells, **CHANGE, out=tmp_path / "out", force=True)


@pytest.mark.parametrize("wrong", [BREAKS, {"at": 2, "set": "seed=9"}, {"at": 9, "pin": "ann:a"}])
def test_an_experiment_that_fails_leaves_the_one_that_was_there(
    wells: Path, tmp_path: Path, wrong: dict[str, Any]
) -> None:
    out = tmp_path / "out"
    effect(wells, **CHANGE, out=out)
    before = files(out)
    with pytest.raises(TierMemError) as failed:
        effect(wells, **wrong, out=out, force=True)
    assert ".tmp" not in str(failed.value)
    assert "error.txt" not in str(failed.value)
    assert files(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_half_an_experiment_keeps_its_traceback_and_is_replaced_without_force(
    wells: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(SimulationError, match="nobody goes there") as failed:
        effect(wells, **BREAKS, out=out)
    assert f"the traceback is in {out / 'changed' / 'error.txt'}" in failed.value.hint
    assert "nobody goes there" in (out / "changed" / "error.txt").read_text()
    effect(wells, **CHANGE, out=out)
    assert json.loads((out / "effect.json").read_text())["at"] == 2
    assert not (out / "changed" / "error.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    with pytest.raises(RunError, match="exists already"):
        effect(wells, **CHANGE, out=out)


def test_a_run_that_is_called_like_an_arm_is_not_replaced(wells: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    shutil.copytree(wells, study / "as-it-was")
    before = files(study)
    for force in (False, True):
        with pytest.raises(RunError, match="is not an experiment"):
            effect(wells, **CHANGE, out=study, force=force)
        (study / "unfinished.txt").write_text("my own list of what is unfinished")
    (study / "unfinished.txt").unlink()
    assert files(study) == before


def test_a_world_that_broke_is_mended_in_the_run_and_the_command_given_again(
    wells: Path, tmp_path: Path
) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    shutil.copytree(wells, run)
    trust(run)
    mend = f"mend it in {run / 'code'}, then give the same command again"
    with pytest.raises(SimulationError, match="nobody goes there") as failed:
        effect(run, **BREAKS)
    assert failed.value.hint == mend
    with pytest.raises(SimulationError, match="nobody goes there") as failed:
        effect(run, **BREAKS, out=out)
    assert failed.value.hint == f"the traceback is in {out / 'changed' / 'error.txt'}; {mend}"
    code = run / "code" / "wells.py"
    code.write_text(code.read_text().replace('raise RuntimeError("nobody goes there")', "pass"))
    effect(run, **BREAKS, out=out)
    assert (out / "effect.json").is_file()
    assert not (out / "unfinished.txt").exists()


def test_the_results_that_can_not_be_written_leave_half_an_experiment(
    wells: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> bytes:
        raise RunError("the disk is full")

    monkeypatch.setattr("agents.simulation.effects.results.effect_plot", full)
    with pytest.raises(RunError, match="the disk is full"):
        effect(wells, **CHANGE, out=tmp_path / "out")
    monkeypatch.undo()
    effect(wells, **CHANGE, out=tmp_path / "out")


def test_what_a_killed_process_left_goes_and_the_old_experiment_is_back(
    wells: Path, tmp_path: Path
) -> None:
    out, dead = tmp_path / "out", _dead()
    effect(wells, **CHANGE, out=out)
    out.rename(tmp_path / f".out.{dead}.old.tmp")
    (tmp_path / f".out.{dead}.tmp").mkdir()
    with pytest.raises(RunError, match="exists already"):
        effect(wells, **CHANGE, out=out)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def _dead() -> int:
    """The number of a process that has ended."""
    number = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(number, 0)
    return number


def test_the_runs_of_other_seeds_know_each_other_by_their_names(
    wells: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    effect(wells, **CHANGE, seeds=2, workers=1, out=out)
    about = json.loads((out / "seed-8" / "changed" / "run.json").read_text())
    assert about["parent"]["run"] == str(out / "seed-8" / "as-it-was")
    for arm in (out / "changed", out / "seed-8" / "changed", out / "seed-8" / "as-it-was"):
        assert is_trusted_run(arm)
        Run.open(arm).close()


def test_a_folder_that_is_there_and_empty_is_taken(wells: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    effect(wells, **CHANGE, out=tmp_path / "out")
    assert (tmp_path / "out" / "effect.json").is_file()
    for wrong in ("", "/"):
        with pytest.raises(RunError, match="a folder of its own"):
            effect(wells, **CHANGE, out=wrong)
