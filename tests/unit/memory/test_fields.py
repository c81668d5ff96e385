"""The optional fields of a memory: one list, which all ways in have."""

import inspect

import pytest

from agents import AgentMemory, MemoryBank
from agents.interfaces.cli.commands import memories
from agents.memory.requests import FIELDS, WORLD_FIELDS, Options
from agents.simulation.protocols import Observation, Outcome, Remark
from agents.simulation.tick.actions import MEMORY_ACTIONS
from agents.tools import OPERATIONS

SAID = [name for name, field in FIELDS.items() if field.schema]


def test_a_call_to_add_names_every_field() -> None:
    parameters = inspect.signature(AgentMemory.add).parameters.values()
    assert {each.name for each in parameters if each.kind is each.KEYWORD_ONLY} == set(FIELDS)


def test_the_metadata_or_the_checked_options_keep_every_field() -> None:
    kept = {name for name, field in FIELDS.items() if field.kept_as}
    links = {"supersedes", "contradicts"}
    assert kept | links | set(Options._fields) == {*FIELDS, "keeps_tier"}


@pytest.mark.parametrize("kind", [Remark, Observation, Outcome])
def test_what_a_world_gives_has_the_fields_of_worlds(kind: type[Remark]) -> None:
    plain = kind("")
    given = [name for name in FIELDS if hasattr(plain, name)]
    assert given == list(WORLD_FIELDS)
    assert not any(getattr(plain, name) for name in given)


def test_the_operation_and_the_command_take_every_field() -> None:
    operation = OPERATIONS["memory_add"].arguments["properties"]
    assert [name for name in operation if name in FIELDS] == SAID
    command = inspect.signature(memories.add).parameters
    assert [name for name in command if name in FIELDS] == SAID


def test_an_agent_in_a_simulation_reads_of_the_fields_that_it_may_give() -> None:
    read = MEMORY_ACTIONS["store_memory"]
    assert all(field.words in read for field in FIELDS.values())


def test_a_field_that_the_metadata_keeps_comes_back(bank: MemoryBank) -> None:
    memory = bank.agent("alice").add("x", session="talk 7", speaker="Ann", importance=7)
    assert dict(memory.metadata) == {"session": "talk 7", "speaker": "Ann", "importance": 7}
