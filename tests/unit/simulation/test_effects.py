"""What a change did: two arms, the first decision that parts them, and how it goes around."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank
from agents.config.load import load_settings
from agents.errors import InvalidInput, RunError, TierMemError
from agents.simulation.effects import effect, expected_cost, which
from agents.simulation.effects.results import ranking_section
from agents.simulation.effects.stories import Turn, compare
from agents.simulation.runs.branch import branch
from agents.simulation.runs.replay import Replay
from agents.simulation.runs.run import Run
from agents.simulation.tick.branch_rules import BranchRules
from agents.simulation.tick.streams import Streams

WORLD = '''
from tiermem.simulation import Action, Observation, Remark

class Wells:
    """Ann hears in tick 2 from Bob that the north well is dry; whoever goes there is thirsty."""
    kept = 0
    def setup(self, rng, agent_ids):
        self.rng, self.tick, self.thirst, self.went = rng, 1, dict.fromkeys(agent_ids, 0), {}
    def observe(self, agent_id):
        heard = [Remark(f"{who} went {where}", speaker=who)
                 for who, where in self.went.items() if agent_id == "cat" and who == "ann"]
        if self.tick == 2 and agent_id == "ann":
            heard.append(Remark("the north well is dry", tier="pinned", speaker="bob"))
        if self.tick == 3 and agent_id == "ann":
            heard.append(Remark("the weather is fine", speaker="cat"))
        return Observation("Which well today?", heard=heard)
    def apply(self, agent_id, action):
        where = action.arguments["where"]
        self.went[agent_id] = where
        self.thirst[agent_id] += where == "north"
        return f"I went {where}"
    def end_tick(self):
        self.tick += 1
    def metrics(self):
        return {"thirst": sum(self.thirst.values()), "ticks": self.tick}
    def by_agent(self):
        return {"thirst": dict(self.thirst)}
    def get_state(self):
        return {"tick": self.tick, "thirst": dict(self.thirst), "went": dict(self.went)}
    def set_state(self, state):
        self.tick, self.thirst, self.went = state["tick"], dict(state["thirst"]), state["went"]

class Walks:
    def decide(self, observation, memories, rng):
        known = any("north well is dry" in hit.memory.content for hit in memories)
        where, why = ("south", "north is dry") if known else ("north", "it is near")
        return [Action("go", {"where": where}, why)]
'''
TICKS, AT = 8, 4
WARNING = "ann:north well is dry"


@pytest.fixture(scope="module")
def wells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, which no test changes."""
    return made(tmp_path_factory.mktemp("wells"))


def made(place: Path, world: str = WORLD, **options: Any) -> Path:
    (place / "wells.py").write_text(world)
    settings = load_settings(
        {
            "seed": 7,
            "storage": {"sync": "manual"},
            "simulation": {
                "world": "wells:Wells",
                "policy": "wells:Walks",
                "agents": ["ann", "bob", "cat"],
                "ticks": TICKS,
                **options,
            },
        }
    )
    with Run.create(place / "run", settings, scenario=place) as run:
        list(run.advance(TICKS))
        run.finish(report=False)
    return place / "run"


def warning_id(run: Path) -> str:
    with Run.open(run) as opened:
        (memory,) = opened.bank.agent("ann").get_pinned_memories()
        return memory.id


def test_a_pinned_memory_is_forgotten_and_its_effect_is_exact(wells: Path) -> None:
    found = effect(wells, at=AT, forget=f"ann:{warning_id(wells)}")
    assert found.difference("thirst")["mean"] == TICKS - AT
    assert found.difference("ticks")["mean"] == 0
    assert found.by_agent == {"thirst": {"ann": TICKS - AT}}
    assert found.parted is not None
    assert found.parted[:2] == (AT + 1, "ann")
    assert found.parted.was == ("go(where='south'): done, because: north is dry",)
    assert found.parted.changed == ("go(where='north'): done, because: it is near",)
    assert found.parted.missed == ("the north well is dry",)
    assert [each[:3] for each in found.reached] == [
        ("ann", AT + 1, ()),
        ("cat", AT + 2, ("ann",)),
    ]
    assert found.statistics[0]["p"] is None  # one run is no evidence about others
    assert found.words == (f"ann forgets 'the north well is dry' after tick {AT}",)


