"""A tick: observe, remember, decide, act, record, commit."""

import gc
from collections.abc import Callable, Sequence
from enum import StrEnum
from random import Random
from typing import Any

import pytest

from agents import MemoryBank
from agents.errors import InvalidAction, SimulationError
from agents.memory.tiers import Tier
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.protocols import Action, Ask, Observation, Outcome, Remark
from agents.simulation.tick.loop import Loop
from agents.simulation.tick.user_code import check_state
from banks import contents
from worlds import Diary, Mind

AGENTS = ["alice", "bob", "carol"]

MakeBank = Callable[..., MemoryBank]


def begun(bank: MemoryBank, world: Diary, mind: Any = None, agents: list[str] = AGENTS) -> Loop:
    loop = Loop(bank, world, mind or Mind(), agents)
    loop.begin()
    return loop


def step(_: Observation) -> list[Any]:
    return [Action("step")]


# The order of things


def test_everyone_observes_before_anyone_acts(bank: MemoryBank) -> None:
    world = Diary()
    begun(bank, world, Mind(step)).tick()
    assert [call[0] for call in world.calls] == [
        "setup", *["observe"] * 3, *["apply"] * 3, "end_tick",
    ]  # fmt: skip
    assert world.made("observe") == [("alice",), ("bob",), ("carol",)]


def test_the_garbage_collector_runs_in_the_code_of_the_user(bank: MemoryBank) -> None:
    seen: dict[str, bool] = {}
    world = Diary()

    def says(agent: str) -> str:
        seen["observe"] = gc.isenabled()
        return "a day"

    def answers(agent: str, action: Action) -> None:
        seen["apply"] = gc.isenabled()

    def decides(_: Observation) -> list[Any]:
        seen["decide"] = gc.isenabled()
        return [Action("wait")]

    world.says, world.answers = says, answers
    begun(bank, world, Mind(decides)).tick()
    assert seen == {"observe": True, "decide": True, "apply": True}


def test_who_acts_first_is_drawn_every_tick(make_bank: MakeBank) -> None:
    def orders(seed: int) -> list[tuple[object, ...]]:
        world = Diary()
        loop = begun(make_bank(seed=seed), world, Mind(step))
        for _ in range(12):
            loop.tick()
        acted = [agent for agent, _ in world.made("apply")]
        return [tuple(acted[start : start + 3]) for start in range(0, 36, 3)]

    assert len(set(orders(1))) > 2
    assert all(sorted(order) == AGENTS for order in orders(1))
    assert orders(1) == orders(1)
    assert orders(1) != orders(2)


def test_an_agents_own_actions_are_done_in_the_order_it_gave(bank: MemoryBank) -> None:
    world = Diary()
    begun(bank, world, Mind(lambda seen: [Action("a"), Action("b"), Action("c")])).tick()
    for agent in AGENTS:
        assert [name for who, name in world.made("apply") if who == agent] == ["a", "b", "c"]


def test_memory_is_seen_from_the_next_tick_on(bank: MemoryBank) -> None:
    world, mind = Diary(), Mind()
    world.says = lambda agent: f"tick {world.count + 1} <1>"
    loop = begun(bank, world, mind, ["alice"])
    for _ in range(3):
        loop.tick()
    assert [found for _, _, found in mind.found] == [
        [], ["tick 1 <1>"], ["tick 2 <1>", "tick 1 <1>"],
    ]  # fmt: skip


def test_one_agents_memories_are_not_another_agents(bank: MemoryBank) -> None:
    world, mind = Diary(), Mind()
    world.says = lambda agent: f"{agent} <1>"
    loop = begun(bank, world, mind)
    loop.tick()
    loop.tick()
    assert [(who, texts) for who, tick, texts in mind.found if tick == 2] == [
        (agent, [f"{agent} <1>"]) for agent in AGENTS
    ]


def test_the_query_is_searched_in_the_place_of_the_text(bank: MemoryBank) -> None:
    bank.agent("alice").add_many([("cats <1 0>",), ("dogs <0 1>",)])
    world, mind = Diary(), Mind()
    world.says = lambda agent: Observation("about cats <1 0>", query="<0 1>")
    begun(bank, world, mind, ["alice"]).tick()
    assert mind.found[0][2][0] == "dogs <0 1>"


def test_the_observation_names_agent_and_tick(bank: MemoryBank) -> None:
    mind = Mind()
    loop = begun(bank, Diary(), mind)
    loop.tick()
    loop.tick()
    assert [(seen.agent_id, seen.tick) for seen in mind.seen] == [
        (agent, tick) for tick in (1, 2) for agent in AGENTS
    ]


# What becomes a memory


class Deeds(StrEnum):
    STEP = "step"


