"""The board of a group is not an agent, in any view."""

from pathlib import Path

import pytest
from browsers import Browser, served
from inspected_sites import ask, looked_at

from agents import MemoryBank
from agents.interfaces.inspector import life_view
from agents.interfaces.inspector.export import write_export
from agents.interfaces.inspector.parameters import CantTell


@pytest.fixture(scope="module")
def guild(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank without a run, with a board whose id comes before those of the agents."""
    folder = tmp_path_factory.mktemp("boards") / "bank"
    with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
        board = bank.group("guild", ["alice", "bob"])
        board.post("bob", "the mill burns")
        bank.agent("alice").add("the bridge is open")
        bank.advance(1)
        board.post("alice", "the mill is lost", "important")
        for number in range(3):
            bank.agent("bob").add(f"rule {number}")
    return folder


def test_about_heat_map_and_curves_are_of_agents(guild: Path) -> None:
    with looked_at(guild) as site:
        (run,) = ask(site, "about")["runs"]
        heat, series = ask(site, "heat", of="memories"), ask(site, "series")
        second = ask(site, "heat", of="memories", offset=1, limit=1)
    assert (run["agents"], run["boards"]) == (["alice", "bob"], [".guild"])
    assert (heat["agents"], heat["total"]) == (["alice", "bob"], 2)
    assert heat["values"] == [[1, 1], [None, 3]]
    assert (second["agents"], second["values"]) == (["bob"], [[None, 3]])
    assert series["tiers"]["normal"] == [1, 4]
    assert series["tiers"]["important"] == [0, 0]


def test_a_board_has_memories_and_lives_and_decides_nothing(guild: Path) -> None:
    with MemoryBank.at(guild) as bank:
        expected = [(each.id, each.content) for each in bank.group("guild").all()]
    with looked_at(guild) as site:
        rows = ask(site, "memories", agent=".guild", tick=1)["rows"]
        assert [(row["id"], row["text"]) for row in rows] == expected
        assert ask(site, "memories", agent=".guild", tick=0)["total"] == 1
        life = ask(site, "memory", id=rows[1]["id"])
        assert (life["memory"]["agent"], life["memory"]["text"]) == (".guild", "the mill is lost")
        assert "decides nothing" in ask(site, "agent", agent=".guild", tick=1)["note"]
        with pytest.raises(CantTell, match="board"):
            ask(site, "explain", agent=".guild", tick=1, query="mill")


def test_a_search_names_the_board(guild: Path) -> None:
    with looked_at(guild) as site:
        named = ask(site, "search", q="GUILD")["rows"]
        found = ask(site, "search", q="mill")["rows"]
    assert [(row["what"], row["agent"]) for row in named] == [("board", ".guild")]
    assert [(row["what"], row["agent"]) for row in found] == [("fact", ".guild")] * 2


def test_a_run_shows_its_board_too(wells: Path) -> None:
    with looked_at(wells) as site:
        (row,) = ask(site, "search", q="old well", of="memories")["rows"]
        assert row["agent"] == ".guild"
        assert ask(site, "memory", id=row["memory_id"])["memory"]["agent"] == ".guild"
        (run,) = ask(site, "about")["runs"]
        assert (run["agents"], run["boards"]) == (["ann", "bob"], [".guild"])
        assert ask(site, "heat", of="memories")["agents"] == ["ann", "bob"]


def test_a_memory_on_a_board_has_the_decisions_of_those_who_found_it(wells: Path) -> None:
    with looked_at(wells) as site:
        (row,) = ask(site, "search", q="old well", of="memories")["rows"]
        life = ask(site, "memory", id=row["memory_id"])
        found = [(each["tick"], each["agent"], each["part"]) for each in life["decisions"]]
        assert found == [(tick, name, "found") for tick in (3, 4) for name in ("ann", "bob")]
        for each in life["decisions"]:
            asked = ask(site, "agent", agent=each["agent"], tick=each["tick"])["asked"]
            (own,) = [
                (place, seen["score"])
                for place, seen in enumerate(asked[0]["found"], 1)
                if seen["id"] == row["memory_id"]
            ]
            assert own == (each["place"], each["score"])
            assert [did["name"] for did in each["did"]] == ["go"]
        assert life["no_decisions"] == ""


def test_of_many_decisions_about_a_board_the_first_are_told(
    wells: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life_view, "_MOST_DECISIONS", 3)
    with looked_at(wells) as site:
        (row,) = ask(site, "search", q="old well", of="memories")["rows"]
        life = ask(site, "memory", id=row["memory_id"])
    assert len(life["decisions"]) == 3
    assert "the first 3 of 4 decisions" in life["note"]


def test_a_bank_without_a_run_says_that_it_keeps_no_decisions(guild: Path) -> None:
    with looked_at(guild) as site:
        for words in ("bridge open", "mill lost"):
            (row,) = ask(site, "search", q=words)["rows"]
            life = ask(site, "memory", id=row["memory_id"])
            assert life["no_decisions"] == "a bank without a run keeps no decisions"


@pytest.mark.slow
@pytest.mark.parametrize("is_exported", [False, True])
def test_the_page_tells_a_board_from_an_agent(
    browser: Browser, guild: Path, tmp_path: Path, is_exported: bool
) -> None:
    with served(guild) as address:
        if is_exported:
            with looked_at(guild) as site:
                write_export(site, tmp_path / "guild.html")
            address = (tmp_path / "guild.html").as_uri()
        browser.open(address, "#/agent")
        browser.shows("#agent option", "alice")
        assert browser.all("#agent optgroup option") == ["board of guild"]
        assert browser.all("#agent > option") == ["alice", "bob"]
        browser.choose("#agent", ".guild")
        browser.shows("#board-note", "decides nothing")
        browser.shows("#memories .row .c-text", "the mill is lost")
        assert browser.all("#tab-why-not") == []
        browser.open(address, "#/search?q=mill")
        browser.shows("#results .row .c-agent", "board of guild")
        browser.click("#results .row .c-text a")
        browser.shows(".memory-view .facts a.agent", "board of guild")
        browser.shows("#no-decisions", "a bank without a run keeps no decisions")
        browser.open(address, "#/overview")
        browser.shows(".heat", "")
        assert "guild" not in "".join(browser.all(".heat"))
        assert browser.complaints() == []
