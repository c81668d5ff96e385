"""``tiermem doctor`` tells what is closed, unknown or too new from what is damaged."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import warm_children
from agents import MemoryBank
from agents.interfaces.cli.commands import doctor
from embedders import Directions

pytestmark = [
    pytest.mark.slow_after(1),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

Command = Callable[..., Any]
TIERMEM = str(Path(sys.executable).with_name("tiermem"))
# The superuser may write everything; without capabilities it is a user like others.
AS_USER = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"] if os.geteuid() == 0 else []
needs_user = pytest.mark.skipif(
    bool(AS_USER) and shutil.which("setpriv") is None, reason="root may write everything"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with MemoryBank.open(tmp_path / "crew", storage={"sync": "manual"}) as bank:
        bank.agent("alice").add("The well is in the north")
    return tmp_path / "crew"


def as_user(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*AS_USER, TIERMEM, *map(str, arguments)]
    return warm_children.run(command, capture_output=True, text=True, check=False)


def problems(text: str) -> dict[str, dict[str, str]]:
    return {row["about"]: row for row in json.loads(text) if row["state"] == "problem"}


@pytest.mark.long
@needs_user
def test_a_journal_that_may_not_be_read_is_not_damaged(folder: Path) -> None:
    (folder / "journal.db").chmod(0)
    found = problems(as_user("doctor", folder, "--json").stdout)
    assert found.keys() == {"permissions", "journal"}
    assert found["permissions"]["said"] == f"you may not read {folder}/journal.db"
    assert not any("backup" in row["todo"] for row in found.values())
    done = as_user("add", folder, "-a", "alice", "x")
    assert done.returncode == 1
    assert "backup" not in done.stderr
    assert "permissions" in done.stderr


@pytest.mark.slow
@pytest.mark.long_after(1)
@needs_user
@pytest.mark.parametrize("name", ["journal.db", "bank.lock"])
def test_a_bank_that_may_not_be_written_is_a_problem(folder: Path, name: str) -> None:
    (folder / name).chmod(0o444)
    found = problems(as_user("doctor", folder, "--json").stdout)
    assert found.keys() == {"permissions"}
    assert "and not write it" in found["permissions"]["said"]


@pytest.mark.long
@needs_user
def test_a_store_that_may_not_be_written_is_not_damaged(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "crew") as bank:
        bank.agent("alice").add("The well is in the north")
    (tmp_path / "crew/chroma/chroma.sqlite3").chmod(0o444)
    found = problems(as_user("doctor", tmp_path / "crew", "--json").stdout)
    assert found.keys() == {"permissions"}


def test_an_embedder_of_ones_own_is_no_fault_of_the_journal(
    tiermem: Command, tmp_path: Path
) -> None:
    with MemoryBank.open(
        tmp_path / "crew", embedder=Directions(), preset="vector", storage={"sync": "manual"}
    ) as bank:
        bank.agent("alice").add("0")
    done = tiermem("doctor", "crew", "--json")
    found = problems(done.out)
    assert found.keys() == {"embedder"}
    assert "it was made with" in found["embedder"]["todo"]
    assert {"journal", "mem0", "notes"} <= {row["about"] for row in done.json}


def test_tokens_that_are_junk_are_a_problem(tiermem: Command, folder: Path) -> None:
    (folder / "tokens.json").write_text("{]")
    (folder / "tokens.json").chmod(0o600)
    found = problems(tiermem("doctor", folder, "--json").out)
    assert found.keys() == {"tokens"}
    assert "anew" in found["tokens"]["todo"]


def test_a_check_that_fails_does_not_hide_what_others_found(
    tiermem: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryBank.open(tmp_path / "crew") as bank:
        bank.agent("alice").add("The well is in the north")

    def full(source: str, target: str) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)

    monkeypatch.setattr(doctor.shutil, "copyfile", full)
    done = tiermem("doctor", "crew", "--json")
    assert done.code == 1
    found = problems(done.out)
    assert found.keys() == {"mem0"}
    assert "can't be copied: [Errno 28] No space left on device" in found["mem0"]["said"]
    assert "[(" not in found["mem0"]["said"]
    assert {"journal", "notes"} <= {row["about"] for row in done.json}
