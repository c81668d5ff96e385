"""The command line, as a user types it."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from agents import MemoryBank, __version__


def tiermem(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("tiermem")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def test_without_arguments_it_shows_its_commands() -> None:
    shown = tiermem().stdout
    assert "repair" in shown
    assert "config" in shown


def test_version() -> None:
    assert tiermem("--version").stdout == f"tiermem {__version__}\n"


def test_config_prints_what_would_be_used_and_takes_it_back(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("memory:\n  max_pinned: 4\n  max_critical: 8\n")
    done = tiermem("config", "-c", "mine.yaml", "--set", "memory.max_pinned=3", cwd=tmp_path)
    settings = yaml.safe_load(done.stdout)
    assert settings["memory"]["max_pinned"] == 3
    assert settings["memory"]["max_critical"] == 8
    assert settings["memory"]["default_limit"] == 5
    (tmp_path / "whole.yaml").write_text(done.stdout)
    assert tiermem("config", "-c", "whole.yaml", cwd=tmp_path).stdout == done.stdout


def test_config_shows_a_preset_beneath_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("temperature: {ttl_cold_below: 2d}\n")
    done = tiermem("config", "--preset", "lifetime", "-c", "mine.yaml", cwd=tmp_path)
    temperature = yaml.safe_load(done.stdout)["temperature"]
    assert (temperature["ttl_cold_below"], temperature["ttl_warm_below"]) == ("2d", "7d")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["config", "--preset", "lifetme"], "did you mean lifetime?"),
        (["config", "--set", "memory.max_pinned=many"], "memory.max_pinned must be a whole number"),
        (["config", "--set", "memory.max_pined=3"], "did you mean memory.max_pinned?"),
        (["config", "--set", "memory.max_pinned"], "memory.max_pinned"),
        (["config", "--config", "absent.yaml"], "absent.yaml: there is no such file"),
        (["config", "--config", "bad.yaml"], "bad.yaml:2: memory.max_pinned"),
        (["repair", "nowhere"], "there is no bank in nowhere"),
        (["repair", "empty"], "there is no bank in empty"),
        (["repair", "foreign"], "can't be read"),
    ],
)
def test_an_error_is_one_message_and_no_traceback(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "bad.yaml").write_text("memory:\n  max_pinned: [1]\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "journal.db").write_text("this is not a database" * 100)
    done = tiermem(*arguments, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert done.stderr.startswith("tiermem: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_repairing_a_bank_in_use_names_the_holder(tmp_path: Path) -> None:
    import os

    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}):
        done = tiermem("repair", str(tmp_path / "bank"))
    assert done.returncode == 1
    assert str(os.getpid()) in done.stderr


def test_repair_without_a_journal_makes_no_files(tmp_path: Path) -> None:
    tiermem("repair", "nowhere", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
