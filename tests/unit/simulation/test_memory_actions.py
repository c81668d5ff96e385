"""The memory actions of an agent, and their refusals."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from agents import MemoryBank
from agents.errors import InvalidAction
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.protocols import Action, Observation
from agents.simulation.tick.actions import (
    ASK_ACTIONS,
    GROUP_ACTIONS,
    MEMORY_ACTIONS,
    OWN_ACTIONS,
    TELL_ACTIONS,
    actions_of_profile,
    arguments_of,
    as_action,
    schema_of,
)
from agents.simulation.tick.loop import Loop
from banks import ROOT, contents

MakeBank = Callable[..., MemoryBank]


class Quiet:
    """A world without events and without actions."""

    def setup(self, rng: Any, agent_ids: Sequence[str]) -> None: ...

    def observe(self, agent_id: str) -> str:
        return ""

    def apply(self, agent_id: str, action: Action) -> None:
        raise InvalidAction(f"there is no {action.name}")

    def end_tick(self) -> None: ...

    def metrics(self) -> Mapping[str, float]:
        return {}

    def get_state(self) -> None:
        return None

    def set_state(self, state: Any) -> None: ...


class Alice:
    """Does the test's actions once, and keeps the errors that the loop reports."""

    def __init__(self, *actions: Any) -> None:
        self.actions: list[Any] = list(actions)
        self.told: list[str] = []

    def decide(self, observation: Observation, memories: Any, rng: Any) -> list[Any]:
        self.told += observation.errors
        actions, self.actions = self.actions, []
        return actions


def act(bank: MemoryBank, *actions: Any) -> Alice:
    """Alice does ``actions`` in one tick, and gets the errors in the next."""
    alice = Alice(*actions)
    loop = Loop(bank, Quiet(), alice, ["alice"])
    loop.begin()
    loop.tick()
    loop.tick()
    return alice


def store(content: object, **more: object) -> Action:
    return Action("store_memory", {"content": content, **more})


def tiers(bank: MemoryBank, agent: str = "alice") -> dict[str, str]:
    return {memory.content: memory.tier.name.lower() for memory in bank.agent(agent).all()}


# What they do


def test_store_memory_keeps_a_text_as_normal(bank: MemoryBank) -> None:
    assert act(bank, store("the well is dry")).told == []
    assert tiers(bank) == {"the well is dry": "normal"}


@pytest.mark.parametrize("tier", ["pinned", "critical", "important", "normal", "low", 0, 4])
def test_store_memory_takes_a_tier(bank: MemoryBank, tier: object) -> None:
    assert act(bank, store("the well is dry", tier=tier)).told == []
    (memory,) = bank.agent("alice").all()
    assert tier in (memory.tier, memory.tier.name.lower())


def test_store_memory_takes_all_that_a_memory_has(bank: MemoryBank) -> None:
    action = store(
        "the well is dry", kind="decision", tags=["water"], ttl=9, temperature="hot",
        session="spring", speaker="bob", metadata={"depth": 9},
    )  # fmt: skip
    assert act(bank, action).told == []
    (memory,) = bank.agent("alice").all(temperature="hot")
    assert (memory.kind, memory.tags, memory.expires_tick) == ("decision", ("water",), 10)
    assert dict(memory.metadata) == {"session": "spring", "speaker": "bob", "depth": 9}


def test_store_memory_keeps_metadata_of_a_memory_that_supersedes_another(bank: MemoryBank) -> None:
    first = bank.agent("alice").add("the well is full")
    act(bank, store("the well is dry", supersedes=first.id, metadata={"depth": 9}))
    assert bank.agent("alice").all()[-1].metadata["depth"] == 9


@pytest.mark.parametrize(
    "wrong",
    [{"ttl": 0}, {"ttl": "3"}, {"kind": ""}, {"kind": 3}, {"tags": "water"}, {"temperature": "x"},
     {"session": ["a"]}, {"colour": "red"}, {"metadata": "red"}, {"metadata": {"a": {}}}],
    ids=str,
)  # fmt: skip
def test_what_a_memory_can_not_have_is_told_and_not_stored(
    bank: MemoryBank, wrong: dict[str, object]
) -> None:
    alice = act(bank, store("the well is dry", **wrong), store("the mill turns"))
    assert len(alice.told) == 1
    assert "store_memory was refused" in alice.told[0]
    assert "the mill turns" in tiers(bank)
    assert "the well is dry" not in tiers(bank)


