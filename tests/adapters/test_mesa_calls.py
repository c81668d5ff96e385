"""What an agent of a Mesa model gives its memory, and how others look at it."""

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("mesa")

from mesa_models import Town, Walker, walked

from agents.simulation.kept_ticks import ticks_of
from tiermem import AgentMemory, InvalidContent, InvalidInput, InvalidMetadata
from tiermem.simulation.runs.model_memory import READS, SOCIAL_READS, KeptMemories


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
        return ticks_of(town.memories.bank).hash()

    assert end(np.int64) == end(int)
    assert end(np.float64) == end(np.float32) == end(float)


MET = "I met a walker in the street."  # so like memories that a search counts as their use
LOOKS: dict[str, Callable[[KeptMemories, str], object]] = {
    "all": lambda kept, id_: kept.all(tier="pinned"),
    "count": lambda kept, id_: kept.count("pinned"),
    "decay_score": lambda kept, id_: kept.decay_score(id_),
    "explain": lambda kept, id_: kept.explain(MET, limit=2),
    "get": lambda kept, id_: kept.get(id_),
    "get_pinned_memories": lambda kept, id_: kept.get_pinned_memories(),
    "get_relevant_memories": lambda kept, id_: kept.get_relevant_memories(MET),
    "groups": lambda kept, id_: kept.social.groups(),
    "heard": lambda kept, id_: kept.social.heard(id_),
    "history": lambda kept, id_: kept.history(id_),
    "links": lambda kept, id_: kept.links(id_),
    "search": lambda kept, id_: kept.search(MET, include_cold=True),
    "status": lambda kept, id_: kept.status(),
    "trust_of": lambda kept, id_: kept.social.trust_of("Walker_2"),
}


def test_looking_between_steps_changes_nothing() -> None:
    looked, plain = Town(), Town()
    for _ in range(3):
        looked.step()
        plain.step()
        for agent in looked.agents:
            assert agent.memory.search(MET)
    assert looked.memories.bank.state_hash() == plain.memories.bank.state_hash()


def look_at_all(town: Town) -> None:
    for agent in town.agents:
        kept = agent.memory.kept
        for look in LOOKS.values():
            look(kept, kept.all()[-1].id)


@pytest.mark.parametrize("inside", [False, True])
def test_looking_at_what_is_kept_counts_nothing(inside: bool) -> None:
    def end(looks: bool) -> tuple[str, str]:
        town = walked(2)
        for _ in range(3):
            with town.memories.step():
                if looks and inside:
                    look_at_all(town)
            if looks and not inside:
                look_at_all(town)
        return town.memories.bank.state_hash(), ticks_of(town.memories.bank).hash()

    assert end(looks=True) == end(looks=False)


def test_what_is_kept_gives_what_the_bank_gives() -> None:
    town = walked(3)
    kept = first(town).memory.kept
    own = town.memories.bank.agent("Walker_1")
    assert kept.agent_id == "Walker_1"
    for name, look in LOOKS.items():
        assert look(kept, own.all()[0].id) == look(own, own.all()[0].id), name
    assert repr(kept) == "<KeptMemories Walker_1: 7 memories>"
    shown = {name for name in dir(kept) if not name.startswith("_")}
    assert shown | set(SOCIAL_READS) == {"agent_id", "social", *LOOKS}
    assert set(LOOKS) == {*READS, *SOCIAL_READS}


def test_what_is_kept_can_not_be_changed_by_looking() -> None:
    town = walked(2)
    kept, before = first(town).memory.kept, town.memories.bank.state_hash()
    names = {name for name in dir(AgentMemory) if not name.startswith("_")}
    writes = names - {*READS, "agent_id", "engine", "notes", "social"}
    assert {"add", "add_many", "pin", "delete", "forget", "recall", "compact"} < writes
    for name in sorted(writes):
        with pytest.raises(InvalidInput, match=rf"to look at: {name}\(\) would change"):
            getattr(kept, name)("I was never there.")
    for name in ("tell", "broadcast", "retract", "trust", "post", "leave"):
        with pytest.raises(InvalidInput, match=rf"to look at: {name}\(\) would change"):
            getattr(kept.social, name)("I was never there.")
    for name in ("notes", "engine", "__deepcopy__", "colour"):
        assert not hasattr(kept, name)
    assert town.memories.bank.state_hash() == before
