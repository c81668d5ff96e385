"""Programs of a user, for tests of runs that make them again."""

import itertools
import time
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import numpy as np

from tiermem import MemoryBank
from tiermem.simulation.runs.programs import ProgramMemories

NAMES = ("ann", "bob", "cat")


def market(seed: int, memories: ProgramMemories, luck: float = 0.5) -> Iterator[Mapping[str, int]]:
    """A function of steps: a trader whom the cheat cheated refuses it; bob warns cat in step 3."""
    rng, coins = Random(seed), dict.fromkeys(NAMES, 20)
    for name in NAMES:
        memories[name].add("Trade with whoever did not cheat you.", tier="pinned")
    for step in itertools.count():
        yield {"coins": sum(coins.values())}
        given = memories.recall(dict.fromkeys(NAMES, "who cheated me?"))
        for name in NAMES:
            if any(hit.memory.metadata.get("cheat") for hit in given[name]):
                memories[name].record_action("refuse", {"trader": "cheat"})
            elif rng.random() < luck:
                coins[name] -= 1
                if name != "cat":
                    memories[name].add("I was cheated.", "critical", {"cheat": True})
        if step == 2:
            memories["cat"].add("The cheat cheats.", "critical", {"cheat": True}, speaker="bob")


class Street:
    """An object with steps, which writes to the bank by itself: who was robbed takes care."""

    steps = 0
    """How many steps objects of this class made, over all."""

    def __init__(self, seed: int, bank: MemoryBank, robbers: float = 0.3) -> None:
        self.bank, self.rng, self.robbers = bank, np.random.default_rng(seed), robbers
        self.lost = self.step_of_warning = 0
        for name in NAMES:
            bank.agent(name).add("I live here.", tier="pinned")

    def step(self) -> None:
        type(self).steps += 1
        for name in NAMES:
            memory = self.bank.agent(name)
            if any("robbed" in hit.memory.content for hit in memory.search("was I robbed?")):
                continue
            self.lost += 1
            if self.rng.random() < self.robbers:
                memory.add(f"I was robbed in step {self.bank.tick}.", "critical")
        if self.bank.tick == 2:
            self.bank.agent("cat").add("Ann was robbed.", "critical", speaker="ann")

    def metrics(self) -> Mapping[str, float]:
        return {"lost": self.lost}


class Kept(Street):
    """A street that can tell its state, and take it."""

    steps = 0

    def get_state(self) -> Any:
        return {"lost": self.lost, "rng": self.rng.bit_generator.state}

    def set_state(self, state: Any) -> None:
        self.lost = state["lost"]
        self.rng.bit_generator.state = state["rng"]


class Late(Kept):
    """A street to which dan comes in step 3, also where it goes on from its state."""

    steps = 0

    def __init__(self, seed: int, memories: ProgramMemories) -> None:
        super().__init__(seed, memories.bank)
        self.memories = memories

    def step(self) -> None:
        super().step()
        if self.bank.tick >= 3:
            self.memories["dan"].add("I came late.")
            self.memories["ann"].add("Dan came late.")


class Forgetful(Kept):
    """A street whose state leaves something out."""

    def set_state(self, state: Any) -> None:
        self.rng.bit_generator.state = state["rng"]


class ByTheClock(Street):
    """A street in which the clock decides what ann remembers."""

    def step(self) -> None:
        super().step()
        if self.bank.tick == 3:
            self.bank.agent("ann").add(f"It is {time.time_ns()}.")


class Still:
    """A program without any chance."""

    def __init__(self, seed: int, bank: MemoryBank) -> None:
        self.bank = bank

    def step(self) -> None:
        self.bank.agent("ann").add("Nothing happens.")


def rob_all(street: Street) -> None:
    """A change of a street, which is of this very module."""
    assert isinstance(street, Street)
    for name in NAMES:
        street.bank.agent(name).add("Everybody was robbed.", "critical")


def fail(street: Street) -> None:
    """A change that fails."""
    raise KeyError("no street")


class Measured(Still):
    """A program whose metrics are what they should not be."""

    def metrics(self) -> Any:
        return None


class Unsaid(Still):
    """A program whose state is no JSON."""

    def get_state(self) -> Any:
        return {1, 2}

    def set_state(self, state: Any) -> None: ...


class Lucky(Still):
    """A program with a generator of NumPy's older kind."""

    def __init__(self, seed: int, bank: MemoryBank) -> None:
        super().__init__(seed, bank)
        self.rng, self.sum = np.random.RandomState(seed), 0.0

    def step(self) -> None:
        super().step()
        self.sum += self.rng.random_sample()

    def metrics(self) -> Mapping[str, float]:
        return {"sum": self.sum}


class Unmeasured(Still):
    """A program with chance and without metrics."""

    def __init__(self, seed: int, bank: MemoryBank) -> None:
        super().__init__(seed, bank)
        self.rng = Random(seed)


# What is no program


def without_seed(bank: MemoryBank) -> Still:
    return Still(0, bank)


def without_steps(seed: int) -> object:
    return object()


def short(seed: int) -> Iterator[None]:
    yield
    yield


def chatty(seed: int) -> Iterator[Any]:
    yield
    while True:
        yield "done"


def broken(seed: int, bank: MemoryBank) -> Iterator[None]:
    yield
    yield
    bank.agent("ann").add("This is undone.")
    raise ValueError("the bridge is out")


def hasty(seed: int, bank: MemoryBank) -> Iterator[None]:
    yield
    while True:
        bank.advance(bank.tick + 1)
        yield


def unsaid(seed: int) -> Iterator[Any]:
    yield {"x": float("nan")}
