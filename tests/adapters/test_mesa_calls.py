"""What an agent of a Mesa model gives its memory, and how others look at it."""

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("mesa")

from mesa_models import Town, Walker, walked

from tiermem import InvalidContent, InvalidMetadata


def first(town: Town) -> Walker:
    return next(iter(town.agents))


def test_what_is_added_is_what_it_was_at_the_call() -> None:
    town = walked(1, n=1)
    memory, info, tags = first(town).memory, {"day": 0}, ["shop"]
    with town.memories.step():
        for day in range(3):
            info["day"] = day
            memory.add(f"day {day}", metadata=info, tags=tags, value=info)
        memory.add("The shop opens.", key="shop", metadata=info, tags=iter(["once"]))
        info["day"] = tags[0] = [1, 2]  # type: ignore[assignment]
    *days, shop = memory.kept.all()[-4:]
    assert [(each.metadata["day"], each.tags, each.value) for each in days] == [
        (day, ("shop",), {"day": day}) for day in range(3)
    ]
    assert (shop.metadata["day"], shop.tags) == (2, ("once",))


def test_a_new_version_keeps_the_tier_of_the_former() -> None:
    town = walked(1, n=1)
    memory = first(town).memory
    for tier, text in (("critical", "Open at 9."), (None, "Open at 10.")):
        with town.memories.step():
            memory.add(text, tier, key="hours")
    assert [each.tier for each in memory.kept.all() if each.key == "hours"] == [1]


def test_a_wrong_value_is_refused_at_the_call_and_the_step_goes_on() -> None:
    town = walked(1, n=1)
    memory = first(town).memory
    with town.memories.step():
        for wrong in ({"a": [1]}, {"a": float("nan")}, {"id": 1}):
            with pytest.raises(InvalidMetadata):
                memory.add("fine", metadata=wrong)
        with pytest.raises(InvalidContent, match="JSON"):
            memory.record_action("pay", {"to": object()})
        memory.add("It goes on.")
    town.step()
    assert memory.kept.all()[-1].content == "It goes on."


def test_numbers_of_numpy_are_plain_numbers() -> None:
    def end(number: Callable[[int], object]) -> str:
        town = walked(1, n=1)
        memory = first(town).memory
        with town.memories.step():
            memory.add("I paid.", metadata={"coins": number(3)})
            memory.record_action("pay", {"coins": number(3), "each": [number(1), number(2)]})
        assert town.memories.record["added"] == 2
        return town.memories.bank.ticks.journal_hash()

    assert end(np.int64) == end(int)
    assert end(np.float64) == end(np.float32) == end(float)
