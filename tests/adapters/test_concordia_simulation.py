"""Concordia's simulation with TierMem, where Concordia is installed: Python 3.12 and later.

CI has 3.11. There ``tests/adapters/upstream/concordia.py`` runs these tests.
"""

import copy
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("concordia", reason="Concordia needs Python 3.12")

from concordia.language_model import no_language_model
from concordia.prefabs.entity import minimal
from concordia.prefabs.game_master import dialogic
from concordia.typing.prefab import Config, InstanceConfig, Role

from agents import InvalidInput, MemoryBank, Tier
from agents.concordia import AssociativeMemoryBank, FormativeMemories, Simulation
from banks import ROOT

pytestmark = pytest.mark.filterwarnings("default")  # Concordia's own
PAGE = ROOT / "docs/howto/concordia.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


class Model(no_language_model.NoLanguageModel):  # type: ignore[misc]
    def sample_text(self, prompt: str, **options: object) -> str:
        if "formative episodes" in prompt:
            return "\n\n\nAt five,\n\n\n\nnearly drowned.*** ***At nine, got a dog."
        return "walks to the market."


RULES = {
    "name": "rules",
    "next_game_master_name": "rules",
    "acting_order": "fixed",
    "can_terminate_simulation": False,
}
PAST = {"name": "past", "next_game_master_name": "rules", "shared_memories": ["Fear Mallory."]}


def config(*people: str) -> Config:
    return Config(
        prefabs={
            "person": minimal.Entity(),
            "rules": dialogic.GameMaster(),
            "past": FormativeMemories(),
        },
        instances=[
            *(InstanceConfig("person", Role.ENTITY, {"name": name}) for name in people),
            InstanceConfig("rules", Role.GAME_MASTER, RULES),
            InstanceConfig("past", Role.INITIALIZER, PAST),
        ],
        default_premise="It is market day.",
        default_max_steps=4,
    )


@pytest.fixture
def bank() -> Iterator[MemoryBank]:
    with MemoryBank.ephemeral() as opened:
        yield opened


@pytest.fixture
def other() -> Iterator[MemoryBank]:
    with MemoryBank.ephemeral() as opened:
        yield opened


