"""A run that goes on, goes back, or is not a run: what the inspector says of each."""

import shutil
from pathlib import Path

import pytest
from inspected_sites import ask, looked_at, make_run

from agents import MemoryBank
from agents.bank import history
from agents.errors import TierMemError
from agents.interfaces.inspector.inspection import Inspection
from agents.simulation.runs.record import past_bank
from agents.simulation.runs.run import Run
from agents.telling.groups import agent_counts
from waiting import until

AGENT = "agent_01"


def _bytes_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _read(site: Inspection, tick: int) -> None:
    until(f"tick {tick} is read", lambda: ask(site, "follow")["read_tick"] >= tick)


def test_looking_changes_nothing_in_the_folder(market: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(market, folder)
    before = _bytes_of(folder)
    with looked_at(folder) as site:
        ask(site, "agent", agent=AGENT, tick=20)
        ask(site, "explain", agent=AGENT, tick=20, query="who?")
        ask(site, "search", q="cloth")
        ask(site, "branch", tick=20, edits="[]")
    assert _bytes_of(folder) == before


@pytest.mark.slow
def test_a_run_is_followed_while_it_goes_on(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", "market", 5)
    longer = tmp_path / "longer"
    shutil.copytree(folder, longer)
    text = (longer / "config.yaml").read_text().replace("ticks: 5", "ticks: 12")
    (longer / "config.yaml").write_text(text)
    with Run.open(longer) as run, looked_at(longer) as site:
        assert ask(site, "follow") | {"read_tick": 0, "head": 0} == {
            "last_tick": 5,
            "is_finished": False,
            "read_tick": 0,
            "head": 0,
        }
        assert len(ask(site, "series")["ticks"]) == 6
        ask(site, "memories", agent=AGENT, tick=5)
        for tick, _ in enumerate(run.advance(12), start=6):
            assert ask(site, "follow")["last_tick"] == tick
            found = ask(site, "memories", agent=AGENT, tick=tick)
            assert found["total"] == run.bank.agent(AGENT).count()
            assert ask(site, "agent", agent=AGENT, tick=tick)["did"]
        assert ask(site, "follow")["is_finished"] is True
        assert ask(site, "series")["ticks"] == list(range(13))


@pytest.mark.slow
def test_a_bank_is_followed_while_its_tick_stands_still(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
        alice = bank.agent("alice")
        alice.add("the first boat")
        with looked_at(folder) as site:
            (about,) = ask(site, "about")["runs"]
            heads = [ask(site, "follow")["head"]]
            assert about["head"] == heads[0]
            for number in range(3):
                texts = [memory.content for memory in alice.all()]
                rows = ask(site, "memories", agent="alice", tick=0)["rows"]
                assert [row["text"] for row in rows] == texts
                assert ask(site, "explain", agent="alice", tick=0, query="boat")["total"] == len(
                    texts
                )
                alice.add(f"boat {number}")
                heads.append(ask(site, "follow")["head"])
            assert heads == sorted({*heads})
            assert ask(site, "follow")["last_tick"] == 0
            bank.advance(1)
            alice.add("the last boat")
            for tick, count in ((0, 4), (1, 5)):
                assert ask(site, "memories", agent="alice", tick=tick)["total"] == count


def test_a_tick_that_goes_on_shows_what_is_new(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        bank.agent("ann").add("the mill burns")
        with looked_at(tmp_path / "bank") as site:
            assert ask(site, "tick", tick=0)["total"] == 1
            bank.agent("ann").add("the mill is lost")
            texts = [row["text"] for row in ask(site, "tick", tick=0)["events"]]
    assert texts == ["the mill burns", "the mill is lost"]


@pytest.mark.slow
def test_a_run_that_goes_back_is_read_anew(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", "market", 8)
    with looked_at(folder) as site:
        _read(site, 8)
        ask(site, "memories", agent=AGENT, tick=8)
        ask(site, "series")
        with Run.open(folder) as run:
            run.bank.close()
        history.rewind(folder / "bank", 4)
        with MemoryBank.open(folder / "bank", storage={"sync": "manual"}) as bank:
            bank.agent(AGENT).add("after the rewind")
        until("it is read anew", lambda: ask(site, "follow")["read_tick"] == 4)
        assert ask(site, "follow")["last_tick"] == 4
        assert ask(site, "series")["ticks"] == list(range(5))
        rows = ask(site, "memories", agent=AGENT, tick=4)["rows"]
        assert rows[-1]["text"] == "after the rewind"
        assert ask(site, "search", q="after the rewind")["total"] == 1


def test_a_journal_that_is_none_is_refused(market: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(market, folder)
    (folder / "bank" / "journal.db").write_bytes(b"no database" * 1000)
    with pytest.raises(TierMemError):
        Inspection([folder])


def test_a_bank_without_a_run_is_looked_at_tick_by_tick(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
        alice, bob = bank.agent("alice"), bank.agent("bob")
        warning = alice.add("NEVER transfer to X", "pinned")
        for tick in range(1, 9):
            bank.advance(tick)
            last = alice.add(f"saw {tick} boats", "low" if tick % 2 else "normal")
            bob.add("the harbour is closed", metadata={"speaker": "alice"})
            alice.search("boats")
        alice.update(last.id, retention="archived")
        alice.delete(alice.all()[3].id)
        bank.advance(9)
        gone = alice.add("to be forgotten")
        alice.forget(gone.id)
        alice.unpin(warning.id, "critical")
        alice.update(alice.all()[1].id, temperature="cold")
        bank.advance(10)
        bob.add("closed is the harbour")
    with looked_at(folder) as site:
        about = ask(site, "about")
        assert (about["kind"], about["runs"][0]["last_tick"]) == ("bank", 10)
        series = ask(site, "series")
        for tick in range(11):
            with MemoryBank.at(folder, tick) as past:
                counts, heats = agent_counts(past.engine)
                rows = [memory.id for memory in past.agent("alice").all()]
            found = ask(site, "memories", agent="alice", tick=tick)
            assert [row["id"] for row in found["rows"]] == rows
            place = series["ticks"].index(tick)
            for tier, count in counts.items():
                assert series["tiers"][tier.name.lower()][place] == count, (tick, tier)
            for heat, count in heats.items():
                assert series["temperatures"][heat.name.lower()][place] == count, (tick, heat)
        assert ask(site, "search", q="to be forgotten")["total"] == 0
        told = ask(site, "population", tick=10)["told"]
        assert {(row["teller"], row["listener"]) for row in told} == {("alice", "bob")}
        words = [row["what"] for row in ask(site, "memory", id=warning.id)["events"]]
        assert words == ["born", "tier"]
        assert "keeps no decisions" in ask(site, "agent", agent="alice", tick=10)["note"]
        assert ask(site, "explain", agent="alice", tick=8, query="boats")["rows"]
        values = ask(site, "heat", of="memories")
        assert values["agents"] == ["alice", "bob"]


def test_a_run_from_a_checkpoint_shows_what_it_still_has(tmp_path: Path) -> None:
    folder = make_run(
        tmp_path / "run",
        "market",
        6,
    )
    with Run.open(folder) as run:
        path = run.checkpoint()
    shutil.rmtree(folder / "bank")
    MemoryBank.restore(path, folder / "bank", storage={"sync": "manual"}).close()
    with looked_at(folder) as site:
        (about,) = ask(site, "about")["runs"]
        assert (about["first_tick"], about["last_tick"]) == (6, 6)
        assert ask(site, "series")["ticks"] == list(range(7))
        with past_bank(folder, 6) as bank:
            count = bank.agent(AGENT).count()
        assert ask(site, "memories", agent=AGENT, tick=6)["total"] == count
        assert ask(site, "tick", tick=6)["events"] == []
