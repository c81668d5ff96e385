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
    done = tiermem("update", folder, "-a", "alice", "2", "Bob", "sells", "fish", "--json")
    assert done.json["content"] == "Bob sells fish"
    assert done.json["metadata"]["place"] == "sea"
    for name in ("2", "3", done.json["id"]):
        told = tiermem("show", folder, "-a", "alice", "--key", name, "--json").json["results"]
        assert [each["content"] for each in told] == ["Bob sells boats", "Bob sells fish"]
    assert "nothing" in tiermem("show", folder, "-a", "alice", "--key", "nowhere").out
    low = tiermem("update", folder, "-a", "alice", "1", "I fast", "--tier", "low", "--json").json
    assert low["tier"] == "low"
    value = ("--value", '{"days": [1]}', "--json")
    assert tiermem("update", folder, "-a", "alice", low["id"], "I eat", *value).json["value"] == {
        "days": [1]
    }


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
