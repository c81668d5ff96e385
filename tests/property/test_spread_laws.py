"""A run is the same, tick by tick, on any number of workers: for worlds that Hypothesis makes up.

The workers are in this process, so that many runs can be tried; what they are told and say is the
same. Workers in processes of their own have tests beside those of other runs.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given
from hypothesis import settings as settings_of
from hypothesis import strategies as st

from agents.config.load import load_settings
from agents.simulation.runs import placement
from agents.simulation.runs.placement import Placement, make_worker
from agents.simulation.runs.run import Run
from agents.simulation.workers.worker import Worker
from examples import number_by_profile
from spread_runs import HERE, results, run_to_the_end, scenario

pytestmark = pytest.mark.slow


class InThisProcess:
    """A worker that has no process of its own."""

    def __init__(self, _: str) -> None:
        self._worker: Worker = make_worker()
        self._answers: list[bytes] = []

    def send(self, message: bytes) -> None:
        self._answers.append(self._worker.answer(message))

    def receive(self) -> bytes:
        return self._answers.pop()

    def end(self) -> None:
        self._worker._close()


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
worlds = st.fixed_dictionaries(
    {
        "sights": st.lists(texts, min_size=1, max_size=4),
        "facts": st.dictionaries(texts, values, max_size=3),
        "outcomes": st.lists(st.none() | texts, min_size=1, max_size=4),
        "hearing": st.integers(1, 4),
        "draws": st.integers(0, 3),
    }
)


@pytest.fixture(autouse=True)
def _workers_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "ProcessLink", InThisProcess)


def test_a_run_has_the_same_hashes_after_every_tick_on_two_and_three_workers(
    tmp_path: Path,
) -> None:
    local = run_to_the_end(tmp_path / "0", scenario(ticks=4), 0)
    for workers in (2, 3):
        spread = run_to_the_end(tmp_path / str(workers), scenario(ticks=4), workers)
        assert [each["state_hash"] for each in spread] == [each["state_hash"] for each in local]
        assert results(tmp_path / str(workers)) == results(tmp_path / "0")


def test_agents_that_ask_two_kinds_of_questions_use_their_memories_in_their_own_order(
    tmp_path: Path,
) -> None:
    plain = scenario(f"{HERE}:Cooks", policy=f"{HERE}:Picky", agents=4, ticks=2)
    first = [{"content": f"{fruit} pie", "temperature": "hot"} for fruit in ("apple", "banana")]
    changes = {"temperature.hot_max_facts": 2, "simulation.memories": first}
    settings = load_settings(plain, overrides=changes)
    local, spread = (run_to_the_end(tmp_path / str(own), settings, own) for own in (0, 2))
    assert [each["state_hash"] for each in spread] == [each["state_hash"] for each in local]
    assert results(tmp_path / "2") == results(tmp_path / "0")


@settings_of(  # shrinking would take hours
    max_examples=number_by_profile(1, 2, 8, thorough=40), phases=(Phase.reuse, Phase.generate)
)
@given(
    options=worlds,
    agents=st.integers(1, 20),
    seed=st.integers(0, 2**63 - 1),
    stops=st.lists(st.sampled_from([1, 2, 3, 5]), min_size=2, max_size=4),
)
def test_random_worlds_have_the_same_hashes_after_every_tick_with_any_workers(
    options: dict[str, Any], agents: int, seed: int, stops: list[int]
) -> None:
    made_up = scenario(
        f"{HERE}:MadeUp", policy=f"{HERE}:Anything", world_options=options, agents=agents, ticks=5
    )
    settings = load_settings(made_up, overrides={"seed": seed})
    place = Path(tempfile.mkdtemp())
    try:
        local = run_to_the_end(place / "local", settings, 0)
        for workers in sorted(set(stops)):
            own = place / f"on-{workers}"
            spread = run_to_the_end(own, settings, workers)
            assert [each["state_hash"] for each in spread] == [each["state_hash"] for each in local]
            assert results(own) == results(place / "local")
        records = run_with_stops(place / "stopped", settings, stops)
        assert [each["state_hash"] for each in records] == [each["state_hash"] for each in local]
        assert results(place / "stopped") == results(place / "local")
    finally:
        shutil.rmtree(place)


def run_with_stops(folder: Path, settings: Any, stops: list[int]) -> list[dict[str, Any]]:
    """Run with another number of workers after each stop."""
    here, records = Path(__file__).parents[1], list[dict[str, Any]]()
    Run.create(folder, settings, scenario=here, engine=placement.LOCAL).close()
    for tick, workers in enumerate(stops, 1):
        with Run.open(folder, engine=Placement("processes", workers)) as run:
            assert run.tick == tick - 1
            records += run.advance(tick)
    with Run.open(folder, engine=Placement("processes", 2)) as run:
        records += run.advance(settings.simulation.ticks)
        run.finish(report=False)
    return records
