"""Runs whose agents tell, correct and trust: stopped, repeated or branched, they are the same."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents import MemoryBank
from agents.config.load import load_settings
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.runs.branch import branch
from agents.simulation.runs.replay import Replay
from agents.simulation.runs.run import Run, go_back
from examples import examples

pytestmark = pytest.mark.slow

TICKS, AGENTS = 7, 4
CODE = Path(__file__).parents[1]
BASE: dict[str, Any] = {
    "seed": 3,
    "retrieval": {"trust": True},
    "storage": {"sync": "manual"},
    "checkpoint": {"every": 3, "keep": 9},
}

TELLS = ["tell", "tell", "broadcast", "correct", "retract", "trust"]
BOARDS = ["tell", "correct", "trust", "post", "post", "ask", "ask", "join", "leave"]


def plans(deeds: list[str]) -> st.SearchStrategy[Any]:
    """For each tick: which agent does what to which memory, and for whom."""
    deed = st.tuples(
        st.integers(0, AGENTS - 1), st.sampled_from(deeds), st.integers(0, 5), st.integers(0, 3)
    )
    return st.lists(st.lists(deed, max_size=6), min_size=TICKS, max_size=TICKS)


def recorded(folder: Path) -> dict[str, Any]:
    """All that a run's journal says, and what agents hold of each other."""
    with MemoryBank.at(folder / "bank") as bank:
        agents = [bank.agent(name) for name in bank.agents()]
        return {
            "journal": ticks_of(bank).hash(),
            "state": bank.state_hash(),
            "ticks": list(ticks_of(bank).records()),
            "sources": [[each.source for each in agent.all()] for agent in agents],
            "heard": [[agent.social.heard(each.id) for each in agent.all()] for agent in agents],
        }


def go_on(folder: Path, ticks: int) -> dict[str, Any]:
    with Run.open(folder) as run:
        list(run.advance(ticks))
    return recorded(folder)


def check_every_way_back(scenario: dict[str, Any], ticks: int, stop: int, place: Path) -> Any:
    """Resumed, rewound, branched and replayed, the run is the same; what it recorded."""
    whole = place / "whole"
    with Run.create(whole, load_settings(scenario), scenario=CODE) as run:
        list(run.advance(ticks))
    expected = recorded(whole)
    with Run.create(place / "resumed", load_settings(scenario), scenario=CODE) as run:
        list(run.advance(stop))
    assert go_on(place / "resumed", ticks) == expected
    branch(whole, stop, place / "branch")
    assert go_on(place / "branch", ticks) == expected
    replay = Replay(whole)
    try:
        assert list(replay.ticks()) == [None] * (ticks + 1)
    finally:
        replay.close()
    go_back(whole, stop)
    assert go_on(whole, ticks) == expected
    return expected


quick = settings(
    deadline=None, max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow]
)


def check_a_plan(world: str, plan: Any, stop: int) -> None:
    simulation = {
        "world": f"telling_worlds:{world}", "agents": AGENTS, "ticks": TICKS,
        "world_options": {"plan": [list(map(list, day)) for day in plan]},
    }  # fmt: skip
    place = Path(tempfile.mkdtemp())
    try:
        check_every_way_back({**BASE, "simulation": simulation}, TICKS, stop, place)
    finally:
        shutil.rmtree(place)


@given(plans(TELLS), st.integers(0, TICKS))
@quick
def test_a_run_of_random_tells_is_the_same_resumed_branched_and_replayed(plan, stop) -> None:
    check_a_plan("Square", plan, stop)


@pytest.mark.long
@given(plans(BOARDS), st.integers(0, TICKS))
@quick
def test_a_run_of_random_boards_is_the_same_resumed_branched_and_replayed(plan, stop) -> None:
    check_a_plan("Forum", plan, stop)


def test_a_plan_of_boards_writes_reads_joins_and_leaves(tmp_path: Path) -> None:
    """The law above would hold for a plan that does nothing."""
    plan = [
        [],
        [[0, "post", 0, 1], [1, "join", 0, 0], [3, "post", 0, 0]],  # the last is not a member
        [[1, "ask", 0, 0], [2, "ask", 0, 0], [3, "ask", 0, 0]],
        [[1, "leave", 0, 2]],
        [[2, "leave", 0, 0]],
        [],
        [],
    ]
    simulation = {
        "world": "telling_worlds:Forum", "agents": AGENTS, "ticks": TICKS,
        "world_options": {"plan": plan},
    }  # fmt: skip
    check_every_way_back({**BASE, "simulation": simulation}, TICKS, 4, tmp_path)
    with MemoryBank.at(tmp_path / "whole" / "bank") as bank:
        texts = {name: str(bank.agent(name).all()) for name in bank.agents()}
        members = {name: list(bank.group(name).members()) for name in bank.groups()}
    who_read = [name for name, own in texts.items() if "I read ['Read on the board" in own]
    assert who_read == ["agent_01", "agent_02"]
    assert members == {"board_0": ["agent_00", "agent_01"], "board_1": ["agent_03"]}


def test_a_plan_of_all_deeds_does_all_of_them(tmp_path: Path) -> None:
    """The law above would hold for a plan that does nothing."""
    plan = [
        [],
        [[0, "tell", 0, 0], [0, "tell", 0, 1]],
        [[1, "tell", 0, 1], [2, "broadcast", 0, 0], [3, "trust", 0, 0]],
        [[0, "correct", 0, 0]],
        [[0, "retract", 0, 0]],
        [[1, "correct", 0, 0]],
        [[1, "retract", 0, 0]],
    ]
    simulation = {
        "world": "telling_worlds:Square", "agents": AGENTS, "ticks": TICKS,
        "world_options": {"plan": plan},
    }  # fmt: skip
    expected = check_every_way_back({**BASE, "simulation": simulation}, TICKS, 4, tmp_path)
    told = [source for own in expected["sources"] for source in own if source is not None]
    assert {source.hands for source in told} >= {1, 2}
    with MemoryBank.at(tmp_path / "whole" / "bank") as bank:
        texts = {agent: [m.content for m in bank.agent(agent).all()] for agent in bank.agents()}
        assert bank.agent("agent_03").social.trust_of("agent_00") == 0.25
    assert any(text.startswith("It is not so") for own in list(texts.values())[1:] for text in own)


@pytest.mark.long_after(2)
@pytest.mark.parametrize("stop", [9, 0, 1, 6, 14])
def test_the_rumour_mill_is_the_same_resumed_branched_and_replayed(
    tmp_path: Path, stop: int
) -> None:
    simulation = {"world": "rumor", "agents": 8, "ticks": 14}
    expected = check_every_way_back({**BASE, "simulation": simulation}, 14, stop, tmp_path)
    told = [source for own in expected["sources"] for source in own if source is not None]
    assert max(source.hands for source in told) > 1