TELLS = WORLD.replace(
    """        return [Action("go",""",
    """        if known and (observation.agent_id, observation.tick) == ("ann", 6):
            return [Action("tell", {"memory_id": memories[0].memory.id, "to": "cat"})]
        return [Action("go",""",
).replace('if agent_id == "cat" and who == "ann"', "if False")


@pytest.mark.parametrize("order", [["ann", "bob", "cat"], ["cat", "bob", "ann"]])
def test_a_tell_reaches_its_listener_in_the_tick_in_which_the_teller_changes(
    tmp_path: Path, order: list[str]
) -> None:
    found = effect(made(tmp_path, TELLS, agents=order), at=5, forget=WARNING)
    assert {each[:3] for each in found.reached} == {("ann", 6, ()), ("cat", 6, ("ann",))}


def turn(*perceived: str, did: str = "") -> Turn:
    return Turn(perceived, None, (), ((did, {}, "done"),), perceived, {}, (None,), None)


def reached(was: dict[int, dict[str, Turn]], now: dict[int, dict[str, Turn]]) -> set[Any]:
    *_, found = compare(was, now)
    return {each[:3] for each in found}


def test_what_is_perceived_comes_from_an_earlier_tick() -> None:
    """Al changes in the tick in which Bo perceives something else about Al: that was the world."""
    was = {1: {"al": turn(did="go"), "bo": turn("al sells")}}
    now = {1: {"al": turn(did="stay"), "bo": turn("al buys")}}
    assert reached(was, now) == {("al", 1, ()), ("bo", 1, ())}


@pytest.mark.parametrize(
    ("text", "through"),
    [
        ("al sells {}", ("al",)),
        ("'al', they say, sells {}", ("al",)),
        ("Walter sells {}", ()),
        ("al-ex sells {}", ()),
        ("al_1 sells {}", ()),
        ("al and al-ex sell {}", ("al",)),
        ("I sell {} to al.", ("al",)),
    ],
)
def test_an_agent_is_named_by_its_whole_name(text: str, through: tuple[str, ...]) -> None:
    """Al changes in tick 1; Bo perceives something else in tick 2."""
    quiet = {"al-ex": turn(), "al": turn(), "bo": turn()}
    was = {1: quiet, 2: {**quiet, "bo": turn(text.format("apples"))}}
    now = {1: {**quiet, "al": turn(did="stay")}, 2: {**quiet, "bo": turn(text.format("pears"))}}
    assert reached(was, now) == {("al", 1, ()), ("bo", 2, through)}


def test_what_is_never_heard_is_in_no_memory_from_its_birth_on(wells: Path) -> None:
    found = effect(wells, never_heard=WARNING)
    assert (found.at, found.difference("thirst")["mean"]) == (1, TICKS - 2)
    steps = {(step.tick, step.agent) for step in found.steps if step.perceived}
    assert min(steps) == (2, "ann")


@pytest.mark.slow
def test_what_one_says_does_not_reach_the_other(wells: Path) -> None:
    heard = effect(wells, at=1, block="bob→ann")
    assert heard.difference("thirst")["mean"] == TICKS - 2
    assert effect(wells, at=2, block="bob->ann").parted is None
    other = effect(wells, at=1, block="cat→ann")  # talk of the weather
    assert (other.parted, other.difference("thirst")["mean"]) == (None, 0)
    assert [each.agent for each in other.reached] == ["ann"]