def test_the_name_of_an_action_may_be_a_text_enums(bank: MemoryBank) -> None:
    world = Diary()
    world.answers = lambda agent, action: Outcome("wet feet")
    begun(bank, world, Mind(lambda _: [Action(Deeds.STEP)]), ["alice"]).tick()
    ((_, name),) = world.made("apply")
    assert type(name) is str
    assert bank.agent("alice").all()[-1].metadata["action_type"] == name


def test_observation_outcome_and_what_was_heard_become_memories(bank: MemoryBank) -> None:
    world = Diary()
    heard = (Remark("gossip", Tier.LOW, {"from": "bob"}),)
    world.says = lambda agent: Observation("rain", heard=heard, metadata={"sky": "grey"})
    world.answers = lambda agent, action: Outcome("wet feet", tier=Tier.IMPORTANT)
    begun(bank, world, Mind(step), ["alice"]).tick()
    rain, gossip, feet = bank.agent("alice").all()
    assert (rain.content, rain.tier, rain.created_tick) == ("rain", Tier.NORMAL, 1)
    assert (rain.kind, dict(rain.metadata)) == ("observation", {"sky": "grey"})
    assert (gossip.content, gossip.tier, dict(gossip.metadata)) == (
        "gossip", Tier.LOW, {"from": "bob"},
    )  # fmt: skip
    assert (feet.content, feet.tier) == ("wet feet", Tier.IMPORTANT)
    assert (feet.kind, dict(feet.metadata)) == ("action", {"action_type": "step", "success": True})


def test_blank_texts_become_no_memories(bank: MemoryBank) -> None:
    world = Diary()
    world.says = lambda agent: " \n"
    world.answers = lambda agent, action: Outcome("")
    begun(bank, world, Mind(step)).tick()
    assert bank.agents() == []


def test_a_text_is_an_outcome_and_none_is_nothing(bank: MemoryBank) -> None:
    world = Diary()
    world.answers = lambda agent, action: "done" if action.name == "step" else None
    begun(bank, world, Mind(lambda seen: [Action("step"), Action("rest")]), ["alice"]).tick()
    assert contents(bank) == ["done"]


def test_a_world_repeats_what_an_agent_said_with_its_metadata(bank: MemoryBank) -> None:
    """Metadata that names another agent's memories is no evidence of the listener."""
    world, own = Diary(), {"memory_evidence": '["a memory of bob"]'}
    world.says = lambda agent: Observation("rain", heard=(Remark("gossip", metadata=own),))
    world.answers = lambda agent, action: Outcome("wet feet", metadata=own)
    begun(bank, world, Mind(step), ["alice"]).tick()
    _, gossip, feet = bank.agent("alice").all()
    assert gossip.metadata == own
    assert feet.metadata["memory_evidence"] == own["memory_evidence"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("x" * 100_000, "x" * 16_384),
        ("x" + "€" * 40_000, "x" + "€" * 5_461),
        ("nul \0", "nul \ufffd"),
        ("half \ud800", "half \ufffd"),
    ],
    ids=["long", "long, of three bytes each", "nul", "half a character"],
)
def test_of_a_text_that_no_memory_can_hold_the_rest_is_kept(
    bank: MemoryBank, text: str, kept: str
) -> None:
    world = Diary()
    world.says = lambda agent: Observation("", heard=(Remark("a"), Remark(text), Remark("b")))
    begun(bank, world, Mind(), ["alice"]).tick()
    assert contents(bank) == ["a", kept, "b"]


def test_first_memories_are_known_in_the_first_tick(bank: MemoryBank) -> None:
    mind = Mind()
    loop = Loop(bank, Diary(), mind, AGENTS)
    loop.begin([("bob", "alice lies", Tier.PINNED)])
    loop.tick()
    assert {who: texts for who, _, texts in mind.found}["bob"] == ["alice lies"]
    assert bank.agent("bob").all()[0].created_tick == 0


# What is told


def test_a_refused_action_is_told_in_the_next_tick_to_its_agent_only(bank: MemoryBank) -> None:
    def refuse(agent: str, action: Action) -> None:
        raise InvalidAction("you have no wings")

    world = Diary()
    world.answers = refuse
    mind = Mind(lambda seen: [Action("fly")] if (seen.agent_id, seen.tick) == ("bob", 1) else [])
    loop = begun(bank, world, mind)
    for _ in range(3):
        loop.tick()
    told = {(seen.agent_id, seen.tick): list(seen.errors) for seen in mind.seen if seen.errors}
    assert told == {("bob", 2): ["fly was refused: you have no wings"]}


def say_no(agent: str, action: Action) -> None:
    raise InvalidAction("not here")


