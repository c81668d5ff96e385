"""The agents of a bank in a tick: they search and decide, and remember what they saw and did.

A bank has all agents of a run, or those of a cell; nothing here looks at the world. So one class
does the ticks of a process, of a worker, and those that a log has.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any

from ...bank.memory_bank import MemoryBank
from ...engine.move import hot_utilization
from ...errors import TierMemError
from ...memory.records import Hits
from ...memory.sources import Telling
from ...memory.tiers import TEMPERATURE_NAMES, TIER_NAMES
from ...storage.interrupts import first
from ...telling import groups, tell
from ...telling.groups import GroupChange
from ..kept_ticks import keep_tick, ticks_of
from ..protocols import (
    Action,
    Conversation,
    Flushing,
    Observation,
    Outcome,
    Policy,
    Say,
    Talking,
)
from .act import Boards, BoardUse, Deed, Speech, change_boards, speech_of, used_in
from .actions import NO_OP, REFUSED, refusal
from .branch_rules import NO_RULES, BranchRules
from .decide import Decided, as_seen, decide, searched, spoken
from .decision_log import DONE, REFUSAL, UNANSWERED, DecisionLog
from .flush import Contexts, Saving
from .given import given
from .reflect import reflect
from .remember import Recorder, rate_by, save
from .streams import Streams
from .talk import Asked
from .user_code import failed


class Minds:
    """The agents of one bank, with their policy, their generators and their contexts.

    With ``has_log``, each tick is recorded with the log of its decisions.
    """

    def __init__(
        self,
        bank: MemoryBank,
        policy: Policy,
        agents: Sequence[str],
        rules: BranchRules = NO_RULES,
        *,
        has_log: bool = True,
    ) -> None:
        settings = bank.settings
        self.streams = Streams(settings.seed, agents, rules)
        self.decided: Decided
        """What the agents decided in the tick."""
        self._bank, self._policy, self._rules = bank, policy, rules
        self._errors: dict[str, list[str]] = {}
        """What was wrong with the agents' actions in the tick before."""
        self._told: dict[str, list[Speech]] = {}
        """The memories that agents told in the conversations of the tick."""
        self._contexts = Contexts(bank, agents) if settings.flush.enabled else None
        self._rate = rate_by(bank, policy)
        self._no_ops = self._reflected = self._insights = 0
        self._has_log = has_log
        self._log: DecisionLog | None = None

    @property
    def tick(self) -> int:
        """The last tick, or the one that is under way."""
        return self._bank.tick

    def go_on(self) -> tuple[Mapping[str, float], Any] | None:
        """Go on from what the bank recorded last; None if it recorded nothing.

        It gives the metrics, if the bank was not moved on since, and the state of the world.
        """
        kept = ticks_of(self._bank)
        state = kept.state()
        if state is None:
            return None
        self._errors = {agent: list(errors) for agent, errors in state["errors"].items()}
        if self._contexts is not None and "contexts" in state:  # a branch may switch flushes on
            self._contexts.set_state(state["contexts"])
        last = first(kept.records(after=self._bank.tick - 1))
        return ({} if last is None else last[0].get("metrics", {})), state.get("world")

    def state(self) -> dict[str, Any]:
        """What the agents carry from tick to tick beside their memories, as JSON values."""
        contexts = {} if self._contexts is None else {"contexts": self._contexts.get_state()}
        return {"errors": self._errors, **contexts}

    # The phases of a tick

    def at_work(self) -> AbstractContextManager[None]:
        """A tick, as a block: one transaction of the bank."""
        return self._bank.transaction()

    def begin(self, tick: int) -> None:
        """Begin this tick, in its block."""
        self._bank.advance(tick)
        self.streams.begin(tick)
        self._told = {}

    def say(self, asked: Asked) -> dict[str, Say]:
        """What agents say whose turn it is in a conversation.

        It is made of what they decide by, so it does not count as a use of their memories. Memories
        that they tell are told when they act.
        """
        bank, policy = self._bank, self._policy
        if not isinstance(policy, Talking):
            return dict.fromkeys(asked, Say())
        seen = as_seen(bank, {who: own for who, (own, _) in asked.items()}, self._errors)
        with bank.engine.observing():
            hits = given(bank, list(map(searched, seen))).hits
        rngs = [self.streams.talks[who] for who in asked]
        talks = [talk for _, talk in asked.values()]
        said = spoken(policy, seen, hits, rngs, talks)
        return {
            who: self._with_memory(who, own, talk)
            for who, own, talk in zip(asked, said, talks, strict=True)
        }

    def _with_memory(self, agent: str, said: Say, talk: Conversation) -> Say:
        """What an agent says, with the text of the memory that it tells."""
        if said.memory_id is None:
            return said
        to = [each for each in talk.agents if each != agent]
        told = {"to": to, "memory_id": said.memory_id}
        action = Action("broadcast", told, f"it said so in the conversation {talk.session}")
        speech = speech_of(self._bank, agent, action)
        self._told.setdefault(agent, []).append(speech)
        if said.text.strip() or speech.said is None:
            return said
        return said._replace(text=speech.said.content)

    def decide(
        self, seen: Mapping[str, Observation], policy: Policy | None = None
    ) -> dict[str, Sequence[object]]:
        """What each agent wants to do; ``policy`` decides in the place of theirs, from a log."""
        self.decided = decide(
            self._bank, policy or self._policy, self.streams.agents, seen, self._errors, self._rules
        )
        if self._has_log:
            remembered = map(self._rules.remembered, self.decided.observations)
            self._log = DecisionLog(list(remembered), self.decided.given)
        told = self._told
        return {
            agent: [*told[agent], *actions] if agent in told else actions
            for agent, actions in zip(seen, self.decided.actions, strict=True)
        }

    def remember(
        self,
        deeds: Mapping[str, Sequence[Deed]],
        told: Sequence[Telling],
        changes: Sequence[GroupChange],
        uses: Sequence[BoardUse] | None = None,
    ) -> dict[str, Any]:
        """Store what the agents saw, did and were told; flush, reflect, tidy up; what it counts.

        ``changes`` and ``uses`` have what all agents of the run did with groups and found on their
        boards, also those that are not here; without ``uses``, all are here.
        """
        self._errors, self._no_ops = {}, 0
        decided = self.decided
        self._store(decided, deeds)
        bank, rules = self._bank, self._rules
        heard = [each for each in told if not (rules and rules.is_unheard(each, bank.tick))]
        if heard:
            tell.deliver(bank.engine, heard)
        change_boards(bank, Boards(used_in(decided.asked) if uses is None else uses, changes))
        if self._contexts is not None:
            self._contexts.end_tick(self._saving(decided))
        if bank.settings.reflection.enabled:
            done = reflect(bank, self._policy, decided.observations, self.streams.agents, rules)
            self._reflected, self._insights = done.agents, done.insights
            for agent, why in done.errors.items():
                self._errors.setdefault(agent, []).extend(why)
        do_what_is_due(bank)
        return self.counts(decided.given.hits)

    def record(
        self, counts: Mapping[str, Any], metrics: Mapping[str, float], world: Any
    ) -> dict[str, Any]:
        """Record the tick, with the state of the world."""
        log, self._log = self._log, None
        return record_tick(self._bank, counts, metrics, {"world": world, **self.state()}, log)

    def counts(self, memories: Sequence[Hits] = ()) -> dict[str, Any]:
        """What the record of the tick counts; ``memories`` are what the agents were given."""
        errors = sum(map(len, self._errors.values()))
        counts = tick_counts(self._bank, memories, errors=errors, no_ops=self._no_ops)
        if (contexts := self._contexts) is not None:
            counts |= {"flushes": contexts.flushes, "flush_failures": contexts.failures}
        if self._bank.settings.reflection.enabled:
            counts |= {"reflections": self._reflected, "insights": self._insights}
        return counts

    # Inside

    def _store(self, decided: Decided, deeds: Mapping[str, Sequence[Deed]]) -> None:
        """Store what the agents saw and did; agent after agent, in the order of ``deeds``."""
        log = self._log
        if log is not None:
            for agent, answer in chain.from_iterable(decided.asked):
                log.asked(agent, answer)
        if self._contexts is not None:
            self._contexts.begin_tick(decided.observations, decided.given.hits)
        seen = {observation.agent_id: observation for observation in decided.observations}
        recorder = Recorder(self._bank, self._contexts, self._rules)
        if (rate := self._rate) is not None:
            recorder.rate = lambda items: rate(items, seen)
        for agent, done in deeds.items():
            recorder.observed(seen[agent])
            for deed in done:
                self._deed(agent, deed, recorder)
        recorder.flush()
        if log is not None:
            log.repeated(recorder.repeated)

    def _deed(self, agent: str, deed: Deed, recorder: Recorder) -> None:
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
        if self._log is None:
            return
        if action is not None and action.name == NO_OP and result == DONE:
            self._log.did_nothing(agent, action.reason)
        else:
            self._log.did(agent, action, result, born=born)

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
                refusals = save(policy, *given[agent], rngs[agent], prompt, bank, self._rules)
            except TierMemError:
                raise
            except Exception as error:  # a user's own policy may raise anything
                raise failed(policy, "flush", bank.tick, error) from error
            if refusals:
                self._errors.setdefault(agent, []).extend(refusals)

        return saving


