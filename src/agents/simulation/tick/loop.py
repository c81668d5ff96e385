"""The tick loop: observe, decide, act, remember, record, commit.

There is one loop. Where the agents are is for their part of a tick to know: in a bank of this
process, or in the cells of workers.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ...bank.memory_bank import MemoryBank
from ...errors import InvalidInput, SimulationError
from ...memory.sources import Telling
from ...telling.groups import GroupChange
from ..protocols import NO_ARGUMENTS, Observation, Persona, Policy, Say, World
from .act import Deed, act, changes_in, told_in
from .branch_rules import NO_RULES, BranchRules
from .decide import Together
from .minds import Minds
from .streams import Streams
from .talk import Asked, converse
from .user_code import (
    call,
    changed_metrics,
    check_state,
    groups_of,
    metrics_of,
    not_kept,
    observe,
    set_up,
)

__all__ = ["Loop", "Together"]


class AgentsPart(Protocol):
    """What the agents do in a tick: :class:`Minds`, or a driver of workers."""

    @property
    def tick(self) -> int:
        """The last tick, or the one that is under way."""

    def go_on(self) -> tuple[Mapping[str, float], Any] | None:
        """Go on from the last tick; its metrics, and the world's state. None before tick 0."""

    def at_work(self) -> AbstractContextManager[None]:
        """A tick, as a block. An error undoes it, unless it is recorded."""

    def begin(self, tick: int) -> None:
        """Begin this tick, in its block."""

    def say(self, asked: Asked) -> Mapping[str, Say]:
        """What agents say whose turn it is in a conversation; before they decide."""

    def decide(self, seen: Mapping[str, Observation]) -> Mapping[str, Sequence[object]]:
        """What each agent wants to do."""

    def remember(
        self,
        deeds: Mapping[str, Sequence[Deed]],
        told: Sequence[Telling],
        changes: Sequence[GroupChange],
    ) -> dict[str, Any]:
        """Store what came of it; what the record of the tick counts.

        ``told`` is in the order of receivers, senders and numbers; ``changes`` are what agents did
        with groups, in the order of acting.
        """

    def record(
        self, counts: Mapping[str, Any], metrics: Mapping[str, float], world: Any
    ) -> dict[str, Any]:
        """Record the tick, with the world's state; InvalidInput if that is not JSON."""


class WorldLoop:
    """Runs a world tick by tick with its agents, wherever these are."""

    def __init__(
        self,
        agents: AgentsPart,
        world: World,
        agent_ids: Sequence[str],
        seed: int,
        rules: BranchRules = NO_RULES,
        personas: Mapping[str, Persona] = NO_ARGUMENTS,
    ) -> None:
        self._agents = agents
        self._personas = personas
        self._world = world
        self._agent_ids = list(agent_ids)
        self._rules = rules
        self._streams = Streams(seed, self._agent_ids, rules)
        self._spent = False
        self._names: list[str] | None = None
        """The names of the metrics."""

    def _set_up(self) -> None:
        self._streams.begin(0)
        set_up(self._world, self._streams.world, self._agent_ids, self._personas)

    def go_on(self) -> list[str] | None:
        """Go on from the last tick, if there is one; the metrics that are not what they were.

        Such a difference shows that ``get_state`` or ``set_state`` leaves something out, unless the
        metric changes every time it is asked for.
        """
        self._set_up()
        recorded = self._agents.go_on()
        if recorded is None:
            return None
        metrics, state = recorded
        self._call("set_state", state)
        changed = changed_metrics(metrics, self._metrics(), self._metrics()) if metrics else []
        if again := self._agents.go_on():  # metrics() may have changed the world
            self._call("set_state", again[1])
        return changed

    @property
    def is_spent(self) -> bool:
        """Whether a tick failed: world and policy have to be made anew."""
        return self._spent

    def tick(self) -> dict[str, Any]:
        """Run one tick, and give its record."""
        if self._spent:
            raise SimulationError(
                "a tick of this simulation failed, and its world is not what it was",
                hint="open it again",
            )
        self._spent = True
        tick = self._agents.tick + 1
        with self._agents.at_work():
            self._agents.begin(tick)
            record = self._tick(tick)
        self._spent = False
        return record

    def _tick(self, tick: int) -> dict[str, Any]:
        world, agents, ids = self._world, self._agents, self._agent_ids
        self._streams.begin(tick)
        seen: Mapping[str, Observation] = dict(zip(ids, observe(world, ids, tick), strict=True))
        if self._personas:
            seen = {who: own._replace(persona=self._personas[who]) for who, own in seen.items()}
        if self._rules:
            seen = self._rules.heard(seen, tick)
        seen = converse(world, agents.say, seen, tick, self._rules, self._streams.world)
        deeds = act(world, self._streams.order(), agents.decide(seen), tick)
        counts = agents.remember(deeds, told_in(deeds), changes_in(deeds))
        self._call("end_tick")
        return self._record(counts)

    def _record(self, counts: Mapping[str, Any]) -> dict[str, Any]:
        metrics, state = self._metrics(), self._call("get_state")
        try:
            check_state(state)
            return self._agents.record(counts, metrics, state)
        except (InvalidInput, ValueError) as error:
            raise not_kept(self._world, self._agents.tick, error) from error

    def _metrics(self) -> dict[str, float]:
        metrics = metrics_of(self._world, self._agents.tick, self._names)
        self._names = [*metrics]
        return metrics

    def _call(self, method: str, *arguments: object) -> Any:
        return call(self._world, method, self._agents.tick, *arguments)


class Loop(WorldLoop):
    """Runs a world, its agents' policy and their memories, tick by tick.

    One commit holds everything that a tick changes: the memories and the world's state. So a bank
    is always between two ticks, and a new loop on it goes on where the last loop stopped.
    """

    def __init__(
        self,
        bank: MemoryBank,
        world: World,
        policy: Policy,
        agent_ids: Sequence[str],
        rules: BranchRules = NO_RULES,
        personas: Mapping[str, Persona] = NO_ARGUMENTS,
    ) -> None:
        """``personas`` say who each agent is; without them nobody has one."""
        self._bank = bank
        self._minds = Minds(bank, policy, list(agent_ids), rules)
        super().__init__(self._minds, world, agent_ids, bank.settings.seed, rules, personas)

    def begin(self, memories: Sequence[tuple[object, ...]] = ()) -> list[str]:
        """Set the world up; ``memories`` are the agents' first memories.

        On a bank that has ticks, :meth:`go_on` instead.
        """
        changed = self.go_on()
        if changed is not None:
            return changed
        with self._bank.transaction():
            self._bank.add_many(memories)
            self._make_groups()
            self._record(self._minds.counts())
        return []

    def _make_groups(self) -> None:
        for name, members in groups_of(self._world).items():
            strangers = [member for member in members if member not in self._agent_ids]
            if strangers:
                raise SimulationError(
                    f"{type(self._world).__name__}.groups() names {strangers[0]!r:.60}, who is "
                    "not an agent of the run"
                )
            try:
                self._bank.group(name, members)
            except InvalidInput as error:
                raise SimulationError(
                    f"{type(self._world).__name__}.groups() gave what is not a group: {error}"
                ) from error
