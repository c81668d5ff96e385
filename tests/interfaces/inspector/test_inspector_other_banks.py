"""Banks that no simulation made: an MCP server's, and that of LangGraph's store."""

from pathlib import Path

import anyio
import pytest
from browsers import Browser, served
from inspected_sites import ask, looked_at
from mcp_clients import over_streams
from mcp_versions import Client

from agents import MemoryBank
from agents.interfaces.inspector.agent_view import memory_row
from agents.interfaces.inspector.export import exported


@pytest.fixture(scope="module")
def of_mcp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank that ``tiermem mcp`` made, and a client wrote to over stdio."""
    folder = tmp_path_factory.mktemp("mcp") / "bank"

    async def main() -> None:
        options = ("--create", "--set", "storage.sync=manual")
        async with Client(over_streams(folder, *options)) as client:
            for arguments in (
                {"content": "NEVER open the harbour gate", "tier": "pinned"},
                {"content": "The harbour master is called Ines"},
            ):
                added = await client.call_tool("memory_add", arguments)
                assert not added.is_error
            found = await client.call_tool("memory_search", {"query": "who is the master?"})
            assert not found.is_error

    anyio.run(main)
    return folder


@pytest.fixture(scope="module")
def of_langgraph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank that was the store of a program with LangGraph."""
    pytest.importorskip(
        "langgraph", reason="the store's test needs langgraph: pip install 'tiermem[langgraph]'"
    )
    from agents.langgraph import TierMemStore

    folder = tmp_path_factory.mktemp("langgraph") / "bank"
    with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
        store = TierMemStore(bank)
        store.put(("users", "ann"), "gate", {"text": "NEVER open the harbour gate"})
        store.put(("users", "ann"), "master", {"text": "The harbour master is called Inez"})
        store.put(("users", "ann"), "master", {"text": "The harbour master is called Ines"})
        store.put(("users", "bob"), "tide", {"text": "The tide is high at noon"})
        assert store.search(("users", "ann"), query="harbour")
    return folder


@pytest.fixture(params=["of_mcp", "of_langgraph"])
def bank(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


@pytest.mark.slow
def test_the_answers_are_those_of_the_bank(bank: Path) -> None:
    with MemoryBank.at(bank) as copy:
        tick, agents = copy.tick, copy.agents()
        expected = {name: copy.agent(name).all() for name in agents}
    with looked_at(bank) as site:
        about = ask(site, "about")
        (run,) = about["runs"]
        assert (about["kind"], run["last_tick"], run["damaged"]) == ("bank", tick, None)
        assert set(agents) <= set(run["agents"])
        for name, memories in expected.items():
            rows = ask(site, "memories", agent=name, tick=tick)["rows"]
            assert rows == [memory_row(memory) for memory in memories]
            told = ask(site, "agent", agent=name, tick=tick)
            assert "keeps no decisions" in told["note"]
            for memory in memories:
                life = ask(site, "memory", id=memory.id)
                assert life["memory"]["text"] == memory.content
                assert life["events"][0]["what"] == "born"
        found = ask(site, "search", q="MASTER harbour Ines")["rows"]
        owner = next(name for name in agents if any("Ines" in m.content for m in expected[name]))
        assert {row["agent"] for row in found} == {owner}
        rows = ask(site, "explain", agent=owner, tick=tick, query="harbour master")["rows"]
        assert any("Ines" in row["text"] for row in rows if row["rank"])


@pytest.mark.slow
def test_the_page_shows_agent_memory_and_search(browser: Browser, bank: Path) -> None:
    with served(bank) as address:
        browser.open(address)
        browser.shows(".frame[data-view=overview] #heat")
        browser.click("nav a[data-tab=agent]")
        browser.shows("#agent option")
        browser.write("#search", "ines master\ue007")
        browser.shows("#results[data-ready=true] .row .c-text", "Ines")
        browser.click("#results .row .c-text a")
        browser.shows("#memory-text", "The harbour master is called Ines")
        browser.shows("#life li", "born")
        browser.click(".memory-view .facts a.agent")
        browser.shows("#memories[data-ready=true] .row .c-text", "NEVER open the harbour gate")
        assert browser.complaints() == []


def test_the_bank_of_a_run_is_whole_without_its_run(wells: Path) -> None:
    with looked_at(wells / "bank") as site:
        (run,) = ask(site, "about")["runs"]
        assert (run["damaged"], run["has_decisions"]) == (None, False)
        assert run["agents"] == ["ann", "bob"]
        told = ask(site, "agent", agent="ann", tick=2)["note"]
        assert "without its run" in told
        assert str(wells) in told
        events = ask(site, "tick", tick=2)["events"]
        assert {row["what"] for row in events} >= {"born"}
        assert exported(site)
        assert site.runs[0].damaged is None