@pytest.mark.slow
def test_a_memory_is_pinned_and_settings_are_changed(wells: Path) -> None:
    found = effect(wells, at=AT, pin="ann:weather is fine", set="memory.max_pinned=1")
    assert found.difference("thirst")["n"] == 1
    assert len(found.words) == 2


def test_a_rule_holds_after_a_stop_and_in_a_replay(wells: Path, tmp_path: Path) -> None:
    rule = {"do": "never", "agent": "ann", "tick": 2, "content": "the north well is dry"}
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    for folder in (whole, stopped):
        branch(wells, 0, folder, rules=[rule])
    with Run.open(whole) as run:
        hashes = [record["state_hash"] for record in run.advance(TICKS)]
    again = []
    for tick in (1, 2, TICKS):
        with Run.open(stopped) as run:
            again += [record["state_hash"] for record in run.advance(tick)]
    assert again == hashes
    replay = Replay(whole)
    assert not [found for found in replay.ticks() if found]
    replay.close()
    child = tmp_path / "child"
    branch(whole, 1, child)
    with Run.open(child) as run:
        assert [record["state_hash"] for record in run.advance(TICKS)] == hashes[1:]
        assert run.decision("ann", 2).heard == ()


def test_the_log_of_decisions_stays_true_where_something_is_dropped(
    wells: Path, tmp_path: Path
) -> None:
    rules = [
        {"do": "never", "agent": "ann", "tick": 2, "content": "Which well today?"},
        {"do": "never", "agent": "ann", "tick": 3, "content": "I went south"},
    ]
    branch(wells, 0, tmp_path / "other", rules=rules)
    with Run.open(tmp_path / "other") as run:
        list(run.advance(3))
        second, third = run.decision("ann", 2), run.decision("ann", 3)
        texts = [memory.content for memory in run.bank.agent("ann").all()]
    assert (second.observed, second.query, second.heard) == (
        "", "Which well today?", ("the north well is dry",),
    )  # fmt: skip
    assert second.did[0].text == "I went north"
    assert (third.heard, third.did[0].memory_id) == (("the weather is fine",), None)
    assert texts.count("Which well today?") == 2
    assert "I went south" not in texts


def test_another_future_has_the_same_past(wells: Path, tmp_path: Path) -> None:
    drawn = WORLD.replace('f"I went {where}"', 'f"I went {where} {self.rng.random()}"')
    run = made(tmp_path, drawn)
    for number in (0, 1, 2):
        rule = {"do": "future", "number": number, "after": AT}
        branch(run, 2, tmp_path / f"f{number}", rules=[rule] if number else [])
    hashes = []
    for number in (0, 1, 2):
        with Run.open(tmp_path / f"f{number}") as opened:
            hashes.append([record["state_hash"] for record in opened.advance(TICKS)])
    assert hashes[0][: AT - 2] == hashes[1][: AT - 2] == hashes[2][: AT - 2]
    assert len({each[-1] for each in hashes}) == 3


@pytest.mark.slow
def test_over_futures_and_over_seeds(wells: Path, tmp_path: Path) -> None:
    found = effect(wells, at=AT, forget=WARNING, futures=3, workers=1, metrics=["thirst"])
    row = found.difference("thirst")
    assert (row["n"], row["mean"], found.over) == (3, TICKS - AT, "future")
    out = tmp_path / "out"
    found = effect(wells, at=AT, forget=f"ann:{warning_id(wells)}", seeds=3, workers=1, out=out)
    assert [row["pair"] for row in found.pairs if row["metric"] == "thirst"] == [
        "the run itself", "seed 8", "seed 9",
    ]  # fmt: skip
    assert found.difference("thirst")["mean"] == TICKS - AT
    assert {path.name for path in out.iterdir()} >= {
        "as-it-was", "changed", "seed-8", "seed-9", "effect.json", "effect.svg", "report.html",
        "pairs.parquet", "statistics.parquet", "spread.parquet",
    }  # fmt: skip
    assert json.loads((out / "effect.json").read_text())["statistics"][0]["n"] == 3
    assert "the north well is dry" in (out / "report.html").read_text()
    with pytest.raises(RunError, match="exists already"):
        effect(wells, at=AT, forget=WARNING, out=out)


