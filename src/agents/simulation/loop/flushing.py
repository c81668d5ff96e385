"""The agents' contexts over the ticks of a run: before one overflows, what should last is saved.

What an agent perceives, is reminded of and is told fills its context, tick after tick. When it is
nearly full, the agent gets a turn of its own, a flush; when it is full, it is compacted, and what
was in it is nothing but memories.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, Protocol, final

from ...bank.memory_bank import MemoryBank
from ...errors import (
    BankError,
    ChatFailed,
    ConfigError,
    InvalidAction,
    InvalidInput,
    SimulationError,
    TierMemError,
)
from ...memory.context import render
from ...memory.records import Hits, Memory
from ...memory.tiers import Tier
from ...notes.flush import FLUSH_PROMPT, FlushMonitor, summary
from ..protocols import Action, Flushing, Observation, Outcome
from .actions import OWN_ACTIONS, REFUSED, add_to_note, as_action, is_list, note_of, refusal

__all__ = ["Contexts", "Saving", "save"]

logger = logging.getLogger(__name__)

Saving = Callable[[str, str], None]
"""An agent's own turn: takes its id and the prompt. What it raises undoes it."""

_HEADING = "## Before compaction"
_ATTEMPTS = 2


class _Recorder(Protocol):
    """Where the actions of a turn go; the loop has one."""

    def memory_action(self, agent: str, action: Action) -> None: ...

    def happened(self, agent: str, name: str, outcome: Outcome) -> None: ...

    def flush(self) -> None: ...


class _Context:
    """One agent's context."""

    __slots__ = ("cycle", "monitor", "since", "tokens")

    def __init__(self, monitor: FlushMonitor) -> None:
        self.monitor = monitor
        self.tokens = 0
        self.cycle = monitor.cycle
        """The one in which the tokens were counted."""
        self.since = 1
        """The sequence number of its first memory."""


@final
class Contexts:
    """How full the contexts of all agents are, and what is done about it at the end of a tick."""

    def __init__(self, bank: MemoryBank, agent_ids: Iterable[str]) -> None:
        settings = bank.settings.flush
        sizes = (settings.context_window, settings.reserve_tokens, settings.soft_threshold)
        try:
            self._by_agent = {agent: _Context(FlushMonitor(*sizes)) for agent in agent_ids}
        except InvalidInput as error:
            raise ConfigError(f"section flush: {error.why}", hint=error.hint) from None
        self._bank = bank
        self._full = settings.context_window - settings.reserve_tokens
        self._most = settings.summary_tokens
        self.flushes = 0
        """Of this tick, those that were done."""
        self.failures = 0
        """Of this tick, those that were given up."""

    def begin_tick(self, observations: Sequence[Observation], found: Sequence[Hits]) -> None:
        """Agents perceive these, and are reminded of those."""
        self.flushes = self.failures = 0
        for seen, hits in zip(observations, found, strict=True):
            heard = (remark.text for remark in seen.heard)
            self.saw(seen.agent_id, seen.text, *heard, render(hits))

    def saw(self, agent: str, *texts: str) -> None:
        """These come into an agent's context."""
        count = self._bank.parts.search.count_tokens
        self._by_agent[agent].tokens += sum(int(count(text)) for text in texts)

    def end_tick(self, saving: Saving | None) -> None:
        """Flush the contexts that are nearly full, and compact those that are full.

        ``saving`` is how an agent saves by itself. Without, a summary goes into its note of this
        tick. A flush that fails twice is given up until the context was compacted.
        """
        is_skipped = self._bank.settings.notes.read_only
        for agent, context in self._by_agent.items():
            if not is_skipped and context.monitor.due(context.tokens, context.cycle):
                self._flush(agent, context, saving)
            if context.tokens >= self._full:
                context.monitor.compacted()
                context.tokens, context.cycle = 0, context.monitor.cycle
                context.since = self._bank.parts.ledger.resident.block(agent).next_sequence

    def get_state(self) -> dict[str, Any]:
        """All that changes, as JSON values."""
        return {
            agent: {
                "tokens": context.tokens,
                "counted_in": context.cycle,
                "since": context.since,
                **context.monitor.get_state(),
            }
            for agent, context in self._by_agent.items()
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`get_state` gave."""
        for agent, kept in state.items():
            context = self._by_agent[agent]
            context.tokens, context.cycle = kept["tokens"], kept["counted_in"]
            context.since = kept["since"]
            context.monitor.set_state(kept)

    def _flush(self, agent: str, context: _Context, saving: Saving | None) -> None:
        count = self._bank.parts.search.count_tokens
        lost = summary(self._losable(agent, context.since), self._most, count)
        context.monitor.flushed()
        why: TierMemError | None = None
        for _ in range(_ATTEMPTS):
            try:
                with self._bank.transaction():
                    if saving is None:
                        self._note(agent, lost)
                    else:
                        saving(agent, _prompt(lost))
                self.flushes += 1
                return
            except TierMemError as error:
                if not _is_of_flush(error):
                    raise
                why = error
        self.failures += 1
        logger.warning("tick %d: a flush of %s was given up: %s", self._bank.tick, agent, why)

    def _losable(self, agent: str, since: int) -> list[Memory]:
        """What came into the context and is not kept in view, or in a note, anyway."""
        return [
            memory
            for memory in self._bank.agent(agent).all()
            if memory.sequence >= since and memory.kind != "note" and memory.tier is not Tier.PINNED
        ]

    def _note(self, agent: str, lost: str) -> None:
        if lost:
            text = f"{_HEADING}\n\n{lost}\n"
            add_to_note(self._bank.agent(agent), text, note_of(self._bank.tick))


def save(
    policy: Flushing, seen: Observation, hits: Hits, rng: Random, prompt: str, recorder: _Recorder
) -> list[str]:
    """Do what an agent's policy saves; what the agent is told that was refused."""
    answer = policy.flush(seen, hits, rng, prompt)
    if not is_list(answer):
        raise SimulationError(
            f"{type(policy).__name__}.flush() gave {answer!r:.60} for {seen.agent_id} in tick "
            f"{seen.tick}; a list of actions is needed"
        )
    told: list[str] = []
    for given in answer:
        name = "an action"
        try:
            action = as_action(given)
            name = action.name
            if name not in OWN_ACTIONS:
                known = ", ".join(OWN_ACTIONS)
                raise InvalidAction(f"before a compaction there is only {known}")
            recorder.memory_action(seen.agent_id, action)
        except REFUSED as error:
            told.append(refusal(name, error))
            recorder.happened(seen.agent_id, name, Outcome(told[-1], success=False))
    recorder.flush()
    return told


def _prompt(lost: str) -> str:
    if not lost:
        return FLUSH_PROMPT
    return f"What your context holds, the most important first:\n{lost}\n\n{FLUSH_PROMPT}"


def _is_of_flush(error: TierMemError) -> bool:
    """Whether a flush failed, and not the run: that ends by a lost bank or cassette, for example.

    To go on after what no cassette holds would be a run that no replay repeats.
    """
    if isinstance(error, ChatFailed | InvalidAction):
        return True
    return not isinstance(error, SimulationError | BankError | ConfigError)
