"""What worlds and policies give arrives in another process as it is, or is refused."""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from agents import SimulationError
from agents.memory.tiers import Tier
from agents.simulation.protocols import Action, Observation
from agents.simulation.tick.act import Deed
from agents.simulation.workers import wire
from spread_runs import HERE, results, run_to_the_end, scenario


class Color(Enum):
    RED = "red"


class Size(IntEnum):
    ONE = 1


class Word(StrEnum):
    TREE = "tree"


@dataclass
class Place:
    x: int


def seen_with(value: Any) -> list[Any]:
    return wire.plain_seen([Observation("seen", facts={"it": value})])


def done_with(value: Any) -> list[Any]:
    return wire.plain_actions([[Action("go", {"it": value})]])


@pytest.mark.parametrize(
    "value",
    [date(2026, 1, 2), datetime(2026, 1, 2), UUID(int=5), Color.RED, Size.ONE, Word.TREE, Place(3),  # noqa: DTZ001
     {1, 2}, {3: 4}, {Word.TREE: 1}, b"tree", np.int64(3)],
)  # fmt: skip
def test_no_value_becomes_another_one_on_its_way(value: Any) -> None:
    for given in (value, [None, value], {"deep": [{"er": value}]}, MappingProxyType({"x": value})):
        for each in (seen_with(given), done_with(given)):
            with pytest.raises(SimulationError, match=r"^W gave what no other process can be told"):
                wire.encode(each, "W")


def test_a_circle_and_a_number_without_end_are_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    for value in (circle, 10**5000):
        with pytest.raises(SimulationError, match=r"^W gave what no other process can be told"):
            wire.encode(seen_with(value), "W")


@pytest.mark.parametrize(
    "value",
    [2**70, -(2**70), 2**64 - 1, -(2**63), [2**63, None, 2**64], 1e300, -0.0, 0.1, float("inf"),
     "\ud800 null", [2**70, "\ud800", float("-inf")], "null", None, True, {"a": [{}, [], ""]}],
)  # fmt: skip
def test_json_values_arrive_as_they_are(value: Any) -> None:
    (seen,) = wire.seen_of(wire.decode(wire.encode(seen_with(value), "W")))
    assert repr(seen.facts) == repr({"it": value})
    (did,) = map(wire.actions_of, wire.decode(wire.encode(done_with(value), "W")))
    assert repr(did) == repr([Action("go", {"it": value})])


def test_a_reason_arrives_with_its_action() -> None:
    did = [Action("go", {}, "it rains"), Action("go")]
    plain = wire.decode(wire.encode(wire.plain_actions([did]), "W"))
    assert list(map(wire.actions_of, plain)) == [did]
    ((deed, _),) = wire.deeds_of(plain, wire.plain_deeds([[Deed(each, 0) for each in did]]))
    assert deed.action == did[0]


def test_an_enum_arrives_where_every_engine_takes_its_value() -> None:
    given = Observation(Word.TREE, tier=Tier.LOW, kind=Word.TREE, tags=(Word.TREE, "a"))
    (seen,) = wire.seen_of(wire.decode(wire.encode(wire.plain_seen([given]), "W")))
    assert repr(seen) == repr(Observation("tree", tier=4, kind="tree", tags=["tree", "a"]))


def test_classes_of_texts_numbers_and_mappings_arrive_as_built_in_types() -> None:
    given = {"a": np.float64(0.5), "b": np.str_("x"), "c": OrderedDict(d=(1, 2))}
    (seen,) = wire.seen_of(wire.decode(wire.encode(seen_with(MappingProxyType(given)), "W")))
    assert repr(seen.facts["it"]) == "{'a': 0.5, 'b': 'x', 'c': {'d': [1, 2]}}"


def test_what_another_version_wrote_is_read() -> None:
    assert repr(wire.decode(b'[["x",{"facts":{"far":NaN,"n":[1,2.5]}}]]')) == (
        "[['x', {'facts': {'far': nan, 'n': [1, 2.5]}}]]"
    )


@pytest.mark.slow
def test_numbers_beyond_64_bits_are_those_of_one_process(tmp_path: Path) -> None:
    facts = {"n": 2**70}
    options = {"sights": ["sun"], "facts": facts, "outcomes": [None], "hearing": 2, "draws": 1}
    settings = scenario(f"{HERE}:MadeUp", policy=f"{HERE}:Scribe", world_options=options, ticks=2)
    for name, workers in (("local", 0), ("spread", 1)):
        run_to_the_end(tmp_path / name, settings, workers)
    assert results(tmp_path / "spread") == results(tmp_path / "local")
