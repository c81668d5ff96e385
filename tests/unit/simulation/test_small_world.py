"""A world that is one function: it runs, goes on from its state, replays, becomes a class."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import tiermem
from agents import MemoryBank, SimulationError
from agents.config.load import load_settings
from agents.errors import ConfigError
from agents.simulation.protocols import Action, Ask, Outcome, Policy, Remark, World
from agents.simulation.runs.replay import Replay
from agents.simulation.runs.run import Run
from agents.simulation.runs.scenario import make_world
from agents.simulation.small_world import FunctionWorld, Tick, Turns
from agents.simulation.tick.loop import Loop
from banks import ROOT
from spread_runs import engine, results

TRADERS = [f"agent_{number:02}" for number in range(8)]


@tiermem.world(loss=0, trades=0, bought={})
def market(tick: Tick, scammers: int = 2) -> Turns:
    """A market, with scammers."""
    for trader in tick.agents:
        seller = tick.draw(trader).choice(tick.others(trader))
        tick.sees(trader, f"{seller} offers grain", seller=seller)
    while turn := (yield):
        seller = turn.saw.facts["seller"]
        own = tick.state["bought"]
        own[turn.agent] = own.get(turn.agent, 0) + 1
        tick.state["trades"] += 1
        if seller in tick.agents[:scammers]:
            tick.state["loss"] += 5
            turn.outcome = Outcome(f"{seller} cheated me", tier="pinned")


@market.decide
def careful(observation: Any, memories: Any, rng: Any, blind: bool = False) -> str | None:
    cheat = f"{observation.facts['seller']} cheated me"
    known = any(hit.memory.content == cheat for hit in memories)
    return "accept" if blind or not known else None


def played(
    made: type[FunctionWorld],
    ticks: int = 40,
    policy: Any = None,
    anew: bool = False,
    **options: Any,
) -> tuple[list[dict[str, Any]], MemoryBank]:
    """The records of a run, and its bank; with ``anew``, each tick has a new loop and world."""
    bank = MemoryBank.ephemeral(seed=7)
    records: list[dict[str, Any]] = []
    loop = None
    for _ in range(ticks):
        if loop is None or anew:
            world = made(**options)
            loop = Loop(bank, world, policy or world.rules(), TRADERS)
            loop.begin()
        records.append(loop.tick())
    return records, bank


def of(function: Any, **state: Any) -> type[FunctionWorld]:
    return tiermem.world(**state)(function)


class Does:
    """A policy that does the same in every tick."""

    def __init__(self, *actions: Any) -> None:
        self.actions = list(actions)

    def decide(self, observation: Any, memories: Any, rng: Any) -> Any:
        return self.actions


def test_it_is_a_world_with_its_functions_name_and_rules_a_policy() -> None:
    assert isinstance(market(), World)
    assert isinstance(market.rules(), Policy)
    assert (market.__name__, market.__doc__) == ("market", "A market, with scammers.")


def test_each_honest_trader_pays_each_scammer_once_if_it_remembers() -> None:
    records, _ = played(market)
    assert records[-1]["metrics"]["loss"] == 5 * (6 * 2 + 2)  # a scammer cheats the other one, too
    blind, _ = played(market, policy=market.rules(blind=True))
    assert blind[-1]["metrics"]["loss"] > 300


def test_metrics_are_the_numbers_it_began_with_and_by_agent_what_each_has() -> None:
    world = market()
    bank = MemoryBank.ephemeral(seed=7)
    loop = Loop(bank, world, world.rules(), TRADERS)
    loop.begin()
    assert [*world.metrics()] == ["loss", "trades"]
    assert world.by_agent() == {}
    metrics = [loop.tick() for _ in range(20)][-1]["metrics"]
    assert sum(world.by_agent()["bought"].values()) == metrics["trades"] > 0


def test_a_world_made_anew_for_each_tick_goes_on_from_its_state() -> None:
    once, bank = played(market, 12)
    anew, other = played(market, 12, anew=True)
    assert once == anew
    assert bank.state_hash() == other.state_hash()


def test_worlds_of_one_function_share_no_state() -> None:
    assert played(market)[0] == played(market)[0]


def test_what_is_heard_and_what_comes_of_a_turn_is_remembered_and_a_refusal_is_not() -> None:
    def inn(tick: Tick) -> Turns:
        tick.sees("agent_00", "An inn")
        tick.hears("agent_00", "Music")
        tick.hears("agent_00", Remark("A bell", tier="important"))
        while turn := (yield):
            if turn.action.name == "sleep":
                turn.refuse("the beds are taken")
            turn.outcome = "I ate"

    _, bank = played(of(inn), 2, Does(Action("sleep"), Action("eat")))
    own = [each.content for each in bank.agent("agent_00").all()]
    assert sorted(own) == sorted(["An inn", "Music", "A bell", "I ate"] * 2)


def test_what_stands_after_the_turns_ends_the_tick() -> None:
    def bar(tick: Tick) -> Turns:
        tick.state["here"] = 0
        while (yield):
            tick.state["here"] += 1
        tick.state["most"] = max(tick.state["most"], tick.state["here"])

    records, _ = played(of(bar, here=0, most=0), 3, Does(Action("go")))
    assert records[-1]["metrics"] == {"here": 8, "most": 8}


def test_a_function_without_yield_is_a_world_where_nothing_can_be_done() -> None:
    @tiermem.world
    def rain(tick: Tick) -> None:
        for agent in tick.agents:
            tick.sees(agent, f"Rain in tick {tick.number}")

    _, bank = played(rain, 2, Does(Action("go")))
    assert {each.content for each in bank.agent("agent_03").all()} == {
        "Rain in tick 1", "Rain in tick 2",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("decided", "done"),
    [
        ("go", ["go"]),
        (Action("go"), ["go"]),
        (["go", Action("stay")], ["go", "stay"]),
        (None, []),
        ([], []),
        (Ask("where?"), ["go"]),
    ],
    ids=["a name", "an action", "a list", "none", "empty", "a question"],
)
def test_a_decision_may_be_short(decided: Any, done: list[str]) -> None:
    did: list[str] = []

    @tiermem.world
    def road(tick: Tick) -> Turns:
        while turn := (yield):
            did.append(turn.action.name)

    @road.decide
    def walk(observation: Any, memories: Any, rng: Any) -> Any:
        return "go" if observation.answers else decided

    bank = MemoryBank.ephemeral(seed=1)
    loop = Loop(bank, road(), road.rules(), ["ann"])
    loop.begin()
    loop.tick()
    assert did == done


def test_a_decision_that_is_none_of_these_is_named_with_what_may_be_given() -> None:
    @tiermem.world
    def road(tick: Tick) -> Turns:
        yield

    @road.decide
    def count(observation: Any, memories: Any, rng: Any) -> Any:
        return 5

    loop = Loop(MemoryBank.ephemeral(seed=1), road(), road.rules(), ["ann"])
    loop.begin()
    with pytest.raises(SimulationError, match=r"count gave 5; give an action, its name"):
        loop.tick()


def test_it_grows_into_a_class_method_by_method() -> None:
    class Market(market):
        actions: ClassVar = {"accept": "pay for what is on offer"}

        def metrics(self) -> dict[str, float]:
            return {**super().metrics(), "share": self.state["loss"] / 40}

        def may_tell(self, teller: str, listener: str) -> bool:
            return listener in self.agents[:2]

    records, bank = played(Market, scammers=1)
    assert records[-1]["metrics"]["share"] == records[-1]["metrics"]["loss"] / 40 > 0
    _, bank = played(Market, 1, Does(Action("steal")))
    assert not any("steal" in each.content for each in bank.agent("agent_00").all())


def test_with_actions_others_are_refused_before_the_function_sees_them() -> None:
    @tiermem.world(done=0)
    def shop(tick: Tick) -> Turns:
        while (yield):
            tick.state["done"] += 1

    shop.actions = {"buy": "buy bread"}
    records, _ = played(shop, 1, Does(Action("buy"), Action("steal")))
    assert records[0]["metrics"] == {"done": 8}


# What is refused


def _ends(tick: Tick) -> Turns:
    yield


def _twice(tick: Tick) -> Turns:
    while (yield):
        pass
    yield


def _sees_twice(tick: Tick) -> None:
    tick.sees("agent_00", "a")
    tick.sees("agent_00", "b")


def _sees_late(tick: Tick) -> Turns:
    while (yield):
        tick.sees("agent_00", "a")


def _nobody(tick: Tick) -> None:
    tick.sees("zoe", "a")


def _number(tick: Tick) -> None:
    tick.sees("agent_00", 3)


def _raises(tick: Tick) -> Turns:
    while (yield):
        raise tiermem.InvalidAction("no")


def _divides(tick: Tick) -> Iterator[None]:
    yield
    _ = 1 / 0


def _tuple(tick: Tick) -> None:
    tick.state["place"] = (1, 2)


def _lost(tick: Tick) -> None:
    tick.state.pop("loss")


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (_ends, r"_ends\.apply\(\) .* tick 1: the function ended after the turn of agent_\d\d"),
        (_twice, r"_twice\.end_tick\(\) .* asks for another turn after the last one"),
        (_sees_twice, r"agent_00 sees something already.*\(test_small_world\.py, line \d+\)"),
        (_sees_late, r"have observed this tick already.*\(test_small_world\.py, line \d+\)"),
        (_nobody, r"there is no agent 'zoe'"),
        (_number, r"agent_00 sees 3"),
        (_raises, r"_raises\.apply\(\) .* no \(InvalidAction\).*turn\.refuse"),
        (_divides, r"division by zero \(test_small_world\.py, line \d+\)"),
        (_tuple, r"state\['state'\]\['place'\] is the tuple"),
        (_lost, r"_lost\.metrics\(\) raised KeyError in tick 1: 'loss'"),
    ],
)
def test_a_mistake_in_the_function_ends_the_run_and_says_where(function: Any, why: str) -> None:
    with pytest.raises(SimulationError, match=why):
        played(of(function, loss=0), 1, Does(Action("go")))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (lambda: None, r"can't be called with \(tick\)"),
        (lambda *tick: None, r"can't be called with \(tick\)"),
        (FunctionWorld, "write it above a function"),
        (3, "write it above a function"),
    ],
)
def test_what_is_no_function_of_a_tick_is_refused(given: Any, why: str) -> None:
    with pytest.raises(ConfigError) as error:
        tiermem.world(given)
    assert re.search(why, f"{error.value}")


def test_a_decision_takes_what_policies_take() -> None:
    with pytest.raises(ConfigError, match="observation, memories, rng"):
        of(_twice).decide(lambda observation: None)


# As runs


def scenario(**simulation: Any) -> Any:
    own = {"world": "scams:market", "agents": 6, "ticks": 6, **simulation}
    return load_settings({"seed": 5, "storage": {"sync": "manual"}, "simulation": own})


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A folder with the world that the guide shows."""
    page = (ROOT / "docs/howto/write-a-world.md").read_text()
    (text,) = re.findall(r"^```python file=scams\.py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len([line for line in text.splitlines() if line]) <= 20  # as the guide says
    (tmp_path / "scams.py").write_text(text)
    return tmp_path


def test_the_world_of_the_guide_runs_and_replays(code: Path) -> None:
    with Run.create(code / "run", scenario(ticks=40), scenario=code) as run:
        *_, last = run.advance(40)
    assert last["metrics"]["loss"] == 5 * (3 * 3 + 3 * 2)  # each one is cheated once by each
    assert set(Replay(code / "run").ticks()) == {None}


@pytest.mark.slow
def test_over_workers_it_is_the_run_of_one_process(code: Path) -> None:
    for workers in (0, 2):
        with Run.create(
            code / f"{workers}", scenario(), scenario=code, engine=engine(workers)
        ) as run:
            list(run.advance(6))
            run.finish(report=False)
    assert results(code / "0") == results(code / "2")


def test_an_unknown_option_is_named_with_those_that_there_are(code: Path) -> None:
    with pytest.raises(ConfigError, match="cheats") as error:
        make_world(scenario(world_options={"cheats": 1}), code)
    assert "it takes scammers" in f"{error.value}"
