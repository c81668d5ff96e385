"""The protocols of worlds and policies.

In a tick, every agent gets an :class:`Observation` from the world, and the memories that match it.
The agent's policy answers with actions; the world applies each action and gives an
:class:`Outcome`. Observations and outcomes become memories, which the agent finds from the next
tick on. Ticks count from 1; tick 0 is the beginning, after :meth:`World.setup`.

The same seed gives the same run if worlds and policies use no clock, no order of a set, and no
random numbers but those of the loop's generators.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..memory.records import Hits, Memory, Scalar
from ..memory.tiers import TemperatureLike, Tier, TierLike

NO_ARGUMENTS: Mapping[str, Any] = MappingProxyType({})


class WorldRandom(Random):
    """A world's generator. The loop seeds it for each tick.

    What is drawn from it for one agent decides what is drawn next, for another agent. Draws from a
    stream of its own do not: an agent that decides otherwise shifts nobody's luck.
    """

    def stream(self, name: str, agent_id: str | None = None) -> Random:
        """The generator with this name, such as ``"weather"``; with an agent, the agent's own.

        Seed, tick, name and agent decide its numbers. Asked for again within a tick, it goes on.
        """
        return self


class Persona(NamedTuple):
    """Who an agent is: what the scenario's ``simulation.personas`` says of it."""

    text: str = ""
    """In words, for a language model; it may be empty."""
    attributes: Mapping[str, Scalar] = NO_ARGUMENTS
    """By name, for rules."""

    def shown(self) -> str:
        """The text; without one, the attributes by name."""
        values = ((name, str(value)) for name, value in self.attributes.items())
        return self.text or ", ".join(": ".join(each) for each in values)


NOBODY = Persona()
"""The persona of agents whose scenario has none."""


class Remark(NamedTuple):
    """A text that becomes a memory."""

    text: str
    tier: TierLike = Tier.NORMAL
    metadata: Mapping[str, Scalar] | None = None
    kind: str | None = None
    """Such as ``decision``; the default is ``fact``."""
    tags: Sequence[str] = ()
    ttl: int | None = None
    """After how many ticks the memory expires."""
    temperature: TemperatureLike | None = None
    """Hot, warm or cold; by default as the settings say."""
    session: str | None = None
    speaker: str | None = None


class Ask(NamedTuple):
    """A question of a policy to the agent's own memory, in place of actions."""

    query: str
    limit: int | None = None
    """How many memories are wanted; the default is that of the settings."""
    cold: bool = False
    """Whether cold memories are searched, too."""
    groups: bool = False
    """Whether the boards of the agent's groups are searched, too."""
    session: str | int | None = None
    """The session whose memories alone are searched; None for all memories."""


class Answer(NamedTuple):
    """What a question found."""

    ask: Ask
    hits: Hits
    """Best first; pinned memories are ranked like all others."""
    note: str = ""
    """Why the question was not answered; empty if it was."""


class Observation(NamedTuple):
    """What one agent perceives in one tick."""

    text: str
    """The observation in words. It becomes a memory, unless it is blank."""
    query: str | None = None
    """What the agent searches its memory for; the default is the text."""
    facts: Mapping[str, Any] = NO_ARGUMENTS
    """The observation as JSON values, for a policy that follows rules."""
    heard: Sequence[Remark] = ()
    """Remarks that reached the agent; each one becomes a memory."""
    tier: TierLike = Tier.NORMAL
    """The tier of the text's memory."""
    metadata: Mapping[str, Scalar] | None = None
    """The metadata of the text's memory."""
    kind: str | None = None
    """Such as ``decision``; the default is ``observation``."""
    tags: Sequence[str] = ()
    ttl: int | None = None
    """After how many ticks the memory expires."""
    temperature: TemperatureLike | None = None
    """Hot, warm or cold; by default as the settings say."""
    session: str | None = None
    speaker: str | None = None

    # The loop sets the fields below.
    persona: Persona = NOBODY
    """Who the agent is."""
    agent_id: str = ""
    tick: int = 0
    """The tick that is under way."""
    errors: Sequence[str] = ()
    """What was wrong with the agent's actions in the last tick."""
    answers: Sequence[Answer] = ()
    """What the agent's questions in this tick found, in the order of the questions."""
    asks_left: int = 0
    """How often the agent may ask in this tick: ``simulation.asks`` at first."""


