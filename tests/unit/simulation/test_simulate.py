"""A simulation in one call: a run that is open for questions, wherever its world comes from."""

import gc
import os
import re
import signal
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any, ClassVar

import pytest

import agents as tiermem
from agents.errors import ConfigError, RunError, SimulationError, TierMemError
from agents.interfaces.cli import progress
from agents.simulation.effects import effect
from agents.simulation.protocols import Action, Observation
from agents.simulation.runs.replay import Replay
from agents.simulation.runs.run import Run
from agents.simulation.sweeps.run_sweep import engine_for, run_all
from agents.simulation.sweeps.sweep import read_sweep
from agents.simulation.workers import carriers
from waiting import LONG


class Stones:
    """Agents count stones; in a tick, something may happen to the program."""

    happens: ClassVar[dict[int, str]] = {}
    in_process: ClassVar[set[int]] = set()

    def __init__(self, *, most: int = 1000) -> None:
        self.most = most

    def setup(self, rng: Any, agent_ids: Any) -> None:
        self.in_process.add(os.getpid())
        self.rng, self.tick, self.seen = rng, 0, 0

    def observe(self, agent_id: str) -> Observation:
        stones = self.rng.randrange(self.most)
        self.seen += stones
        return Observation(f"{agent_id} sees {stones} stones")

    def apply(self, agent_id: str, action: Action) -> str:
        return "I counted"

    def end_tick(self) -> None:
        self.tick += 1
        what = self.happens.pop(self.tick, "")
        if what == "error":
            raise RuntimeError("the sky fell")
        if what:
            os.kill(os.getpid(), signal.SIGINT)
        if what == "two interrupts":
            os.kill(os.getpid(), signal.SIGINT)

    def metrics(self) -> dict[str, float]:
        return {"seen": self.seen}

    def get_state(self) -> Any:
        return {"tick": self.tick, "seen": self.seen}

    def set_state(self, state: Any) -> None:
        self.tick, self.seen = state["tick"], state["seen"]


class Counts:
    """Agents count."""

    def decide(self, observation: Any, memories: Any, rng: Any) -> list[Action]:
        return [Action("count")]


def here(**members: Any) -> type:
    """The world, as a class that only this process has."""
    return type("Pebbles", (Stones,), {"__module__": "__main__", "in_process": set(), **members})


def simulated(world: Any = None, **given: Any) -> Run:
    given = {"agents": 3, "ticks": 6, "seed": 7, "policy": Counts, **given}
    return tiermem.simulate(world or here(), **given)


# The run


def test_a_built_in_world_is_the_run_that_the_command_line_makes(tmp_path: Path) -> None:
    with tiermem.simulate("market", 5, 4, 7, tmp_path / "run", storage={"sync": "manual"}) as run:
        assert (run.tick, run.is_temporary, len(run.bank.agents())) == (4, False, 5)
        assert (tmp_path / "run" / "report.html").is_file()
        with tiermem.simulate("market", 5, 4, 7) as other:
            assert other.bank.state_hash() == run.bank.state_hash()


def test_settings_are_named_by_section_with_dots_or_as_those_of_a_simulation() -> None:
    with simulated(
        agents=["ann", "bob"],
        world_options={"most": 2},
        memory={"max_pinned": 2},
        **{"retrieval.mode": "keyword"},
    ) as run:
        settings = run.settings
        assert settings.simulation.agents == ("ann", "bob")
        assert settings.simulation.world_options == {"most": 2}
        assert (settings.memory.max_pinned, settings.retrieval.mode) == (2, "keyword")
        assert run.summary()["metrics"]["seen"] <= 2 * 6


def test_a_preset_is_below_what_is_given() -> None:
    with simulated(preset="vector", memory={"default_limit": 3}) as run:
        assert (run.settings.retrieval.mode, run.settings.memory.default_limit) == ("vector", 3)