def test_an_agent_moves_its_memories_between_hot_warm_and_cold(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    ids = [alice.add(text).id for text in ("one", "two", "three")]
    told = act(
        bank,
        Action("promote_memory", {"memory_id": ids[0]}),
        Action("demote_memory", {"memory_id": ids[1], "to": "cold"}),
        Action("promote_memory", {"memory_id": ids[2]}),
        Action("demote_memory", {"memory_id": ids[2]}),
    ).told
    assert told == []
    assert [alice.get(each).temperature.name for each in ids] == ["HOT", "COLD", "WARM"]


def test_forget_memory_deletes_what_can_be_restored(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory, pinned = alice.add("one"), alice.add("two", "pinned")
    actions = [Action("forget_memory", {"memory_id": each.id}) for each in (memory, pinned)]
    told = act(bank, *actions).told
    assert len(told) == 1, "a pinned memory is not forgotten"
    assert "one" not in tiers(bank)
    assert alice.update(memory.id, retention="active").content == "one"


def test_recall_memory_makes_hot_what_is_needed_again(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    cold = alice.add("the old bridge <1 0>", temperature="cold")
    alice.add("the mill <0 1>")
    asked = Action("recall_memory", {"query": "the old bridge <1 0>", "limit": 1})
    assert act(bank, asked).told == []
    assert alice.get(cold.id).temperature.name == "HOT"
    assert sum(record["recalled"] for record, _ in ticks_of(bank).records()) == 1


@pytest.mark.parametrize("wrong", [{}, {"query": " "}, {"query": 3}, {"query": "x", "limit": -1}])
def test_a_recall_that_can_not_be_done_is_told(bank: MemoryBank, wrong: dict[str, object]) -> None:
    (told,) = act(bank, Action("recall_memory", wrong)).told
    assert "recall_memory was refused" in told


def test_an_agent_writes_and_edits_its_notes(bank: MemoryBank) -> None:
    path = "memory/plan.md"
    told = act(
        bank,
        Action("write_note", {"path": path, "text": "Salt is dear in winter."}),
        Action("edit_note", {"path": path, "old": "winter", "new": "spring"}),
        Action("edit_note", {"path": path, "old": "winter", "new": "spring"}),
        Action("write_note", {"path": "elsewhere.md", "text": "no"}),
        Action("write_note", {"path": path, "text": "x" * 2_000_000}),
    ).told
    assert [line.partition(" ")[0] for line in told] == ["edit_note", "write_note", "write_note"]
    assert bank.agent("alice").notes.read(path).strip() == "Salt is dear in spring."


def test_set_memory_tier_moves_a_memory(bank: MemoryBank) -> None:
    memory = bank.agent("alice").add("the well is dry")
    action = Action("set_memory_tier", {"memory_id": memory.id, "tier": "important"})
    assert act(bank, action).told == []
    assert tiers(bank) == {"the well is dry": "important"}


def test_pin_and_unpin_memory_move_it_to_pinned_and_to_normal(bank: MemoryBank) -> None:
    memory = bank.agent("alice").add("the well is dry", "low")
    assert act(bank, Action("pin_memory", {"memory_id": memory.id})).told == []
    assert tiers(bank) == {"the well is dry": "pinned"}
    assert act(bank, Action("unpin_memory", {"memory_id": memory.id})).told == []
    assert tiers(bank) == {"the well is dry": "normal"}


def test_an_action_may_be_a_mapping(bank: MemoryBank) -> None:
    act(bank, {"name": "store_memory", "arguments": {"content": "the well is dry"}})
    assert contents(bank) == ["the well is dry"]


def test_memory_actions_are_done_in_the_order_given(bank: MemoryBank) -> None:
    memory = bank.agent("alice").add("the well is dry")
    change = {"memory_id": memory.id}
    alice = act(
        bank,
        store("first"),
        Action("pin_memory", change),
        store("second"),
        Action("unpin_memory", change),
    )
    assert alice.told == []
    assert contents(bank) == ["the well is dry", "first", "second"]
    assert tiers(bank)["the well is dry"] == "normal"


def test_one_pin_too_many_demotes_the_oldest(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"max_pinned": 2})
    alice = act(bank, *(store(text, tier="pinned") for text in ("one", "two", "three")))
    assert alice.told == []
    assert tiers(bank) == {"one": "critical", "two": "pinned", "three": "pinned"}


# What is refused


def test_a_full_tier_is_told_when_the_settings_say_reject(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"max_pinned": 1, "on_tier_full": "reject"})
    alice = act(bank, store("one", tier="pinned"), store("two", tier="pinned"), store("three"))
    assert len(alice.told) == 1
    assert "store_memory was refused" in alice.told[0]
    assert tiers(bank)["one"] == "pinned"
    assert "two" not in tiers(bank)
    assert "three" in tiers(bank)


def test_a_tier_without_room_is_told(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"max_pinned": 0})
    alice = act(bank, store("one", tier="pinned"))
    assert len(alice.told) == 1


