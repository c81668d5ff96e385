"""The fourth phase of a tick: agents remember what they saw and did, and change their memories."""

from collections.abc import Mapping, Sequence
from itertools import chain
from random import Random

from ...bank.memory_bank import MemoryBank
from ...engine import telling
from ...errors import TierMemError
from ...memory.sources import Telling
from ..protocols import Flushing, Outcome, Policy
from .acting import Deed
from .actions import REFUSED, refusal
from .deciding import Decided
from .decisions import DONE, REFUSAL, UNANSWERED, DecisionLog
from .failures import failed
from .flushing import Contexts, Saving
from .grouping import Boards, change_boards
from .rating import Rate
from .recorder import Recorder, save
from .reflecting import reflect
from .standing import NO_RULES, Standing


class Recording:
    """Records a tick in a bank. Afterwards it has what the agents and the tick's record are told.

    ``contexts`` are those of the agents, if they are flushed. ``rate`` says how important new
    memories are, if their tiers don't.
    """

    def __init__(
        self,
        bank: MemoryBank,
        contexts: Contexts | None,
        rate: Rate | None = None,
        rules: Standing = NO_RULES,
    ) -> None:
        self._rate = rate
        self.errors: dict[str, list[str]] = {}
        """What was wrong with the agents' actions."""
        self.no_ops = 0
        """The decisions without an answer."""
        self.reflected = self.insights = 0
        """How many agents reflected, and what came of it."""
        self._bank = bank
        self._contexts = contexts
        self._rules = rules

    def deeds(
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

    def deliver(self, told: Sequence[Telling]) -> None:
        """Store what agents of the bank were told, in this order."""
        if self._rules:
            told = [each for each in told if not self._rules.is_unheard(each, self._bank.tick)]
        if told:
            telling.deliver(self._bank.engine, told)

    def boards(self, boards: Boards) -> None:
        """Keep what agents did with groups, and what they found on boards."""
        change_boards(self._bank, boards)

    def flushes(self, policy: Policy, decided: Decided, rngs: Mapping[str, Random]) -> None:
        """Flush and compact the contexts that are full enough."""
        if self._contexts is not None:
            self._contexts.end_tick(self._saving(policy, decided, rngs))

    def reflections(self, policy: Policy, decided: Decided, rngs: Mapping[str, Random]) -> None:
        """Let the agents reflect that lived through enough."""
        done = reflect(self._bank, policy, decided.observations, rngs, self._rules)
        self.reflected, self.insights = done.agents, done.insights
        for agent, told in done.errors.items():
            self.errors.setdefault(agent, []).extend(told)

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
            self.no_ops += 1
        elif result == REFUSAL and outcome is not None:
            # The agent is told in the next tick. What the loop says is not a memory.
            self.errors.setdefault(agent, []).append(outcome.text)
            if self._contexts is not None:
                self._contexts.saw(agent, outcome.text)
        elif outcome is not None and action is not None:
            born = recorder.happened(agent, action.name, outcome)
        if log is not None:
            log.did(agent, action, result, born=born)

    def _saving(
        self, policy: Policy, decided: Decided, rngs: Mapping[str, Random]
    ) -> Saving | None:
        """Lets agents save what should last; None if their policy has no ``flush``."""
        if not isinstance(policy, Flushing):
            return None
        given = {
            seen.agent_id: (seen, hits)
            for seen, hits in zip(decided.observations, decided.given.hits, strict=True)
        }

        def saving(agent: str, prompt: str) -> None:
            try:
                told = save(policy, *given[agent], rngs[agent], prompt, self._bank, self._rules)
            except TierMemError:
                raise
            except Exception as error:  # a user's own policy may raise anything
                raise failed(policy, "flush", self._bank.tick, error) from error
            if told:
                self.errors.setdefault(agent, []).extend(told)

        return saving
