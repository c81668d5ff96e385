"""What a change did where agents find things by questions: in their memory, on boards of groups."""

from pathlib import Path
from typing import Any

import pytest

from agents.config.load import load_settings
from agents.errors import TierMemError
from agents.simulation.effects import effect, which
from agents.simulation.runs.branch import branch
from agents.simulation.runs.replay import Replay
from agents.simulation.runs.run import Run
from agents.simulation.runs.why import decision
from agents.simulation.tick.branch_rules import BranchRules
from spread_runs import engine, results

TICKS = 8
DRY = "the north well is dry"
WORLD = '''
from tiermem.simulation import Action, Ask, Insight, Observation, Remark

class Wells:
    """Ann and bob share a board; dan hears in tick 1 of the north well. Thirst is of the north."""
    def setup(self, rng, agent_ids):
        self.agents, self.tick, self.thirst = list(agent_ids), 1, dict.fromkeys(agent_ids, 0)
    def groups(self):
        return {"guild": ["ann", "bob", "cat"]}
    def observe(self, agent_id):
        told = self.tick == 1 and agent_id == "dan"
        heard = [Remark("the north well is dry")] if told else []
        return Observation("A new day.", query="birthday cake", heard=heard)
    def apply(self, agent_id, action):
        where = action.arguments["where"]
        self.thirst[agent_id] += where == "north"
        return "I drank"
    def end_tick(self):
        self.tick += 1
    def metrics(self):
        return {"thirst": sum(self.thirst.values())}
    def get_state(self):
        return {"tick": self.tick, "thirst": dict(self.thirst)}
    def set_state(self, state):
        self.tick, self.thirst = state["tick"], dict(state["thirst"])

class Asks:
    """Ann posts in tick 2, cat something else; all ask before they go."""
    def decide(self, observation, memories, rng):
        if not observation.answers:
            return [Ask("is the north well dry?", 1, groups=True)]
        found = [hit.memory.content for hit in observation.answers[0].hits]
        where = "south" if "the north well is dry" in found else "north"
        actions = [Action("go", {"where": where})]
        if observation.tick == 2 and observation.agent_id in ("ann", "cat"):
            what = "the north well is dry" if observation.agent_id == "ann" else "a well is a hole"
            actions.append(Action("post_to_group", {"group": "guild", "content": what}))
        return actions
    def reflect(self, observation, memories, rng):
        if not observation.answers:
            return [Ask("is the north well dry?", 1, groups=True)]
        found = [hit.memory.content for hit in observation.answers[0].hits]
        return [Insight(f"I think that {found}", [memories[-1].id])]
'''


def made(place: Path, world: str = WORLD, **more: Any) -> Path:
    place.mkdir(exist_ok=True)
    (place / "wells.py").write_text(world)
    values = {
        "seed": 7,
        "storage": {"sync": "manual"},
        "simulation": {
            "world": "wells:Wells",
            "policy": "wells:Asks",
            "agents": ["ann", "bob", "cat", "dan"],
            "ticks": TICKS,
        },
        "memory": {"default_limit": 1},
        **more,
    }
    with Run.create(place / "run", load_settings(values), scenario=place) as run:
        list(run.advance(TICKS))
        run.finish(report=False)
    return place / "run"


