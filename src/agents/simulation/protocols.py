"""What a world and a policy are.

A tick of a simulation: every agent gets an :class:`Observation` from the world and the memories
that match it; its policy answers with actions; the world applies them and tells an
:class:`Outcome`. What was observed and what came of it become the agent's memories, which it can
find from the next tick on.

Nothing here may depend on a clock, on the order of a set, or on randomness other than the
generators that the loop hands out. Then the same seed gives the same run.
"""

from collections.abc import Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..memory.records import Hits, Scalar
from ..memory.tiers import Tier, TierLike

__all__ = ["Action", "Flushing", "Observation", "Outcome", "Policy", "Remark", "World"]

NO_ARGUMENTS: Mapping[str, Any] = MappingProxyType({})


class Remark(NamedTuple):
    """Something that becomes a memory."""

    text: str
    tier: TierLike = Tier.NORMAL
    metadata: Mapping[str, Scalar] | None = None


class Observation(NamedTuple):
    """What one agent perceives in one tick."""

    text: str
    """In words. Recorded as a memory, unless blank."""
    query: str | None = None
    """What the agent looks for in its memory; the text, if not given."""
    facts: Mapping[str, Any] = NO_ARGUMENTS
    """The same for a policy that follows rules, as JSON values."""
    heard: Sequence[Remark] = ()
    """Whatever else reached the agent; each is recorded as a memory of its own."""
    tier: TierLike = Tier.NORMAL
    """The tier in which the text is recorded."""
    metadata: Mapping[str, Scalar] | None = None
    """Kept with the recorded text."""

    # The loop fills in these.
    agent_id: str = ""
    tick: int = 0
    errors: Sequence[str] = ()
    """What was wrong with the agent's actions of the tick before."""


class Action(NamedTuple):
    """An action of the world, or a memory action: see :mod:`tiermem.simulation.loop.actions`."""

    name: str
    arguments: Mapping[str, Any] = NO_ARGUMENTS


class Outcome(NamedTuple):
    """What came of an action. Recorded as a memory of the agent that acted, unless blank."""

    text: str
    success: bool = True
    tier: TierLike = Tier.NORMAL
    metadata: Mapping[str, Scalar] | None = None


@runtime_checkable
class Policy(Protocol):
    """How an agent decides. It keeps nothing between calls: what an agent knows is its memory."""

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> Sequence[Action]:
        """What the agent does now, in order; nothing is a fine answer."""


@runtime_checkable
class Flushing(Protocol):
    """A policy that decides itself what an agent saves before its context is compacted.

    Asked only with ``flush.enabled``. For a policy without it, a summary goes into the notes.
    """

    def flush(
        self, observation: Observation, memories: Hits, rng: Random, prompt: str
    ) -> Sequence[Action]:
        """What to save, as memory and note actions; nothing is a fine answer.

        The observation and the memories are those of this tick; ``prompt`` says in words what is
        asked for, and what would be lost. After a :class:`~tiermem.errors.TierMemError` it is asked
        once more; then the tick goes on without.
        """


@runtime_checkable
class World(Protocol):
    """Where the agents live. Made with the scenario's ``world_options`` as keyword arguments.

    Three more members are used where a world has them: ``rules(**policy_options)`` gives the policy
    ``rules``; ``actions``, a mapping of names to descriptions, tells an LLM what it can do;
    ``by_agent()`` gives, for the report, numbers per agent: ``{"loss": {"alice": 3.0}}``.
    """

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        """Begin. ``rng`` is the world's own generator for the whole run; keep it.

        It is seeded anew for each tick, so that no state of it needs saving.
        """

    def observe(self, agent_id: str) -> Observation | str:
        """What this agent perceives. Called once a tick for every agent, before any acts."""

    def apply(self, agent_id: str, action: Action) -> Outcome | str | None:
        """Do it, or raise :class:`~tiermem.InvalidAction`. Who acts first is drawn every tick."""

    def end_tick(self) -> None:
        """All have acted: let the world move on."""

    def metrics(self) -> Mapping[str, float]:
        """Numbers that describe the world after this tick; the same names every time."""

    def get_state(self) -> Any:
        """Everything that changes, as JSON values."""

    def set_state(self, state: Any) -> None:
        """Go on from what :meth:`get_state` gave, after :meth:`setup` with the same agents."""
