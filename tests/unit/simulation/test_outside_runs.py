"""A run whose ticks a program makes."""

import pytest

from agents import InvalidInput
from agents.config.load import load_settings
from agents.simulation.runs.driven_run import OutsideRun
from agents.simulation.worlds.outside import OUTSIDE


@pytest.fixture
def run() -> OutsideRun:
    settings = load_settings({"simulation": {"world": OUTSIDE, "agents": 1, "ticks": 1}})
    run = OutsideRun.create(None, settings, dict)
    run.welcome("alice")
    run.welcome("bob")
    return run


def test_an_agent_recalls_once_in_a_tick(run: OutsideRun) -> None:
    run.observe("alice", ("alice", "It rains"))
    with run.tick():
        twice = [("alice", "rain"), ("bob", "rain"), ("alice", "sun")]
        with pytest.raises(InvalidInput, match="alice recalls twice in this tick"):
            run.recall(twice)
        assert not run.given("alice")
        run.recall(twice[:2])
        assert [hit.memory.content for hit in run.given("alice")] == ["It rains"]
        with pytest.raises(InvalidInput, match="bob recalls twice in this tick"):
            run.recall([("bob", "sun")])
    with run.tick():
        run.recall([("alice", "sun")])
    run.close()
