""" "Why not?" of the page: all memories, page by page, or those with a text."""

from pathlib import Path

import pytest
from browsers import Browser, served
from inspected_sites import ask, looked_at, make_run

from agents import MemoryBank
from agents.interfaces.inspector.export import write_export

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explains") / "bank"
    with MemoryBank.open(folder, storage={"sync": "manual"}) as made:
        made.agent("ann").add_many([f"boat {number} is in the Harbour" for number in range(230)])
    return folder


def test_every_memory_of_a_query_is_on_some_page(browser: Browser, bank: Path) -> None:
    with looked_at(bank) as site:
        rows = ask(site, "explain", agent="ann", tick=0, query="boat")["rows"]
    assert len(rows) == 230
    with served(bank) as address:
        browser.open(address, "#/agent/ann?t=0&tab=why-not&query=boat")
        browser.shows("#explained-total", "230 memories")
        browser.choose("#explained-from", "200")
        browser.shows("#explained .memory", rows[229]["text"])
        assert browser.all("#explained .memory") == [row["text"] for row in rows[200:]]
        browser.write("#explained-with", "boat 117 is in the harb")
        browser.shows("#explained-total", "1 memory")
        assert browser.all("#explained .memory") == ["boat 117 is in the Harbour"]
        rank = next(row["rank"] for row in rows if "boat 117 " in row["text"])
        assert browser.all("#explained td[data-label=rank]") == [str(rank or "–")]
        assert browser.complaints() == []


def test_an_export_says_what_it_leaves_out(browser: Browser, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", "market", 30)
    with looked_at(run) as site:
        total = ask(site, "explain", agent="agent_01", tick=30, when="deciding")["total"]
        write_export(site, tmp_path / "run.html")
    browser.open((tmp_path / "run.html").as_uri(), "#/agent/agent_01?t=30&tab=why-not")
    browser.shows("#explained-total", "the file leaves out")
    shown = browser.all("#explained .memory")
    assert browser.all("#explained-total") == [
        f"{len(shown)} memories; the file leaves out {total - len(shown)} that were not given"
    ]
    browser.write("#explained-with", shown[-1])
    wanted = [text for text in shown if shown[-1].lower() in text.lower()]
    browser.shows("#explained-total", f"{len(wanted)} memor")
    assert browser.all("#explained .memory") == wanted
