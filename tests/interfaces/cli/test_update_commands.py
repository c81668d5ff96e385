"""The commands that update memories: add --key, update, history; and search --filter."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank

Command = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        bank.agent("alice").add("I eat meat", "pinned", {"place": "bay", "day": 1}, key="diet")
        bank.agent("alice").add("Bob sells boats", metadata={"place": "sea", "day": 3})
    return tmp_path / "bank"


def test_a_key_supersedes_and_history_has_both(tiermem: Command, folder: Path) -> None:
    done = tiermem("add", folder, "-a", "alice", "--key", "diet", "I am vegan")
    assert done.code == 0
    assert "(pinned, hot): I am vegan" in done.out
    assert "in place of: I eat meat" in done.out
    assert "full" not in done.out
    shown = tiermem("show", folder, "-a", "alice", "--key", "diet").out.splitlines()
    assert [line.split("\t")[1:] for line in shown[2:]] == [
        ["0", "normal", "archived", "I eat meat"],
        ["0", "pinned", "active", "I am vegan"],
    ]


def test_update_takes_an_id_and_keeps_the_rest(tiermem: Command, folder: Path) -> None:
    update = ("update", folder, "-a", "alice", "--json")
    (new,) = tiermem(*update, "2", "--text", "Bob sells fish").json["updated"]
    assert new["content"] == "Bob sells fish"
    assert new["metadata"]["place"] == "sea"
    for name in ("2", "3", new["id"]):
        told = tiermem("show", folder, "-a", "alice", "--key", name, "--json").json["results"]
        assert [each["content"] for each in told] == ["Bob sells boats", "Bob sells fish"]
    assert "nothing" in tiermem("show", folder, "-a", "alice", "--key", "nowhere").out
    (low,) = tiermem(*update, "1", "--text", "I fast", "--tier", "low").json["updated"]
    assert low["tier"] == "low"
    more = ("--text", "I eat", "--value", '{"days": [1]}')
    assert tiermem(*update, low["id"], *more).json["updated"][0]["value"] == {"days": [1]}


def test_update_moves_memories_all_or_none(tiermem: Command, folder: Path) -> None:
    update = ("update", folder, "-a", "alice")
    done = tiermem(*update, "1", "2", "--tier", "low", "--temperature", "cold")
    assert done.out.splitlines()[::2] == [
        "alice has (low, cold): I eat meat",
        "alice has (low, cold): Bob sells boats",
    ]
    assert tiermem(*update, "1", "ffff", "--tier", "critical").code == 1
    assert tiermem(*update, "1", "--retention", "archived").code == 0
    (row,) = tiermem("show", folder, "-a", "alice", "--json").json
    assert (row["memory"], row["tier"]) == ("Bob sells boats", "low")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["1"], "what is to change"),
        (["1", "I am vegan"], "what is to change"),
        (["1", "2", "--text", "I am vegan"], "a new text is for one memory"),
        (["1", "--retention", "deleted"], "active or archived"),
        (["1", "--retention", "gone"], "gone"),
        (["1", "--value", "{}"], "a new value comes with a content"),
        (["1", "--temperature", "cold"], "pinned"),
    ],
)
def test_a_wrong_update_is_one_error(
    tiermem: Command, folder: Path, arguments: list[str], why: str
) -> None:
    done = tiermem("update", folder, "-a", "alice", *arguments)
    assert done.is_one_error(done.code, why)
    assert done.code > 0


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["place=bay"], ["I eat meat"]),
        (["metadata.place=sea"], ["Bob sells boats"]),
        (["place=sea", "day=1"], []),
        (['{"metadata.day": {"$gte": 2}}'], ["Bob sells boats"]),
        (['{"$or": [{"metadata.day": 1}, {"metadata.day": 3}]}', "place=bay"], ["I eat meat"]),
    ],
)
def test_search_filters_by_metadata(
    tiermem: Command, folder: Path, filters: list[str], found: list[str]
) -> None:
    options = [word for each in filters for word in ("--filter", each)]
    done = tiermem("search", folder, "-a", "alice", "boats", "--json", *options)
    assert [each["content"] for each in done.json["results"]] == found


@pytest.mark.parametrize("text", ["place", "{", "{}", '{"place": 1}', '{"metadata.x": {"$y": 1}}'])
def test_a_wrong_filter_is_an_error(tiermem: Command, folder: Path, text: str) -> None:
    done = tiermem("search", folder, "-a", "alice", "boats", "--filter", text)
    assert done.code == 2
    assert done.err.startswith("tiermem: that was refused, and nothing was changed")


def test_a_repetition_says_so(tiermem: Command, tmp_path: Path) -> None:
    folder = tmp_path / "merging"
    tiermem("init", folder, "--set", "memory.merge_duplicates=true", "--set", "storage.sync=manual")
    tiermem("add", folder, "-a", "alice", "Bob likes fish")
    done = tiermem("add", folder, "-a", "alice", "bob likes FISH")
    assert "stored before" in done.out
    assert tiermem("status", folder, "--tiers", "--json").json["agents"]["alice"]["normal"] == 1
