"""The tick loop: observe, remember, decide, act, record, commit."""

from collections.abc import Sequence
from typing import Any

from ...bank.memory_bank import MemoryBank
from ...errors import InvalidInput, SimulationError
from ...memory.records import Hits
from ...storage.interrupts import first
from ..protocols import Policy, World
from .acting import act, changes_in, told_in
from .deciding import Together, decide
from .decisions import DecisionLog
from .failures import call
from .flushing import Contexts
from .grouping import Boards, used_in
from .keeping import changed_metrics, groups_of, metrics_of, not_kept
from .observing import observe
from .recording import Recording
from .remembering import remember
from .standing import NO_RULES, Standing
from .streams import Streams
from .tick_end import do_what_is_due, record_tick

__all__ = ["Loop", "Together"]


class Loop:
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
        rules: Standing = NO_RULES,
    ) -> None:
        self._bank = bank
        self._world = world
        self._policy = policy
        self._agents = list(agent_ids)
        version = bank.settings.simulation.streams
        self._rules = rules
        self._streams = Streams(bank.settings.seed, self._agents, version, rules)
        self._errors: dict[str, list[str]] = {}
        self._spent = False
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
            self._make_groups()
            self._record(())
        return []

    def _make_groups(self) -> None:
        for name, members in groups_of(self._world).items():
            strangers = [each for each in members if each not in self._agents]
            if strangers:
                raise SimulationError(
                    f"{type(self._world).__name__}.groups() names {strangers[0]!r:.60}, who is no "
                    "agent of the run"
                )
            try:
                self._bank.group(name, members)
            except InvalidInput as error:
                raise SimulationError(
                    f"{type(self._world).__name__}.groups() gave what is not a group: {error}"
                ) from error

    def _differences(self) -> list[str]:
        last = first(self._bank.ticks.records(after=self._bank.tick - 1))
        if last is None:  # a caller advanced the bank without a loop
            return []
        recorded, _ = last
        return changed_metrics(recorded["metrics"], self._metrics(), self._metrics())

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
        bank, streams, agents = self._bank, self._streams, self._agents
        number = bank.tick + 1
        with bank.transaction():
            bank.advance(number)
            streams.begin(number)
            seen = dict(zip(agents, observe(self._world, agents, number), strict=True))
            if self._rules:
                seen = self._rules.heard(seen, number)
            decided = decide(bank, self._policy, streams.agents, seen, self._errors, self._rules)
            log = DecisionLog(
                list(map(self._rules.remembered, decided.observations)), decided.given
            )
            actions = dict(zip(agents, decided.actions, strict=True))
            deeds = act(self._world, streams.order(), actions, number)
            boards = Boards(used_in(decided.asked), changes_in(deeds))
            recording = remember(
                bank, self._policy, streams.agents, self._contexts, self._rules,
                decided, deeds, told_in(deeds), boards, log,
            )  # fmt: skip
            self._errors = recording.errors
            self._call("end_tick")
            do_what_is_due(bank)
            return self._record(decided.given.hits, log, recording)

    def _record(
        self,
        found: Sequence[Hits],
        log: DecisionLog | None = None,
        recording: Recording | None = None,
    ) -> dict[str, Any]:
        metrics, state = self._metrics(), self._call("get_state")
        try:
            return record_tick(
                self._bank, self._contexts, log, found, metrics, state, self._errors, recording
            )
        except (InvalidInput, ValueError) as error:
            raise not_kept(self._world, self._bank.tick, error) from error

    def _metrics(self) -> dict[str, float]:
        metrics = metrics_of(self._world, self._bank.tick, self._names)
        self._names = [*metrics]
        return metrics

    def _call(self, method: str, *arguments: object) -> Any:
        return call(self._world, method, self._bank.tick, *arguments)