@pytest.mark.slow
def test_a_seed_without_the_memory_is_left_out_and_named(tmp_path: Path) -> None:
    by_luck = WORLD.replace(
        "self.rng, self.tick,", "self.luck = rng.random(); self.rng, self.tick,"
    )
    run = made(
        tmp_path, by_luck.replace("self.tick == 2 and", "self.tick == 2 and self.luck < .4 and")
    )
    seeds = [seed for seed in range(7, 11) if _luck(seed) < 0.4]
    assert (_luck(7) < 0.4, len(seeds)) == (True, 3)
    found = effect(run, at=AT, forget=WARNING, seeds=4, workers=1)
    assert (found.difference("thirst")["n"], len(found.missing)) == (3, 1)
    assert "there is no memory of ann" in found.missing[0]
    assert any("3 of 4 pairs have the change" in note for note in found.notes)


def _luck(seed: int) -> float:
    streams = Streams(seed, ())
    streams.begin(0)
    return streams.world.random()


def test_a_world_that_keeps_something_elsewhere_is_refused(tmp_path: Path) -> None:
    leaky = WORLD.replace(
        'self.thirst[agent_id] += where == "north"',
        'Wells.kept += 1; self.thirst[agent_id] += Wells.kept',
    )  # fmt: skip
    run = made(tmp_path, leaky)
    with pytest.raises(RunError, match="nothing was changed is a different run") as refused:
        effect(run, at=AT, forget=WARNING)
    assert "thirst" in str(refused.value)


def test_which_memory_mattered_most(wells: Path) -> None:
    ranked = which(wells, "thirst", budget=1, workers=1)
    (best,) = ranked.tested
    assert (best.candidate.agent, best.candidate.text) == ("ann", "the north well is dry")
    assert (best.at, best.difference, best.low) == (2, TICKS - 2, None)
    assert ranked.candidates == 1 + len(ranked.untested)
    assert json.dumps(ranked.to_dict())


@pytest.mark.slow
def test_equal_effects_in_all_futures_have_no_interval(wells: Path) -> None:
    only = which(wells, "thirst", agent="bob", budget=2, at=AT, futures=6, workers=1)
    assert {each.candidate.agent for each in only.tested} == {"bob"}
    assert [(each.n, each.difference, each.low, each.high) for each in only.tested] == [
        (6, 0, None, None)
    ] * 2
    assert {each.p_holm for each in only.tested} == {None}
    assert "all 6 are equal; up to 39 % of others may differ" in ranking_section(only)


def test_the_cost_without_a_language_model_is_in_ticks(wells: Path) -> None:
    cost = expected_cost(wells, at=AT, forget=WARNING, seeds=3)
    assert (cost.branches, cost.ticks, cost.calls) == (6, 2 * 4 + 2 * (8 + 4), 0)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"at": AT}, "an experiment changes something"),
        ({"forget": WARNING}, "begins after a tick"),
        ({"at": TICKS, "forget": WARNING}, "nothing can change after tick 8"),
        ({"at": 1, "forget": WARNING}, "after tick 1 there is no memory of ann"),
        ({"at": AT, "never_heard": WARNING}, "had 'the north well is dry' in tick 2 already"),
        ({"never_heard": "ann:no such words"}, "there never was a memory of ann"),
        ({"at": AT, "forget": "eve:well"}, "names no memory of an agent"),
        ({"at": AT, "forget": "ann:"}, "names no memory of an agent"),
        ({"at": AT, "block": "bob"}, "does not say who is kept from whom"),
        ({"at": AT, "block": "bob→eve"}, "does not say who is kept from whom"),
        ({"at": AT, "forget": WARNING, "seeds": 2, "futures": 2}, "not over both"),
        ({"at": AT, "forget": WARNING, "seeds": 0}, "seeds is 0"),
        ({"at": AT, "forget": WARNING, "metrics": ["x"]}, "no metric 'x'"),
        ({"at": AT, "set": "seed=9"}, "seed can't be changed in a branch"),
    ],
)
def test_what_makes_no_sense_is_refused(wells: Path, arguments: dict[str, Any], part: str) -> None:
    with pytest.raises(TierMemError, match=part):
        effect(wells, **arguments)