def test_a_run_without_a_folder_lives_as_long_as_its_object() -> None:
    run = simulated()
    place = run.folder
    assert run.is_temporary
    assert place.is_dir()
    run.close()
    alive = weakref.ref(run)
    del run
    gc.collect()
    assert alive() is None
    assert not place.parent.exists()


def test_a_class_of_a_module_can_be_replayed_by_every_process(tmp_path: Path) -> None:
    with simulated(Stones, out=tmp_path / "run", storage={"sync": "manual"}) as run:
        assert run.settings.simulation.world == f"{__name__}:Stones"
    assert (tmp_path / "run" / "code" / f"{__name__}.py").is_file()


def test_a_class_of_this_process_is_replayed_here_and_named_elsewhere(tmp_path: Path) -> None:
    with simulated(out=tmp_path / "run", storage={"sync": "manual"}) as run:
        assert str(run.settings.simulation.world).startswith("here:Pebbles")
    replay = Replay(tmp_path / "run")
    assert [found for found in replay.ticks() if found] == []
    replay.close()
    done = subprocess.run(
        [sys.executable, "-m", "tiermem.interfaces.cli.app", "replay", str(tmp_path / "run")],
        capture_output=True, text=True, timeout=LONG, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert re.search(r"Pebbles\S* was made in the program or notebook", done.stderr)


def test_a_world_that_keeps_state_elsewhere_is_found_by_the_replay() -> None:
    drawn = iter(range(100))

    def observe(self: Any, agent_id: str) -> str:
        return f"number {next(drawn)}"

    with simulated(here(observe=observe)) as run:
        replay = Replay(run.folder)
        found = [each for each in replay.ticks() if each]
        replay.close()
    assert "tick 1" in str(found[0])


# What ends it early


@pytest.mark.parametrize(
    ("what", "error", "stands"),
    [
        ("error", SimulationError, 3),
        ("an interrupt", KeyboardInterrupt, 4),
        ("two interrupts", KeyboardInterrupt, 3),
    ],
)
def test_what_ends_a_run_early_leaves_one_that_goes_on(
    what: str, error: type[BaseException], stands: int
) -> None:
    world = here(happens={4: what})
    with pytest.raises(error) as caught:
        simulated(world)
    run: Run = caught.value.run  # type: ignore[attr-defined]
    assert run.tick == stands
    assert f"after tick {stands} of 6" in caught.value.__notes__[0]
    with run, simulated() as whole:
        assert run.resume().tick == 6
        assert run.bank.state_hash() == whole.bank.state_hash()
        assert run.resume(ticks=8).tick == 8


def test_an_error_of_the_world_names_no_command_that_could_not_go_on() -> None:
    with pytest.raises(SimulationError) as caught:
        simulated(here(happens={2: "error"}))
    with caught.value.run:  # type: ignore[attr-defined]
        assert "tiermem resume" not in str(caught.value)
        assert "resume()" in caught.value.hint


def test_a_failed_tick_does_not_count_when_it_is_made_again_by_hand() -> None:
    with pytest.raises(SimulationError) as caught:
        simulated(here(happens={4: "error"}))
    with caught.value.run as run, simulated() as whole:  # type: ignore[attr-defined]
        assert [record["tick"] for record in run.advance(6)] == [4, 5, 6]
        assert run.bank.state_hash() == whole.bank.state_hash()


# What is refused


class Elsewhere:
    """A policy of a module in another folder."""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"world": lambda: None}, "can't be called with"),
        ({"world": Stones()}, "not the object"),
        ({"policy": lambda observation: None}, "a policy is a class or a name"),
        ({"world": "markt"}, "there is no world 'markt'"),
        ({"wrld_options": {}}, "wrld_options"),
        ({"engine": "processes"}, "can't import a class of this program"),
        ({"ticks": 0}, "ticks"),
        ({"preset": "tires"}, "tires"),
    ],
)
def test_what_can_not_be_run_is_refused_and_leaves_nothing(
    given: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ConfigError, match=words):
        simulated(**given)
    assert list(tmp_path.iterdir()) == []