@pytest.fixture(scope="module")
def wells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, which no test changes."""
    return made(tmp_path_factory.mktemp("wells"))


def found_by(run: Path, agent: str, tick: int) -> list[str]:
    return [each.text for each in decision(run, agent, tick).asked[0].found]


@pytest.mark.slow
def test_what_one_posts_does_not_reach_the_other(wells: Path, tmp_path: Path) -> None:
    assert found_by(wells, "bob", 3) == [DRY]
    found = effect(wells, at=1, block="ann→bob", out=tmp_path / "out")
    assert found.difference("thirst")["mean"] == TICKS - 2
    assert found.parted is not None
    assert found.parted[:2] == (3, "bob")
    assert found.parted.missed == (DRY,)
    changed = tmp_path / "out" / "changed"
    assert found_by(changed, "bob", 3) == ["a well is a hole"]  # the next best, within the limit
    assert found_by(changed, "cat", 3) == found_by(changed, "ann", 3) == [DRY]


@pytest.mark.slow
def test_a_post_from_before_is_not_read_any_more(wells: Path) -> None:
    found = effect(wells, at=5, block="ann→bob")
    assert (found.difference("thirst")["mean"], found.parted and found.parted.tick) == (3, 6)
    other = effect(wells, at=5, block="cat→bob")
    assert (other.parted, other.difference("thirst")["mean"]) == (None, 0)


@pytest.mark.slow
def test_a_reflection_does_not_read_what_is_blocked(tmp_path: Path) -> None:
    run = made(tmp_path / "wells", reflection={"enabled": True, "threshold": 9})
    branch(run, 1, tmp_path / "other", rules=[block("ann", "bob", 1)])
    with Run.open(tmp_path / "other") as opened:
        list(opened.advance(TICKS))
        texts = {
            name: [each.content for each in opened.bank.agent(name).all() if each.kind == "insight"]
            for name in ("bob", "cat")
        }
    assert any(DRY in text for text in texts["cat"])
    assert texts["bob"]
    assert not any(DRY in text for text in texts["bob"])


def block(speaker: str, listener: str, after: int) -> dict[str, Any]:
    return {"do": "block", "from": speaker, "to": listener, "after": after}


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"reflection": {"enabled": True, "threshold": 9}}])
def test_a_blocked_post_is_the_same_on_workers_and_in_a_replay(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    run = made(tmp_path / "wells", **more)
    rules = [block("ann", "bob", 3), block("cat", "bob", 5), block("ann", "cat", 9)]
    told = []
    for workers in (0, 2):
        folder = tmp_path / str(workers)
        branch(run, 1, folder, rules=rules)
        with Run.open(folder, engine=engine(workers)) as opened:
            told.append([[*each.items()] for each in opened.advance(TICKS)])
            opened.finish(report=False)
        replay = Replay(folder)
        assert not [found for found in replay.ticks() if found]
        replay.close()
    assert told[0] == told[1]
    assert results(tmp_path / "0") == results(tmp_path / "2")
    assert found_by(tmp_path / "2", "bob", 3) == [DRY]
    assert DRY not in found_by(tmp_path / "2", "bob", 4)


def test_who_is_not_heard_by_whom() -> None:
    rules = BranchRules([block("ann", "bob", 3), block("cat", "bob", 5), block("bob", "ann", 0)])
    heard = [sorted(rules.unheard("bob", tick)) for tick in (3, 4, 6)]
    assert heard == [[], ["ann"], ["ann", "cat"]]
    assert not rules.unheard("dan", 9)


def test_what_only_a_question_found_is_told_with_the_first_decision(wells: Path) -> None:
    assert DRY not in [each.text for each in decision(wells, "dan", 4).given]
    found = effect(wells, at=3, forget=f"dan:{DRY}")
    assert found.parted is not None
    assert found.parted[:2] == (4, "dan")
    assert found.parted.missed == (DRY,)
    assert next(step for step in found.steps if step.tick == 4).given


def test_what_an_agent_was_given_and_found_is_one_memory(tmp_path: Path) -> None:
    run = made(tmp_path, memory={"default_limit": 50})
    assert DRY in [each.text for each in decision(run, "dan", 4).given]
    found = effect(run, at=3, forget=f"dan:{DRY}")
    assert found.parted is not None
    assert found.parted.missed == (DRY,)


def test_a_change_goes_from_agent_to_agent_by_a_board(tmp_path: Path) -> None:
    world = WORLD.replace('"bob", "cat"]', '"bob", "cat", "dan"]').replace(
        'observation.tick == 2 and observation.agent_id in ("ann", "cat")',
        'observation.tick == 4 and observation.agent_id == "dan" and where == "south"',
    ).replace("a well is a hole", DRY)  # fmt: skip
    run = made(tmp_path, world)
    found = effect(run, at=3, forget=f"dan:{DRY}")
    assert [each[:3] for each in found.reached] == [
        ("dan", 4, ()), ("ann", 5, ("dan",)), ("bob", 5, ("dan",)), ("cat", 5, ("dan",)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [{"at": 4, "forget": f"bob:{DRY}"}, {"never_heard": f"bob:{DRY}"},
     {"at": 4, "pin": f".guild:{DRY}"}, {"at": 4, "forget": f"guild:{DRY}"}],
)  # fmt: skip
def test_a_post_is_nobodys_memory_and_the_error_says_so(
    wells: Path, arguments: dict[str, Any]
) -> None:
    with pytest.raises(TierMemError) as refused:
        effect(wells, **arguments)
    assert "--block" in str(refused.value.hint)
    assert "board" in str(refused.value.hint)


def test_posts_are_no_candidates(wells: Path) -> None:
    ranked = which(wells, "thirst", budget=1, workers=1, agent="bob")
    texts = [each.candidate.text for each in ranked.tested] + [e.text for e in ranked.untested]
    assert DRY not in texts
