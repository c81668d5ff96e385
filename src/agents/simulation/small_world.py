"""A world that is one function: what agents see in a tick, and what comes of what they decide.

>>> import tiermem
>>> @tiermem.world(loss=0)
... def market(tick, scammers=1):
...     for trader in tick.agents:
...         seller = tick.draw(trader).choice(tick.others(trader))
...         tick.sees(trader, f"{seller} offers grain", seller=seller)
...     while turn := (yield):
...         if turn.saw.facts["seller"] in tick.agents[:scammers]:
...             tick.state["loss"] += 5
...             turn.outcome = "I was cheated"
>>> @market.decide
... def careful(observation, memories, rng):
...     return "accept"

The function is called at the beginning of each tick. What stands before ``yield`` says what agents
see. Each ``yield`` gives the next :class:`Turn`: an agent, and an action that it decided on, in the
order that the loop draws. After the last one it gives None. What is kept from tick to tick is in
``tick.state``.
"""

import inspect
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from copy import deepcopy
from random import Random
from typing import Any, ClassVar, TypeAlias, TypeVar, cast, overload

from ..errors import ConfigError, InvalidAction, InvalidInput, SimulationError, TierMemError
from ..memory.records import Hits
from .protocols import (
    NO_ARGUMENTS,
    NOBODY,
    Action,
    Ask,
    Observation,
    Outcome,
    Persona,
    Policy,
    Remark,
    WorldRandom,
)
from .society import Society, society_at
from .worlds import own_stream, refused

Turns: TypeAlias = "Generator[None, Turn | None, None]"
"""What a world's function gives, if it takes what agents decide."""
Decision: TypeAlias = Action | str | Ask | Sequence[Action | str] | Sequence[Ask] | None
"""What an agent does: actions, or their names; questions to its memory; or nothing."""

Made = TypeVar("Made", bound=Callable[..., Any])


class Turn:
    """One action of one agent."""

    def __init__(self, agent: str, action: Action, saw: Observation) -> None:
        self.agent = agent
        self.action = action
        self.saw = saw
        """What the agent observed in this tick."""
        self.outcome: Outcome | str | None = None
        """What came of it, set by the world's function. The agent remembers it."""
        self.refusal: InvalidAction | None = None

    def refuse(self, why: str, hint: str = "") -> None:
        """Refuse the action: the agent is told why in the next tick, and remembers nothing."""
        self.refusal = InvalidAction(why, hint=hint)


class Tick:
    """One tick, as a world's function sees it."""

    def __init__(
        self,
        number: int,
        agents: Sequence[str],
        state: dict[str, Any],
        rng: Random,
        personas: Mapping[str, Persona],
        society: Society | None,
    ) -> None:
        self.number = number
        """The first tick of a run is 1."""
        self.agents = agents
        self.rng = rng
        """The world's generator."""
        self._state = state
        self._personas = personas
        self.society = society
        """Who can hear whom in this tick, if the scenario or a derived class says so."""
        self._known = set(agents)
        self._is_seen = False
        self._seen: dict[str, Observation] = {}
        self._heard: dict[str, list[Remark]] = {}

    @property
    def state(self) -> dict[str, Any]:
        """What is kept from tick to tick: JSON values by name."""
        return self._state

    def others(self, agent: str) -> list[str]:
        """All agents but this one."""
        return [each for each in self.agents if each != agent]

    def near(self, agent: str) -> list[str]:
        """Those who can hear the agent: all others, where there is no society."""
        return self.others(agent) if self.society is None else self.society.near(agent)

    def draw(self, agent: str) -> Random:
        """The agent's own generator: what is drawn from it shifts nobody else's luck."""
        return own_stream(self.rng, "tick", agent)

    def persona(self, agent: str) -> Persona:
        """Who the agent is; nobody in particular, if the scenario has no personas."""
        return self._personas.get(agent, NOBODY)

    def sees(self, agent: str, seen: Observation | str, **facts: Any) -> None:
        """Let an agent observe something in this tick, once; ``facts`` are for rules.

        Who observes nothing decides as well. With the text "" there is nothing to remember.
        """
        self._check(agent)
        if agent in self._seen:
            raise SimulationError(
                f"{agent} sees something already",
                hint="an agent has one observation in a tick; use tick.hears for what else it gets",
            )
        if not isinstance(seen, str | Observation):
            raise SimulationError(f"{agent} sees {seen!r:.60}", hint="use a text or an Observation")
        observation = Observation(seen) if isinstance(seen, str) else seen
        if facts:
            observation = observation._replace(facts={**observation.facts, **facts})
        self._seen[agent] = observation

    def hears(self, agent: str, heard: Remark | str) -> None:
        """Let something reach an agent in this tick, beside what it sees. It remembers it."""
        self._check(agent)
        remark = Remark(heard) if isinstance(heard, str) else heard
        self._heard.setdefault(agent, []).append(remark)

    def observation(self, agent: str) -> Observation:
        """What the agent observes in this tick; from now on that does not change."""
        self._is_seen = True
        seen, heard = self._seen.get(agent, _NOTHING), self._heard.get(agent)
        return seen._replace(heard=[*seen.heard, *heard]) if heard else seen

    def _check(self, agent: str) -> None:
        if self._is_seen:
            raise SimulationError(
                "the agents have observed this tick already",
                hint="say what they see before the first yield",
            )
        if agent not in self._known:
            raise SimulationError(
                f"there is no agent {agent!r:.60}", hint="tick.agents has them all"
            )


