"""The commands that take memories away and bring them back: forget, and update that restores."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank

Command = Callable[..., Any]

SECRET = "The safe opens with 4711"
BACK = ("--retention", "active")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        bank.agent("alice").add_many([SECRET, "Carol likes tea", ("Never pay agent_X", "pinned")])
        bank.agent("bob").add("Trading starts at nine")
    return tmp_path / "bank"


def state(folder: Path) -> str:
    with MemoryBank.at(folder) as bank:
        return bank.state_hash()


def texts(folder: Path) -> list[str]:
    with MemoryBank.at(folder) as bank:
        return [each.content for each in bank.agent("alice").all()]


def commits(folder: Path) -> int:
    with MemoryBank.at(folder) as bank:
        return bank.engine.journal.head


def ids(folder: Path) -> list[str]:
    with MemoryBank.at(folder) as bank:
        return [each.id for each in bank.agent("alice").all()]


def test_forget_deletes_and_restore_brings_back(tiermem: Command, folder: Path) -> None:
    first, second, _ = ids(folder)
    done = tiermem("forget", folder, "-a", "alice", first, "2")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"alice forgot: {SECRET}",
        f"  id {first}",
        "alice forgot: Carol likes tea",
        f"  id {second}",
        "for 168 ticks (retention.grace), this brings them back: "
        f"tiermem update {folder} --agent alice {first} {second} --retention active",
    ]
    assert texts(folder) == ["Never pay agent_X"]
    back = tiermem("update", folder, "-a", "alice", "1", second, *BACK)
    assert (back.code, back.err) == (0, "")
    assert back.out.splitlines() == [
        f"alice has (normal, warm): {SECRET}",
        f"  id {first}",
        "alice has (normal, warm): Carol likes tea",
        f"  id {second}",
    ]
    assert texts(folder) == [SECRET, "Carol likes tea", "Never pay agent_X"]


def test_several_ids_are_one_commit(tiermem: Command, folder: Path) -> None:
    before = commits(folder)
    for count, command in enumerate((["forget"], ["update", *BACK], ["forget", "--purge"]), 1):
        name, *options = command
        assert tiermem(name, folder, "-a", "alice", "1", "2", "1", *options).code == 0
        assert commits(folder) == before + count


def test_a_purged_memory_is_gone_and_its_text_after_a_vacuum(
    tiermem: Command, folder: Path
) -> None:
    first = ids(folder)[0]
    done = tiermem("forget", folder, "-a", "alice", "1", "--purge")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"alice forgot for good: {first}",
        f"free space of files may still have the text until: tiermem store vacuum {folder}",
    ]
    assert tiermem("update", folder, "-a", "alice", first, *BACK).is_one_error(
        1, "alice has no memory"
    )
    assert tiermem("store", "vacuum", folder).code == 0
    for path in folder.rglob("*"):
        if path.is_file():
            assert b"4711" not in path.read_bytes()


def test_a_deleted_memory_can_be_purged(tiermem: Command, folder: Path) -> None:
    assert tiermem("forget", folder, "-a", "alice", "1").code == 0
    assert tiermem("forget", folder, "-a", "alice", "1").is_one_error(1, "it was deleted")
    assert tiermem("forget", folder, "-a", "alice", "1", "--purge").code == 0


def test_json_says_which_and_how(tiermem: Command, folder: Path) -> None:
    first, second, _ = ids(folder)
    gone = tiermem("forget", folder, "-a", "alice", "1", "--json").json
    assert gone == {"forgotten": [{"memory_id": first, "purged": False}]}
    (back,) = tiermem("update", folder, "-a", "alice", "1", *BACK, "--json").json["updated"]
    assert (back["id"], back["content"]) == (first, SECRET)
    gone = tiermem("forget", folder, "-a", "alice", "1", "2", "--purge", "--json").json
    assert gone == {"forgotten": [{"memory_id": each, "purged": True} for each in (first, second)]}


def test_restore_says_what_made_room(tiermem: Command, tmp_path: Path) -> None:
    folder = tmp_path / "small"
    settings: Any = {"memory": {"max_critical": 1}, "storage": {"sync": "manual"}}
    with MemoryBank.open(folder, **settings) as bank:
        gone = bank.agent("alice").add("the first", "critical")
        bank.agent("alice").update(gone.id, retention="archived")
        bank.agent("alice").add("the second", "critical")
    assert tiermem("update", folder, "-a", "alice", "1", *BACK).out.splitlines() == [
        "alice has (critical, warm): the first",
        f"  id {gone.id}",
        "  critical was full, so this is important now: the second",
    ]


@pytest.mark.parametrize("purge", [[], ["--purge"]])
def test_a_pinned_memory_stays_and_so_do_the_others(
    tiermem: Command, folder: Path, purge: list[str]
) -> None:
    before = state(folder)
    done = tiermem("forget", folder, "-a", "alice", "1", "2", "3", *purge)
    assert done.is_one_error(1, "is pinned and can't", "unpin it first")
    assert state(folder) == before


@pytest.mark.parametrize("command", [["forget"], ["forget", "--purge"], ["update", *BACK]])
def test_an_id_that_is_not_the_agents_changes_nothing(
    tiermem: Command, folder: Path, command: list[str]
) -> None:
    with MemoryBank.at(folder) as bank:
        theirs = bank.agent("bob").all()[0].id
    name, *options = command
    before = state(folder)
    for wrong in (theirs, "ffff", "0", "", "x" * 5000):
        done = tiermem(name, folder, "-a", "alice", "1", wrong, *options)
        assert done.is_one_error(1, "alice has no memory")
    assert tiermem(name, folder, "-a", "zed", "1", *options).is_one_error(1, "no agent zed")
    assert tiermem(name, folder, "-a", "alice", *options).code == 2
    assert state(folder) == before


def test_what_was_deleted_too_long_ago_stays_so(tiermem: Command, folder: Path) -> None:
    assert tiermem("forget", folder, "-a", "alice", "1").code == 0
    with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
        bank.advance(168)
    done = tiermem("update", folder, "-a", "alice", "1", *BACK)
    assert done.is_one_error(1, "can no longer be restored")