def test_world_and_policy_of_two_folders_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_policy_elsewhere.py").write_text("class Waits:\n    decide = lambda *_: []\n")
    monkeypatch.syspath_prepend(tmp_path)
    import a_policy_elsewhere  # type: ignore[import-not-found]

    with pytest.raises(ConfigError, match="modules of two folders"):
        simulated(Stones, policy=a_policy_elsewhere.Waits)


def test_a_folder_that_is_taken_is_refused_and_forced_also_while_it_is_open(
    tmp_path: Path,
) -> None:
    first = simulated(out=tmp_path / "run", storage={"sync": "manual"})
    with pytest.raises(RunError, match="exists already") as caught:
        simulated(out=tmp_path / "run")
    assert "force=True" in caught.value.hint
    with simulated(out=tmp_path / "run", force=True, ticks=2, storage={"sync": "manual"}) as run:
        assert run.tick == 2
    with pytest.raises(TierMemError):
        first.bank.state_hash()


# Processes


def test_pairs_of_a_world_of_this_process_run_in_this_process() -> None:
    world = here()
    with simulated(world) as run:
        found = effect(run.folder, at=3, pin="agent_00:agent_00 sees", seeds=3, workers=2)
    assert ([*found.missing], {row["pair"] for row in found.pairs}) == (
        [],
        {"the run itself", "seed 8", "seed 9"},
    )
    assert world.in_process == {os.getpid()}


def test_a_sweep_of_a_world_of_this_process_runs_in_this_process(tmp_path: Path) -> None:
    world = here()
    with simulated(world) as run:
        name = run.settings.simulation.world
    (tmp_path / "scenario.yaml").write_text(
        f"simulation: {{world: '{name}', policy: scripted, agents: 2,\n"
        "  policy_options: {script: []}, ticks: 2}\n"
    )
    (tmp_path / "sweep.yaml").write_text(
        "scenario: scenario.yaml\nseeds: 2\n"
        "variants: {few: {simulation.world_options: {most: 2}}, many: {}}\n"
    )
    sweep = read_sweep(tmp_path / "sweep.yaml")
    world.in_process.clear()
    done = list(run_all(sweep, tmp_path / "out", engine_for(sweep, workers=2), force=False))
    assert [type(summary) for _, summary in done] == [dict] * 4
    assert world.in_process == {os.getpid()}


def test_other_calls_still_run_in_processes_of_their_own() -> None:
    assert [pid for _, pid in carriers.in_processes(os.getpid, [()])] != [os.getpid()]
    assert [pid for _, pid in carriers.in_processes(os.getpid, [()], here=True)] == [os.getpid()]


# The bar


class Display:
    """What a notebook shows below a cell."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def HTML(self, text: str) -> str:  # noqa: N802 - IPython's name
        return text

    def display(self, html: str, display_id: bool) -> "Display":
        return self

    def update(self, html: str) -> None:
        self.shown.append(html)


@pytest.mark.parametrize(("wanted", "is_shown"), [(None, True), (True, True), (False, False)])
def test_a_notebook_has_a_bar_which_is_gone_at_the_end(
    wanted: bool | None, is_shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = Display()
    monkeypatch.setattr(progress, "is_notebook", lambda: True)
    monkeypatch.setitem(sys.modules, "IPython.display", cell)  # type: ignore[arg-type]
    simulated(progress=wanted).close()
    assert any("<progress " in html and "1/6" in html for html in cell.shown) is is_shown
    assert cell.shown[-1:] == ([""] if is_shown else [])


def test_without_a_terminal_or_a_notebook_nothing_is_printed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    simulated().close()
    assert capfd.readouterr() == ("", "")


def test_a_plain_function_is_a_world_in_which_agents_watch() -> None:
    def days(tick: Any) -> None:
        for agent in tick.agents:
            tick.sees(agent, f"day {tick.number}")

    with tiermem.simulate(days, agents=2, ticks=3) as run:
        texts = [memory.content for memory in run.bank.agent("agent_00").all()]
    assert texts == ["day 1", "day 2", "day 3"]
