"""The agents of a bank in a tick: they search and decide, and remember what they saw and did.

A bank has all agents of a run, or those of a cell; nothing here looks at the world. So one class
does the ticks of a process, of a worker, and those that a log has.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from ...bank.memory_bank import MemoryBank
from ...errors import TierMemError
from ...memory.records import Hits
from ...memory.sources import Telling
from ...telling import tell
from ..protocols import Flushing, Observation, Outcome, Policy
from .act import Deed
from .actions import REFUSED, refusal
from .branch_rules import NO_RULES, Standing
from .decide import Decided, decide
from .decision_log import DONE, REFUSAL, UNANSWERED, DecisionLog
from .flush import Contexts, Saving
from .record import do_what_is_due, tick_counts
from .reflect import reflect
from .remember import Recorder, rate_by, save
from .social import Boards, change_boards
from .streams import Streams
from .user_code import failed


class Minds:
    """The agents of one bank, with their policy, their generators and their contexts."""

    def __init__(
        self, bank: MemoryBank, policy: Policy, agents: Sequence[str], rules: Standing = NO_RULES
    ) -> None:
        own = bank.settings
        self.streams = Streams(own.seed, agents, rules)
        self._bank, self._policy, self._rules = bank, policy, rules
        self._errors: dict[str, list[str]] = {}
        """What was wrong with the agents' actions in the tick before."""
        self._contexts = Contexts(bank, agents) if own.flush.enabled else None
        self._rate = rate_by(bank, policy)
        self._no_ops = self._reflected = self._insights = 0

    def go_on(self, kept: Mapping[str, Any]) -> None:
        """Go on from a state of :meth:`state`, which a bank kept."""
        self._errors = {agent: list(errors) for agent, errors in kept["errors"].items()}
        if self._contexts is not None and "contexts" in kept:  # a branch may switch flushes on
            self._contexts.set_state(kept["contexts"])

    def state(self) -> dict[str, Any]:
        """What the agents carry from tick to tick beside their memories, as JSON values."""
        contexts = {} if self._contexts is None else {"contexts": self._contexts.get_state()}
        return {"errors": self._errors, **contexts}

    # The phases of a tick

    def begin(self, tick: int) -> None:
        """Begin a tick, inside a transaction of the bank."""
        self._bank.advance(tick)
        self.streams.begin(tick)

    def decide(self, seen: Mapping[str, Observation], policy: Policy | None = None) -> Decided:
        """What the agents decide; ``policy`` decides in the place of theirs, from a log."""
        return decide(
            self._bank, policy or self._policy, self.streams.agents, seen, self._errors, self._rules
        )

    def log(self, decided: Decided) -> DecisionLog:
        """The log of these decisions, which :meth:`remember` goes on with."""
        return DecisionLog(list(map(self._rules.remembered, decided.observations)), decided.given)

    def remember(
        self,
        decided: Decided,
        deeds: Mapping[str, Sequence[Deed]],
        told: Sequence[Telling],
        boards: Boards,
        log: DecisionLog | None = None,
    ) -> dict[str, Any]:
        """Store what the agents saw, did and were told; flush, reflect, tidy up; what it counts.

        ``boards`` has what all agents of the run did with groups, also those that are not here.
        """
        self._errors, self._no_ops = {}, 0
        self._store(decided, deeds, log)
        bank, rules = self._bank, self._rules
        heard = [each for each in told if not (rules and rules.is_unheard(each, bank.tick))]
        if heard:
            tell.deliver(bank.engine, heard)
        change_boards(bank, boards)
        if self._contexts is not None:
            self._contexts.end_tick(self._saving(decided))
        if bank.settings.reflection.enabled:
            done = reflect(bank, self._policy, decided.observations, self.streams.agents, rules)
            self._reflected, self._insights = done.agents, done.insights
            for agent, why in done.errors.items():
                self._errors.setdefault(agent, []).extend(why)
        do_what_is_due(bank)
        return self.counts(decided.given.hits)

    def counts(self, found: Sequence[Hits] = ()) -> dict[str, Any]:
        """What the record of the tick counts; ``found`` is what the agents were given."""
        errors = sum(map(len, self._errors.values()))
        counts = tick_counts(self._bank, found, errors=errors, no_ops=self._no_ops)
        if (contexts := self._contexts) is not None:
            counts |= {"flushes": contexts.flushes, "flush_failures": contexts.failures}
        if self._bank.settings.reflection.enabled:
            counts |= {"reflections": self._reflected, "insights": self._insights}
        return counts

    # Inside

    def _store(
        self, decided: Decided, deeds: Mapping[str, Sequence[Deed]], log: DecisionLog | None
    ) -> None:
        """Store what the agents saw and did; agent after agent, in the order of ``deeds``."""
        if log is not None:
            for agent, answer in chain.from_iterable(decided.asked):
                log.asked(agent, answer)
        if self._contexts is not None:
            self._contexts.begin_tick(decided.observations, decided.given.hits)
        seen = {each.agent_id: each for each in decided.observations}
        recorder = Recorder(self._bank, self._contexts, self._rules)
        if (rate := self._rate) is not None:
            recorder.rate = lambda items: rate(items, seen)
        for agent, done in deeds.items():
            recorder.observed(seen[agent])
            for deed in done:
                self._deed(agent, deed, recorder, log)
        recorder.flush()
        if log is not None:
            log.repeated(recorder.repeats.found)

    def _deed(self, agent: str, deed: Deed, recorder: Recorder, log: DecisionLog | None) -> None:
        action, result, outcome = deed[:3]
        born = False
        if result is None and action is not None:
            try:
                born = recorder.memory_action(agent, action)
                result = DONE
            except REFUSED as error:
                result = REFUSAL
                outcome = Outcome(refusal(action.name, error), success=False)
        result = result or DONE
        if result == UNANSWERED:
            self._no_ops += 1
        elif result == REFUSAL and outcome is not None:
            # The agent is told in the next tick. What the loop says is not a memory.
            self._errors.setdefault(agent, []).append(outcome.text)
            if self._contexts is not None:
                self._contexts.saw(agent, outcome.text)
        elif outcome is not None and action is not None:
            born = recorder.happened(agent, action.name, outcome)
        if log is not None:
            log.did(agent, action, result, born=born)

    def _saving(self, decided: Decided) -> Saving | None:
        """Lets agents save what should last; None if their policy has no ``flush``."""
        policy, bank, rngs = self._policy, self._bank, self.streams.agents
        if not isinstance(policy, Flushing):
            return None
        given = {
            seen.agent_id: (seen, hits)
            for seen, hits in zip(decided.observations, decided.given.hits, strict=True)
        }

        def saving(agent: str, prompt: str) -> None:
            try:
                told = save(policy, *given[agent], rngs[agent], prompt, bank, self._rules)
            except TierMemError:
                raise
            except Exception as error:  # a user's own policy may raise anything
                raise failed(policy, "flush", bank.tick, error) from error
            if told:
                self._errors.setdefault(agent, []).extend(told)

        return saving
