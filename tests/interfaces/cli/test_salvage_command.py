"""``tiermem store export --salvage``: what is whole of a damaged bank."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank
from banks import MANUAL, change

pytestmark = [
    # Third-party code, on Python 3.11 and what it depends on.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

Command = Callable[..., Any]


@pytest.fixture
def folder(tiermem: Command) -> Path:
    """A bank of two agents with cold memories."""
    with MemoryBank.open("crew", storage=MANUAL) as bank:
        for agent in ("alice", "bob"):
            bank.agent(agent).add(f"{agent} knows the well", "critical")
            bank.agent(agent).add(f"{agent} saw the mill", temperature="cold")
    return Path("crew")


def look(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def texts(path: Path) -> list[str]:
    return [json.loads(line)["content"] for line in path.read_text().splitlines()]


def test_a_damaged_shelf_costs_no_memory(tiermem: Command, folder: Path) -> None:
    sound = tiermem("store", "export", folder).out
    change(folder, "UPDATE shelf SET content = 'the mill burnt' WHERE agent = 'bob'")
    before = look(folder)
    assert tiermem("store", "export", folder, "--out", "out.jsonl").code == 1
    assert not Path("out.jsonl").exists()
    done = tiermem("store", "export", folder, "--salvage")
    assert done.code == 0
    assert done.out == sound
    assert "every memory of the bank is whole" in done.err
    assert look(folder) == before


def test_what_is_missing_is_said_and_is_a_failure(tiermem: Command, folder: Path) -> None:
    change(folder, "DELETE FROM shelf WHERE agent = 'bob'")
    change(folder, "UPDATE commits SET events = '[]' WHERE id = 4")
    done = tiermem("store", "export", folder, "--salvage", "--out", "out.jsonl")
    assert done.code == 1
    assert texts(Path("out.jsonl")) == [
        "alice knows the well",
        "alice saw the mill",
        "bob knows the well",
    ]
    assert "wrote 3 memories" in done.err
    assert "not everything is there" in done.err
    assert "1 of 4 commits (4)" in done.err


def test_the_missing_memories_are_counted(tiermem: Command, folder: Path) -> None:
    change(folder, "UPDATE commits SET events = '[]' WHERE id = 1")
    done = tiermem("store", "export", folder, "--salvage", "--out", "out.parquet")
    assert done.code == 1
    assert "alice: 1 memory missing" in done.err
    assert Path("out.parquet").exists()


def test_one_agent_can_be_salvaged(tiermem: Command, folder: Path) -> None:
    done = tiermem("store", "export", folder, "--salvage", "--agent", "bob", "--out", "out.jsonl")
    assert done.code == 0
    assert texts(Path("out.jsonl")) == ["bob knows the well", "bob saw the mill"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["crew", "--out", "out.txt"], "what sort of file"),
        (["crew", "--agent", "carol"], "no agent carol"),
        (["crew", "--agent", "."], "agent"),
        (["nowhere"], "no bank in nowhere"),
        (["noise"], "can't be read"),
        (["empty"], "the journal was lost"),
    ],
)
def test_bad_input_is_one_clear_error(
    tiermem: Command, folder: Path, arguments: list[str], said: str
) -> None:
    for name, data in (("noise", b"noise" * 5000), ("empty", b"")):
        Path(name).mkdir()
        (Path(name) / "journal.db").write_bytes(data)
        (Path(name) / "bank.head").write_text("an id\n")
    done = tiermem("store", "export", "--salvage", *arguments)
    assert done.code in (1, 2)
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.slow
def test_acknowledged_commits_that_the_log_lost_are_missing(tiermem: Command, folder: Path) -> None:
    with MemoryBank.open(folder, storage=MANUAL) as bank:
        bank.agent("alice").add("acknowledged")
        shutil.copytree(folder, "kept")  # as a kill leaves it
    Path("kept/journal.db-wal").write_bytes(b"")
    done = tiermem("store", "export", "kept", "--salvage", "--out", "out.jsonl")
    assert done.code == 1
    assert "1 acknowledged commits at the end (5)" in done.err
    assert "acknowledged" not in texts(Path("out.jsonl"))
    assert "agents can be saved, which is some" in tiermem("doctor", "kept").out
