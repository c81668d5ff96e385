"""Only their owner reads the files that TierMem makes, whatever the umask."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import run_command, write_scenario

from agents import MemoryBank
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


def test_runs_and_sweeps_are_private(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "scenario")
    run, branch = tmp_path / "run", tmp_path / "branch"
    assert run_command("run", scenario, "--out", run, "--ticks", 4).code == 0
    assert run_command("branch", run, "--at", 2, "--out", branch, "--ticks", 4).code == 0
    assert run_command("diff", run, branch).code == 0
    assert run_command("report", run).code == 0
    expected = {"code/worlds_for_tests.py", "run.seal", "config.yaml", "report.html", "bank"}
    assert expected <= check_private(run)
    assert "diff.png" in check_private(branch)


def test_the_key_and_the_list_of_trust_are_private(tmp_path: Path) -> None:
    assert run_command("init", tmp_path / "crew").code == 0
    assert run_command("trust", tmp_path / "crew").code == 0
    seal_of("anything")
    assert check_private(tmp_path / "state" / "tiermem") == {".", "key", "lock", "trusted.json"}


def test_a_file_that_the_user_names_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "scenario")
    run = tmp_path / "run"
    assert run_command("run", scenario, "--out", run, "--ticks", 1).code == 0
    os.umask(0o027)
    assert run_command("export", run / "bank", "--to", tmp_path / "all.jsonl").code == 0
    assert run_command("diff", run, run, "--plot", tmp_path / "plot.png").code == 0
    for name in ("all.jsonl", "plot.png"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o640
