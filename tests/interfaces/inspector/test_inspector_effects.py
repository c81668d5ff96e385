"""Experiments that lie beside a run: the inspector lists them, and leads to their two runs."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from browsers import Browser, served
from inspected_sites import ask, looked_at

from agents.interfaces.inspector.export import write_export
from agents.interfaces.inspector.parameters import NotThere
from agents.simulation.effects import Effect, effect
from agents.simulation.runs.found_effects import effects_of
from waiting import until

AGENT = "agent_01"


class Experiment(NamedTuple):
    run: Path
    found: Effect


@pytest.fixture(scope="module")
def experiment(rumor: Path, tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """A copy of a run, and a branch in which one agent does not hear another one."""
    folder = tmp_path_factory.mktemp("experiments")
    run = shutil.copytree(rumor, folder / "runs" / "village")
    out = folder / "effects" / "silence"
    found = effect(run, at=4, block=f"agent_00→{AGENT}", out=out)
    return Experiment(run, found)


def test_an_experiment_is_listed_with_its_tick_and_its_intervals(experiment: Experiment) -> None:
    run, found = experiment
    with looked_at(run) as site:
        listed = ask(site, "effects")
        (row,) = listed["effects"]
        assert listed["total"] == 1
        assert (row["name"], row["at"], row["until"]) == ("../effects/silence", 4, 12)
        assert row["changed"] == list(found.words)
        assert row["reached"] == [(each.agent, each.tick) for each in found.reached]
        for told, own in zip(found.statistics, row["statistics"], strict=True):
            numbers = {name: told[name] for name in ("metric", "n", "mean", "low", "high")}
            assert own == {**numbers, "interval": "–"}


def test_a_models_chance_stands_beside_the_effect(experiment: Experiment, tmp_path: Path) -> None:
    run = shutil.copytree(experiment.run, tmp_path / "village")
    row = {"metric": "lies", "n": 1, "mean": -4.0, "low": None, "high": None, "placebo_least": 2.5,
           "placebo_most": 3.5, "verdict": "not told apart"}  # fmt: skip
    told = {"run": str(run), "at": 4, "until": 12, "changed": ["silence"], "statistics": [row]}
    (tmp_path / "coin").mkdir()
    (tmp_path / "coin" / "effect.json").write_text(json.dumps(told))
    with looked_at(run) as site:
        ((listed,),) = [each["statistics"] for each in ask(site, "effects")["effects"]]
    assert (listed["placebo"], listed["verdict"]) == ("+2.5 to +3.5", "not told apart")


def test_a_ranking_is_listed_memory_by_memory(experiment: Experiment, tmp_path: Path) -> None:
    run = shutil.copytree(experiment.run, tmp_path / "village")
    tested = {"agent": AGENT, "text": "the mill burns", "difference": 2.5, "low": 1.5, "high": 3.5}
    (tmp_path / "ranking").mkdir()
    ranking = {"run": str(run), "until": 12, "metric": "lies", "tested": [{**tested, "n": 5}]}
    (tmp_path / "ranking" / "effect.json").write_text(json.dumps(ranking))
    (found,) = effects_of(run)
    assert (found.name, found.at, found.arms) == ("ranking", None, None)
    assert found.statistics == [
        {"metric": "lies without agent_01: 'the mill burns'", "n": 5, "mean": 2.5, "low": 1.5,
         "high": 3.5}
    ]  # fmt: skip


def test_an_experiment_opens_as_two_runs_and_leads_back(experiment: Experiment) -> None:
    run, _ = experiment
    with looked_at(run) as site:
        with pytest.raises(NotThere, match="no experiment 'other'"):
            ask(site, "open", effect="other")
        ask(site, "open", effect="../effects/silence")
        about = ask(site, "about")
        assert [each["name"] for each in about["runs"]] == ["as-it-was", "changed"]
        assert (about["around"], about["effect"]) == ("village", "../effects/silence")
        before = site.runs[:]
        ask(site, "open", effect="../effects/silence")  # as a page that is loaded anew asks
        assert site.runs == before
        assert ask(site, "compare", agent=AGENT, tick=8)["left"]["tick"] == 8
        ask(site, "open")
        about = ask(site, "about")
        assert ([each["name"] for each in about["runs"]], about["around"]) == (["village"], None)
        assert about["effect"] == ""


def test_a_run_that_cannot_be_opened_leaves_the_page_as_it_was(
    experiment: Experiment, tmp_path: Path
) -> None:
    run, _ = experiment
    shutil.copytree(run.parent.parent, tmp_path / "all")
    (tmp_path / "all/effects/silence/changed/bank/journal.db").write_bytes(b"no journal")
    with looked_at(tmp_path / "all/runs/village") as site:
        for about in (tmp_path / "all/effects/silence").glob("*/run.json"):
            told = json.loads(about.read_text())
            told["parent"]["run"] = str(tmp_path / "all/runs/village")
            about.write_text(json.dumps(told))
        with pytest.raises(Exception, match="journal"):
            ask(site, "open", effect="../effects/silence")
        assert [each["name"] for each in ask(site, "about")["runs"]] == ["village"]
        assert ask(site, "memories", agent=AGENT, tick=5)["total"] > 0


@pytest.mark.parametrize(
    "damage",
    ["", "[]", "{}", '{"run": "village"}', '{"run": "village", "until": 3, "statistics": [{}]}'],
)
def test_what_is_no_experiment_with_this_run_is_left_out(
    experiment: Experiment, tmp_path: Path, damage: str
) -> None:
    run = shutil.copytree(experiment.run, tmp_path / "village")
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "effect.json").write_text(damage)
    shutil.copytree(experiment.run.parents[1] / "effects" / "silence", tmp_path / "of-another-run")
    assert effects_of(run) == []


@pytest.mark.slow
def test_the_page_leads_from_a_run_to_what_a_change_did(
    browser: Browser, experiment: Experiment, tmp_path: Path
) -> None:
    run, found = experiment
    with served(run) as address:
        browser.open(address, "#/overview?t=10")
        browser.click("#effects-note a")
        browser.shows("#effects", found.words[0])
        means = [row["mean"] for row in found.statistics]
        assert browser.values("#effects tbody td:nth-child(3) .num") == means
        browser.click("#effects h2 .tick-link")
        until("the cursor is where it began", lambda: browser.tick == found.at)
        browser.click(".open-arms")
        browser.shows(".frame[data-view=compare] #parted")
        link = browser.hash
        browser.driver.back()
        browser.shows("#effects", found.words[0])
        browser.driver.forward()
        browser.shows(".frame[data-view=compare] #parted")
        browser.click("#to-run")
        browser.shows("#effects", found.words[0])
        browser.open(address, link)
        browser.shows(".frame[data-view=compare] #parted")
        browser.open(address, link)
        browser.shows(".runs .run-1", "changed")
        browser.open(address, "#/compare")
        browser.shows("#effects", found.words[0])
        assert browser.complaints() == []
    with looked_at(run) as site:
        write_export(site, tmp_path / "run.html")
    browser.open((tmp_path / "run.html").as_uri(), "#/compare?t=10")
    browser.shows("#effects", found.words[0])
    assert browser.all(".open-arms") == []