_NOTHING = Observation("")


class FunctionWorld:
    """A world made of one function by :func:`world`. It is a class: a scenario may name it.

    Derive from it to give the world what a function has not: ``may_tell``, ``conversations``,
    ``facts``, metrics of its own. ``state``, ``agents`` and ``rng`` are for that.
    """

    actions: ClassVar[Mapping[str, str]] = {}
    """What agents can do: descriptions by name. If there are any, others are refused."""
    rules: ClassVar[Callable[..., Policy]]
    """How agents decide, where a function was given to :meth:`decide`."""
    _function: ClassVar[Callable[..., object]]
    _beginning: ClassVar[Mapping[str, Any]]

    def __init__(self, **options: Any) -> None:
        self._options = options
        self.state: dict[str, Any] = deepcopy(dict(self._beginning))

    @classmethod
    def decide(cls, function: Made) -> Made:
        """A decorator: the function ``(observation, memories, rng)`` is how agents decide.

        It is the policy ``rules``; its further parameters are the policy's options. It gives an
        :class:`Action` or an action's name, a list of them, an :class:`Ask`, or None.
        """
        options = _options_of(function, 3, "(observation, memories, rng)")

        def rules(**options: Any) -> Policy:
            return FunctionRules(function, options)

        rules.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
        cls.rules = cast(Callable[..., Policy], staticmethod(rules))
        return function

    def setup(
        self,
        rng: WorldRandom,
        agent_ids: Sequence[str],
        personas: Mapping[str, Persona] = NO_ARGUMENTS,
    ) -> None:
        """Begin with the state that the decorator was given."""
        self.state = deepcopy(dict(self._beginning))
        self.agents, self.rng, self.personas = list(agent_ids), rng, personas
        self._number = 1
        self._tick: Tick | None = None
        self._turns: Turns | None = None

    def observe(self, agent_id: str) -> Observation:
        """What the function says that the agent sees; the first one asked begins the tick."""
        if self._tick is None:
            self._tick = self._begun()
        return self._tick.observation(agent_id)

    def apply(self, agent_id: str, action: Action) -> Outcome | str | None:
        """Give the function the agent's turn, and take what comes of it."""
        if self.actions and action.name not in self.actions:
            raise refused(action, self.actions)
        if self._turns is None:
            raise InvalidAction("nothing can be done now")
        turn = Turn(agent_id, action, self.observe(agent_id))
        if not self._next(turn):
            raise SimulationError(
                f"the function ended after the turn of {agent_id}, and others may follow",
                hint="take turns until there is none: while turn := (yield):",
            )
        if turn.refusal:
            raise turn.refusal
        return turn.outcome

    def end_tick(self) -> None:
        """Let the function come to its end."""
        if self._tick is None:
            self._tick = self._begun()
        if self._next(None):
            raise SimulationError(
                "the function asks for another turn after the last one",
                hint="a tick has one loop of turns: while turn := (yield):",
            )
        self._tick = self._turns = None
        self._number += 1

    def metrics(self) -> Mapping[str, float]:
        """The numbers of the state with which the world began."""
        return {name: self.state[name] for name, own in self._beginning.items() if _is_number(own)}

    def by_agent(self) -> dict[str, dict[str, float]]:
        """What the state has of each agent, where it is a number."""
        return {
            name: own
            for name, own in self.state.items()
            if isinstance(own, dict)
            and own.keys() == {*self.agents}
            and all(map(_is_number, own.values()))
        }

    def get_state(self) -> Any:
        """The state, and the number of the next tick."""
        return {"tick": self._number, "state": deepcopy(self.state)}

    def set_state(self, state: Any) -> None:
        """Go on from a state."""
        self._number, self.state = state["tick"], deepcopy(state["state"])
        self._tick = self._turns = None

    def _begun(self) -> Tick:
        """The tick, after all that stands before the function's first ``yield``."""
        tick = Tick(
            self._number, self.agents, self.state, self.rng, self.personas,
            society_at(self, self._number),
        )  # fmt: skip
        turns = self._function(tick, **self._options)
        if inspect.isgenerator(turns):
            self._turns = cast(Turns, turns)
            self._next(None)
        return tick

    def _next(self, turn: Turn | None) -> bool:
        """Go on with the function; whether it waits for another turn."""
        if self._turns is None:
            return False
        try:
            self._turns.send(turn)
        except StopIteration:
            self._turns = None
            return False
        except TierMemError as error:
            # The loop would take some of these for the refusal of an action, and go on.
            raise SimulationError(
                f"{error.why} ({type(error).__name__})",
                hint="refuse an action with turn.refuse(why)"
                if isinstance(error, InvalidAction)
                else error.hint,
            ).with_traceback(error.__traceback__) from error
        return True


