"""More of what is ours, and the laws that it keeps."""

import asyncio
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from test_law_classes import OfMem0

from agents import AsyncMemoryBank
from agents.simulation.policies.scripted import Scripted
from agents.simulation.worlds.household import Household
from agents.simulation.worlds.market import Market
from agents.storage.embedding import NoEmbedder
from embedders import Directions, Noise
from examples import examples
from tiermem.testing import AgentMemoryLaws, EmbedderLaws, PolicyLaws, SmallEmbedder, WorldLaws
from tiermem.testing.small import SmallWorld

pytestmark = [
    pytest.mark.long,
    # Third-party code: mem0 and qdrant.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


class TestNoEmbedder(EmbedderLaws):
    examples = 5

    def make(self) -> NoEmbedder:
        return NoEmbedder()


class TestSmallEmbedder(EmbedderLaws):
    examples = 5

    def make(self) -> SmallEmbedder:
        return SmallEmbedder(reproducible=False)


class TestDirections(EmbedderLaws):
    examples = 5
    texts = ("east <1 0>", "north <0 1>", "up <0 0 1>", "north-east <1 1>", "nowhere")

    def make(self) -> Directions:
        return Directions()


class TestNoise(EmbedderLaws):
    examples = 5

    def make(self) -> Noise:
        return Noise()


class TestQdrant(OfMem0):
    provider = "qdrant"


class TestMarket(WorldLaws):
    agents = ("a", "b", "c", "d", "e", "f")
    ticks = 6

    def make(self) -> Market:
        return Market()


class TestHouseholdRules(PolicyLaws):
    ticks = 6

    def make(self) -> Any:
        return self.make_world().rules()

    def make_world(self) -> Household:
        return Household()


class TestScripted(PolicyLaws):
    ticks = 4

    def make(self) -> Scripted:
        return Scripted([{"tick": 2, "agent": "alice", "actions": [{"name": "carry"}]}])

    def make_world(self) -> SmallWorld:
        return SmallWorld(words=["hello"], every=1, tier=3, most=9)


class TestAsyncBank(AgentMemoryLaws):
    """One event loop for each bank, as a program would have."""

    examples = examples(10)

    def make(self, folder: Path) -> Any:
        loop = asyncio.new_event_loop()
        bank = loop.run_until_complete(AsyncMemoryBank.open(folder, storage={"sync": "manual"}))
        return loop, bank

    def _done(self, made: Any, name: str, agent: str, *given: object) -> Any:
        loop, bank = made
        return loop.run_until_complete(attrgetter(name)(bank.agent(agent))(*given))

    def add(self, made: Any, agent: str, text: str) -> None:
        self._done(made, "add", agent, text)

    def texts(self, made: Any, agent: str) -> list[str]:
        return [memory.content for memory in self._done(made, "all", agent)]

    def search(self, made: Any, agent: str, query: str, limit: int) -> list[str]:
        return [hit.memory.content for hit in self._done(made, "search", agent, query, limit)]

    def delete(self, made: Any, agent: str, text: str) -> None:
        for memory in self._done(made, "all", agent):
            if memory.content == text:
                self._done(made, "delete", agent, memory.id)

    def tell(self, made: Any, teller: str, listener: str, text: str) -> None:
        for memory in self._done(made, "all", teller):
            if memory.content == text:
                self._done(made, "social.tell", teller, listener, memory.id)

    def tellers(self, made: Any, agent: str, text: str) -> list[str]:
        loop, bank = made
        (memory,) = [each for each in self._done(made, "all", agent) if each.content == text]
        chain = loop.run_until_complete(bank.chain(memory))
        return [each.agent_id for each in chain.memories]

    def save(self, made: Any, file: Path) -> None:
        loop, bank = made
        loop.run_until_complete(bank.checkpoint(file))

    def close(self, made: Any) -> None:
        loop, bank = made
        loop.run_until_complete(bank.close())
        loop.close()