@pytest.mark.parametrize(
    "rules",
    ["x", [{"do": "never"}], [{"do": "block", "from": "a", "to": "b", "after": "1"}], [5]],
)
def test_rules_that_were_changed_are_noticed(wells: Path, tmp_path: Path, rules: object) -> None:
    branch(wells, 1, tmp_path / "other")
    about = json.loads((tmp_path / "other" / "run.json").read_text())
    (tmp_path / "other" / "run.json").write_text(json.dumps({**about, "rules": rules}))
    with pytest.raises(RunError, match=r"run\.json can't be read"):
        Run.open(tmp_path / "other")


def test_a_budget_and_a_metric_are_checked(wells: Path) -> None:
    with pytest.raises(InvalidInput, match="no metric"):
        which(wells, "luck")
    with pytest.raises(InvalidInput, match="budget is 0"):
        which(wells, "thirst", budget=0)
    with pytest.raises(InvalidInput, match="no agent 'eve'"):
        which(wells, "thirst", agent="eve")


TELLING = '''
from tiermem.simulation import Action, Observation

class Wells:
    """Ann sees a fire in tick 1; who knows of it tells the next one."""
    def setup(self, rng, agent_ids):
        self.tick = 1
    def observe(self, agent_id):
        saw = self.tick == 1 and agent_id == "ann"
        return Observation("the mill burned" if saw else "a quiet day")
    def apply(self, agent_id, action):
        return None
    def end_tick(self):
        self.tick += 1
    def metrics(self):
        return {"tick": self.tick}
    def get_state(self):
        return self.tick
    def set_state(self, state):
        self.tick = state

class Walks:
    def decide(self, observation, memories, rng):
        to = {"ann": "bob", "bob": "cat"}.get(observation.agent_id)
        known = [hit.memory.id for hit in memories if "mill" in hit.memory.content]
        return [Action("tell", {"to": to, "memory_id": known[0]})] if to and known else []
'''


def test_what_is_told_is_blocked_and_the_loss_is_followed_from_hand_to_hand(
    tmp_path: Path,
) -> None:
    run = made(tmp_path, TELLING)
    found = effect(run, at=0, block="ann→bob")
    assert [each[:3] for each in found.reached] == [("bob", 2, ()), ("cat", 3, ("bob",))]
    assert found.parted is not None
    assert found.parted.was == ("tell(to='cat', memory_id='the mill burned'): done",)
    assert found.parted.changed == ()
    never = effect(run, never_heard="bob:the mill burned")
    assert (never.at, never.reached[0][:2]) == (1, ("bob", 2))


def fine_weather(run: Path) -> list[Any]:
    """Ann's memories that the weather is fine."""
    with MemoryBank.at(run / "bank") as bank:
        return [each for each in bank.agent("ann").all() if "weather" in each.content]


