"""What is stored is told, whatever becomes of mem0's store afterwards."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exchanges import contents, write

from agents import MemoryBank
from agents.storage.store_sync import StoreSync
from plain_mem0 import assert_store_is_exact
from waiting import ended

pytestmark = [
    # Third-party code, on Python 3.11 and what it depends on.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

Command = Callable[..., Any]

KEPT = "the memories are stored; mem0's store catches up when the bank is opened again"
STOPPED = f"tiermem: stopped; {KEPT}\n"
ROWS = b'{"content": "good", "agent_id": "a"}\n' * 3


@pytest.fixture(params=["close", "commit"])
def bank(tiermem: Command, request: pytest.FixtureRequest) -> Path:
    """An empty bank whose store is written when it is closed, or with each commit."""
    assert tiermem("init", "crew", "--set", f"storage.sync={request.param}").code == 0
    return Path("crew")


def started(*arguments: object) -> "subprocess.Popen[str]":
    """``tiermem`` in a process of its own."""
    command = [sys.executable, "-m", "agents.interfaces.cli.app", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_an_import_whose_store_fails_is_done_and_says_so(tiermem: Command, bank: Path) -> None:
    in_the_way = write("no folder", "crew/chroma")
    with started("import", bank, write(ROWS)) as child:  # Chroma remembers that a path failed
        out, err = ended(child)
    assert (child.returncode, out) == (0, "stored 3 memories of 1 agent\n")
    *told, first, why, remedy = err.splitlines()
    assert all("the memories are kept" in line for line in told)  # with each commit
    assert first == f"tiermem: {KEPT}"
    assert "mem0's store" in why
    assert "tiermem repair" in remedy
    in_the_way.unlink()
    with MemoryBank.open(bank) as opened:
        assert opened.agent("a").count() == 3
        assert_store_is_exact(opened)


def test_an_import_that_is_interrupted_after_its_commit_says_that_it_is_stored(
    tiermem: Command, bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    path = write(ROWS)
    with monkeypatch.context() as patch:
        patch.setattr(StoreSync, "push", interrupted)
        patch.setattr(StoreSync, "catch_up", lambda _: None)
        done = tiermem("import", bank, path, "--json")
    assert (done.code, done.json["memories"], done.err) == (130, 3, STOPPED)
    with MemoryBank.open(bank) as opened:
        assert opened.agent("a").count() == 3
        assert_store_is_exact(opened)


def test_an_import_that_is_interrupted_before_its_commit_stores_nothing(
    tiermem: Command, bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(MemoryBank, "add_many", interrupted)
    done = tiermem("import", bank, write(ROWS))
    assert (done.code, done.out) == (130, "")
    assert KEPT not in done.err
    assert contents(bank) == []


def test_ctrl_c_while_mem0s_store_is_written_comes_after_the_word_that_all_is_stored(
    tiermem: Command,
) -> None:
    tiermem("init", "crew")
    rows = [json.dumps({"content": f"memory {n}", "agent_id": "a"}) for n in range(2000)]
    path = write("\n".join(rows))
    with started("import", "crew", path) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "stored 2,000 memories of 1 agent\n"
        child.send_signal(signal.SIGINT)
        _, err = ended(child)
    assert (child.returncode, err) == (130, STOPPED)
    assert len(contents(Path("crew"))) == 2000


def test_what_is_stored_and_can_not_be_printed_is_not_to_be_repeated(tiermem: Command) -> None:
    tiermem("init", "crew", "--set", "storage.sync=manual")
    command = [
        sys.executable,
        "-m",
        "agents.interfaces.cli.app",
        "import",
        "crew",
        str(write(ROWS)),
    ]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "the memories are stored" in done.stderr
    assert "don't repeat it" in done.stderr
    assert len(done.stderr.splitlines()) == 3
    assert len(contents(Path("crew"))) == 3
