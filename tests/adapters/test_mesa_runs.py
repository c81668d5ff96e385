"""The run of a Mesa model is a run: its folder can be shown, explained, compared and reported."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mesa")

from mesa_models import QUICK, Town, walked

from banks import ROOT
from tiermem import InvalidInput, MemoryBank, RunError
from tiermem.interfaces.cli import app
from tiermem.simulation.runs.outputs import rows_of
from tiermem.simulation.runs.run import Run
from tiermem.simulation.runs.why import decision, life

Tiermem = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tiermem(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tiermem:
    """The command, in this process: its exit code, and what it printed."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["tiermem", *map(str, arguments)])
        return (app.run(), *capsys.readouterr())

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of three steps, in which an agent comes with each step."""
    walked(3, n=3, births=1, folder=tmp_path / "run").memories.close(report=False)
    return tmp_path / "run"


def test_show_lists_agents_and_the_memories_after_a_step(folder: Path, tiermem: Tiermem) -> None:
    agents = json.loads(tiermem("show", folder, "--json")[1])
    assert [row["agent"] for row in agents] == [f"Walker_{number}" for number in range(1, 6)]
    rows = json.loads(tiermem("show", folder, "--agent", "Walker_1", "--tick", 1, "--json")[1])
    assert [row["created"] for row in rows] == [0, 1, 1]
    assert rows[0]["memory"] == "I live here."
    code, _, error = tiermem("show", folder, "--agent", "Walker_5", "--tick", 1)
    assert code
    assert "has no agent" in error


def test_why_tells_what_an_agent_saw_was_given_and_did(folder: Path, tiermem: Tiermem) -> None:
    code, out, _ = tiermem("why", folder, "--agent", "Walker_2", "--tick", 3)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "Walker_2 in tick 3"
    assert lines[1].startswith("  observed  I see Walker_")
    assert "  asked     Whom did I meet?" in lines
    assert any(line.startswith("pinned") and "I live here." in line for line in lines)
    assert any(line.startswith("did store_memory (done): I met Walker_") for line in lines)
    assert "today, the search gives others" not in out


def test_why_says_that_an_agent_came_later(folder: Path, tiermem: Tiermem) -> None:
    code, _, error = tiermem("why", folder, "--agent", "Walker_5", "--tick", 1)
    assert code
    assert "Walker_5 came to" in error
    assert tiermem("why", folder, "--agent", "Walker_5", "--tick", 3)[0] == 0
    assert "has no agent" in tiermem("why", folder, "--agent", "Nobody", "--tick", 1)[2]


def test_why_shows_searches_actions_and_that_nothing_was_recalled(tmp_path: Path) -> None:
    town = walked(1, n=2, folder=tmp_path / "run")
    one, _ = town.agents
    with town.memories.step():
        one.memory.search("Where do I live?", limit=2)
        one.memory.record_action("knock", {"door": 7}, success=False)
        one.memory.pin(one.memory.kept.all()[-1].id)
    town.memories.close(report=False)
    found = decision(tmp_path / "run", "Walker_1", 2)
    assert [(each.query, each.limit) for each in found.asked] == [("Where do I live?", 2)]
    assert found.asked[0].found[0].text == "I live here."
    deeds = [(deed.name, deed.result, deed.text) for deed in found.did]
    assert deeds == [
        ("knock", "failed", 'knock failed: {"door": 7}'), ("pin_memory", "done", ""),
    ]  # fmt: skip
    assert found.did[0].arguments == {"door": 7}
    assert (found.given, found.not_given) == ((), ())
    assert "did not ask" in found.note
    assert decision(tmp_path / "run", "Walker_2", 2).did == ()


def test_what_an_agent_sees_after_an_action_is_told_after_the_action(
    tmp_path: Path, tiermem: Tiermem
) -> None:
    town = Town(2, folder=tmp_path / "run", **QUICK)
    walker = next(iter(town.agents)).memory
    with town.memories.step():
        walker.record_observation("It rains.")
        walker.record_observation("The square is empty.")
        walker.record_action("give", {"to": "bob"})
        walker.record_observation("Bob thanked me.")
    town.memories.close(report=False)
    out = tiermem("why", tmp_path / "run", "--agent", walker.agent_id, "--tick", 1)[1]
    lines = [line.strip() for line in out.splitlines()]
    assert lines[1:3] == ["observed  It rains.", "observed  The square is empty."]
    given = lines.index('did give {"to": "bob"} (done): give succeeded: {"to": "bob"}')
    assert lines[given + 1] == "did observe (done): Bob thanked me."


def test_why_does_not_claim_that_an_agent_without_a_recorded_action_did_nothing(
    tmp_path: Path, tiermem: Tiermem
) -> None:
    town = walked(1, n=2, folder=tmp_path / "run")
    with town.memories.step():
        pass
    town.memories.close(report=False)
    told = tiermem("why", tmp_path / "run", "--agent", "Walker_1", "--tick", 2)[1]
    assert "the program recorded no action" in told
    assert "did nothing" not in told


def test_why_tells_an_action_as_it_was_at_the_call(tmp_path: Path) -> None:
    town = walked(1, n=1, folder=tmp_path / "run")
    memory = next(iter(town.agents)).memory
    details: dict[str, Any] = {"to": 1, "coins": [np.int64(5), {"kind": "gold"}]}
    with town.memories.step():
        memory.record_action("pay", details)
        details["to"] = 2
        memory.record_action("pay", details)
        details["coins"][1]["kind"] = town
        details["coins"].clear()
    town.memories.close(report=False)
    did = decision(tmp_path / "run", "Walker_1", 2).did
    assert [deed.arguments for deed in did] == [
        {"to": to, "coins": [5, {"kind": "gold"}]} for to in (1, 2)
    ]
    assert did[0].text == 'pay succeeded: {"coins": [5, {"kind": "gold"}], "to": 1}'


def test_the_life_of_a_memory_is_told(folder: Path) -> None:
    with MemoryBank.at(folder / "bank") as bank:
        home, late = (bank.agent(name).all()[0] for name in ("Walker_1", "Walker_4"))
    moments = [(moment.tick, moment.what) for moment in life(folder, home.id).moments]
    assert moments == [(0, "born"), (1, "given"), (2, "given"), (3, "given")]
    assert life(folder, late.id).agent == "Walker_4"


@pytest.mark.slow
def test_diff_tells_where_two_runs_part(tmp_path: Path, tiermem: Tiermem) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        walked(2, seed=seed, folder=tmp_path / name).memories.close(report=False)
    assert "equal after every tick up to 2" in tiermem("diff", tmp_path / "a", tmp_path / "b")[1]
    found = json.loads(tiermem("diff", tmp_path / "a", tmp_path / "c", "--json")[1])
    assert found["parted"] == 0  # another seed gives memories other ids
    assert found["settings"]["seed"][0] != found["settings"]["seed"][1]
    assert found["only_first"]


@pytest.mark.slow
def test_a_run_that_nobody_closed_has_a_report(tmp_path: Path, tiermem: Tiermem) -> None:
    town = walked(2, n=3, births=1, folder=tmp_path / "run")
    town.memories._run.leave()  # as the end of the process does
    code, out, error = tiermem("report", tmp_path / "run")
    assert (code, error) == (0, "")
    page = Path(out.strip()).read_text()
    assert "greetings" in page
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["agents"] == 5
    assert summary["ticks"] == 2
    assert summary["state_hash"] == town.memories.record["state_hash"]
    decisions = rows_of(tmp_path / "run/decisions.parquet") or []
    assert [row["tick"] for row in decisions] == [1] * 4 + [2] * 5
    assert {row["agent"] for row in decisions} == {f"Walker_{number}" for number in range(1, 6)}
    metrics = rows_of(tmp_path / "run/metrics.parquet") or []
    assert [row["tick"] for row in metrics] == [0, 1, 2]


def test_closing_writes_the_results_and_what_was_remembered_last(tmp_path: Path) -> None:
    town = walked(2, folder=tmp_path / "run")
    next(iter(town.agents)).memory.add("It was a good day.")
    summary = town.memories.close(report=False)
    assert summary["ticks"] == 3
    with MemoryBank.at(tmp_path / "run/bank") as bank:
        assert bank.agent("Walker_1").all()[-1].content == "It was a good day."
    assert json.loads((tmp_path / "run/summary.json").read_text()) == summary


@pytest.mark.parametrize("steps", [0, 3])
def test_without_a_folder_the_summary_is_the_same(tmp_path: Path, steps: int) -> None:
    kept, alone = (walked(steps, folder=folder) for folder in (tmp_path / "run", None))
    for town in (kept, alone):
        next(iter(town.agents)).memory.add("It was a good day.")
    summary = alone.memories.close()
    assert summary == kept.memories.close(report=False) == alone.memories.close()
    assert summary["memories"] == 4 + 8 * steps + 1


def test_a_run_that_failed_has_the_summary_of_its_whole_steps() -> None:
    town = walked(2)
    end = town.memories.record["state_hash"]
    with pytest.raises(ZeroDivisionError), town.memories.step():
        raise ZeroDivisionError
    summary = town.memories.close()
    assert (summary["ticks"], summary["state_hash"]) == (2, end)


def test_a_metric_has_no_name_of_the_table_itself(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="'tick' is a column"):
        Town(folder=tmp_path / "run", metrics={"fine": "greetings", "tick": "greetings"})
    assert not (tmp_path / "run").exists()
    names = {"pinned": "greetings", "agents": "greetings", "state_hash": "greetings"}
    walked(1, folder=tmp_path / "run", metrics=names).memories.close(report=False)
    assert [*(rows_of(tmp_path / "run/metrics.parquet") or [])[0]] == ["tick", *names]


def test_a_run_without_steps_is_a_run(tmp_path: Path, tiermem: Tiermem) -> None:
    summary = Town(folder=tmp_path / "run").memories.close(report=False)
    assert summary["memories"] == 4
    assert tiermem("show", tmp_path / "run")[0] == 0


@pytest.mark.parametrize(
    "command",
    [
        ("resume",),
        ("resume", "--ticks", "9"),
        ("resume", "--from-tick", "1"),
        ("replay",),
        ("branch", "--at", "1", "--out", "other"),
        ("effect", "--forget", "Walker_1:I live here."),
        ("effect", "--forget", "Walker_1:I live here.", "--dry-run"),
    ],
)
def test_what_only_the_model_can_do_is_refused(
    folder: Path, tiermem: Tiermem, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    code, _, error = tiermem(command[0], folder, *command[1:])
    assert code
    assert "Mesa" in error
    assert "run the program by tiermem.experiment()" in error
    assert not Path("other").exists()
    assert not (folder / "report.html").exists()
    assert json.loads(tiermem("show", folder, "--tick", 3, "--json")[1])


def test_results_that_can_not_be_written_are_for_report(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr("tiermem.simulation.runs.outputs.replace_file", full)
    with Run.open(folder) as run, pytest.raises(RunError, match=f"run: tiermem report {folder}"):
        run.finish()


def test_a_scenario_can_not_name_the_world_of_a_program(tmp_path: Path, tiermem: Tiermem) -> None:
    (tmp_path / "scenario.yaml").write_text("simulation: {world: outside}\n")
    code, _, error = tiermem("run", tmp_path / "scenario.yaml", "--out", tmp_path / "run")
    assert code
    assert "a program makes the ticks" in error
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_grateful_agents_give_to_those_who_gave(tmp_path: Path) -> None:
    from boltzmann import GratefulWealth

    def run(folder: Path | None) -> GratefulWealth:
        model = GratefulWealth(n=20, seed=4, folder=folder, **QUICK)
        for _ in range(8):
            model.step()
        return model

    model = run(tmp_path / "run")
    assert sum(agent.wealth for agent in model.agents) == 20
    assert model.memories.record["agents"] == 20
    assert 0 < model.memories.record["metrics"]["gini"] < 1
    given = [agent for agent in model.agents if agent.memory.recalled]
    assert given
    again = run(None)
    assert again.memories.record["state_hash"] == model.memories.record["state_hash"]
    model.memories.close(report=False)
    deeds = [
        deed
        for agent in model.agents
        for deed in decision(tmp_path / "run", agent.memory.agent_id, 8).did
    ]
    assert {"give", "store_memory"} >= {deed.name for deed in deeds} > set()


def test_schelling_agents_remember_where_they_were_unhappy(tmp_path: Path) -> None:
    from schelling import RememberingSchelling

    model = RememberingSchelling(width=8, height=8, folder=tmp_path / "run", **QUICK)
    while model.running and model.memories.tick < 30:
        model.step()
    summary = model.memories.close(report=False)
    assert summary["metrics"]["happy"] == model.happy > 0
    with MemoryBank.at(tmp_path / "run/bank") as bank:
        kept = [memory for name in bank.agents() for memory in bank.agent(name).all()]
    assert kept
    assert all(memory.content == f"I was unhappy at {memory.metadata['place']}." for memory in kept)


def test_the_examples_name_their_run_and_what_is_read_of_it() -> None:
    for name in ("boltzmann", "schelling"):
        text = (ROOT / f"simulations/mesa/{name}.py").read_text()
        assert f"python simulations/mesa/{name}.py runs/{name}" in text
