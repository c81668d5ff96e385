"""The commands between agents: tell, believe and group; tokens that may tell."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank
from agents.engine.read import nth

Command = Callable[..., Any]
BANK = "BANK"
"""Stands for the folder of the bank."""

RAIN = "it rains"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        bank.agent("alice").add("agent_X cheats")
        for name in ("bob", "carol"):
            bank.agent(name).add(RAIN)
    return tmp_path / "bank"


def test_tell_and_take_back(tiermem: Command, folder: Path) -> None:
    told = tiermem("social", "tell", folder, "-a", "alice", "1", "--to", "bob", "--to", "carol")
    assert told == (0, "alice told bob\nalice told carol\n", "")
    again = tiermem("social", "tell", folder, "-a", "alice", "1", "--to", "bob", "--json").json
    assert [(each["listener"], each["is_new"]) for each in again["told"]] == [("bob", False)]
    back = tiermem(
        "social", "tell", folder, "-a", "alice", "1", "--retract", "--correction", "It is honest"
    )
    assert back.out == "alice told bob\nalice told carol\n"
    found = tiermem("search", folder, "-a", "bob", "agent_X", "--json").json["results"]
    assert {each["content"] for each in found} == {"It is honest", RAIN}
    former = tiermem("search", folder, "-a", "bob", "agent_X", "--superseded", "--json").json
    now = {each["content"] for each in former["results"]}
    assert now == {"It is honest", "agent_X cheats", RAIN}


def test_nobody_is_told_who_is_not_in_the_bank(tiermem: Command, folder: Path) -> None:
    done = tiermem("social", "tell", folder, "-a", "alice", "1", "--to", "bob", "--to", "zedd")
    assert (done.code, done.out) == (1, "")
    assert len(done.err.splitlines()) == 3
    assert "has no agent zedd" in done.err
    assert "it has alice, bob" in done.err
    with MemoryBank.open(folder) as bank:
        assert (bank.agents(), bank.agent("bob").count()) == (["alice", "bob", "carol"], 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("social", "believe", BANK, "-a", "alice", "zedd", "0.3"),
        ("social", "believe", BANK, "-a", "alice", "zedd"),
        ("social", "group", BANK, "guild", "--join", "bob", "--join", "zedd"),
    ],
)
def test_a_name_that_the_bank_does_not_have_is_a_mistake(
    tiermem: Command, folder: Path, arguments: tuple[str, ...]
) -> None:
    done = tiermem(*[folder if word == BANK else word for word in arguments])
    assert (done.code, done.out) == (1, "")
    assert "has no agent zedd" in done.err
    assert "it has alice, bob" in done.err
    with MemoryBank.open(folder) as bank:
        assert (bank.agents(), bank.groups()) == (["alice", "bob", "carol"], [])
        assert bank.agent("alice").social.trust_of("zedd") == 1


def test_a_teller_of_an_imported_memory_can_be_believed(
    tiermem: Command, folder: Path, tmp_path: Path
) -> None:
    tiermem("social", "tell", folder, "-a", "alice", "1", "--to", "bob")
    rows, other = tmp_path / "bob.jsonl", tmp_path / "other"
    assert tiermem("store", "export", folder, "-a", "bob", "--out", rows).code == 0
    with MemoryBank.open(other, storage={"sync": "manual"}) as bank:
        bank.agent("dan").add(RAIN)
    assert tiermem("store", "import", other, rows).code == 0
    done = tiermem("social", "believe", other, "-a", "bob", "alice", "0.3")
    assert done.out == "bob trusts alice: 0.3\n"
    with MemoryBank.open(other) as bank:
        assert bank.agents() == ["bob", "dan"]


@pytest.mark.parametrize("more", [(), ("--leave", "bob"), ("--post", "noon", "-a", "bob")])
def test_a_group_that_is_not_there_says_how_to_make_it(
    tiermem: Command, folder: Path, more: tuple[str, ...]
) -> None:
    done = tiermem("social", "group", folder, "guild", *more)
    assert (done.code, done.out) == (2, "")
    assert "there is no group guild" in done.err
    assert "--join AGENT" in done.err


def test_a_stranger_is_told_to_join(tiermem: Command, folder: Path) -> None:
    assert tiermem("social", "group", folder, "guild", "--join", "alice").code == 0
    done = tiermem("social", "group", folder, "guild", "--post", "noon", "-a", "bob")
    assert "bob is not a member of a group guild" in done.err
    assert "an agent has to join a group first" in done.err


def distrusting(folder: Path, is_on: bool) -> Path:
    """A bank in which bob trusts alice less."""
    settings: dict[str, Any] = {"storage": {"sync": "manual"}, "retrieval": {"trust": is_on}}
    with MemoryBank.open(folder, **settings) as bank:
        alice, bob = bank.agent("alice"), bank.agent("bob")
        bob.add(RAIN)
        alice.social.tell("bob", alice.add("agent_X cheats").id)
        bob.social.trust("alice", 0.2)
    return folder


def test_explain_shows_trust_where_it_counts(tiermem: Command, tmp_path: Path) -> None:
    off, on = (distrusting(tmp_path / str(is_on), is_on) for is_on in (False, True))
    asks = ("-a", "bob", "--explain", "agent_X")
    assert "trust" not in tiermem("search", off, *asks).out
    assert all("trust" not in row for row in tiermem("search", off, *asks, "--json").json)
    rows = tiermem("search", on, *asks, "--json").json
    assert {row["memory"]: row["trust"] for row in rows} == {"agent_X cheats": 0.2, RAIN: 1.0}
    shown = tiermem("search", on, *asks).out
    assert "trust" in shown
    assert "0.2" in shown


def test_add_links_memories(tiermem: Command, folder: Path) -> None:
    tiermem("add", folder, "-a", "alice", "--contradicts", "1", "agent_X never cheats")
    tiermem("add", folder, "-a", "alice", "--supersedes", "1", "agent_X cheated once")
    with MemoryBank.open(folder) as bank:
        alice = bank.agent("alice")
        assert {each.content for each in alice.all()} == {
            "agent_X never cheats",
            "agent_X cheated once",
        }
        first = nth(alice.engine, "alice", 1)
        assert first is not None
        assert len(alice.links(first.id).contradicts) == 1


def test_believe_sets_and_shows(tiermem: Command, folder: Path) -> None:
    trust = ("social", "believe", folder, "-a", "alice", "bob")
    assert tiermem(*trust).out == "alice trusts bob: 1\n"
    assert tiermem(*trust, "0.2").out == "alice trusts bob: 0.2\n"
    assert tiermem(*trust, "--json").json["trust"] == 0.2


def test_a_group_is_made_written_and_left(tiermem: Command, folder: Path) -> None:
    assert tiermem("social", "group", folder, "guild", "--join", "alice", "--join", "bob").code == 0
    done = tiermem("social", "group", folder, "guild", "--post", "noon", "-a", "bob", "--json").json
    assert done["members"] == ["alice", "bob"]
    assert [(row["by"], row["text"]) for row in done["board"]] == [("bob", "noon")]
    found = tiermem("search", folder, "-a", "alice", "noon", "--groups", "--json").json["results"]
    assert found[0]["content"] == "noon"
    explained = tiermem("search", folder, "-a", "alice", "noon", "--groups", "--explain").out
    assert "chosen from the board of guild" in explained
    assert ", 1 group after tick" in tiermem("status", folder).out
    assert tiermem("social", "group", folder, "guild", "--leave", "alice").code == 0
    listed = tiermem("social", "group", folder, "--json").json
    assert "bob" in str(listed)
    assert "alice" not in str(listed)


def test_a_group_forgets_what_is_on_its_board(tiermem: Command, folder: Path) -> None:
    tiermem("social", "group", folder, "guild", "--join", "bob")
    for text in ("noon", "4711", "4712"):
        tiermem("social", "group", folder, "guild", "--post", text, "-a", "bob")
    board = tiermem("social", "group", folder, "guild", "--json").json["board"]
    ids = [row["id"] for row in board]
    assert f"{ids[1]}\t0\tbob\t4711" in tiermem("social", "group", folder, "guild").out.splitlines()
    done = tiermem("social", "group", folder, "guild", "--forget", ids[1], "--forget", "3")
    assert (done.code, done.err) == (
        0,
        f"free space of files may still have the text until: tiermem store vacuum {folder}\n",
    )
    assert done.out.splitlines()[2:] == [f"{ids[0]}\t0\tbob\tnoon"]
    done = tiermem("social", "group", folder, "guild", "--forget", "1", "--json")
    assert (done.json["board"], done.err) == ([], "")
    assert tiermem("store", "vacuum", folder).code == 0
    for path in folder.rglob("*"):
        if path.is_file():
            assert b"4711" not in path.read_bytes()


def test_a_group_forgets_all_that_is_named_or_nothing(tiermem: Command, folder: Path) -> None:
    tiermem("social", "group", folder, "guild", "--join", "bob", "--post", "noon", "-a", "bob")
    with MemoryBank.at(folder) as bank:
        own = bank.agent("bob").all()[0].id
        before = bank.state_hash()
    for wrong in ("2", own, "", "x" * 5000):
        done = tiermem("social", "group", folder, "guild", "--forget", "1", "--forget", wrong)
        assert done.is_one_error(1, "the board of guild has no memory", "tiermem social group")
    with MemoryBank.at(folder) as bank:
        assert bank.state_hash() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("group", "--forget", "1"),
        ("group", "guild", "--forget", "1"),
        ("tell", "-a", "alice", "1"),
        ("tell", "-a", "alice", "1", "--to", "alice"),
        ("tell", "-a", "alice", "1", "--to", "*"),
        ("tell", "-a", "alice", "1", "--to", "bob", "--tier", "pinned"),
        ("tell", "-a", "alice", "1", "--to", "bob", "--retract"),
        ("tell", "-a", "alice", "1", "--to", "bob", "--correction", "x"),
        ("tell", "-a", "alice", "1", "--retract", "--note", "x"),
        ("believe", "-a", "alice", "bob", "2"),
        ("believe", "-a", "alice", "alice", "0.5"),
        ("group", "guild"),
        ("group", ".guild", "--join", "alice"),
        ("group", "guild", "--post", "x"),
        ("group", "--join", "alice"),
        ("search", "-a", "alice", "x", "--groups", "--context"),
        ("search", "-a", "alice", "x", "--superseded", "--explain"),
        ("token", "create", "-a", "alice", "--read-only", "--tell"),
    ],
)
def test_a_mistake_gets_three_lines(
    tiermem: Command, folder: Path, arguments: tuple[str, ...]
) -> None:
    name, *rest = arguments
    place = [name, rest.pop(0), folder, *rest] if name == "token" else [name, folder, *rest]
    done = tiermem(*place)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 3
    with MemoryBank.open(folder) as bank:
        assert (bank.agents(), bank.groups()) == (["alice", "bob", "carol"], [])


def test_a_token_may_tell(tiermem: Command, folder: Path) -> None:
    done = tiermem("token", "create", folder, "-a", "alice", "--tell")
    assert "and tell other agents" in done.err
    assert "tell" in tiermem("token", "list", folder).out