MALFORMED: list[tuple[object, str]] = [
    (store(""), "blank"),
    (store(" \n"), "blank"),
    (store(5), "text"),
    (store(None), "text"),
    (store(["a"]), "text"),
    (store("nul \0"), "NUL"),
    (store("half \ud800"), ""),
    (store("x" * 100_000), "bytes"),
    (store("hi", tier="shiny"), "'shiny'"),
    (store("hi", tier=7), "7"),
    (store("hi", tier=None), ""),
    (store("hi", tier=["pinned"]), ""),
    (store("hi", tier={}), ""),
    (store("hi", tier=1.5), ""),
    (store("hi", tier=True), ""),
    (store("hi", tier="hot"), "'hot' is not a tier; use one of 0 pinned, 1 critical, 2 important"),
    (store("hi", tier="hot"), "hot, warm and cold are temperatures"),
    (store("hi", color="red"), "'color'"),
    (Action("store_memory"), "content is missing"),
    (Action("store_memory", {"tier": "low"}), "content is missing"),
    (Action("pin_memory"), "memory_id is missing"),
    (Action("pin_memory", {"memory_id": "nope"}), "'nope'"),
    (Action("pin_memory", {"memory_id": 5}), "5"),
    (Action("pin_memory", {"memory_id": None}), "None"),
    (Action("pin_memory", {"memory_id": []}), ""),
    (Action("pin_memory", {"memory_id": "x" * 10_000}), ""),
    (Action("pin_memory", {"memory_id": "nope", "tier": "low"}), "'tier'"),
    (Action("unpin_memory", {"memory_id": "nope"}), "'nope'"),
    (Action("unpin_memory", {}), "memory_id is missing"),
    (Action("set_memory_tier", {"memory_id": "nope"}), "tier is missing"),
    (Action("set_memory_tier", {"tier": "low"}), "memory_id is missing"),
    (Action("set_memory_tier", {"memory_id": "nope", "tier": "low"}), "'nope'"),
    (Action("store_memory", ["hi"]), "arguments"),  # type: ignore[arg-type]
    (Action("store_memory", {1: "hi"}), "arguments"),  # type: ignore[dict-item]
    (Action("fly"), "there is no fly"),
    (Action(""), "name"),
    (Action(5), "name"),  # type: ignore[arg-type]
    (Action("x" * 101), "name"),
    (Action("store\nmemory", {"content": "hi"}), "name"),
    ({}, "name"),
    ({"name": "store_memory", "args": {"content": "hi"}}, "name and arguments"),
    ({"name": "store_memory", "arguments": "hi"}, "arguments"),
    ("store_memory", "name and arguments"),
    (5, "name and arguments"),
    (None, "name and arguments"),
    (["store_memory", {"content": "hi"}], "name and arguments"),
]


