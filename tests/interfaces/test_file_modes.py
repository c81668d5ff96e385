"""Only their owner reads the files that TierMem makes, whatever the umask."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from commands import run_command, write_scenario

from agents import MemoryBank
from agents.storage.files import TemporaryFolder
from agents.storage.trust import seal_of


@pytest.fixture(autouse=True)
def _everything_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    before = os.umask(0)
    yield
    os.umask(before)


def modes(top: Path) -> dict[str, int]:
    """The modes of a folder, and of all in it but what is inside mem0's store."""
    found = {}
    for path in (top, *top.rglob("*")):
        name = str(path.relative_to(top))
        if "chroma/" not in name:
            found[name] = stat.S_IMODE(path.lstat().st_mode)
    return found


def check_private(top: Path) -> set[str]:
    found = modes(top)
    for name, mode in found.items():
        expected = 0o700 if (top / name).is_dir() else 0o600
        assert mode == expected, f"{name}: {mode:o}"
    return set(found)


def test_a_bank_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "crew"
    with MemoryBank.open(folder) as bank:
        alice = bank.agent("alice")
        alice.add("hello")
        alice.notes.append("a note", "memory/january.md")
        assert {"journal.db-wal", "journal.db-shm", "bank.lock"} <= check_private(folder)
        bank.sync()
        bank.checkpoint(folder / "checkpoints" / "one.tmck")
    assert run_command("token", "create", folder, "-a", "alice").code == 0
    names = check_private(folder)
    assert {"chroma", "tokens.json", "checkpoints/one.tmck", "notes/alice/memory"} <= names
    MemoryBank.restore(folder / "checkpoints" / "one.tmck", tmp_path / "again").close()
    check_private(tmp_path / "again")
    with MemoryBank.open(folder) as bank:
        bank.vacuum()
    check_private(folder)


def test_runs_and_branches_are_private(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "scenario", world="deep.inner.worlds_for_tests:Stones")
    inner = scenario.parent / "deep" / "inner"
    inner.mkdir(parents=True)
    for package in (inner.parent, inner):
        (package / "__init__.py").write_text("")
    (scenario.parent / "worlds_for_tests.py").rename(inner / "worlds_for_tests.py")
    run, branch = tmp_path / "run", tmp_path / "branch"
    assert run_command("run", scenario, "--out", run, "--ticks", 4).code == 0
    assert run_command("branch", run, "--at", 2, "--out", branch, "--ticks", 4).code == 0
    assert run_command("diff", run, branch).code == 0
    assert run_command("report", run).code == 0
    expected = {
        "code/deep/inner/worlds_for_tests.py",
        "run.seal",
        "config.yaml",
        "report.html",
        "bank",
    }
    assert expected <= check_private(run)
    assert "diff.svg" in check_private(branch)


@pytest.mark.slow
def test_a_sweep_is_private(tmp_path: Path) -> None:
    """Its runs are made by other processes, with the umask of this one."""
    write_scenario(tmp_path, ticks=2)
    plan = {"scenario": "stones.yaml", "grid": {"memory.max_pinned": [1, 3]}, "seeds": 2}
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(plan))
    done = run_command("sweep", tmp_path / "sweep.yaml", "--out", tmp_path / "s", "--workers", 2)
    assert done.code == 0, done.err
    names = check_private(tmp_path / "s")
    assert {"plan.yaml", "results.parquet", "statistics.parquet", "report.html", "cells"} <= names
    assert len([name for name in names if name.endswith("bank/journal.db")]) == 4


def test_an_experiment_and_its_branches_are_private(tmp_path: Path) -> None:
    run = tmp_path / "run"
    scenario = write_scenario(tmp_path / "scenario", ticks=4)
    assert run_command("run", scenario, "--out", run).code == 0
    known = run_command("show", run / "bank", "--agent", "alice", "--json").json[0]
    done = run_command(
        "effect", run, "--at", 2, "--forget", f"alice:{known['id']}", "--out", tmp_path / "effect"
    )
    assert done.code == 0, done.err
    names = check_private(tmp_path / "effect")
    assert "effect.json" in names
    assert len([name for name in names if name.endswith("bank/journal.db")]) == 2
    check_private(run)


@pytest.mark.slow
def test_a_run_that_is_inspected_and_analysed_stays_private(tmp_path: Path) -> None:
    run = tmp_path / "run"
    scenario = write_scenario(tmp_path / "scenario", ticks=4)
    assert run_command("run", scenario, "--out", run).code == 0
    page = run / "inspector.html"
    for done in (
        run_command("inspect", run, "--export", page),
        run_command("analyse", run, "--out", tmp_path / "tables"),
        run_command("doctor", run / "bank"),
        run_command("replay", run),
    ):
        assert done.code == 0, done.err
    found = modes(run)
    assert found.pop("inspector.html") == 0o666  # the user named it
    assert {mode for name, mode in found.items() if not (run / name).is_dir()} == {0o600}
    assert {mode for name, mode in found.items() if (run / name).is_dir()} == {0o700}
    check_private(tmp_path / "tables")


def test_temporary_folders_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with TemporaryFolder("effect") as folder:
        assert check_private(Path(folder)) == {".", ".in-use"}


@pytest.mark.slow
def test_a_spread_run_is_private(tmp_path: Path) -> None:
    run = tmp_path / "run"
    scenario = write_scenario(tmp_path / "scenario", ticks=4)
    spread = ("--engine", "processes", "--workers", 2)
    done = run_command("run", scenario, "--out", run, *spread)
    assert done.code == 0, done.err
    check_private(run)
    assert run_command("store", "merge", run, "--out", tmp_path / "one").code == 0
    check_private(tmp_path / "one")


def test_the_key_and_the_list_of_trust_are_private(tmp_path: Path) -> None:
    assert run_command("init", tmp_path / "crew").code == 0
    assert run_command("store", "trust", tmp_path / "crew").code == 0
    seal_of("anything")
    assert check_private(tmp_path / "state" / "tiermem") == {".", "key", "lock", "trusted.json"}


def test_a_file_that_the_user_names_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "scenario")
    run = tmp_path / "run"
    assert run_command("run", scenario, "--out", run, "--ticks", 1).code == 0
    os.umask(0o027)
    assert run_command("store", "export", run / "bank", "--out", tmp_path / "all.jsonl").code == 0
    assert run_command("diff", run, run, "--plot", tmp_path / "plot.svg").code == 0
    for name in ("all.jsonl", "plot.svg"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o640
