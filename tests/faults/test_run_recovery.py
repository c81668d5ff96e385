"""What goes wrong around a run destroys nothing that is sound."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agents import BankDamaged, BankTooNew, BankTooOld, CommitFailed, SimulationError, TierFull
from agents.config.load import load_settings
from agents.config.settings import Settings
from agents.simulation import Run
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.runs.branch import branch
from agents.simulation.runs.replay import Replay
from agents.simulation.runs.run import go_back

WORLD = '''
class Counter:
    """Counts ticks; what else it does is for a test to say."""

    def __init__(self, *, keys_from=99, fail_at=99):
        self.keys_from, self.fail_at = keys_from, fail_at

    def setup(self, rng, agent_ids):
        self.rng, self.count, self.found = rng, 0, {}

    def observe(self, agent_id):
        return f"{agent_id} sees {self.count} and {self.rng.random():.3f}"

    def apply(self, agent_id, action):
        return None

    def end_tick(self):
        self.count += 1
        if self.count == self.fail_at:
            self.fail_at = 99
            raise RuntimeError("once")
        if self.count >= self.keys_from:
            self.found[self.count] = True

    def metrics(self):
        return {"count": self.count}

    def get_state(self):
        return {"count": self.count, "found": self.found}

    def set_state(self, state):
        self.count, self.found = state["count"], state["found"]

    def rules(self):
        return Idle()


class Idle:
    def decide(self, observation, memories, rng):
        return []
'''


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "counter.py").write_text(WORLD)
    return folder


def settings_of(**changes: Any) -> Settings:
    return load_settings(
        {
            "simulation": {"world": "counter:Counter", "agents": 2, "ticks": 12},
            "checkpoint": {"every": 5, "keep": 3},
            "storage": {"sync": "manual"},
        },
        overrides=changes,
    )


def run_to(folder: Path, scenario: Path, tick: int, **changes: Any) -> Path:
    with Run.create(folder, settings_of(**changes), scenario=scenario) as run:
        for _ in run.advance(tick):
            pass
    return folder


@pytest.fixture
def run(tmp_path: Path, scenario: Path) -> Path:
    return run_to(tmp_path / "run", scenario, 12)


def database(run: Path) -> sqlite3.Connection:
    return sqlite3.connect(run / "bank" / "journal.db", isolation_level=None)


def history(run: Path) -> list[str]:
    with Run.open(run) as opened:
        return [record["state_hash"] for record, _ in ticks_of(opened.bank).records()]


@pytest.mark.slow
def test_a_journal_that_is_only_busy_is_not_replaced_by_a_checkpoint(run: Path) -> None:
    before = history(run)
    other = database(run)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(CommitFailed, match="locked"):
        go_back(run, 9)
    other.close()
    assert history(run) == before


def test_a_checkpoint_of_an_edited_branch_can_be_gone_on_from(run: Path, tmp_path: Path) -> None:
    edits = [{"agent": "agent_00", "do": "add", "content": "what if"}]
    branch(run, 5, tmp_path / "b", edits=edits)
    with Run.open(tmp_path / "b") as opened:
        for _ in opened.advance(7):
            pass
        expected = opened.bank.state_hash()
    (tmp_path / "b" / "bank" / "journal.db").unlink()
    said: list[str] = []
    with Run.open(tmp_path / "b", say=said.append) as opened:
        assert opened.tick == 5
        for _ in opened.advance(7):
            pass
        assert opened.bank.state_hash() == expected
    assert any("continuing from the checkpoint" in line for line in said)


def test_a_new_run_that_can_not_begin_leaves_the_old_one(run: Path, scenario: Path) -> None:
    known = [{"agent": "agent_00", "content": text, "tier": "pinned"} for text in ("one", "two")]
    changes: dict[str, Any] = {
        "memory": {"max_pinned": 1, "on_tier_full": "reject"},
        "simulation": {"memories": known},
    }
    before = history(run)
    with pytest.raises(TierFull):
        Run.create(run, settings_of(**changes), scenario=scenario, force=True)
    assert history(run) == before
    assert [path.name for path in run.parent.glob(".*")] == []


def test_a_run_in_the_way_of_a_kill_between_two_renames_comes_back(
    run: Path, scenario: Path
) -> None:
    before = history(run)
    run.rename(run.with_name(".run.999999999.old.tmp"))
    with pytest.raises(SimulationError, match="exists already"):
        Run.create(run, settings_of(), scenario=scenario)
    assert history(run) == before


def test_another_runs_folder_in_the_making_is_left_alone(run: Path, scenario: Path) -> None:
    other = run.with_name(".run.2.999999999.tmp")  # of a run that is called run.2
    other.mkdir()
    Run.create(run, settings_of(), scenario=scenario, force=True).close()
    assert other.exists()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE ticks SET state = x'00' WHERE tick = 12",
        "UPDATE commits SET events = '[]' WHERE tick = 12",
        "UPDATE ticks SET record = '{}' WHERE tick = 12",
    ],
)
def test_a_damaged_journal_is_kept_when_a_checkpoint_takes_its_place(
    run: Path, damage: str
) -> None:
    expected = history(run)
    with database(run) as other:
        other.execute(damage)
    other.close()
    said: list[str] = []
    with Run.open(run, say=said.append) as opened:
        assert opened.tick == 10
        for _ in opened.advance(12):
            pass
    assert history(run) == expected
    assert (run / "bank" / "journal.db.damaged-1").exists()


def test_going_back_to_a_damaged_tick_uses_the_checkpoint_before_it(run: Path) -> None:
    with database(run) as other:
        other.execute("UPDATE ticks SET state = x'00' WHERE tick = 8")
    other.close()
    said: list[str] = []
    go_back(run, 8, say=said.append)
    with Run.open(run) as opened:
        assert opened.tick == 5
    assert any("continuing from the checkpoint tick-000005" in line for line in said)


@pytest.mark.parametrize(
    ("number", "error", "which"),
    [(99, BankTooNew, "a later version"), (1, BankTooOld, "an earlier version")],
)
def test_a_journal_of_another_version_is_not_taken_for_damaged(
    run: Path, number: int, error: type[BankDamaged], which: str
) -> None:
    with database(run) as other:
        other.execute(f"PRAGMA user_version = {number}")
    other.close()
    with pytest.raises(error, match=which):
        Run.open(run)
    with pytest.raises(error):
        go_back(run, 3)
    assert not list((run / "bank").glob("*.damaged*"))


def test_a_run_whose_tick_failed_does_not_go_on_with_a_world_that_was_not_undone(
    tmp_path: Path, scenario: Path
) -> None:
    changes = {"simulation.world_options": {"fail_at": 3}}
    with Run.create(tmp_path / "r", settings_of(**changes), scenario=scenario) as run:
        with pytest.raises(SimulationError, match=r"end_tick\(\) raised RuntimeError in tick 3"):
            list(run.advance(5))
        assert "RuntimeError: once" in (tmp_path / "r" / "error.txt").read_text()
        assert run.tick == 2
        with pytest.raises(SimulationError, match=r"end_tick\(\) raised RuntimeError in tick 3"):
            list(run.advance(5))  # by a world that was made anew
        assert run.tick == 2


def test_keys_that_are_no_text_are_refused_in_the_tick_in_which_they_come(
    tmp_path: Path, scenario: Path
) -> None:
    changes = {"simulation.world_options": {"keys_from": 4}}
    with (
        Run.create(tmp_path / "r", settings_of(**changes), scenario=scenario) as run,
        pytest.raises(SimulationError, match=r"tick 4 .*JSON has text for keys"),
    ):
        list(run.advance(5))


def test_an_environment_beside_the_scenario_is_not_the_users_code(
    tmp_path: Path, scenario: Path
) -> None:
    package = scenario / ".venv" / "lib" / "site-packages" / "stranger"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (scenario / "neighbour.py").write_text("NUMBER = 1\n")
    code = (scenario / "counter.py").read_text()
    path = f"import sys\nsys.path.append({str(package.parent)!r})\n"
    (scenario / "counter.py").write_text(f"{path}import neighbour\nimport stranger\n{code}")
    run_to(tmp_path / "r", scenario, 1)
    copied = sorted(path.name for path in (tmp_path / "r" / "code").rglob("*.py"))
    assert copied == ["counter.py", "neighbour.py"]


def test_a_branch_that_lost_its_journal_does_not_start_anew(run: Path, tmp_path: Path) -> None:
    branch(run, 6, tmp_path / "b")
    (tmp_path / "b" / "bank" / "journal.db").unlink()
    with pytest.raises(SimulationError, match="can't go on"):
        Run.open(tmp_path / "b")


def test_a_branch_is_not_replayed_from_before_it_branched(run: Path, tmp_path: Path) -> None:
    branch(run, 6, tmp_path / "b")
    with pytest.raises(SimulationError, match="branched from"):
        Replay(tmp_path / "b", 3)


def test_forgotten_checkpoints_are_gone_before_the_ticks_are(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("agents.bank.history.rewind", killed)
    with pytest.raises(KeyboardInterrupt):
        go_back(run, 7)
    names = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert names == ["tick-000005.tmck"]
    assert json.loads((run / "run.json").read_text())["parent"] is None


def test_a_restored_bank_reaches_back_to_its_checkpoint(
    run: Path, snapshots_on_close: None
) -> None:
    (run / "bank" / "journal.db").unlink()
    with Run.open(run) as opened:
        assert opened.tick == 10
        for _ in opened.advance(12):
            pass
    go_back(run, 11)
    with Run.open(run) as opened:
        assert opened.tick == 11


def test_damage_that_nobody_can_help_is_said(run: Path) -> None:
    for path in (run / "checkpoints").iterdir():
        path.write_bytes(b"")
    with database(run) as other:
        other.execute("UPDATE commits SET events = '[]' WHERE tick = 12")
    other.close()
    with pytest.raises((SimulationError, BankDamaged), match="can't go on"):
        Run.open(run)
