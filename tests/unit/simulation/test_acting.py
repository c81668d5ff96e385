"""The world acts: what it is given of an action."""

from collections import OrderedDict
from typing import Any

from agents import MemoryBank
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.protocols import Action
from agents.simulation.tick.decision_log import unpack
from agents.simulation.tick.loop import Loop
from worlds import Diary, Mind


def test_a_world_may_do_with_its_arguments_what_it_likes(bank: MemoryBank) -> None:
    constant = {"to": "home", "way": [{"by": ["sea"]}, ({"x": 1},)]}
    circle: dict[str, Any] = {"n": 1}
    circle["it"] = circle
    given = [{"to": "home"}, constant, OrderedDict(constant), circle]
    world, went = Diary(), []

    def answers(agent: str, action: Action) -> None:
        own: Any = action.arguments
        went.append(own.pop("to", None))
        if "way" in own:
            own["way"][0]["by"].append("air")
            own["way"][1][0].clear()
        own["more"] = agent

    world.answers = answers
    loop = Loop(bank, world, Mind(lambda _: [Action("go", each) for each in given]), ["alice"])
    loop.begin()
    for tick in (1, 2):
        loop.tick()
        data, row = ticks_of(bank).log(tick) or b"", ticks_of(bank).tick(tick)
        (kept,) = unpack(data, row.retrieved if row else b"", ["alice"])
        plain, *nested, last = [arguments for _, arguments, *_ in kept.did]
        assert plain == {"to": "home"}
        assert nested == [{"to": "home", "way": [{"by": ["sea"]}, [{"x": 1}]]}] * 2
        assert last.keys() == {"n", "it"}
    assert went == ["home", "home", "home", None] * 2
