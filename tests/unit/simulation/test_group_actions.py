"""Agents of a simulation write to boards of groups, search them, and leave."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest

from agents import MemoryBank, SimulationError
from agents.config.load import load_settings
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.protocols import Action, Ask, Observation
from agents.simulation.runs.branch import branch
from agents.simulation.runs.compare import differences
from agents.simulation.runs.replay import Replay
from agents.simulation.runs.run import Run
from agents.simulation.runs.scenario import own_actions
from agents.simulation.runs.why import decision, life
from agents.simulation.tick.loop import Loop
from agents.telling.groups import agent_counts
from banks import MakeBank
from worlds import Diary, Mind

AGENTS = ["alice", "bob", "carol"]
PLAN = "we meet at the bridge <1 0>"


class Guild(Diary):
    """Alice and bob are members."""

    def groups(self) -> Mapping[str, list[str]]:
        return {"guild": ["alice", "bob"]}


class Asking(Mind):
    """Asks in each tick, on the boards as well."""

    limit: int | None = None

    def __init__(self, does: Any) -> None:
        super().__init__(does)
        self.answers: dict[tuple[str, int], list[str]] = {}

    def decide(self, observation: Observation, memories: Any, rng: Random) -> list[Any]:
        if observation.asks_left and not observation.answers:
            return [Ask("<1 0>", self.limit, groups=True)]
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
        (post(group="town"), "alice is not a member of a group town"),
        (post(tier="critical"), "no pinned and no critical"),
        (post(""), "this one is blank"),
        (post(3), "text, not int"),  # type: ignore[arg-type]
        (post(group=".guild"), "agent"),
        (Action("post_to_group", {"group": "guild"}), "content is missing"),
        (Action("post_to_group", {"group": "guild", "content": "x", "as": "bob"}), "no argument"),
        (Action("leave_group", {"group": "town"}), "not a member"),
        (Action("leave_group", {"group": ["guild"]}), "agent"),
        (Action("join_group", {"group": "guild"}), "alice is a member of guild already"),
        (Action("join_group", {"group": "town"}), "nobody can join a group here"),
        (Action("join_group", {"group": "a town"}), "agent"),
        (Action("join_group", {}), "group is missing"),
    ],
)
def test_a_mistake_is_told_to_the_agent(bank: MemoryBank, action: Action, why: str) -> None:
    mind = run(bank, Mind(does(alice={1: [action]})), 2)
    (error,) = errors(mind)
    assert error.startswith(f"{action.name} was refused: ")
    assert why in error
    assert bank.group("guild").all() == []


class Open(Guild):
    """Whoever is not bob may join the guild, and found the league."""

    def may_join(self, agent_id: str, group: str) -> bool:
        self._called("may_join", agent_id, group)
        return agent_id != "bob" and group in ("guild", "league")


def join(group: str = "guild") -> Action:
    return Action("join_group", {"group": group})


LEAVE = Action("leave_group", {"group": "guild"})


def test_who_joins_reads_the_board_from_the_next_tick_on_and_writes_at_once(
    bank: MemoryBank,
) -> None:
    hello = "carol is new <1 0>"
    mind = Asking(does(alice={1: [post()]}, carol={2: [join(), post(hello)]}))
    run(bank, mind, 3, world := Open())
    assert mind.answers["carol", 2] == []
    assert mind.answers["carol", 3] == [hello, PLAN]
    assert mind.answers["alice", 2] == [PLAN]
    assert bank.group("guild").members() == {"alice": 0, "bob": 0, "carol": 2}
    assert world.made("may_join") == [("carol", "guild")]
    assert errors(mind, "carol") == []


def test_a_group_that_the_world_lets_an_agent_join_need_not_exist(bank: MemoryBank) -> None:
    run(bank, Mind(does(carol={1: [join("league"), post("first", "league")]})), 2, Open())
    assert bank.group("league").members() == {"carol": 1}
    assert [each.content for each in bank.group("league").all()] == ["first"]


@pytest.mark.parametrize(
    ("agent", "actions", "why"),
    [
        ("bob", [join("league")], "join_group was refused: bob may not join league"),
        ("carol", [join("cabal")], "join_group was refused: carol may not join cabal"),
        ("carol", [post(), join()], "post_to_group was refused: carol is not a member"),
        ("alice", [LEAVE, post()], "post_to_group was refused: alice is not a member"),
        ("alice", [LEAVE, LEAVE], "leave_group was refused: alice is not a member"),
        ("carol", [join(), join()], "carol is a member of guild already"),
        ("carol", [{"name": "join_group", "arguments": {"group": "guild", "as": 1}}], "no arg"),
    ],
)
def test_the_world_and_what_was_done_before_decide(
    bank: MemoryBank, agent: str, actions: list[Any], why: str
) -> None:
    mind = run(bank, Mind(does(**{agent: {1: actions}})), 2, Open())
    (error,) = errors(mind, agent)
    assert why in error
    assert bank.group("guild").all() == []
    assert "league" not in bank.groups()
    assert error not in [each.content for each in bank.agent(agent).all()]


def test_who_leaves_and_joins_again_is_a_member_since_then(bank: MemoryBank) -> None:
    run(bank, Mind(does(alice={2: [LEAVE, join(), post()]})), 2, Open())
    assert bank.group("guild").members() == {"alice": 2, "bob": 0}


def test_a_world_that_fails_is_named(bank: MemoryBank) -> None:
    mind, world = Mind(does(carol={1: [join()]})), Open(("may_join", 1))
    with pytest.raises(SimulationError, match=r"Open.may_join\(\) raised RuntimeError in tick 1"):
        run(bank, mind, 1, world)
    assert bank.tick == 0


def test_a_world_with_an_action_of_that_name_does_it_itself(bank: MemoryBank) -> None:
    class Clerk(Open):
        actions: ClassVar = {"join_group": "ask the clerk: group"}

    run(bank, Mind(does(carol={1: [join(), join("a town")]})), 1, w := Clerk())
    assert w.made("apply") == [("carol", "join_group")] * 2
    assert w.made("may_join") == []
    assert "carol" not in bank.group("guild").members()


def test_all_read_a_board_as_it_was_before_the_tick(make_bank: MakeBank) -> None:
    """What one agent finds in a tick does not depend on who asked before."""
    recency = {"decay": 0.5, "recency": 1, "importance": 0, "relevance": 0}
    bank = make_bank(retrieval={"mode": "vector", "score": "generative", "generative": recency})
    mind = Asking(does(alice={1: [post(), post("another plan <1 0>")], 2: [post("the third")]}))
    mind.limit = 1  # what alice finds was used a moment before bob asks
    run(bank, mind, 4)
    scores = {(seen.agent_id, seen.tick): seen.answers[0].hits for seen in mind.seen}
    for tick in (2, 3, 4):
        one, other = ([hit[:3] for hit in scores[agent, tick]] for agent in ("alice", "bob"))
        assert one == other
        assert len(one) == 1
    written = bank.group("guild").all()
    assert sum(each.access_count for each in written) == 6  # two members in three ticks
    assert max(each.last_access_tick or 0 for each in written) == 4


def test_a_record_counts_the_memories_of_agents(bank: MemoryBank) -> None:
    mind = Mind(does(alice={1: [post(), Action("store_memory", {"content": "mine"})]}))
    loop = Loop(bank, Guild(), mind, AGENTS)
    loop.begin()
    record = loop.tick()
    assert (record["added"], record["normal"], record["warm"]) == (1, 1, 1)
    assert sum(agent_counts(bank.engine)[0].values()) == bank.status().retention["active"] == 1


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
        ({"guild": ["dave"]}, "names 'dave', who is not an agent"),
        ({"a guild": ["alice"]}, "gave what is not a group"),
    ],
)
def test_a_world_whose_groups_are_wrong_is_told(bank: MemoryBank, given: Any, why: str) -> None:
    world = Broken()
    world.given = given
    with pytest.raises(SimulationError, match=why):
        run(bank, Mind(), 1, world)
    assert bank.groups() == []


def test_a_language_model_is_told_what_the_world_allows() -> None:
    plain, closed, open_ = (own_actions(scenario(), each) for each in (Diary(), Guild(), Open()))
    assert not plain.keys() & {"post_to_group", "leave_group", "join_group", "search_groups"}
    assert closed.keys() - plain.keys() == {"post_to_group", "leave_group", "search_groups"}
    assert open_.keys() - closed.keys() == {"join_group"}
    assert "group" in open_["join_group"]


# In runs


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose agents post, ask and leave."""
    return made_in(tmp_path_factory, "Clubs")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose agents also join."""
    return made_in(tmp_path_factory, "OpenClubs")


def made_in(factory: pytest.TempPathFactory, world: str) -> Path:
    folder = factory.mktemp("groups") / "run"
    with Run.create(folder, scenario(world), scenario=CODE) as made:
        list(made.advance(8))
        made.finish(report=False)
    return folder


CODE = Path(__file__).parents[2]


def scenario(world: str = "Clubs") -> Any:
    return load_settings(
        {
            "seed": 2,
            "simulation": {"world": f"telling_worlds:{world}", "agents": 4, "ticks": 8},
            "storage": {"sync": "manual"},
            "checkpoint": {"every": 3},
        }
    )


def recorded(folder: Path) -> Any:
    with MemoryBank.at(folder / "bank") as bank:
        boards = [bank.group(name).all() for name in bank.groups()]
        members = [bank.group(name).members() for name in bank.groups()]
        ticks = list(ticks_of(bank).records())
        return ticks_of(bank).hash(), bank.state_hash(), ticks, boards, members


@pytest.mark.slow
@pytest.mark.parametrize("world", ["OpenClubs", "Clubs"])
def test_a_run_with_groups_is_the_same_resumed_branched_and_replayed(
    request: pytest.FixtureRequest, world: str, tmp_path: Path
) -> None:
    whole = request.getfixturevalue("whole" if world == "Clubs" else "opened")
    expected = recorded(whole)
    assert all(expected[3])
    with Run.create(tmp_path / "parts", scenario(world), scenario=CODE) as part:
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


def test_the_life_of_a_post_names_who_found_it(whole: Path) -> None:
    (question,) = decision(whole, "agent_01", 4).asked
    post = next(each for each in question.found if each.part == "board of club_0")
    told = life(whole, post.id)
    assert (told.agent, told.text) == ("board of club_0", post.text)
    assert told.moments[0].what == "born"
    found = [each for each in told.moments if each.what == "found" and each.tick == 4]
    assert (f"by a question of agent_01: {question.query}", post.score) in [
        (each.detail, each.score) for each in found
    ]


def test_why_tells_who_joined_and_who_was_refused(opened: Path) -> None:
    found = [
        (agent, done.name, done.arguments["group"], done.result, done.text)
        for agent in ("agent_00", "agent_02", "agent_03")
        for tick in range(1, 9)
        for done in decision(opened, agent, tick).did
        if done.name == "join_group"
    ]
    assert ("agent_02", "refused") in {(each[0], each[3]) for each in found}
    assert "done" in {each[3] for each in found}
    refused = next(each for each in found if each[3] == "refused" and each[0] == "agent_02")
    assert "agent_02 may not join" in str(refused)


def test_differences_of_boards_are_told() -> None:
    def told(texts: Sequence[str], members: Sequence[str]) -> MemoryBank:
        bank = MemoryBank.ephemeral()
        board = bank.group("guild", members)
        for text in texts:
            board.post("alice", text)
        return bank

    with told(["the mill burns"], ["alice"]) as one, told(["all is well"], ["alice", "bob"]) as two:
        assert list(differences(one, one)) == []
        found = [(each.agent, each.field) for each in differences(one, two)]
        assert found == [(".guild", "content"), (".guild", "members")]
