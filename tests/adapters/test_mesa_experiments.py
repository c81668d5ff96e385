"""Mesa's own examples as experiments: replayed, branched, and asked what a memory did."""

from pathlib import Path

import pytest

pytest.importorskip("mesa")

from mesa_examples import EXAMPLES, REST, SKY, maker
from mesa_models import Town

import tiermem
from tiermem import RunError, SimulationError
from tiermem.simulation.effects import effect
from tiermem.simulation.runs.found_effects import AS_IT_WAS
from tiermem.simulation.runs.replay import Replay

STEPS = 5


def differences(run: tiermem.simulation.Run) -> list[str]:
    replay = Replay(run.folder)
    try:
        return [str(each) for each in replay.ticks() if each]
    finally:
        replay.close()


@pytest.mark.filterwarnings("ignore:Random number generator not specified")
@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_mesa_is_replayed_and_says_what_a_memory_did(name: str) -> None:
    with tiermem.experiment(maker(name), seed=3, steps=STEPS) as run:
        assert differences(run) == []
        first = run.frame("decisions")["agent"][0]
        planted = effect(run.folder, at=1, forget=f"{first}:{REST}")
        nothing = effect(run.folder, at=1, forget=f"{first}:{SKY}")
    assert [row["difference"] != 0 for row in planted.pairs] == [True]
    assert [row["difference"] for row in nothing.pairs] == [0]


def test_a_model_that_makes_its_own_memories_is_lent_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    options = {"options": {"n": 3}, "storage": {"sync": "manual"}}
    with tiermem.experiment(Town, seed=3, steps=4, out=folder, **options) as run:
        assert differences(run) == []
        assert run.summary()["metrics"].keys() == {"greetings"}
    assert (folder / "code" / "mesa_models.py").exists()


def test_a_model_may_say_the_settings_of_its_run_and_no_others() -> None:
    options = {"memory": {"max_pinned": 2}}
    with tiermem.experiment(Town, steps=1, options=options, **options) as run:
        assert run.settings.memory.max_pinned == 2
    with pytest.raises(RunError, match=r"sets memory.max_pinned to 2, and its run has 5"):
        tiermem.experiment(Town, steps=1, options=options)


def test_a_model_has_one_step_of_memory_in_each_step() -> None:
    def none(seed: int) -> Town:
        town = Town(seed=seed)
        town.step = lambda: None  # type: ignore[method-assign]
        return town

    def two(seed: int) -> Town:
        town = Town(seed=seed)
        once = town.step
        town.step = lambda: (once(), once())  # type: ignore[method-assign,assignment]
        return town

    with pytest.raises(SimulationError, match="step 1 of none made 0 ticks"):
        tiermem.experiment(none, steps=2)
    with pytest.raises(SimulationError, match="step 1 of two made 2 ticks"):
        tiermem.experiment(two, steps=2)


def test_another_future_of_a_model_has_other_chance() -> None:
    with tiermem.experiment(Town, seed=3, steps=4, options={"n": 3}) as run:
        found = effect(run.folder, at=0, forget="Walker_1:I live", futures=4, workers=1)
    assert len({row[AS_IT_WAS] for row in found.pairs}) > 1
