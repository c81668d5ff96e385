"""What is stored is told, and mem0's store is left to ``tiermem store sync``."""

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
    pytest.mark.slow_after(1),
    # Third-party code, on Python 3.11 and what it depends on.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

Command = Callable[..., Any]

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


def test_commands_leave_mem0s_store_to_sync(tiermem: Command) -> None:
    tiermem("init", "crew")
    assert tiermem("add", "crew", "--agent", "a", "one").code == 0
    assert tiermem("store", "import", "crew", write(ROWS)).code == 0
    assert not Path("crew/chroma").exists()
    done = tiermem("store", "sync", "crew")
    assert (done.code, done.out) == (0, "wrote 4 memories to mem0's store\n")
    assert tiermem("store", "sync", "crew", "--json").json == {"written": 0}
    with MemoryBank.open("crew", storage={"sync": "manual"}) as opened:
        assert_store_is_exact(opened)


def test_commands_write_mem0s_store_where_every_commit_does(tiermem: Command) -> None:
    tiermem("init", "crew", "--set", "storage.sync=commit")
    assert tiermem("add", "crew", "--agent", "a", "one").code == 0
    with MemoryBank.open("crew", storage={"sync": "manual"}) as opened:
        assert_store_is_exact(opened)


def test_a_reader_by_mem0_gets_a_store_that_is_up_to_date(tiermem: Command) -> None:
    tiermem("init", "crew")
    with MemoryBank.open("crew") as opened:
        opened.agent("a").add("one")
        assert opened.mem0_config()["provider"] == "chroma"
        assert_store_is_exact(opened)


@pytest.mark.slow
@pytest.mark.long_after(2)
@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "crew", "--agent", "a", "another"),
        ("pin", "crew", "--agent", "a", "1"),
        ("search", "crew", "--agent", "a", "one"),
        ("status", "crew"),
        ("show", "crew", "--agent", "a"),
        ("status", "crew", "--tiers"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_command_imports_what_it_needs(tiermem: Command, arguments: tuple[str, ...]) -> None:
    tiermem("init", "crew", "--preset", "hot-warm-cold")
    tiermem("add", "crew", "--agent", "a", "one")
    slow = {"mem0", "chromadb", "jsonschema", "pydantic", "pyarrow", "scipy"}
    code = (
        "import sys; from agents.interfaces.cli.app import run; code = run();"
        f"print(*sorted({slow!r} & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.split()) == (0, [])


@pytest.mark.slow
def test_an_import_whose_store_fails_is_done_and_says_so(tiermem: Command) -> None:
    tiermem("init", "crew", "--set", "storage.sync=commit")
    in_the_way = write("no folder", "crew/chroma")
    with started(
        "store", "import", "crew", write(ROWS)
    ) as child:  # Chroma remembers that a path failed
        out, err = ended(child)
    assert (child.returncode, out) == (0, "stored 3 memories of 1 agent\n")
    assert "the memories are kept, but mem0's store lacks some" in err
    assert "tiermem store rebuild" in err
    in_the_way.unlink()
    with MemoryBank.open("crew") as opened:
        assert opened.agent("a").count() == 3
        assert_store_is_exact(opened)


def test_an_import_that_is_interrupted_after_its_commit_says_that_it_is_stored(
    tiermem: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    tiermem("init", "crew", "--set", "storage.sync=commit")
    path = write(ROWS)
    with monkeypatch.context() as patch:
        patch.setattr(StoreSync, "push", interrupted)
        patch.setattr(StoreSync, "catch_up", lambda _: None)
        done = tiermem("store", "import", "crew", path)
    assert (done.code, done.err) == (130, "tiermem: stopped; what it stored is kept\n")
    assert len(contents(Path("crew"))) == 3


def test_an_import_that_is_interrupted_before_its_commit_stores_nothing(
    tiermem: Command, bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("agents.engine.write.add_new", interrupted)
    done = tiermem("store", "import", bank, write(ROWS))
    assert (done.code, done.out) == (130, "")
    assert "nothing was stored" in done.err
    assert contents(bank) == []


def test_what_is_stored_and_can_not_be_printed_is_not_to_be_repeated(tiermem: Command) -> None:
    tiermem("init", "crew", "--set", "storage.sync=manual")
    command = [
        sys.executable,
        "-m",
        "agents.interfaces.cli.app",
        "store",
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