class Action(NamedTuple):
    """An action of the world, or a memory action: see :mod:`tiermem.simulation.tick.actions`."""

    name: str
    arguments: Mapping[str, Any] = NO_ARGUMENTS
    reason: str | None = None
    """Why the agent does it, in words. It is logged with the decision, and no memory."""


class Conversation(NamedTuple):
    """Agents who talk with each other in a tick, and what they said so far."""

    agents: Sequence[str]
    """Two or more; they take turns in this order."""
    topic: str = ""
    turns: int = 6
    """How many turns there are; for who speaks, how many are left, its own one included."""
    session: str | None = None
    """What all that is said is remembered with; by default a name of its own."""
    said: Sequence[tuple[str, str]] = ()
    """Who said what, in order. The loop sets it."""


class Say(NamedTuple):
    """What an agent says in its turn. With neither text nor memory it is silent."""

    text: str = ""
    memory_id: str | None = None
    """A memory of its own that it tells: those who listen remember it, and who told it. Without a
    text, the agent says what the memory says."""


class Outcome(NamedTuple):
    """The result of an action. Its text becomes a memory of the agent, unless it is blank."""

    text: str
    success: bool = True
    tier: TierLike = Tier.NORMAL
    metadata: Mapping[str, Scalar] | None = None
    kind: str | None = None
    """Such as ``decision``; the default is ``action``."""
    tags: Sequence[str] = ()
    ttl: int | None = None
    """After how many ticks the memory expires."""
    temperature: TemperatureLike | None = None
    """Hot, warm or cold; by default as the settings say."""
    session: str | None = None
    speaker: str | None = None


@runtime_checkable
class Policy(Protocol):
    """How an agent decides. A policy keeps no state: an agent knows only what is in its memory."""

    def decide(
        self, observation: Observation, memories: Hits, rng: Random
    ) -> Sequence[Action] | Ask | Sequence[Ask]:
        """The agent's actions, in order. An empty list is allowed.

        In place of actions, it may be a question to the agent's memory, or a list of questions.
        The loop answers the questions of all agents together, and asks the policy again, with
        ``observation.answers``. Where ``observation.asks_left`` is 0, a question is refused.
        """


@runtime_checkable
class Flushing(Protocol):
    """A policy that decides what an agent saves before its context is compacted.

    The loop asks it with ``flush.enabled``. For other policies, a summary goes into the notes.
    """

    def flush(
        self, observation: Observation, memories: Hits, rng: Random, prompt: str
    ) -> Sequence[Action]:
        """The memory and note actions that save. An empty list is allowed.

        The observation and the memories are those of this tick; ``prompt`` asks for the actions in
        words, and lists what would be lost. After a :class:`~tiermem.errors.TierMemError` the loop
        asks once more; then the tick goes on without a flush.
        """


@runtime_checkable
class Talking(Protocol):
    """A policy whose agents talk when the world brings them together; others are silent."""

    def say(
        self, observation: Observation, memories: Hits, rng: Random, talk: Conversation
    ) -> Say | str | None:
        """What the agent says in its turn; None, or a blank text, if it has nothing to say.

        The observation and the memories are those by which it decides afterwards in the same tick;
        ``rng`` is another generator than that of ``decide``. A conversation ends after its turns,
        or when all were silent in a row.
        """


