"""What a person sees of runs, decisions, effects, sweeps and surveys."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import agents as tiermem
from agents.simulation import SweepRecord
from agents.simulation.policies.interview import asked
from agents.simulation.protocols import Action, Observation, Remark
from agents.simulation.runs.interviews import Survey
from agents.simulation.runs.live import name_of
from agents.simulation.runs.run import Run
from agents.simulation.sweeps.run_sweep import engine_for, run_all, write_results
from agents.simulation.sweeps.sweep import read_sweep

HOSTILE = "<script>alert(1)</script>"


class Bridge:
    """Agents hear of a bridge in tick 2, and whoever knows of it stays away."""

    def setup(self, rng: Any, agent_ids: Any) -> None:
        self.tick, self.wet = 1, 0

    def observe(self, agent_id: str) -> Observation:
        heard = [Remark(f"the bridge is {HOSTILE}", tier="pinned")] if self.tick == 2 else []
        return Observation("Where to?", heard=heard, facts={"weather": HOSTILE})

    def apply(self, agent_id: str, action: Action) -> str:
        self.wet += action.name == "cross"
        return f"I did {action.name}"

    def end_tick(self) -> None:
        self.tick += 1

    def metrics(self) -> dict[str, float]:
        return {f"wet {HOSTILE}": self.wet}

    def get_state(self) -> Any:
        return {"tick": self.tick, "wet": self.wet}

    def set_state(self, state: Any) -> None:
        self.tick, self.wet = state["tick"], state["wet"]


class Walker:
    """Crosses, unless it knows better."""

    def decide(self, observation: Any, memories: Any, rng: Any) -> list[Action]:
        known = any("the bridge is" in hit.memory.content for hit in memories)
        return [Action("stay" if known else "cross", {}, f"because of {HOSTILE}")]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with tiermem.simulate(Bridge, ["ann", "bob"], 6, 7, policy=Walker) as made:
        yield made


def shown(thing: Any) -> tuple[str, str]:
    """What a thing shows on a page and as text; the hostile text is data on both."""
    page, text = thing._repr_html_(), repr(thing)
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page
    assert HOSTILE in text
    return page, text


def test_a_run_shows_its_metrics_its_memories_and_where_it_is(run: Run) -> None:
    page, text = shown(run)
    memories = run.bank.agent("ann").count() + run.bank.agent("bob").count()
    assert text.splitlines() == [
        "Bridge-7: 2 agents, tick 6 of 6",
        "metric                         value",
        f"wet {HOSTILE}      4",
        f"{memories} memories: 2 pinned, {memories - 2} normal",
        "in a temporary folder, which is removed with this object",
    ]
    assert "<b>Bridge-7: 2 agents, tick 6 of 6</b>" in page


def test_a_run_with_a_folder_names_it_and_a_closed_one_says_so(tmp_path: Path) -> None:
    made = tiermem.simulate(
        Bridge, 2, 2, policy=Walker, out=tmp_path / "run", storage={"sync": "manual"}
    )
    assert repr(made).endswith(f"\nin {tmp_path / 'run'}")
    made.close()
    assert repr(made) == f"run: closed\n{tmp_path / 'run'}"
    assert "<b>run: closed</b>" in made._repr_html_()


def test_a_run_that_stands_early_says_how_far_it_is(run: Run) -> None:
    with run.branch(3).run(ticks=20, progress=False) as longer:
        longer.extend(25)
        assert "tick 20 of 25" in repr(longer)


def test_a_decision_shows_what_it_came_of(run: Run) -> None:
    page, text = shown(run.why("ann", 4))
    assert "<b>ann in tick 4</b>" in page
    lines = text.splitlines()
    assert lines[:3] == [
        "ann in tick 4",
        "observed: Where to?",
        f'facts: {{"weather": "{HOSTILE}"}}',
    ]
    (given,) = [line for line in lines if line.startswith("pinned")]
    assert given.endswith(f"the bridge is {HOSTILE}")
    (did,) = [line for line in lines if line.startswith("stay")]
    assert did.endswith("done    I did stay")
    assert f"because: because of {HOSTILE}" in text


def test_an_effect_shows_differences_the_first_decision_and_whom_it_reached(run: Run) -> None:
    page, text = shown(run.effect(at=3, forget="ann:the bridge is"))
    lines = text.splitlines()
    assert lines[0] == "after tick 3, compared in tick 6"
    (wet,) = [line.split()[-3:] for line in lines if line.startswith("wet ")]
    assert wet == ["4", "7", "+3"]
    assert "first decision that differs: ann in tick 4" in lines
    assert any(line.startswith("ann ") and line.endswith("4") for line in lines)
    assert "<b>after tick 3, compared in tick 6</b>" in page


def test_an_effect_over_futures_shows_intervals(run: Run) -> None:
    _, text = shown(run.effect(at=3, forget="ann:the bridge is", futures=3))
    assert "mean difference" in text
    assert "all 3 are equal; up to 63 % of others may differ" in text


def test_an_effect_on_nothing_says_that_no_decision_differs(run: Run) -> None:
    assert "no decision differs" in repr(run.effect(at=3, forget="ann:I did cross"))


def test_a_sweep_shows_means_intervals_and_differences(tmp_path: Path) -> None:
    world, policy = (  # of this process, where a sweep of them runs
        name_of(type(f"Its{each.__name__}", (each,), {"__module__": "__main__"}))[0]
        for each in (Bridge, Walker)
    )
    (tmp_path / "scenario.yaml").write_text(
        f"simulation: {{world: '{world}', policy: '{policy}', ticks: 3}}\n"
    )
    (tmp_path / "sweep.yaml").write_text(
        f"question: 'does {HOSTILE} matter?'\nscenario: scenario.yaml\nseeds: 3\n"
        "variants: {two: {simulation.agents: 2}, three: {simulation.agents: 3}}\n"
    )
    sweep = read_sweep(tmp_path / "sweep.yaml")
    done = {planned.name: summary for planned, summary in run_all(
        sweep, tmp_path / "out", engine_for(sweep, workers=2), force=False)}  # fmt: skip
    write_results(sweep, tmp_path / "out", done)  # type: ignore[arg-type]
    _, text = shown(SweepRecord.read(tmp_path / "out"))
    lines = text.splitlines()
    assert lines[:2] == ["out: 6 runs, 3 seeds", f"does {HOSTILE} matter?"]
    assert "against two" in lines[2]
    assert [line.split()[0] for line in lines[3:]] == ["two", "three"]


def test_a_survey_shows_the_curve_or_the_texts() -> None:
    rows = [
        {"tick": 3, "question": "mood", "agent": who, "repetition": 0, "answer": str(value),
         "value": value, "problem": None}
        for who, value in (("ann", 2), ("bob", 4))
    ]  # fmt: skip
    scale = asked(f"How do you feel, {HOSTILE}?", scale=(1, 5))._replace(name="mood")
    _, text = shown(Survey("run", [scale], ["ann", "bob"], [3], 1, rows))
    assert "   3  mood      mean       3" in text
    said = [{**row, "answer": HOSTILE, "value": None} for row in rows]
    _, text = shown(Survey("run", [asked("Why?")._replace(name="mood")], ["ann"], [3], 1, said))
    assert f"   3  ann    mood      {HOSTILE}" in text
