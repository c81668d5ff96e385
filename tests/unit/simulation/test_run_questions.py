"""What a run answers to a person: frames, charts, why, what if, what a change did."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import agents as tiermem
from agents.errors import InvalidInput, RunError
from agents.simulation.effects import effect
from agents.simulation.reports.chart import Chart
from agents.simulation.runs.plan import as_assignments
from agents.simulation.runs.run import Run

WARNING = "agent_00:Never accept an offer"


@pytest.fixture(scope="module")
def market() -> Iterator[Run]:
    """Traders; agent_00 was warned by tick 12."""
    with tiermem.simulate("market", agents=6, ticks=24, seed=7) as run:
        yield run


@pytest.fixture(scope="module")
def forgot(market: Run) -> Iterator[Run]:
    with market.branch(at=12).forget(WARNING).run() as run:
        yield run


def scams_of(run: Run) -> float:
    scams: float = run.summary()["metrics"]["scams"]
    return scams


# Tables, charts, reasons


def test_metrics_are_a_data_frame(market: Run) -> None:
    pytest.importorskip("pandas")
    assert market.metrics["tick"].tolist() == [*range(25)]
    assert market.metrics["scams"].iloc[-1] == scams_of(market)


def test_a_plot_has_a_panel_for_each_metric_and_shows_itself(market: Run, tmp_path: Path) -> None:
    one, two = market.plot("loss"), market.plot("loss", "scams")
    assert [each.svg.count(">tick</text>") for each in (one, two)] == [1, 2]
    assert market.plot().svg.count(">tick</text>") == len(market.metrics.columns) - 1
    assert 'viewBox="0 0 480 225" width="480" height="225"' in one.svg
    assert 'viewBox="0 0 960 225" width="840" height="196.875"' in two.svg
    assert one._repr_svg_() == one.svg
    assert repr(two) == "<chart of loss, scams: save(path) writes it as SVG>"
    assert one.save(tmp_path / "loss.svg").read_text() == one.svg


def test_runs_beside_each_other_have_names_and_the_tick_of_the_branch(
    market: Run, forgot: Run
) -> None:
    named = market.plot("scams", beside={"<forgot>": forgot}, name="as it was").svg
    assert ">as it was</text>" in named
    assert ">&lt;forgot&gt;</text>" in named
    assert ">branched</text>" in named
    twice = market.plot("scams", beside=[forgot, forgot]).svg
    assert ">Market-7-from-12 (2)</text>".lower() in twice.lower()
    assert f"tick 24:\nas it was {scams_of(market):g}\n&lt;forgot&gt; {scams_of(forgot):g}" in named
    assert "branched" not in market.plot("scams").svg


def test_a_chart_that_can_not_be_is_refused(market: Run, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no metric 'lss'") as caught:
        market.plot("lss")
    assert "loss" in caught.value.hint
    chart = market.plot("loss")
    with pytest.raises(InvalidInput, match=r"is SVG.*loss\.png"):
        chart.save(tmp_path / "loss.png")
    with pytest.raises(RunError, match="can't be written"):
        chart.save(tmp_path / "nowhere" / "loss.svg")
    assert isinstance(chart, Chart)


def test_why_is_the_decision_of_a_tick_by_default_the_last(market: Run) -> None:
    assert market.why("agent_00", 5) == market.decision("agent_00", 5)
    assert market.why("agent_00").tick == 24


# What if


def test_a_plan_makes_nothing_before_it_is_run(
    market: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    monkeypatch.setattr(tempfile, "mkdtemp", lambda *a, **o: made.append(a))
    plan = market.branch(at=12).forget(WARNING).block("agent_01", "agent_00")
    assert made == []
    assert repr(plan) == (f"<branch of market-7 at 12: forget {WARNING}; block agent_01→agent_00>")
    assert repr(market.branch(3)) == "<branch of market-7 at 3: nothing is changed yet>"


def test_a_branch_without_a_change_is_the_run_and_lives_in_a_folder_of_its_own(market: Run) -> None:
    with market.branch(at=12).run() as same:
        assert same.bank.state_hash() == market.bank.state_hash()
        assert same.is_temporary
        assert same.folder.parent != market.folder.parent


def test_a_branch_forgets_and_its_parent_does_not(market: Run, forgot: Run) -> None:
    given = [
        [each.text for each in run.why("agent_00", 13).given if "Never accept" in each.text]
        for run in (market, forgot)
    ]
    assert len(given[1]) == len(given[0]) - 1
    assert (market.tick, forgot.tick) == (24, 24)


def test_each_change_of_a_plan_reaches_the_branch(market: Run, tmp_path: Path) -> None:
    heard = market.why("agent_03", 14).heard[0]
    plan = (
        market.branch(at=12)
        .pin("agent_01:Bought")
        .block("agent_02", "agent_01")
        .never_heard(f"agent_03:{heard}")
        .set(memory={"max_pinned": 3}, policy_options={"tiers": False})
    )
    with plan.run(ticks=14, out=tmp_path / "branch") as branch:
        rules = {rule["do"]: rule for rule in branch.about["rules"]}
        assert (rules["block"]["from"], rules["block"]["to"]) == ("agent_02", "agent_01")
        assert (rules["never"]["agent"], rules["never"]["content"]) == ("agent_03", heard)
        assert branch.about["parent"]["edits"] == 1
        assert branch.settings.memory.max_pinned == 3
        assert branch.settings.simulation.policy_options == {"tiers": False}
        assert (branch.tick, branch.is_temporary, branch.folder) == (14, False, tmp_path / "branch")


def test_a_plan_that_can_not_be_made_leaves_no_folder(
    market: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for plan in (market.branch(99), market.branch(2).forget("agent_00:no such memory")):
        with pytest.raises(RunError):
            plan.run()
    with pytest.raises(RunError, match="is the run itself"):
        market.branch(2).run(out=market.folder)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "texts"),
    [
        (
            {"memory": {"max_pinned": 2, "max_critical": 1}},
            ["memory.max_pinned=2", "memory.max_critical=1"],
        ),
        ({"memory.max_pinned": 2}, ["memory.max_pinned=2"]),
        ({"world_options": {"asks": "seller"}}, ['simulation.world_options={"asks": "seller"}']),
        ({"llm": {"model": "a b"}}, ['llm.model="a b"']),
        ({"seed": 3}, ["seed=3"]),
    ],
)
def test_settings_become_assignments(settings: dict[str, Any], texts: list[str]) -> None:
    assert as_assignments(settings) == texts


# What a change did


def test_an_effect_is_that_of_the_command(market: Run, forgot: Run) -> None:
    found = market.effect(at=12, forget=WARNING)
    assert found == effect(market.folder, at=12, forget=WARNING)
    assert found.difference("scams")["mean"] == scams_of(forgot) - scams_of(market)


def test_an_effect_takes_settings_as_a_mapping(market: Run) -> None:
    found = market.effect(at=12, set={"policy_options": {"tiers": False}}, metrics=["loss"])
    assert [*found.words] == ['simulation.policy_options={"tiers": false} after tick 12']
    with pytest.raises(InvalidInput, match="metric 'lss'"):
        market.effect(at=12, forget=WARNING, metrics=["lss"])
