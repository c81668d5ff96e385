"""Two runs, branches, and sweeps."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from browsers import Browser, served
from commands import Command
from inspected_sites import ask, looked_at, make_run, opened

from agents.config.load import load_settings
from agents.errors import RunError
from agents.interfaces.inspector import comparing
from agents.interfaces.inspector.inspection import Inspection
from agents.interfaces.inspector.parameters import CantTell, NotThere, WrongParameter
from agents.simulation.runs.branch import branch
from agents.simulation.runs.compare import compare_runs
from agents.simulation.runs.edits import read_edits
from agents.simulation.runs.placement import LOCAL
from agents.simulation.runs.run import Run
from agents.simulation.sweeps.run_sweep import run_all, write_results
from agents.simulation.sweeps.sweep import read_sweep


def _finished(folder: Path) -> Path:
    with Run.open(folder) as run:
        for _ in run.advance(run.settings.simulation.ticks):
            pass
    return folder


def test_a_branch_without_edits_never_parts(market: Path, tmp_path: Path) -> None:
    branch(market, 30, tmp_path / "same")
    with looked_at(market, _finished(tmp_path / "same")) as site:
        found = ask(site, "compare", agent="agent_01", tick=35)
        assert found["first_difference"] is None
        assert found["only_left"] == found["only_right"] == []
        assert found["left"] == found["right"]


def test_of_many_memories_the_first_are_listed_and_all_are_counted(
    market: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edits = [{"agent": "agent_02", "do": "add", "content": f"rule {n}"} for n in range(5)]
    branch(market, 40, tmp_path / "other", edits=edits)
    with looked_at(market, tmp_path / "other") as site:
        found = ask(site, "compare", agent="agent_02", tick=40)
        assert (found["only_left_total"], found["only_right_total"]) == (0, 5)
        monkeypatch.setattr(comparing, "_MOST_ONLY", 2)
        again = ask(site, "compare", agent="agent_02", tick=40)
    assert again == {**found, "only_right": found["only_right"][:2]}


@pytest.mark.slow
def test_the_page_says_how_many_memories_are_not_listed(
    browser: Browser, market: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edits = [{"agent": "agent_02", "do": "add", "content": f"rule {n}"} for n in range(5)]
    branch(market, 40, tmp_path / "other", edits=edits)
    monkeypatch.setattr(comparing, "_MOST_ONLY", 2)
    with served(market, tmp_path / "other") as address:
        browser.open(address, "#/compare/agent_02?t=40")
        browser.shows("[data-side='1'] [data-not-shown='3']", "3 more memories are not shown")
        assert len(browser.all("[data-side='1'] ul.only li")) == 2
        assert browser.complaints() == []


def test_two_runs_part_where_diff_says(market: Path, tmp_path: Path) -> None:
    edits = [{"agent": "agent_02", "do": "add", "content": "NEVER trade", "tier": "pinned"}]
    branch(market, 30, tmp_path / "other", edits=edits)
    other = _finished(tmp_path / "other")
    told = compare_runs(market, other)
    with looked_at(market, other) as site:
        found = ask(site, "compare", agent="agent_02", tick=40)
        parting = found["first_difference"]
        assert (parting["tick"], parting["agent"]) == (told.parted, "agent_02")
        assert parting["what"] == "decision", "what it remembered of it follows from that"
        for name, memories in (("only_left", told.only_first), ("only_right", told.only_second)):
            own = [memory.id for memory in memories if memory.agent_id == "agent_02"]
            assert [row["id"] for row in found[name]] == own
        assert found["left"]["tick"] == found["right"]["tick"] == 40
        with pytest.raises(NotThere):
            ask(site, "compare", agent="nobody", tick=3)
    with looked_at(market) as site, pytest.raises(CantTell, match="only one run"):
        ask(site, "compare", agent="agent_02", tick=40)


def test_a_branch_is_given_as_a_command_and_a_file(market: Path, tmp_path: Path) -> None:
    edits = [
        {"agent": "agent_02", "do": "delete", "matching": "says"},
        {"agent": "agent_02", "do": "add", "content": "<b>: 'quoted' # no comment\nλ"},
    ]
    with looked_at(market) as site:
        found = ask(site, "branch", agent="agent_02", tick=30, edits=json.dumps(edits))
        path = tmp_path / found["edits_name"]
        path.write_text(found["edits_file"])
        assert read_edits(path) == edits
        assert found["command"].startswith(f"tiermem branch {market} --at 30 --out ")
        assert found["command"].endswith(f"--edit {found['edits_name']}")
        plain = ask(site, "branch", tick=30, out="mine")
        assert (plain["edits_file"], Path(plain["out"])) == ("", market.with_name("mine"))
        for wrong in ("{}", "[1]", '[{"agent": "a", "do": "x"}]', "nonsense"):
            with pytest.raises(WrongParameter):
                ask(site, "branch", tick=30, edits=wrong)
        for out in ("../up", "/abs", ".hidden", "a/b", "a\nb"):
            with pytest.raises(WrongParameter):
                ask(site, "branch", tick=30, out=out)


def test_the_command_of_a_branch_has_the_options_that_were_chosen(market: Path) -> None:
    options = [
        ["set", "memory.max_pinned=3"],
        ["never-heard", "agent_01:offers cloth"],
        ["block", "agent_00→agent_01"],
        ["ticks", "50"],
        ["make-only", ""],
    ]
    with looked_at(market) as site:
        found = ask(site, "branch", tick=30, out="mine", options=json.dumps(options))
    assert found["command"] == (
        f"tiermem branch {market} --at 30 --out {market.with_name('mine')} "
        "--set memory.max_pinned=3 --never-heard 'agent_01:offers cloth' "
        "--block 'agent_00→agent_01' --ticks 50 --make-only"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("{}", "options is a list of pairs"),
        ("nonsense", "options is not JSON"),
        ('[["force", ""]]', "there is no option --force"),
        ('[["set"]]', "options is a list of pairs"),
        ('[["set", 3]]', "options is a list of pairs"),
        ('[["pin", " "]]', "--pin has no value"),
        ('[["pin", "a\\nb"]]', "--pin has no value"),
        ('[["set", "memory.max_pins=3"]]', "max_pins"),
        ('[["ticks", "many"]]', "ticks"),
        ('[["ticks", "7"]]', "can't be 7 ticks long"),
        ('[["block", "agent_00 agent_01"]]', "does not say who is kept from whom"),
        ('[["make-only", "yes"]]', "--make-only has no value"),
    ],
)
def test_an_option_that_the_command_would_refuse_is_refused(
    site: Inspection, options: str, words: str
) -> None:
    with pytest.raises(WrongParameter, match=words):
        ask(site, "branch", tick=30, options=options)


def test_a_branch_of_the_page_is_that_of_the_command(tmp_path: Path, command: Command) -> None:
    run = make_run(tmp_path / "run", "market", 6)
    with looked_at(run) as site:
        memory = ask(site, "memories", agent="agent_01", tick=4)["rows"][0]["id"]
    options = [
        ["forget", f"agent_01:{memory}"],
        ["block", "agent_00->agent_01"],
        ["set", "memory.max_pinned=2"],
        ["ticks", "8"],
    ]
    body = {"tick": 4, "options": options, "out": "page"}
    with opened(run, allow_branch=True) as door:
        assert door.post("api/branch", json=body).status_code == 200
    given = [part for name, value in options for part in (f"--{name}", value)]
    done = command("branch", run, "--at", 4, "--out", tmp_path / "typed", *given)
    assert done.code == 0, done
    found = [compare_runs(tmp_path / "page", tmp_path / "typed")]
    assert found == [compare_runs(tmp_path / "typed", tmp_path / "typed")]
    for name in ("page", "typed"):
        settings = load_settings(tmp_path / name / "config.yaml")
        assert (settings.simulation.ticks, settings.memory.max_pinned) == (8, 2)
        rules = json.loads((tmp_path / name / "run.json").read_text())["rules"]
        assert [rule["do"] for rule in rules] == ["block"]


def test_a_branch_that_is_only_made_is_not_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", "market", 6)
    body = {"tick": 4, "options": [["make-only", ""]], "out": "made"}
    with opened(run, allow_branch=True) as door:
        assert door.post("api/branch", json=body).status_code == 200
    with looked_at(tmp_path / "made") as site:
        assert ask(site, "about")["runs"][0]["last_tick"] == 4


def test_an_agent_is_asked_only_where_it_is_allowed(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", "market", 3)
    body = {"agent": "agent_00", "tick": 2, "question": "Why?"}
    with opened(run) as door:
        assert door.post("api/ask", json=body).status_code == 403
    with opened(run, allow_ask=True) as door:
        assert door.get("api/about").json()["allow_ask"] is True
        asked = door.post("api/ask", json=body)
        wrong = door.post("api/ask", json={**body, "kind": "choice", "choice": "yes"})
    assert asked.status_code == 400
    assert "no language model is configured" in asked.json()["error"]["message"]
    assert "2 to 50 different texts" in wrong.json()["error"]["message"]
    assert not (run / "interviews").exists()


def test_a_branch_is_run_only_where_it_is_allowed(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", "market", 6)
    body = {
        "tick": 4,
        "edits": [{"agent": "agent_00", "do": "add", "content": "hello"}],
        "out": "fork",
    }
    with opened(run) as door:
        assert door.post("api/branch", json=body).status_code == 403
    assert not (tmp_path / "fork").exists()
    with opened(run, allow_branch=True) as door:
        evil = {"Origin": "https://evil.example"}
        assert door.post("api/branch", json=body, headers=evil).status_code == 403
        text = json.dumps(body)
        plain = {"Content-Type": "text/plain"}
        assert door.post("api/branch", content=text, headers=plain).status_code == 415
        assert door.post("api/branch", json={**body, "edits": "["}).status_code == 400
        assert not (tmp_path / "fork").exists()
        made = door.post("api/branch", json=body)
        assert made.json() == {"out": str(tmp_path / "fork"), "run": 1}
        assert [each["name"] for each in door.get("api/about").json()["runs"]] == ["run", "fork"]
        assert door.post("api/branch", json=body).status_code == 409  # the folder exists
    assert load_settings(tmp_path / "fork" / "config.yaml").simulation.ticks == 6


@pytest.mark.slow
def test_a_sweep_is_a_grid_whose_points_lead_to_runs(tmp_path: Path) -> None:
    (tmp_path / "market.yaml").write_text(
        "storage: {sync: manual}\nsimulation: {world: market, agents: 5, ticks: 4}\n"
    )
    (tmp_path / "sweep.yaml").write_text(
        "scenario: market.yaml\nseeds: 2\ngrid: {memory.max_pinned: [1, 3]}\n"
    )
    plan, folder = read_sweep(tmp_path / "sweep.yaml"), tmp_path / "swept"
    done = {cell.name: result for cell, result in run_all(plan, folder, LOCAL, force=False)}
    results = write_results(plan, folder, done)  # type: ignore[arg-type]
    with looked_at(folder) as site:
        assert ask(site, "about")["kind"] == "sweep"
        found = ask(site, "sweep")
        assert found["parameters"] == ["memory.max_pinned"]
        assert [point["values"] for point in found["points"]] == [
            {"memory.max_pinned": 1},
            {"memory.max_pinned": 3},
        ]
        means = {
            (row["memory.max_pinned"], row["metric"]): row["mean"] for row in results.statistics
        }
        for point in found["points"]:
            assert point["seeds"] == [1, 2]
            for name, mean in point["metrics"].items():
                key = (point["values"]["memory.max_pinned"], name)
                assert mean == pytest.approx(means[key])
        name = found["points"][1]["runs"][0]["name"]
        assert found["points"][1]["runs"][0]["has_run"] is True
        ask(site, "open", name=name)
        assert ask(site, "about")["runs"][0]["name"] == name
        assert ask(site, "memories", agent="agent_00", tick=4)["total"]
        for wrong in ("..", "../swept", "nothing", "."):
            with pytest.raises(NotThere):
                ask(site, "open", name=wrong)
        ask(site, "open", name="")
        assert ask(site, "about")["runs"] == []
        assert found["question"] == ""
    with pytest.raises(RunError):
        Inspection([folder, folder])
    for question in ("How many pins?\nquestion: 'λ' # more", "another"):  # it may change
        asking = replace(plan, question=question)
        assert [cell.name for cell, _ in run_all(asking, folder, LOCAL, force=False)] == [*done]
        with looked_at(folder) as site:
            assert ask(site, "sweep") == {**found, "question": question}
    with pytest.raises(RunError, match="of another sweep"):
        list(run_all(replace(asking, grid={}), folder, LOCAL, force=False))
