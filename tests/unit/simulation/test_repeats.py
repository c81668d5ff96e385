"""What agents see and do again is told as it was, also if it became no new memory."""

from pathlib import Path

import pytest

from agents import MemoryBank, analysis
from agents.config.load import load_settings
from agents.simulation import Action
from agents.simulation.effects.stories import story_of
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.runs.driven_run import OutsideRun
from agents.simulation.runs.record import RunRecord
from agents.simulation.runs.replay import Replay
from agents.simulation.runs.why import decision
from agents.simulation.tick.decision_log import asked_first
from agents.simulation.worlds.outside import OUTSIDE
from repeating_worlds import AGENTS, ran


@pytest.fixture(scope="module", params=[False, True], ids=["kept", "merged"])
def walked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which equal memories are kept apart, and one in which they are merged."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    return ran(folder, "Walker", memory={"merge_duplicates": request.param})


def test_each_text_belongs_to_its_observation_remark_or_action(walked: Path) -> None:
    for tick in (1, 2, 4):
        found = decision(walked, AGENTS[1], tick)
        assert found.observed == found.query == "the well is clean"
        assert found.heard == ("a drum", f"bell {tick}")
        texts = ["went north", f"own {tick}", "", "a rule", f"went place {tick}"]
        assert [deed.text for deed in found.did] == texts
        assert [deed.memory_id is not None for deed in found.did] == [*map(bool, texts)]
        assert (found.told, found.saved, found.insights, found.note) == ((), (), (), "")


def test_a_story_has_what_was_perceived_again(walked: Path) -> None:
    with RunRecord.read(walked) as record:
        told = story_of(record, 1)[3][AGENTS[0]]
    assert told.perceived == ("the well is clean", "a drum", "bell 3")


def test_a_replay_has_the_same_log(walked: Path) -> None:
    again = Replay(walked)
    assert [*again.ticks()] == [None] * 5
    again.close()


def test_the_log_has_only_what_was_repeated(walked: Path) -> None:
    with MemoryBank.at(walked / "bank") as bank:
        repeated = [asked_first(data)[2] for _, data in ticks_of(bank).logs()]
        merges = bank.settings.memory.merge_duplicates
    assert repeated == ([{}, *[dict.fromkeys(AGENTS, 1)] * 3] if merges else [{}] * 4)


@pytest.mark.parametrize("merges", [False, True])
def test_a_query_that_was_observed_again_needs_what_was_forgotten(
    tmp_path: Path, merges: bool
) -> None:
    own = {"merge_duplicates": merges, "context_tokens": 1}  # nothing is given
    folder = ran(tmp_path / "run", "Keeper", memory=own)
    rows = analysis.study(folder).needed(near=0.3).to_pylist()
    assert [row["agent"] for row in rows] == [*AGENTS]
    for row in rows:
        assert (row["text"], row["query"]) == ("the clean well", "the well is clean")
        assert (row["first_tick"], row["times"]) == (3, 2)


def test_a_program_may_observe_and_do_the_same_again(tmp_path: Path) -> None:
    settings = load_settings(
        {
            "simulation": {"world": OUTSIDE, "agents": 1, "ticks": 1},
            "memory": {"merge_duplicates": True},
            "storage": {"sync": "manual"},
        }
    )
    run = OutsideRun.create(tmp_path / "run", settings, dict)
    run.welcome("alice")
    for tick in (1, 2, 3):
        with run.tick():
            run.recall([("alice", "rain")])
            run.observe("alice", ("alice", "It rains"))
            run.do("alice", Action("walk"), ("alice", "I walked"))
            run.do("alice", Action("run"), ("alice", f"I ran {tick}"))
    run.close()
    found = decision(tmp_path / "run", "alice", 3)
    assert (found.observed, [deed.text for deed in found.did]) == (
        "It rains",
        ["I walked", "I ran 3"],
    )


def test_what_others_told_and_insights_were_not_saved(tmp_path: Path) -> None:
    folder = ran(tmp_path / "run", "Teller", reflection={"enabled": True, "threshold": 6})
    told = decision(folder, AGENTS[1], 2)
    assert (told.told, told.saved) == (("went place 1",), ())
    found = [decision(folder, AGENTS[0], tick) for tick in (1, 2, 3, 4)]
    assert any(each.insights for each in found)
    assert not any(each.saved or each.told for each in found)
    assert [deed.text for deed in told.did] == ["went place 2"]
