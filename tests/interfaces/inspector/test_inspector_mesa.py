"""The inspector looks at the run of a Mesa model, to which agents come in any step."""

import sys
from pathlib import Path

import orjson
import pytest
from inspected_sites import ask, looked_at

from banks import ROOT

pytest.importorskip("mesa")
sys.path.append(str(ROOT / "tests/adapters"))

from mesa_models import walked

from agents.simulation.runs.record import past_bank
from agents.simulation.runs.why import as_json, decision


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspected") / "town"
    walked(4, n=3, births=1, folder=folder).memories.close(report=False)
    return folder


def test_its_agents_are_those_of_the_last_step(town: Path) -> None:
    with looked_at(town) as site, past_bank(town, 4) as bank:
        about = ask(site, "about")["runs"][0]
        assert set(bank.agents()) < set(about["agents"])  # one came in the last step
        assert len(about["agents"]) == 7
        assert about["last_tick"] == 4
        ask(site, "memories", agent=about["agents"][-1], tick=4)  # the last tick is read by then
        heat = ask(site, "heat", of="retrievals")
        assert [len(row) for row in heat["values"]] == [len(heat["ticks"])] * 7
        assert heat["values"][-1][0] is None
        assert ask(site, "tick", tick=2)["events"]


def test_a_decision_is_that_of_the_python_api(town: Path) -> None:
    with looked_at(town) as site:
        first, *_, last = ask(site, "about")["runs"][0]["agents"]
        for tick in (2, 4):
            found = ask(site, "agent", agent=first, tick=tick)
            told = orjson.loads(orjson.dumps(as_json(decision(town, first, tick)), default=list))
            assert [each["id"] for each in found["given"]] == [each["id"] for each in told["given"]]
            assert found["did"]
        assert ask(site, "memories", agent=last, tick=1)["total"] == 0


def test_agents_who_come_while_the_run_is_followed_appear(tmp_path: Path) -> None:
    town = walked(1, n=3, births=1, folder=tmp_path / "town")
    try:
        with looked_at(tmp_path / "town") as site:
            before = ask(site, "about")["runs"][0]["agents"]
            assert len(before) == 4
            town.step()
            town.step()
            about = ask(site, "about")["runs"][0]
            assert about["agents"][:4] == before
            assert len(about["agents"]) == 6
            for name in about["agents"]:
                assert ask(site, "agent", agent=name, tick=3)["agent"] == name
            newer = ask(site, "agent", agent=about["agents"][4], tick=3)
            assert (newer["note"], bool(newer["did"])) == ("", True)
            heat = ask(site, "heat", of="retrievals")
            assert (heat["agents"], heat["total"]) == (about["agents"], 6)
            assert heat["values"][4][-1] is not None
            assert ask(site, "tick", tick=3)["events"]
            assert ask(site, "about")["runs"][0]["damaged"] is None
    finally:
        town.memories.close(report=False)