class Insight(NamedTuple):
    """What an agent concludes from memories. It becomes a memory of the kind ``insight``."""

    text: str
    evidence: Sequence[str]
    """The ids of the agent's memories that it is drawn from, up to 32."""
    importance: int | None = None
    """From 1 to 10; without one, that of the tier."""
    tier: TierLike = Tier.NORMAL


@runtime_checkable
class Reflecting(Protocol):
    """A policy that concludes something from memories when enough has happened.

    The loop asks it with ``reflection.enabled``. For other policies, an insight quotes its
    evidence.
    """

    def reflect(
        self, observation: Observation, memories: Sequence[Memory], rng: Random
    ) -> Sequence[Insight] | Ask | Sequence[Ask]:
        """What the agent concludes from its latest memories, oldest first. It may be nothing.

        In place of insights, it may be questions to the agent's memory, once: the loop asks the
        policy again, with ``observation.answers``.
        """


@runtime_checkable
class Rating(Protocol):
    """A policy that says how important new memories are. ``reflection.ratings: policy`` asks it."""

    def rate_all(
        self, observations: Sequence[Observation], texts: Sequence[Sequence[str]]
    ) -> Sequence[Sequence[int | None]]:
        """For each agent the importance of each of its texts, from 1 to 10; None to go by tier."""


@runtime_checkable
class Waiting(Protocol):
    """A policy that may have to wait, and can say so."""

    def on_wait(self, say: Callable[[str], None]) -> None:
        """Let ``say`` take a line for the user while the policy waits, and for what."""


@runtime_checkable
class World(Protocol):
    """Where the agents live. The scenario's ``world_options`` are its keyword arguments.

    A world may have more members. ``rules(**policy_options)`` gives the policy ``rules``;
    ``actions``, a mapping of names to descriptions, tells an LLM what it can do;
    ``action_arguments`` says which arguments they take, as JSON Schema by action and argument,
    ``{"go": {"place": {"type": "string"}}}``, for models that keep to it; ``by_agent()``
    gives the report numbers per agent: ``{"loss": {"alice": 3.0}}``; ``may_tell(teller, listener)``
    says who can hear whom now, when agents tell each other memories; ``society``, a
    :class:`~tiermem.simulation.Society` or a method that gives one, says so as well: everybody can,
    without both;
    ``facts()`` says what is true, by subject: ``{"bridge": {"the bridge is open": True}}``;
    ``conversations()`` says who talks with whom in this tick, after all have observed: a list of
    :class:`Conversation`, or of lists of agents; nobody is in two of them;
    ``groups()`` says once, after :meth:`setup`, which groups there are: ``{"guild": ["alice"]}``;
    ``may_join(agent_id, group)`` says who may join a group now: nobody, without it; a group that
    nobody has joined yet begins with its first member.
    """

    def setup(self, rng: WorldRandom, agent_ids: Sequence[str]) -> None:
        """Begin. ``rng`` is the world's own generator for the whole run; keep it.

        A world whose ``setup`` has a parameter ``personas`` gets the :class:`Persona` of each agent
        by its id; the mapping is empty where the scenario has none.

        The loop seeds it for each tick, so the world need not save its state. What belongs to one
        agent is drawn from ``rng.stream("offers", agent_id)``.
        """

    def observe(self, agent_id: str) -> Observation | str:
        """What this agent perceives. The loop asks for all agents before the first one acts."""

    def apply(self, agent_id: str, action: Action) -> Outcome | str | None:
        """Do the action, or raise :class:`~tiermem.InvalidAction`.

        The loop draws the order of the agents in every tick.
        """

    def end_tick(self) -> None:
        """Move the world on, after all agents have acted."""

    def metrics(self) -> Mapping[str, float]:
        """Numbers that describe the world after a tick; every tick has the same names."""

    def get_state(self) -> Any:
        """Everything that changes, as JSON values."""

    def set_state(self, state: Any) -> None:
        """Go on from a state of :meth:`get_state`, after :meth:`setup` with the same agents."""