@pytest.mark.parametrize(("action", "part"), MALFORMED)
def test_a_malformed_action_is_told_in_the_next_tick_and_the_tick_goes_on(
    bank: MemoryBank, action: object, part: str
) -> None:
    alice = act(bank, store("before"), action, store("after"))
    (told,) = alice.told
    assert "was refused: " in told
    assert part in told
    assert "\n" not in told
    assert len(told) <= 500
    kept = contents(bank)
    assert kept[0] == "before"
    assert kept[-1] == "after"
    assert "hi" not in kept


def test_another_agents_memory_is_out_of_reach(bank: MemoryBank) -> None:
    other = bank.agent("bob").add("bob's secret")
    for name, more in (("pin_memory", {}), ("unpin_memory", {}), ("set_memory_tier", {"tier": 4})):
        (told,) = act(bank, Action(name, {"memory_id": other.id, **more})).told
        assert "secret" not in told
    assert tiers(bank, "bob") == {"bob's secret": "normal"}


def test_another_agents_memory_is_refused_like_one_that_is_not_there(bank: MemoryBank) -> None:
    other = bank.agent("bob").add("bob's secret").id
    absent = other[:-1] + ("0" if other[-1] != "0" else "1")
    (one,) = act(bank, Action("pin_memory", {"memory_id": other})).told
    (two,) = act(bank, Action("pin_memory", {"memory_id": absent})).told
    assert one.replace(other, "") == two.replace(absent, "")


def test_an_agent_spills_recalls_in_and_ends_a_session(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"initial": "hot", "session_max_facts": 2})
    talk = [store(f"talk <1 {n}>", session="talk") for n in range(3)]
    walk = [store("open <1 0>", session=7, tags=["blocker"]), store("walk <1 1>", session=7)]
    spill, end = Action("spill_memories", {"session": "7", "count": 1}), Action("end_session")
    recall = Action("recall_memory", {"query": "talk <1 0>", "limit": 1, "session": "talk"})
    wrong = [Action("spill_memories", {"session": ["7"]}), Action("spill_memories", {"count": -1})]
    alice = act(bank, *talk, *walk, spill, recall, *wrong, end)
    assert [text.partition(" was refused: ")[0] for text in alice.told] == [
        "spill_memories", "spill_memories", "end_session",
    ]  # fmt: skip
    hot = {m.content for m in bank.agent("alice").all(temperature="hot")}
    assert hot == {"talk <1 0>", "talk <1 2>", "walk <1 1>"}
    act(bank, *[Action("end_session", {"session": each}) for each in ("talk", 7)])
    assert {m.content for m in bank.agent("alice").all(temperature="hot")} == {"open <1 0>"}


def test_errors_are_told_once(bank: MemoryBank) -> None:
    alice = Alice(Action("fly"))
    loop = Loop(bank, Quiet(), alice, ["alice"])
    loop.begin()
    for _ in range(4):
        loop.tick()
    assert len(alice.told) == 1


def test_every_action_is_described() -> None:
    assert set(MEMORY_ACTIONS) == {
        "store_memory", "set_memory_tier", "pin_memory", "unpin_memory", "promote_memory",
        "demote_memory", "forget_memory", "set_trust",
    }  # fmt: skip


@pytest.mark.parametrize("name", [*OWN_ACTIONS, *TELL_ACTIONS, *GROUP_ACTIONS])
def test_a_description_names_each_argument(name: str) -> None:
    described = {**OWN_ACTIONS, **TELL_ACTIONS, **GROUP_ACTIONS}[name]
    if name == "recall_memory":
        described = ASK_ACTIONS["search_memory"]  # "the same"
    for argument in arguments_of(name):
        assert re.search(rf"\b{argument}\b", described), argument


def test_the_document_has_the_arguments_that_store_memory_takes() -> None:
    text = (ROOT / "docs/simulations.md").read_text("utf-8")
    (row,) = re.findall(r"^\| `store_memory` \|(.*)\|$", text, re.MULTILINE)
    assert re.findall(r"`(\w+)`", row) == list(arguments_of("store_memory"))


