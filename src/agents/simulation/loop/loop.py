"""The tick loop: observe, remember, decide, act, record, commit."""

import math
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Protocol, runtime_checkable

import orjson

from ...bank.memory_bank import MemoryBank
from ...errors import ConfigError, InvalidInput, SimulationError, TierMemError
from ...memory.records import Hits
from ...storage.signals import first
from ..protocols import Action, Ask, Flushing, Observation, Outcome, Policy, Remark, World
from .actions import NO_OP, OWN_ACTIONS, REFUSED, as_action, is_list, refusal
from .asking import answers, asked_in
from .decisions import DONE, FAILED, REFUSAL, UNANSWERED, DecisionLog
from .flushing import Contexts, Saving
from .recorder import Recorder, save
from .streams import Streams
from .tick_end import do_what_is_due, tick_record

__all__ = ["Loop", "Together", "check_number", "where_in"]


@runtime_checkable
class Together(Protocol):
    """A policy that decides for all agents at once."""

    def decide_all(
        self, observations: Sequence[Observation], memories: Sequence[Hits], rngs: Sequence[Random]
    ) -> Sequence[Sequence[Action]]:
        """The actions of each agent, in the order of ``observations``."""


class Loop:
    """Runs a world, its agents' policy and their memories, tick by tick.

    One commit holds everything that a tick changes: the memories and the world's state. So a bank
    is always between two ticks, and a new loop on it goes on where the last loop stopped.
    """

    def __init__(
        self, bank: MemoryBank, world: World, policy: Policy, agent_ids: Sequence[str]
    ) -> None:
        self._bank = bank
        self._world = world
        self._policy = policy
        self._agents = list(agent_ids)
        own = bank.settings.simulation
        self._streams = Streams(bank.settings.seed, self._agents, own.streams)
        self._errors: dict[str, list[str]] = {}
        self._spent = False
        self._asks = own.asks
        self._no_ops = 0
        """The tick's decisions without an answer."""
        self._names: list[str] | None = None
        """The names of the metrics."""
        self._contexts = Contexts(bank, self._agents) if bank.settings.flush.enabled else None

    def begin(self, memories: Sequence[tuple[object, ...]] = ()) -> list[str]:
        """Set the world up; ``memories`` are the agents' first memories.

        On a bank that has ticks, go on from the last tick instead, and give the metrics that are
        not what they were. Such a difference shows that ``get_state`` or ``set_state`` leaves
        something out, unless the metric changes every time it is asked for.
        """
        self._streams.begin(0)
        self._call("setup", self._streams.world, tuple(self._agents))
        kept = self._bank.ticks.state()
        if kept is not None:
            self._call("set_state", kept["world"])
            self._errors = {agent: list(errors) for agent, errors in kept["errors"].items()}
            if self._contexts is not None and "contexts" in kept:  # a branch may switch flushes on
                self._contexts.set_state(kept["contexts"])
            found = self._differences()
            # metrics() may have changed the world.
            self._call("set_state", self._bank.ticks.state()["world"])
            return found
        with self._bank.transaction():
            self._bank.add_many(memories)
            self._record(())
        return []

    def _differences(self) -> list[str]:
        last = first(self._bank.ticks.records(after=self._bank.tick - 1))
        if last is None:  # a caller advanced the bank without a loop
            return []
        recorded, _ = last
        now, again = self._metrics(), self._metrics()
        return [
            f"{name} is {now.get(name)!r} and was {value!r}"
            for name, value in recorded["metrics"].items()
            if now.get(name) != value and now.get(name) == again.get(name)
        ]

    def tick(self) -> dict[str, Any]:
        """Run one tick, and give its record."""
        if self._spent:
            raise SimulationError(
                "a tick of this simulation failed, and its world is not what it was",
                hint="open it again",
            )
        self._spent = True
        record = self._tick()
        self._spent = False
        return record

    def _tick(self) -> dict[str, Any]:
        bank, streams = self._bank, self._streams
        number = bank.tick + 1
        with bank.transaction():
            bank.advance(number)
            streams.begin(number)
            observations = self._observe(number)
            given = bank.ticks.given(
                [(seen.agent_id, seen.text if seen.query is None else seen.query)
                 for seen in observations]
            )  # fmt: skip
            found, log = given.hits, DecisionLog(observations, given)
            decided = self._decide(observations, found, log)
            self._errors, self._no_ops = {}, 0
            if self._contexts is not None:
                self._contexts.begin_tick(observations, found)
            tick = Recorder(bank, self._contexts)
            for agent in streams.order():
                seen, actions = decided[agent]
                tick.observed(seen)
                for action in actions:
                    self._act(agent, action, tick, log)
            tick.flush()
            if self._contexts is not None:
                self._contexts.end_tick(self._saving(observations, found))
            self._call("end_tick")
            do_what_is_due(bank)
            return self._record(found, log)

    def _observe(self, tick: int) -> list[Observation]:
        try:
            observe = self._world.observe
            given = [observe(agent) for agent in self._agents]
        except Exception as error:  # a user's own world may raise anything
            raise self._failed(self._world, "observe", error) from error
        return [
            self._seen(agent, seen, tick) for agent, seen in zip(self._agents, given, strict=True)
        ]

    def _seen(self, agent: str, seen: object, tick: int) -> Observation:
        if isinstance(seen, str):
            seen = Observation(seen)
        if not isinstance(seen, Observation):
            raise SimulationError(
                f"{self._name()}.observe({agent!r}) gave {seen!r:.60}; "
                "an Observation or a text is needed"
            )
        heard = seen.heard
        if not isinstance(heard, list | tuple) or [
            each for each in heard if not isinstance(each, Remark)
        ]:
            raise SimulationError(
                f"{self._name()}.observe({agent!r}) gave heard={heard!r:.60}; a list of Remarks is "
                "needed"
            )
        errors = self._errors.get(agent, ())
        # As _replace() does, in less time.
        return type(seen)._make((*seen[:12], agent, tick, tuple(errors), (), self._asks))

    def _decide(
        self, observations: list[Observation], found: Sequence[Hits], log: DecisionLog
    ) -> dict[str, tuple[Observation, Sequence[object]]]:
        """The actions of each agent. ``observations`` get the answers to what policies asked."""
        decided = self._decided(observations, found)
        asking = [place for place, each in enumerate(decided) if asked_in(each)]
        for left in range(self._asks - 1, -1, -1):
            if not asking:
                break
            self._answer(observations, {place: asked_in(decided[place]) for place in asking}, log)
            for place in asking:
                observations[place] = observations[place]._replace(asks_left=left)
            again = self._decided(
                [observations[place] for place in asking], [found[place] for place in asking]
            )
            for place, each in zip(asking, again, strict=True):
                decided[place] = each
            asking = [place for place in asking if asked_in(decided[place])]
        # A question that is left is refused, as an action that can't be done.
        return {
            seen.agent_id: (seen, asked_in(each) or each)
            for seen, each in zip(observations, decided, strict=True)
        }

    def _decided(
        self, observations: Sequence[Observation], found: Sequence[Hits]
    ) -> list[Sequence[object]]:
        """What the policy says for each observation: actions, or questions."""
        policy, rngs = self._policy, self._streams.agents
        own = [rngs[seen.agent_id] for seen in observations]
        try:
            if isinstance(policy, Together):
                given: list[Any] = list(policy.decide_all(observations, found, own))
            else:
                given = list(map(policy.decide, observations, found, own))
        except SimulationError:
            raise
        except Exception as error:  # a user's own policy may raise anything
            raise self._failed(policy, "decide", error) from error
        for seen, each in zip(observations, given, strict=True):
            if type(each) is not list and not is_list(each) and not isinstance(each, Ask):
                raise SimulationError(
                    f"{type(policy).__name__}.decide() gave {each!r:.60} for {seen.agent_id} in "
                    f"tick {seen.tick}; a list of actions is needed"
                )
        return given

    def _answer(
        self, observations: list[Observation], asked: Mapping[int, list[Ask]], log: DecisionLog
    ) -> None:
        """Answer the questions of a round together; ``asked`` has them by place of the agent."""
        places = [place for place, asks in asked.items() for _ in asks]
        whose = [observations[place].agent_id for place in places]
        questions = [ask for asks in asked.values() for ask in asks]
        pairs = list(zip(whose, questions, strict=True))
        for place, answer in zip(places, answers(self._bank.parts, pairs), strict=True):
            seen = observations[place]
            observations[place] = seen._replace(answers=(*seen.answers, answer))
            log.asked(seen.agent_id, answer)

    def _act(self, agent: str, given: object, tick: "Recorder", log: DecisionLog) -> None:
        name, action = "an action", None
        try:
            action = as_action(given)
            name = action.name
            if name in OWN_ACTIONS:
                log.did(agent, action, DONE, born=tick.memory_action(agent, action))
                return
            if name == NO_OP:
                self._no_ops += 1
                reason = action.arguments.get("reason", "no reason given")
                told = Outcome(f"did nothing: {reason}", success=False)
                log.did(agent, action, UNANSWERED, born=tick.happened(agent, name, told))
                return
            outcome = self._world.apply(agent, action)
        except REFUSED as error:
            message = refusal(name, error)
            self._errors.setdefault(agent, []).append(message)
            born = tick.happened(agent, name, Outcome(message, success=False))
            log.did(agent, action, REFUSAL, born=born)
            return
        except Exception as error:  # a user's own world may raise anything
            raise self._failed(self._world, "apply", error) from error
        if isinstance(outcome, str):
            outcome = Outcome(outcome)
        if isinstance(outcome, Outcome):
            result = DONE if outcome.success else FAILED
            log.did(agent, action, result, born=tick.happened(agent, name, outcome))
        elif outcome is None:
            log.did(agent, action, DONE, born=False)
        else:
            raise SimulationError(
                f"{self._name()}.apply({agent!r}, {name}) gave {outcome!r:.60}; an Outcome, a text "
                "or None is needed"
            )

    def _saving(self, observations: Sequence[Observation], found: Sequence[Hits]) -> Saving | None:
        """Lets agents save what should last; None if their policy has no ``flush``."""
        policy = self._policy
        if not isinstance(policy, Flushing):
            return None
        given = dict(zip(self._agents, zip(observations, found, strict=True), strict=True))

        def saving(agent: str, prompt: str) -> None:
            seen, hits = given[agent]
            rng = self._streams.agents[agent]
            try:
                told = save(policy, seen, hits, rng, prompt, self._bank)
            except TierMemError:
                raise
            except Exception as error:  # a user's own policy may raise anything
                raise self._failed(policy, "flush", error) from error
            if told:
                self._errors.setdefault(agent, []).extend(told)

        return saving

    def _record(self, found: Sequence[Hits], log: DecisionLog | None = None) -> dict[str, Any]:
        bank = self._bank
        told = sum(map(len, self._errors.values()))
        record = tick_record(bank, found, self._metrics(), errors=told, no_ops=self._no_ops)
        state = {"world": self._call("get_state"), "errors": self._errors}
        if self._contexts is not None:
            record["flushes"] = self._contexts.flushes
            record["flush_failures"] = self._contexts.failures
            state["contexts"] = self._contexts.get_state()
        try:
            _check_keys(state)
            kept = (log.retrieved, log.packed()) if log else (b"", b"")
            bank.ticks.record(record, state, *kept)
        except (InvalidInput, ValueError) as error:
            raise SimulationError(
                f"{self._name()}.get_state() gave in tick {bank.tick} what can't be kept: {error}"
            ) from error
        return record

    def _metrics(self) -> dict[str, float]:
        given = self._call("metrics")
        try:
            metrics = {str(name): check_number(value) for name, value in given.items()}
            if self._names is not None and [*metrics] != self._names:
                raise ValueError(f"the names are not those of the tick before: {[*metrics]!r:.200}")
        except (AttributeError, TypeError, ValueError) as error:
            raise SimulationError(
                f"{self._name()}.metrics() gave in tick {self._bank.tick} what can't be kept: "
                f"{error}"
            ) from error
        self._names = [*metrics]
        return metrics

    def _call(self, method: str, *arguments: object) -> Any:
        """Call a method of the world; an error names the method."""
        try:
            return getattr(self._world, method)(*arguments)
        except ConfigError:
            raise  # setup() found options that don't fit together
        except Exception as error:  # a user's own world may raise anything
            raise self._failed(self._world, method, error) from error

    def _failed(self, whose: object, method: str, error: Exception) -> SimulationError:
        where = f"{type(whose).__name__}.{method}()"
        return SimulationError(
            f"{where} raised {type(error).__name__} in tick {self._bank.tick}: {error}"
            f"{where_in(error)}; the run is as it was after the tick before"
        )

    def _name(self) -> str:
        return type(self._world).__name__


def check_number(value: object) -> float:
    """``value`` itself if it is a number that a table can hold, or ValueError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 2**53:
        return value
    if hasattr(value, "item") and not isinstance(value, int | float):  # a NumPy number
        return check_number(value.item())
    if isinstance(value, float) and math.isfinite(value):
        return value
    what = "too large" if isinstance(value, int) and not isinstance(value, bool) else "no number"
    raise ValueError(f"{value!r:.60} is {what}; a finite number up to 2^53 is needed")


def _check_keys(state: object) -> None:
    """Refuse keys that are not text: JSON would give them back as text."""
    try:
        orjson.dumps(state)  # refuses other keys too, in a tenth of the time
    except TypeError:  # a key may be the reason, or a value
        _find_key(state)


def _find_key(value: object) -> None:
    if isinstance(value, dict):
        for key, child in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{key!r:.60} is a key; JSON has text for keys")
            _find_key(child)
    elif isinstance(value, list | tuple):
        for child in value:
            _find_key(child)


def where_in(error: Exception) -> str:
    """The file and line of an error, in brackets."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    if not last or last[0].filename.startswith("<"):  # Python's own import system
        return ""
    return f" ({Path(last[0].filename).name}, line {last[0].lineno})"