@pytest.mark.parametrize(
    "action",
    [
        Action("fly"),
        Action("store_memory", {"content": "x", "colour": "red"}),
        Action("pin_memory", {"memory_id": "none"}),
        Action("tell", {"to": "nobody", "memory_id": "none"}),
        Action("join_group", {"group": "none"}),
        Action("append_note", {"text": " "}),
        Action("no_op", {"reason": "no usable reply in 2 attempts"}),
        "no action",
        Ask("once more?"),
    ],
    ids=str,
)
def test_what_was_wrong_with_an_action_is_no_memory(bank: MemoryBank, action: object) -> None:
    world = Diary()
    world.says = lambda agent: ""
    world.answers = say_no
    loop = begun(bank, world, Mind(lambda seen: [action]), ["alice"])
    loop.tick()
    record = loop.tick()
    assert record["errors"] + record["no_ops"] == 1
    assert contents(bank) == []


def test_a_failure_that_the_world_puts_into_words_is_remembered(bank: MemoryBank) -> None:
    world = Diary()
    world.says = lambda agent: ""
    world.answers = lambda agent, action: Outcome("You have no money", success=False)
    record = begun(bank, world, Mind(step), ["alice"]).tick()
    assert (record["errors"], contents(bank)) == (0, ["You have no money"])


# What is recorded


def test_a_tick_records_hash_tiers_changes_and_metrics(bank: MemoryBank) -> None:
    world = Diary()
    world.says = lambda agent: f"{agent} <1>"
    pin = Action("store_memory", {"content": "mine", "tier": "pinned"})
    loop = begun(bank, world, Mind(lambda seen: [pin, Action("pin_memory", {})]))
    loop.tick()
    record = loop.tick()
    assert record["tick"] == bank.tick == 2
    assert record["state_hash"] == bank.state_hash()
    assert record["metrics"] == {"count": 2}
    assert record["pinned"] == 6
    assert record["added"] == 6  # an observation and a memory of its own for each
    assert record["errors"] == 3
    assert record["retrieved_most"] == 2
    assert record["retrieved"] == 6
    assert [kept for kept, _ in ticks_of(bank).records()][-1] == record


def test_the_start_is_recorded_as_tick_0(bank: MemoryBank) -> None:
    begun(bank, Diary())
    ((record, _),) = ticks_of(bank).records()
    assert (record["tick"], record["added"], record["metrics"]) == (0, 0, {"count": 0})


# Going on


def test_a_new_loop_goes_on_where_the_last_one_stopped(make_bank: MakeBank) -> None:
    def run(*lengths: int) -> tuple[str, list[float]]:
        bank, drawn = make_bank(seed=5), []
        for length in lengths:
            world, mind = Diary(), Mind(step)
            world.says = lambda agent, world=world: f"{agent} {world.rng.random()}"
            world.answers = lambda agent, action, world=world: f"step {world.count}"
            loop = begun(bank, world, mind)
            for _ in range(length):
                loop.tick()
            drawn += mind.drawn
        return bank.state_hash(), drawn

    assert run(6) == run(2, 1, 3)


def test_errors_are_told_by_a_new_loop_too(bank: MemoryBank) -> None:
    begun(bank, Diary(), Mind(lambda seen: [5])).tick()
    mind = Mind()
    begun(bank, Diary(), mind).tick()
    assert all(len(seen.errors) == 1 for seen in mind.seen)


def test_a_world_may_draw_in_setup_and_get_the_same_after_a_stop(make_bank: MakeBank) -> None:
    class Drawing(Diary):
        def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
            super().setup(rng, agent_ids)
            self.secret = rng.random()

    bank = make_bank(seed=5)
    first, second = Drawing(), Drawing()
    begun(bank, first).tick()
    begun(bank, second)
    assert first.secret == second.secret


# What goes wrong


@pytest.mark.parametrize("method", ["observe", "apply", "end_tick"])
def test_a_world_that_raises_is_named_and_nothing_of_the_tick_is_kept(
    bank: MemoryBank, method: str
) -> None:
    world = Diary(fail=(method, 3))
    world.says = lambda agent: f"{agent} looks"
    loop = begun(bank, world, Mind(step))
    loop.tick()
    loop.tick()
    before = bank.state_hash()
    with pytest.raises(SimulationError, match=rf"Diary\.{method}\(\).*RuntimeError.*tick 3.*sky"):
        loop.tick()
    assert (bank.tick, bank.state_hash()) == (2, before)
    assert ticks_of(bank).state()["world"] == {"count": 2}
    assert len(list(ticks_of(bank).records())) == 3


