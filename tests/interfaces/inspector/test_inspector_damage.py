"""A damaged run says so, and shows what is whole: on the page and in an export."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from browsers import Browser
from commands import Command
from inspected_sites import ask, looked_at

from agents import MemoryBank
from agents.errors import BankDamaged
from agents.interfaces.inspector.parameters import CantTell
from agents.simulation.runs.record import past_bank
from waiting import until

AGENT = "agent_01"
DAMAGES = {
    "events": "UPDATE commits SET events = replace(events, 'offers', 'offerz') WHERE tick = 20",
    "record": "UPDATE ticks SET record = replace(record, 'loss', 'lozs') WHERE tick = 20",
    "decisions": "UPDATE decisions SET data = zeroblob(20) WHERE tick = 20",
}


def _damaged(run: Path, place: Path, sql: str) -> Path:
    """A copy of a run whose journal was changed by somebody else."""
    shutil.copytree(run, place)
    database = sqlite3.connect(place / "bank" / "journal.db")
    with database:
        assert database.execute(sql).rowcount
    database.close()
    return place


@pytest.mark.parametrize("damage", ["events", "record"])
def test_what_comes_before_the_damage_is_shown(market: Path, tmp_path: Path, damage: str) -> None:
    folder = _damaged(market, tmp_path / "run", DAMAGES[damage])
    with looked_at(folder) as site:
        until("the damage is found", lambda: site.runs[0].damaged is not None)
        (run,) = ask(site, "about")["runs"]
        assert "is not what was written" in run["damaged"]
        whole = ask(site, "memories", agent=AGENT, tick=19)
        with past_bank(market, 19) as bank:
            memories = bank.agent(AGENT).all()
        assert whole["total"] == len(memories)
        assert ask(site, "tick", tick=19)["total"] > 0
        assert ask(site, "series")["ticks"][:20] == list(range(20))
        life = ask(site, "memory", id=memories[0].id)
        assert "damaged after tick 19" in life["note"]
        assert max(row["tick"] for row in ask(site, "search", q="o")["rows"][5:]) == 19
        for name in ("memories", "agent"):
            with pytest.raises(CantTell, match="is damaged") as found:
                ask(site, name, agent=AGENT, tick=20)
            assert "salvage" in str(found.value.hint)
        with pytest.raises(BankDamaged):
            ask(site, "tick", tick=20)


def test_damaged_decisions_of_a_tick_take_nothing_else_with_them(
    market: Path, tmp_path: Path
) -> None:
    folder = _damaged(market, tmp_path / "run", DAMAGES["decisions"])
    with looked_at(folder) as site, looked_at(market) as whole:
        found = ask(site, "agent", agent=AGENT, tick=20)
        assert "the decisions of tick 20 are not what was written" in found["note"]
        assert found["given"] == []
        (run,) = ask(site, "about")["runs"]
        assert "the decisions of tick 20" in run["damaged"]
        for name in ("agent", "memories"):
            for tick in (19, 21, 40):
                here = {"agent": AGENT, "tick": tick}
                assert ask(site, name, **here) == ask(whole, name, **here)
        events = ask(site, "tick", tick=20)["events"]
        expected = ask(whole, "tick", tick=20)["events"]
        assert events == [row for row in expected if row["memory_id"]]


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.parametrize(("damage", "last"), [("events", 19), ("record", 19), ("decisions", 40)])
def test_an_export_has_what_is_whole_and_says_what_is_not(
    browser: Browser, market: Path, tmp_path: Path, tiermem: Command, damage: str, last: int
) -> None:
    folder = _damaged(market, tmp_path / "run", DAMAGES[damage])
    done = tiermem("inspect", folder, "--export", "run.html", "-q")
    assert (done.code, done.out) == (0, "run.html\n")
    assert "is damaged" in done.err
    assert "the file has what is whole" in done.err
    browser.open((tmp_path / "run.html").as_uri(), f"#/agent/{AGENT}")
    browser.shows(".damaged", f"This file has what is whole, up to tick {last}")
    assert browser.tick == last
    with past_bank(market, 19) as bank:
        count = bank.agent(AGENT).count()
    browser.go(f"#/agent/{AGENT}?t=19")
    browser.shows(f"#memories[data-ready=true][data-total='{count}']")
    browser.shows(".part[data-part=did]")
    if damage == "decisions":
        browser.go(f"#/agent/{AGENT}?t=20")
        browser.shows(".decision .remark", "the decisions of tick 20")
    browser.go("#/overview?t=5")
    browser.shows(".frame[data-view=overview] .heat")
    assert browser.complaints() == []


def test_an_export_of_nothing_whole_is_refused_with_a_remedy(
    tmp_path: Path, tiermem: Command
) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        bank.agent("alice").add("the mill burns")
    database = sqlite3.connect(tmp_path / "bank" / "journal.db")
    with database:
        database.execute("UPDATE commits SET events = replace(events, 'mill', 'milk')")
    database.close()
    done = tiermem("inspect", "bank", "--export", "bank.html", "-q")
    assert done.is_one_error(1, "is damaged", "--salvage")
    assert not (tmp_path / "bank.html").exists()