class FunctionRules:
    """The policy that a function is."""

    def __init__(self, function: Callable[..., Decision], options: Mapping[str, Any]) -> None:
        self._function = function
        self._options = options

    def decide(
        self, observation: Observation, memories: Hits, rng: Random
    ) -> Sequence[Action] | Ask | Sequence[Ask]:
        """What the function decides, as a list where it is one action or its name."""
        decided = self._function(observation, memories, rng, **self._options)
        if decided is None or isinstance(decided, Ask):
            return decided or []
        if isinstance(decided, str | Action):
            decided = [decided]
        if not isinstance(decided, Iterable):
            raise InvalidInput(
                f"{self._function.__name__} gave {decided!r:.60}",
                hint="give an action, its name, a list of these, an Ask, a list of Asks, or None",
            )
        return cast(
            Sequence[Action], [Action(each) if isinstance(each, str) else each for each in decided]
        )


@overload
def world(function: Callable[..., object], /) -> type[FunctionWorld]: ...


@overload
def world(**state: Any) -> Callable[[Callable[..., object]], type[FunctionWorld]]: ...


def world(
    function: Callable[..., object] | None = None, /, **state: Any
) -> type[FunctionWorld] | Callable[[Callable[..., object]], type[FunctionWorld]]:
    """A decorator: make a world of a function of a :class:`Tick`.

    ``state`` is what ``tick.state`` begins with, as JSON values; the numbers in it are the world's
    metrics. The function's parameters after the tick are the world's options.
    """
    if function is None:
        return lambda own: _world_of(own, state)
    return _world_of(function, {})


def _world_of(function: Callable[..., object], state: Mapping[str, Any]) -> type[FunctionWorld]:
    if not callable(function) or inspect.isclass(function):
        raise ConfigError(
            f"tiermem.world was given {function!r:.60}", hint="write it above a function of a tick"
        )
    options = _options_of(function, 1, "(tick)")

    def make(self: FunctionWorld, **options: Any) -> None:
        FunctionWorld.__init__(self, **options)

    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    make.__signature__ = inspect.Signature([this, *options])  # type: ignore[attr-defined]
    members = {
        "__init__": make,
        "__module__": function.__module__,
        "__doc__": function.__doc__,
        "__qualname__": function.__qualname__,
        "_function": staticmethod(function),
        "_beginning": deepcopy(state),
    }
    made = cast(type[FunctionWorld], type(function.__name__, (FunctionWorld,), members))
    if not inspect.isgeneratorfunction(function):  # it takes no turns, so nobody need decide
        made.decide(_nothing)
    return made


def _nothing(observation: Observation, memories: Hits, rng: Random) -> None:
    """Agents only watch."""


def _options_of(function: Callable[..., Any], given: int, called: str) -> list[inspect.Parameter]:
    """The parameters after those that are ``given`` by place, as keywords."""
    name = getattr(function, "__name__", "the function")
    taken = list(inspect.signature(function).parameters.values())
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(taken) < given or any(each.kind not in by_place for each in taken[:given]):
        raise ConfigError(
            f"{name}{inspect.signature(function)} can't be called with {called}",
            hint=f"write def {name}{called}, and options after that, with defaults",
        )
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in taken[given:]]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
