"""Agents of a simulation write to boards of groups, search them, and leave."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agents import MemoryBank, RunError, SimulationError
from agents.config.load import load_settings
from agents.simulation.loop.loop import Loop
from agents.simulation.protocols import Action, Ask, Observation
from agents.simulation.runs.branch import branch
from agents.simulation.runs.decisions import decision
from agents.simulation.runs.replay import Replay
from agents.simulation.runs.run import Run
from agents.simulation.runs.sharded import Engine
from worlds import Diary, Mind

AGENTS = ["alice", "bob", "carol"]
PLAN = "we meet at the bridge <1 0>"


class Guild(Diary):
    """Alice and bob are members."""

    def groups(self) -> Mapping[str, list[str]]:
        return {"guild": ["alice", "bob"]}


class Asking(Mind):
    """Asks in each tick, on the boards as well."""

    def __init__(self, does: Any) -> None:
        super().__init__(does)
        self.answers: dict[tuple[str, int], list[str]] = {}

    def decide(self, observation: Observation, memories: Any, rng: Random) -> list[Any]:
        if observation.asks_left and not observation.answers:
            return [Ask("<1 0>", groups=True)]
        (answer,) = observation.answers
        own = [hit.memory.content for hit in answer.hits]
        self.answers[observation.agent_id, observation.tick] = own
        return super().decide(observation, memories, rng)


def does(**by_tick: Mapping[int, list[Action]]) -> Any:
    return lambda seen: list(by_tick.get(seen.agent_id, {}).get(seen.tick, []))


def post(content: str = PLAN, group: str = "guild", **more: Any) -> Action:
    return Action("post_to_group", {"group": group, "content": content, **more})


def run(bank: MemoryBank, mind: Mind, ticks: int = 3, world: Any = None) -> Mind:
    loop = Loop(bank, world or Guild(), mind, AGENTS)
    loop.begin()
    for _ in range(ticks):
        loop.tick()
    return mind


def errors(mind: Mind, agent: str = "alice") -> list[str]:
    return [error for seen in mind.seen if seen.agent_id == agent for error in seen.errors]


def test_members_find_what_is_posted_from_the_next_tick_on(bank: MemoryBank) -> None:
    leave = Action("leave_group", {"group": "guild"})
    mind = Asking(does(alice={1: [post(tier="important")]}, bob={2: [leave]}))
    run(bank, mind)
    assert mind.answers["bob", 1] == []
    assert mind.answers["bob", 2] == [PLAN]
    assert mind.answers["bob", 3] == []
    assert mind.answers["alice", 3] == [PLAN]
    assert all(PLAN not in mind.answers["carol", tick] for tick in (1, 2, 3))
    (written,) = bank.group("guild").all()
    assert (written.speaker, written.created_tick, written.tier.name) == ("alice", 1, "IMPORTANT")
    assert bank.group("guild").members() == {"alice": 0}
    assert errors(mind) == []


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (post(group="town"), "alice is no member of a group town"),
        (post(tier="critical"), "no pinned and no critical"),
        (post(""), "this one is blank"),
        (post(3), "text, not int"),  # type: ignore[arg-type]
        (post(group=".guild"), "agent"),
        (Action("post_to_group", {"group": "guild"}), "content is missing"),
        (Action("post_to_group", {"group": "guild", "content": "x", "as": "bob"}), "no argument"),
        (Action("leave_group", {"group": "town"}), "no member"),
        (Action("leave_group", {"group": ["guild"]}), "agent"),
    ],
)
def test_a_mistake_is_told_to_the_agent(bank: MemoryBank, action: Action, why: str) -> None:
    mind = run(bank, Mind(does(alice={1: [action]})), 2)
    (error,) = errors(mind)
    assert error.startswith(f"{action.name} was refused: ")
    assert why in error
    assert bank.group("guild").all() == []


def test_a_question_about_cold_memories_and_groups_is_refused(bank: MemoryBank) -> None:
    def decides(seen: Observation) -> list[Any]:
        if not seen.answers:
            return [Ask("<1 0>", cold=True, groups=True), Ask("x", groups=1)]  # type: ignore[arg-type]
        notes.extend(answer.note for answer in seen.answers)
        return []

    notes: list[str] = []
    run(bank, Mind(decides), 1)
    assert "not about both" in notes[0]
    assert "groups is true or false" in notes[1]


class Broken(Diary):
    given: Any = None

    def groups(self) -> Any:
        return self.given


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["alice"], "a list of members by name is needed"),
        ({"guild": 3}, "a list of members by name is needed"),
        ({"guild": ["dave"]}, "names 'dave', who is no agent"),
        ({"a guild": ["alice"]}, "gave what is no group"),
    ],
)
def test_a_world_whose_groups_are_wrong_is_told(bank: MemoryBank, given: Any, why: str) -> None:
    world = Broken()
    world.given = given
    with pytest.raises(SimulationError, match=why):
        run(bank, Mind(), 1, world)
    assert bank.groups() == []


# In runs


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose agents post, ask and leave."""
    folder = tmp_path_factory.mktemp("groups") / "run"
    with Run.create(folder, scenario(), scenario=CODE) as made:
        list(made.advance(8))
        made.finish(report=False)
    return folder


CODE = Path(__file__).parents[2]


def scenario() -> Any:
    return load_settings(
        {
            "seed": 2,
            "simulation": {"world": "telling_worlds:Clubs", "agents": 4, "ticks": 8},
            "storage": {"sync": "manual"},
            "checkpoint": {"every": 3},
        }
    )


def recorded(folder: Path) -> Any:
    with MemoryBank.at(folder / "bank") as bank:
        boards = [bank.group(name).all() for name in bank.groups()]
        members = [bank.group(name).members() for name in bank.groups()]
        ticks = list(bank.ticks.records())
        return bank.ticks.journal_hash(), bank.state_hash(), ticks, boards, members


def test_a_run_with_groups_is_the_same_resumed_branched_and_replayed(
    whole: Path, tmp_path: Path
) -> None:
    expected = recorded(whole)
    assert all(expected[3])
    with Run.create(tmp_path / "parts", scenario(), scenario=CODE) as part:
        list(part.advance(4))
    branch(whole, 5, tmp_path / "branch")
    shutil.copytree(whole, tmp_path / "lost")
    shutil.rmtree(tmp_path / "lost" / "bank")  # it goes on from its checkpoint
    for name in ("parts", "branch", "lost"):
        with Run.open(tmp_path / name) as again:
            list(again.advance(8))
        assert recorded(tmp_path / name)[:2] == expected[:2]
        assert recorded(tmp_path / name)[3:] == expected[3:]
    replay = Replay(whole)
    try:
        assert list(replay.ticks()) == [None] * 9
    finally:
        replay.close()


def test_why_tells_what_was_found_on_a_board(whole: Path) -> None:
    found = decision(whole, "agent_01", 4)
    (question,) = found.asked
    assert question.groups
    given = {each.part: each for each in question.found}
    assert given["board of club_0"].text.startswith("agent_00 was here")
    assert given["board of club_0"].speaker == "agent_00"
    own = [each.text for each in question.found if each.part == "found"]
    assert all("agent_01" in text for text in own)


def test_a_run_with_groups_is_not_spread(tmp_path: Path) -> None:
    with (
        Run.create(
            tmp_path / "run", scenario(), scenario=CODE, engine=Engine("processes", 2)
        ) as made,
        pytest.raises(RunError, match="can't be spread"),
    ):
        list(made.advance(2))