@pytest.mark.slow
def test_of_two_equal_memories_the_one_that_is_named_is_forgotten(tmp_path: Path) -> None:
    again = 'heard += [Remark("the weather is fine", tier=t) for t in ("critical", "low")]'
    run = made(
        tmp_path, WORLD.replace('heard.append(Remark("the weather is fine", speaker="cat"))', again)
    )
    first, second = fine_weather(run)
    for number, (named, other) in enumerate([(first, second), (second, first)]):
        place = tmp_path / str(number)
        effect(run, at=AT, forget=f"ann:{named.id}", out=place)
        assert [each.id for each in fine_weather(place / "changed")] == [other.id]
        branch(
            run, AT, place / "branch", edits=[{"agent": "ann", "do": "forget", "memory": named.id}]
        )
        assert [each.id for each in fine_weather(place / "branch")] == [other.id]
    effect(run, at=AT, pin=f"ann:{second.id}", out=tmp_path / "pinned")
    tiers = {each.id: each.tier.name for each in fine_weather(tmp_path / "pinned" / "changed")}
    assert tiers == {first.id: "CRITICAL", second.id: "PINNED"}


@pytest.mark.slow
def test_an_insight_that_never_comes_to_mind_is_in_no_memory(tmp_path: Path) -> None:
    thinks = """
    def reflect(self, observation, memories, rng):
        return [Insight(f"wells dry up, says tick {observation.tick}", [memories[-1].id])]
"""
    world = WORLD.replace("import Action", "import Action, Insight") + thinks
    place = tmp_path / "made"
    place.mkdir()
    (place / "wells.py").write_text(world)
    settings = load_settings(
        {
            "seed": 7, "storage": {"sync": "manual"},
            "reflection": {"enabled": True, "threshold": 5},
            "simulation": {"world": "wells:Wells", "policy": "wells:Walks", "ticks": TICKS,
                           "agents": ["ann", "bob", "cat"]},
        }
    )  # fmt: skip
    with Run.create(place / "run", settings, scenario=place) as run:
        list(run.advance(TICKS))
    with MemoryBank.at(place / "run" / "bank") as bank:
        insight = next(each for each in bank.agent("ann").all() if each.kind == "insight")
    effect(place / "run", never_heard=f"ann:{insight.id}", out=tmp_path / "out")
    with MemoryBank.at(tmp_path / "out" / "changed" / "bank") as bank:
        assert insight.content not in [each.content for each in bank.agent("ann").all()]


def test_a_memory_that_comes_by_a_way_of_its_own_is_not_said_to_be_kept_away(
    wells: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BranchRules, "is_never", lambda *_: False)
    with pytest.raises(RunError, match="got 'the north well is dry' in tick 2 all the same"):
        effect(wells, never_heard=WARNING)


def test_what_comes_again_later_is_noted(tmp_path: Path) -> None:
    run = made(tmp_path, WORLD.replace("if self.tick == 2 and", "if self.tick in (2, 5) and"))
    found = effect(run, never_heard=WARNING)
    assert "ann gets the same text later, in tick 5: that is not kept away" in found.notes


def test_a_metric_that_the_world_lacks_is_refused_before_anything_runs(
    wells: Path, tmp_path: Path
) -> None:
    for act in (partial(effect, out=tmp_path / "out"), expected_cost):
        with pytest.raises(InvalidInput, match="no metric 'nope'"):
            act(wells, at=AT, forget=WARNING, metrics=["thirst", "nope"])
    assert not (tmp_path / "out").exists()


def test_who_blocks_nothing_is_told_so(wells: Path) -> None:
    found = effect(wells, at=1, block="zed->ann")
    assert any("nothing was blocked (zed→ann)" in note for note in found.notes)
    found = effect(wells, at=1, block="bob->ann")
    assert not any("nothing was blocked" in note for note in found.notes)
    with pytest.raises(InvalidInput, match="who is kept from whom"):
        effect(wells, at=1, block="ann->ann")


def test_a_change_that_can_change_nothing_is_refused(wells: Path) -> None:
    with pytest.raises(RunError, match="pinned already"):
        effect(wells, at=AT, pin=WARNING)
    with pytest.raises(InvalidInput, match="tick for tick"):
        effect(wells, at=AT, set="simulation.ticks=70")
    for at in (TICKS, 99):
        with pytest.raises(RunError, match="nothing can change"):
            which(wells, "thirst", at=at)
