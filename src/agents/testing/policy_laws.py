"""The laws of a policy: what an agent decides follows from what it sees, remembers and draws."""

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from ..bank.memory_bank import MemoryBank
from ..memory.records import Hits
from ..simulation.protocols import Action, Ask, Observation, Policy, World
from ..simulation.tick.loop import Loop, Together
from .laws import law, must
from .world_laws import Play, unlike

Decision = list[Any]
"""Agent, tick, and what was decided, as JSON values."""


class PolicyLaws(Play):
    """The laws of a policy: ``class TestMine(PolicyLaws)`` with ``make`` and ``make_world``.

    The class is at the top of a module, because other processes import it.
    """

    def make(self) -> Policy:
        """A new policy."""
        raise NotImplementedError(f"{type(self).__name__} needs make(self), which gives a policy")

    def make_world(self) -> World:
        """A new world for the policy to act in."""
        raise NotImplementedError(f"{type(self).__name__} needs make_world(self): its world")

    def world(self) -> World:
        """:meth:`make_world`."""
        return self.make_world()

    def policy(self, world: World) -> Policy:
        """:meth:`make`."""
        return self.make()

    @law
    def test_no_line_reads_a_clock_or_draws_unseeded_numbers(self) -> None:
        """no call of a clock, of the environment or of unseeded randomness in its code"""
        lines = self.told("watched_story", 2)[1]
        must(not lines, "\n".join(lines))

    @law
    def test_the_same_seed_gives_the_same_decisions(self) -> None:
        """the same seed twice in one process"""
        first, second = self.told("two_lists_of_decisions")
        _same(first, second, "the second run of the same seed decides otherwise")

    @law
    def test_another_hash_seed_gives_the_same_decisions(self) -> None:
        """another PYTHONHASHSEED, in another process"""
        first, other = self.told("decisions"), self.told("decisions", 2)
        _same(first, other, "with another PYTHONHASHSEED, in another process, it decides otherwise")

    @law
    def test_a_new_policy_decides_alike(self) -> None:
        """a new policy for each decision: an agent knows what is in its memory, and no more"""
        first, anew = self.told("decisions"), self.told("decisions", anew=True)
        _same(first, anew, "a new policy decides otherwise: does it keep something to itself?")

    @law
    def test_a_decision_changes_nothing_that_the_policy_was_given(self) -> None:
        """what the policy is given is afterwards as it was"""
        changed = self.told("what_decisions_change")
        must(not changed, "; ".join(changed[:3]))

    def decisions(self, anew: bool = False) -> list[Decision]:
        """All decisions of a run; with ``anew``, each one by a policy of its own."""
        return self._noted(anew).decisions

    def two_lists_of_decisions(self) -> list[list[Decision]]:
        """The decisions of two runs in one process."""
        return [self.decisions(), self.decisions()]

    def what_decisions_change(self) -> list[str]:
        """What a run's decisions change of what the policy is given."""
        return self._noted(anew=False).changes

    def _noted(self, anew: bool) -> "_Noted":
        first = self.make()
        noted = (_NotedTogether if isinstance(first, Together) else _Noted)(
            self.make if anew else lambda: first
        )
        with MemoryBank.ephemeral(self.bank_settings()) as bank:
            agents, personas = list(self.agents), self.personas()
            loop = Loop(bank, self.world(), noted, agents, personas=personas)
            loop.begin(self.memories())
            for _ in range(self.ticks):
                loop.tick()
        return noted


class _Noted:
    """A policy that notes what others decide."""

    def __init__(self, make: Callable[[], Policy]) -> None:
        self._make = make
        self.decisions: list[Decision] = []
        self.changes: list[str] = []

    def decide(
        self, observation: Observation, memories: Hits, rng: Random
    ) -> Sequence[Action] | Ask | Sequence[Ask]:
        before = _kept(observation, memories)
        decided = self._make().decide(observation, memories, rng)
        self._note(observation, memories, before, decided)
        return decided

    def _note(
        self, seen: Observation, memories: Hits, before: tuple[str, str], decided: Any
    ) -> None:
        each = [decided] if isinstance(decided, Ask) else list(decided)
        plain = [[type(one).__name__, *_plain(one)] for one in each]
        self.decisions.append([seen.agent_id, seen.tick, json.loads(json.dumps(plain))])
        for name, was, now in zip(
            ("the observation", "the memories"), before, _kept(seen, memories), strict=True
        ):
            if was != now:
                self.changes.append(f"{seen.agent_id} in tick {seen.tick} changes {name}")


class _NotedTogether(_Noted):
    """The same for a policy that decides for all agents at once."""

    def decide_all(
        self, observations: Sequence[Observation], memories: Sequence[Hits], rngs: Sequence[Random]
    ) -> Sequence[Sequence[Action]]:
        before = [_kept(*each) for each in zip(observations, memories, strict=True)]
        policy: Any = self._make()
        decided: Sequence[Sequence[Action]] = policy.decide_all(observations, memories, rngs)
        for each in zip(observations, memories, before, decided, strict=True):
            self._note(*each)
        return decided


def _kept(observation: Observation, memories: Hits) -> tuple[str, str]:
    """What can be seen of both: what is written to them shows."""
    return repr(observation), repr(list(memories))


def _plain(value: Any) -> Iterator[Any]:
    for each in value:
        yield dict(each) if hasattr(each, "keys") else each


def _same(one: list[Decision], two: list[Decision], problem: str) -> None:
    for first, other in zip(one, two, strict=False):
        if first != other:
            agent, tick, _ = first
            where = unlike("", first, other)
            must(False, f"{problem} (tick {tick}, {agent}: {where})")
    must(len(one) == len(two), f"{problem} ({len(one)} decisions, and {len(two)})")
