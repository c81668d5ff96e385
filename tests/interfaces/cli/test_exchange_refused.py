"""What an import or export refuses, or the system does; and rows that may be left out."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exchanges import GOOD, contents, write

from agents.storage.embedding import OfflineEmbedder

pytestmark = pytest.mark.slow_after(1)

Command = Callable[..., Any]


@pytest.fixture
def other(tiermem: Command) -> Path:
    """An empty bank."""
    assert tiermem("init", "other", "--set", "storage.sync=manual").code == 0
    return Path("other")


@pytest.mark.parametrize("name", ["in.jsonl", "in.parquet"])
def test_a_named_pipe_is_refused_and_not_waited_for(
    tiermem: Command, other: Path, name: str
) -> None:
    os.mkfifo(name)
    done = tiermem("store", "import", other, name)
    assert done.is_one_error(2, name, "is a named pipe", "standard input")
    assert contents(other) == []


# What only storing finds out


PIN = b'{"content": "p", "agent_id": "a", "tier": "pinned"}\n'
FOREVER = b'{"content": "x", "agent_id": "a", "created_tick": 0, "expires_tick": %d}\n' % 2**62


@pytest.mark.parametrize("how", [[], ["--dry-run"]])
def test_a_lifetime_that_is_too_long_is_refused_with_its_line(
    tiermem: Command, other: Path, how: list[str]
) -> None:
    done = tiermem("store", "import", other, write(GOOD + FOREVER), *how)
    assert done.is_one_error(2, "in.jsonl, line 2: ", "too long", "--skip-bad")
    assert contents(other) == []


@pytest.mark.parametrize("how", [[], ["--dry-run"]])
def test_a_full_tier_that_rejects_names_the_line(
    tiermem: Command, other: Path, how: list[str]
) -> None:
    strict = ["--set", "memory.on_tier_full=reject", "--set", "memory.max_pinned=1"]
    done = tiermem("store", "import", other, write(PIN + GOOD + PIN), *strict, *how)
    assert done.is_one_error(1, "in.jsonl, line 3: pinned is full", "--skip-bad")
    assert contents(other) == []


def test_a_dry_run_says_what_the_caps_would_move(tiermem: Command, other: Path) -> None:
    done = tiermem("store", "import", other, write(PIN * 7), "-n")
    assert "2 memories moved to a lower tier" in done.out
    assert contents(other) == []


def test_a_dry_run_embeds_nothing(
    tiermem: Command, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sent(*_: object) -> None:
        raise AssertionError("a text went to the embedder")

    monkeypatch.setattr(OfflineEmbedder, "embed", sent)
    assert tiermem("store", "import", other, write(GOOD * 3), "-n").code == 0


# Leaving out what can't be kept


def test_bad_rows_can_be_left_out_and_are_named(tiermem: Command, other: Path) -> None:
    bad = b'{"content": " "}\n', b"hello\n", FOREVER, b'{"content": "' + b"x" * 9_000_000 + b'"}\n'
    path = write(GOOD + b"".join(bad) + GOOD + b'{"content": "goo')
    for how, verb in (["--dry-run"], "would store"), ([], "stored"):
        done = tiermem("store", "import", other, path, "--skip-bad", "-a", "alice", *how)
        assert (done.code, done.err) == (0, "")
        first, second, *named = done.out.splitlines()
        assert first == f"{verb} 2 memories of 1 agent"
        assert second == "left out 5 rows that can't be kept:"
        numbers = sorted(line.split(": ")[0] for line in named)
        assert numbers == [f"  in.jsonl, line {number}" for number in (2, 3, 4, 5, 7)]
    assert len(contents(other)) == 2


def test_only_some_of_many_bad_rows_are_named(tiermem: Command, other: Path) -> None:
    path = write(GOOD + b"{}\n" * 9)
    done = tiermem("store", "import", other, path, "--skip-bad", "--json")
    assert (done.json["memories"], done.json["left_out"]) == (1, 9)
    assert len(done.json["left_out_first"]) == 5
    assert done.json["left_out_first"][0]["place"] == "in.jsonl, line 2"
    assert "and 4 more" in tiermem("store", "import", other, path, "--skip-bad").out


def test_pins_beyond_a_cap_that_rejects_can_be_left_out(tiermem: Command, other: Path) -> None:
    strict = ["--set", "memory.on_tier_full=reject", "--set", "memory.max_pinned=1"]
    done = tiermem("store", "import", other, write(PIN + GOOD + PIN), *strict, "--skip-bad")
    assert "stored 2 memories" in done.out
    assert "line 3: pinned is full" in done.out


def test_every_bad_row_tells_of_the_way_to_leave_it_out(tiermem: Command, other: Path) -> None:
    assert tiermem("store", "import", other, write(b"{}\n")).is_one_error(2, "--skip-bad")


def test_a_bad_row_of_parquet_can_be_left_out(tiermem: Command, other: Path) -> None:
    pq.write_table(pa.table({"content": ["x", "y"], "metadata": ["{}", "{"]}), "in.parquet")
    done = tiermem("store", "import", other, "in.parquet", "-a", "alice", "--skip-bad")
    assert "stored 1 memory" in done.out
    assert "in.parquet, row 2: column metadata" in done.out


# Files that the system refuses


@pytest.mark.parametrize("name", ["absent/out.jsonl", "file/out.parquet", "x" * 300 + ".jsonl"])
def test_an_export_that_the_system_refuses_is_no_wrong_use(
    tiermem: Command, other: Path, name: str
) -> None:
    write("in the way", "file")
    assert tiermem("store", "export", other, "--out", name).is_one_error(1, name)


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_an_export_to_a_full_disk_names_the_file_and_leaves_none(
    tiermem: Command, other: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    done = tiermem("store", "export", other, "--out", name)
    assert done.is_one_error(1, f"No space left on device: '{name}'", "make room")
    assert not list(Path().glob("*out*"))


@pytest.mark.parametrize("name", ["absent.jsonl", "absent.parquet"])
def test_a_file_that_is_not_there_is_no_wrong_use(tiermem: Command, other: Path, name: str) -> None:
    done = tiermem("store", "import", other, name)
    assert done.is_one_error(1, f"No such file or directory: '{name}'", "check the path")
