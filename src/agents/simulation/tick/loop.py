"""The tick loop: observe, remember, decide, act, record, commit."""

from collections.abc import Sequence
from typing import Any

from ...bank.memory_bank import MemoryBank
from ...errors import InvalidInput, SimulationError
from ...storage.interrupts import first
from ..protocols import Policy, World
from .act import act, changes_in, told_in
from .branch_rules import NO_RULES, Standing
from .decide import Together
from .decision_log import DecisionLog
from .minds import Minds
from .record import tick_record
from .social import Boards, used_in
from .user_code import call, changed_metrics, check_state, groups_of, metrics_of, not_kept, observe

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
        self._agents = list(agent_ids)
        self._rules = rules
        self._minds = Minds(bank, policy, self._agents, rules)
        self._spent = False
        self._names: list[str] | None = None
        """The names of the metrics."""

    def begin(self, memories: Sequence[tuple[object, ...]] = ()) -> list[str]:
        """Set the world up; ``memories`` are the agents' first memories.

        On a bank that has ticks, go on from the last tick instead, and give the metrics that are
        not what they were. Such a difference shows that ``get_state`` or ``set_state`` leaves
        something out, unless the metric changes every time it is asked for.
        """
        streams = self._minds.streams
        streams.begin(0)
        self._call("setup", streams.world, tuple(self._agents))
        kept = self._bank.ticks.state()
        if kept is not None:
            self._call("set_state", kept["world"])
            self._minds.go_on(kept)
            found = self._differences()
            # metrics() may have changed the world.
            self._call("set_state", self._bank.ticks.state()["world"])
            return found
        with self._bank.transaction():
            self._bank.add_many(memories)
            self._make_groups()
            self._record(self._minds.counts())
        return []

    def _make_groups(self) -> None:
        for name, members in groups_of(self._world).items():
            strangers = [each for each in members if each not in self._agents]
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
        minds, agents, number = self._minds, self._agents, self._bank.tick + 1
        with self._bank.transaction():
            minds.begin(number)
            seen = dict(zip(agents, observe(self._world, agents, number), strict=True))
            if self._rules:
                seen = self._rules.heard(seen, number)
            decided = minds.decide(seen)
            log = minds.log(decided)
            actions = dict(zip(agents, decided.actions, strict=True))
            deeds = act(self._world, minds.streams.order(), actions, number)
            boards = Boards(used_in(decided.asked), changes_in(deeds))
            counts = minds.remember(decided, deeds, told_in(deeds), boards, log)
            self._call("end_tick")
            return self._record(counts, log)

    def _record(self, counts: dict[str, Any], log: DecisionLog | None = None) -> dict[str, Any]:
        bank, metrics, world = self._bank, self._metrics(), self._call("get_state")
        try:
            check_state(world)
            record = tick_record(bank.tick, bank.state_hash(), counts, metrics)
            kept = (log.retrieved, log.packed()) if log else (b"", b"")
            bank.ticks.record(record, {"world": world, **self._minds.state()}, *kept)
        except (InvalidInput, ValueError) as error:
            raise not_kept(self._world, bank.tick, error) from error
        return record

    def _metrics(self) -> dict[str, float]:
        metrics = metrics_of(self._world, self._bank.tick, self._names)
        self._names = [*metrics]
        return metrics

    def _call(self, method: str, *arguments: object) -> Any:
        return call(self._world, method, self._bank.tick, *arguments)