def memory_of(simulation: Any, name: str) -> Any:
    (entity,) = [each for each in simulation.entities if each.name == name]
    return entity.get_component("__memory__")


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_howto_runs(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = re.sub(r'open\("(\w+)"\)', r'open("\1", storage={"sync": "manual"})', EXAMPLES[number])
    exec(compile(code, PAGE.name, "exec"), {})
    promised = [line.removeprefix("    # ") for line in code.splitlines() if "    # - " in line]
    printed = capsys.readouterr().out
    assert promised
    assert "\n".join(promised) in printed


def test_each_entity_is_an_agent_and_each_step_a_tick(bank: MemoryBank) -> None:
    simulation = Simulation(config("Alice Lee", "Bob"), Model(), memories=bank)
    log = simulation.play()
    assert bank.agents() == ["Alice@20Lee", "Bob", "game_masters"]
    assert bank.tick == 4
    assert {memory.created_tick for memory in bank.agent("Bob").all()} == {0, 1, 2, 3}
    assert memory_of(simulation, "Bob").get_all_memories_as_text() == [
        memory.content for memory in bank.agent("Bob").all()
    ]
    game_masters = [memory.content for memory in bank.agent("game_masters").all()]
    assert "[observation] [event] It is market day." in game_masters
    assert game_masters == list(log.get_game_master_memories())


def test_formative_memories_are_pinned_by_the_prefab(bank: MemoryBank) -> None:
    Simulation(config("Alice"), Model(), memories=bank).play(max_steps=2)
    assert [(memory.tier, memory.content) for memory in bank.agent("Alice").all()] == [
        (Tier.PINNED, "[observation] [formative] Fear Mallory."),
        (Tier.PINNED, "[observation] [formative] At five,  nearly drowned."),
        (Tier.PINNED, "[observation] [formative] At nine, got a dog."),
        (Tier.NORMAL, "[observation] walks to the market."),
    ]
    assert not bank.agent("game_masters").get_pinned_memories()


def test_the_same_steps_give_entities_the_same_memories(
    bank: MemoryBank, other: MemoryBank
) -> None:
    for own in (bank, other):
        Simulation(config("Alice", "Bob"), Model(), memories=own).play()
    for name in ("Alice", "Bob"):
        assert bank.agent(name).all() == other.agent(name).all()


def test_two_simulations_that_load_one_checkpoint_share_nothing(
    bank: MemoryBank, other: MemoryBank
) -> None:
    with MemoryBank.ephemeral() as first:
        played = Simulation(config("Alice", "Bob"), Model(), memories=first)
        played.play()
        checkpoint = played.make_checkpoint_data()
    before = copy.deepcopy(checkpoint)
    one = Simulation(config("Alice", "Bob"), Model(), memories=bank)
    two = Simulation(config("Alice", "Bob"), Model(), memories=other)
    for simulation in (one, two):
        simulation.load_from_checkpoint(checkpoint)
    assert bank.state_hash() == other.state_hash()
    memory_of(one, "Alice").add("a secret of one")
    for simulation in (one, two):
        memory_of(simulation, "Alice").update()
    assert bank.agent("Alice").all()[-1].content == "a secret of one"
    assert "a secret of one" not in [memory.content for memory in other.agent("Alice").all()]
    assert checkpoint == before


def test_a_checkpoint_goes_back_in_the_same_simulation(bank: MemoryBank) -> None:
    simulation = Simulation(config("Alice", "Bob"), Model(), memories=bank)
    simulation.play(max_steps=2)
    checkpoint = json.loads(json.dumps(simulation.make_checkpoint_data()))
    ids = [memory.id for memory in bank.agent("Alice").all()]
    simulation.memory_bank("Alice").add("later")
    simulation.load_from_checkpoint(checkpoint)
    assert [memory.id for memory in bank.agent("Alice").all()] == ids
    assert simulation.make_checkpoint_data()["entities"] == checkpoint["entities"]


_CHILD = """
import json, sys
from test_concordia_simulation import Model, config, memory_of
from tiermem import MemoryBank
from tiermem.concordia import Simulation
folder, *checkpoint = sys.argv[1:]
with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
    simulation = Simulation(config("Alice", "Bob"), Model(), memories=bank)
    if checkpoint:
        simulation.load_from_checkpoint(json.loads(open(checkpoint[0]).read()))
    memory_of(simulation, "Alice").add("Bob sells fish")
    memory_of(simulation, "Alice").update()
    open(folder + ".json", "w").write(json.dumps(simulation.make_checkpoint_data()))
"""


def _in_a_process(hash_seed: str, folder: Path, *arguments: Path) -> list[str]:
    path = os.pathsep.join([str(Path(__file__).parent), str(ROOT / "tests")])
    subprocess.run(
        [sys.executable, "-c", _CHILD, folder, *arguments],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path},
        check=True,
    )
    with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
        return [memory.content for memory in bank.agent("Alice").all()]


def test_a_checkpoint_restored_in_a_new_process_gives_no_duplicates(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert _in_a_process("1", first) == ["Bob sells fish"]
    for folder in (first, second):  # a bank that exists, and a new one
        assert _in_a_process("2", folder, Path(f"{first}.json")) == ["Bob sells fish"]


def test_the_memories_of_both_restores_are_equal_by_reflection(bank: MemoryBank) -> None:
    helpers = pytest.importorskip("concordia.utils.helper_functions")
    import unittest

    one = AssociativeMemoryBank(memories=bank.agent("one"))
    two = AssociativeMemoryBank(memories=bank.agent("two"))
    one.extend(["fish", "boats"])
    two.set_state(one.get_state())
    case = unittest.TestCase()
    skip = {"_memory_bank_lock"}
    helpers.deep_compare_components(one, two, case, skip)
    two.add("market")
    with pytest.raises(AssertionError):
        helpers.deep_compare_components(one, two, case, skip)


@pytest.mark.parametrize(("params", "why"), [({}, "has no name"), ({"name": "game_masters"}, "no")])
def test_an_entity_needs_a_name_of_its_own(
    bank: MemoryBank, params: dict[str, str], why: str
) -> None:
    wrong = config()
    wrong.instances.append(InstanceConfig("person", Role.ENTITY, params))
    with pytest.raises(InvalidInput, match=why):
        Simulation(wrong, Model(), memories=bank)