# The end of a tick

_AFTER_METRICS = ("flushes", "flush_failures", "reflections", "insights", "agents")


def do_what_is_due(bank: MemoryBank) -> None:
    """Sweep, and compact if this tick is one of ``temperature.compact_every``."""
    settings = bank.settings
    bank.sweep(every=max(1, settings.clock.ticks(settings.decay.every)))
    every = settings.temperature.compact_every
    compact_every = every and settings.clock.ticks(every)
    if compact_every and bank.tick % compact_every == 0:
        bank.compact()


def tick_counts(
    bank: MemoryBank, memories: Sequence[Hits], *, errors: int = 0, no_ops: int = 0
) -> dict[str, Any]:
    """What a tick's record counts in a bank; ``memories`` are what the agents were given.

    What is on boards of groups is nobody's memory. ``hot_utilization`` is the used share of the
    tokens of hot, of the agent with the largest. ``hit_rate`` is the share of the searches that
    returned a memory with a score of at least ``temperature.min_score``.
    """
    engine = bank.engine
    with engine.using():
        tiers, temperatures = groups.agent_counts(engine)
        changes = engine.ledger.pending(groups.is_board if groups.groups(engine) else None)
        utilization = hot_utilization(engine)
    sizes = list(map(len, memories))
    least = bank.settings.temperature.min_score
    hits = sum(any(engine.measured(hit) >= least for hit in given) for given in memories)
    return {
        **{TIER_NAMES[tier]: count for tier, count in tiers.items()},
        **changes._asdict(),
        "retrieved": sum(sizes),
        "retrieved_most": max(sizes, default=0),
        **{TEMPERATURE_NAMES[each]: count for each, count in temperatures.items()},
        "hot_utilization": utilization,
        "hit_rate": round(hits / len(memories), 6) if memories else 0.0,
        "errors": errors,
        "no_ops": no_ops,
    }


def tick_record(
    tick: int, state_hash: str, counts: Mapping[str, Any], metrics: Mapping[str, float]
) -> dict[str, Any]:
    """The record of a tick. What came to be counted later stands behind the metrics."""
    first_counts = {name: count for name, count in counts.items() if name not in _AFTER_METRICS}
    after = {name: counts[name] for name in _AFTER_METRICS if name in counts}
    return {"tick": tick, "state_hash": state_hash, **first_counts, "metrics": metrics, **after}


def record_tick(
    bank: MemoryBank,
    counts: Mapping[str, Any],
    metrics: Mapping[str, float],
    state: Mapping[str, Any],
    log: DecisionLog | None,
) -> dict[str, Any]:
    """Record the bank's tick, with all that a run needs to go on, and give the record."""
    record = tick_record(bank.tick, bank.state_hash(), counts, metrics)
    kept = (log.retrieved, log.packed()) if log else (b"", b"")
    keep_tick(bank, record, state, *kept)
    return record
