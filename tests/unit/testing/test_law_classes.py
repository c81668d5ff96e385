"""What is ours keeps the laws that we give to others."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from model.bank import ModelBank
from model.comparison import assert_equal, settings_of
from model.memories import Rules

from agents import MemoryBank
from agents.simulation.tick.loop import Loop
from agents.storage.embedding import OfflineEmbedder
from agents.storage.mem0.store_child import connect
from examples import examples
from tiermem.testing import (
    AgentMemoryLaws,
    EmbedderLaws,
    PolicyLaws,
    SmallEmbedder,
    StoreLaws,
    WorldLaws,
)
from tiermem.testing.small import SmallPolicy, SmallWorld
from tiermem.testing.strategies import AGENTS, Recipe, banks, memories, worlds
from tiermem.testing.world_laws import difference, story_of

pytestmark = [
    pytest.mark.slow,
    # Third-party code: mem0, Chroma and qdrant.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


class TestOfflineEmbedder(EmbedderLaws):
    examples = examples(50)

    def make(self) -> OfflineEmbedder:
        return OfflineEmbedder()


class OfMem0(StoreLaws):
    examples = examples(25)
    provider = ""

    def make(self, folder: Path) -> Any:
        more = {} if self.provider == "chroma" else {"embedding_model_dims": 4, "on_disk": True}
        config = {"path": str(folder / "store"), "collection_name": "tiermem", **more}
        return connect({"provider": self.provider, "config": config})


class TestChroma(OfMem0):
    provider = "chroma"


class TestSmallWorld(WorldLaws):
    ticks = 6

    def make(self) -> SmallWorld:
        return SmallWorld(words=["hello", "a well"], every=2, tier=1, most=9)


class TestSmallPolicy(PolicyLaws):
    ticks = 6

    def make(self) -> SmallPolicy:
        return SmallPolicy()

    def make_world(self) -> SmallWorld:
        return SmallWorld(words=["hello"], every=1, tier=3, most=9)


class TestBank(AgentMemoryLaws):
    examples = examples(25)

    def make(self, folder: Path) -> MemoryBank:
        return MemoryBank.open(folder, storage={"sync": "manual"})

    def restore(self, file: Path, folder: Path) -> MemoryBank:
        return MemoryBank.restore(file, folder, storage={"sync": "manual"})


# Strategies


@given(banks)
@settings(deadline=None, max_examples=examples(25))
def test_a_recipe_gives_the_same_bank_twice(recipe: Recipe) -> None:
    with recipe.open() as bank, recipe.open() as other:
        assert bank.state_hash() == other.state_hash()
        assert set(bank.agents()) <= set(AGENTS)


@given(memories)
@settings(deadline=None, max_examples=examples(25))
def test_a_bank_takes_each_memory_and_equals_the_model(new: Any) -> None:
    rules, model = Rules(), ModelBank()
    content, tier, metadata, options = new
    with MemoryBank.ephemeral(embedder=SmallEmbedder(), **settings_of(rules)) as bank:
        bank.agent("alice").add_many([new])
        model.add_many([("alice", content, int(tier), metadata, options)])
        assert_equal(bank, model)


@given(worlds)
@settings(deadline=None, max_examples=examples(25))
def test_a_drawn_world_goes_on_from_its_state(world: SmallWorld) -> None:
    def told(parts: list[int]) -> Any:
        with MemoryBank.ephemeral(seed=3) as bank:
            for ticks in parts:
                loop = Loop(bank, world, world.rules(), ["alice", "bob"])
                loop.begin()
                for _ in range(ticks):
                    loop.tick()
            return story_of(bank)

    assert difference(told([5]), told([2, 1, 2])) is None