def test_a_world_that_runs_out_of_something_is_named(bank: MemoryBank) -> None:
    """StopIteration would end a map() silently, and the loop would skip agents."""
    world = Diary()
    world.says = lambda agent: next(iter(()))
    with pytest.raises(SimulationError, match=r"Diary\.observe\(\).*StopIteration.*tick 1"):
        begun(bank, world).tick()


def test_after_a_world_raised_a_new_loop_goes_on(make_bank: MakeBank) -> None:
    def run(fail: tuple[str, int] | None) -> str:
        bank = make_bank(seed=5)
        world = Diary(fail)
        world.says = lambda agent: f"{agent} {world.rng.random()}"
        loop = begun(bank, world)
        while bank.tick < 4:
            try:
                loop.tick()
            except SimulationError:
                world = Diary()
                world.says = lambda agent, world=world: f"{agent} {world.rng.random()}"
                loop = begun(bank, world)
        return bank.state_hash()

    assert run(("end_tick", 3)) == run(None)


@pytest.mark.parametrize("given", [5, None, ["a"], {"text": "a"}])
def test_an_observation_that_is_none_is_a_clear_error(bank: MemoryBank, given: object) -> None:
    world = Diary()
    world.says = lambda agent: given
    with pytest.raises(SimulationError, match=r"Diary\.observe\('alice'\)"):
        begun(bank, world).tick()


@pytest.mark.parametrize("given", [5, ["a"], {"text": "a"}])
def test_an_outcome_that_is_none_is_a_clear_error(bank: MemoryBank, given: object) -> None:
    world = Diary()
    world.answers = lambda agent, action: given
    with pytest.raises(SimulationError, match=r"Diary.*apply"):
        begun(bank, world, Mind(step)).tick()


@pytest.mark.parametrize("given", [None, 5, {"x": float("nan")}, {"x": "much"}, {"x": {1}}])
def test_metrics_that_are_none_are_a_clear_error(bank: MemoryBank, given: Any) -> None:
    world = Diary()
    loop = begun(bank, world)
    world.metrics = lambda: given  # type: ignore[method-assign]
    with pytest.raises(SimulationError, match=r"Diary.*metrics"):
        loop.tick()
    assert bank.tick == 0


_TUPLES: list[Any] = [
    (1, 2),
    {"a": [{"b": (1, 2**70)}]},
    {"at": Remark("x")},
    {"n": 2**70, "x": ()},
]


_CIRCLE: dict[str, Any] = {}
_CIRCLE["it"] = [_CIRCLE]
_DEEP: list[Any] = []
for _ in range(5_000):
    _DEEP = [_DEEP]


@pytest.mark.parametrize(
    "given",
    [{1, 2}, float("nan"), object(), {"a": {3: 1}}, *_TUPLES, _CIRCLE, {"deep": _DEEP}],
    ids=range(10),
)
def test_a_state_that_is_no_json_is_a_clear_error(bank: MemoryBank, given: Any) -> None:
    world = Diary()
    loop = begun(bank, world)
    world.get_state = lambda: given  # type: ignore[method-assign]
    with pytest.raises(SimulationError, match=r"Diary.*get_state"):
        loop.tick()
    assert bank.tick == 0


def test_a_tuple_in_a_state_is_named_with_its_place() -> None:
    check_state({"a": [{"b": [1, 2.5, None, True, "x", 2**70, {}]}]})
    with pytest.raises(ValueError, match=r"^state\['a'\]\[1\]\['b'\] is the tuple \(1, 2\)"):
        check_state({"a": [0, {"b": (1, 2)}]})


def test_a_policy_that_raises_is_a_clear_error(bank: MemoryBank) -> None:
    def blank(seen: Observation) -> list[Any]:
        raise RuntimeError("the mind went blank")

    with pytest.raises(SimulationError, match=r"Mind.*tick 1.*the mind went blank"):
        begun(bank, Diary(), Mind(blank)).tick()
    assert bank.tick == 0


def test_a_policy_that_gives_no_list_is_a_clear_error(bank: MemoryBank) -> None:
    with pytest.raises(SimulationError, match="Mind"):
        begun(bank, Diary(), Mind(lambda seen: 5)).tick()  # type: ignore[arg-type, return-value]


# Deciding together


def test_a_policy_may_decide_for_all_at_once(bank: MemoryBank) -> None:
    class Choir:
        def decide(self, *_: object) -> list[Any]:
            raise AssertionError("it decides together")

        def decide_all(self, observations: Any, memories: Any, rngs: Any) -> list[list[Any]]:
            assert [seen.agent_id for seen in observations] == AGENTS
            assert len(memories) == len(rngs) == 3
            return [[Action(f"for {seen.agent_id}")] for seen in observations]

    world = Diary()
    begun(bank, world, Choir()).tick()
    assert sorted(world.made("apply")) == [(agent, f"for {agent}") for agent in AGENTS]