def test_as_action_takes_arguments_that_are_left_out() -> None:
    assert as_action({"name": "wait"}) == Action("wait", {})
    assert as_action({"name": "wait", "arguments": None}) == Action("wait", {})


def test_an_agent_stores_under_a_key(make_bank: MakeBank) -> None:
    bank = make_bank()
    alice = act(
        bank,
        store("I eat anything", key="diet", tier="critical"),
        store("I eat no nuts", key="diet", value={"since": [3]}),
    )
    assert not alice.told
    assert tiers(bank) == {"I eat no nuts": "critical"}
    kept = bank.agent("alice").history("diet")
    assert [memory.content for memory in kept] == ["I eat anything", "I eat no nuts"]
    assert kept[-1].value == {"since": [3]}


def test_a_key_that_is_none_is_refused_and_told(make_bank: MakeBank) -> None:
    bank = make_bank()
    alice = act(bank, store("One", key=" "), store("Three"))
    assert len(alice.told) == 1
    assert contents(bank)[-1] == "Three"


def test_actions_may_have_the_names_of_the_banks_profile() -> None:
    with MemoryBank.ephemeral(profile="fr-004", store=None) as bank:
        told = act(
            bank,
            Action("memory_add", {"content": "x", "category": "decision", "tier": "hot"}),
            {"name": "store_memory", "arguments": {"content": "y", "tier": "cold"}},
            Action("store_memory", {"content": "z", "tier": "pinned"}),
            Action("memory_add", {"content": "w", "tier": "hot", "temperature": "hot"}),
            Action("memory_add", {"content": "w", "includeCold": True}),
        ).told
        kept = {
            each.content: (each.kind, each.temperature.name) for each in bank.agent("alice").all()
        }
        assert kept == {"x": ("decision", "HOT"), "y": ("fact", "COLD"), "z": ("fact", "HOT")}
        assert bank.agent("alice").all("pinned")[0].content == "z"
        assert "tier and temperature mean the same" in told[0]
        assert "there is no argument 'includeCold'" in told[1]
        assert len(told) == 2


def test_a_session_spills_under_the_names_of_its_profile() -> None:
    with MemoryBank.ephemeral(profile="ctx-sys", store=None) as bank:
        said = [{"sessionId": "s", "content": f"turn {n}", "type": "message"} for n in range(6)]
        act(bank, *[Action("memory_add", each) for each in said])
        act(bank, Action("memory_spill", {"sessionId": "s"}))
        session = bank.agent("alice").session("s")
        assert [each.content for each in session.all(temperature="hot")] == ["turn 4", "turn 5"]
        assert {each.kind for each in session.all()} == {"message"}


def test_a_model_is_told_of_the_profiles_actions() -> None:
    told = actions_of_profile("ctx-sys")
    assert told == {
        "memory_add": "Add item to hot memory: sessionId, content, type",
        "memory_spill": "Force spill hot memory to cold storage: sessionId, and optionally count",
    }


def unbounded(shape: Any, place: str) -> list[str]:
    """The places of lists and texts that a model could fill without an end."""
    if isinstance(shape, list):
        return [
            found for at, each in enumerate(shape) for found in unbounded(each, f"{place}.{at}")
        ]
    if not isinstance(shape, dict):
        return []
    ends = {"array": "maxItems", "string": "maxLength"}
    end = ends.get(shape.get("type", ""))
    own = [place] if end and end not in shape and "enum" not in shape else []
    return own + [
        found for key, each in shape.items() for found in unbounded(each, f"{place}.{key}")
    ]


@pytest.mark.parametrize("name", {**OWN_ACTIONS, **TELL_ACTIONS, **GROUP_ACTIONS})
def test_nothing_in_the_schema_of_an_action_is_without_an_end(name: str) -> None:
    shape = schema_of(name, {**OWN_ACTIONS, **TELL_ACTIONS, **GROUP_ACTIONS}[name])
    assert shape is not None
    assert unbounded(shape, name) == []
