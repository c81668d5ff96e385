"""The agents' contexts in a run. An agent saves what should last before its context overflows.

Observations, retrieved memories and outcomes fill an agent's context, tick after tick. When the
context is nearly full, the agent gets an extra turn, a flush. When the context overflows, it is
compacted: it becomes empty, and only memories and notes remain.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

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
from ..protocols import Observation
from .actions import add_to_note, note_of

logger = logging.getLogger(__name__)

Saving = Callable[[str, str], None]
"""Gives an agent its flush; takes the agent's id and the prompt. An error undoes the flush."""

_HEADING = "## Before compaction"
_ATTEMPTS = 2


@dataclass(slots=True)
class _Context:
    """One agent's context."""

    monitor: FlushMonitor
    cycle: int
    """The monitor's cycle in which the tokens were counted."""
    tokens: int = 0
    since: int = 1
    """The sequence number of the context's first memory."""


@final
class Contexts:
    """The contexts of all agents: their sizes, their flushes and their compactions."""

    def __init__(self, bank: MemoryBank, agent_ids: Iterable[str]) -> None:
        settings = bank.settings.flush
        sizes = (settings.context_window, settings.reserve_tokens, settings.soft_threshold)
        try:
            monitors = {agent: FlushMonitor(*sizes) for agent in agent_ids}
        except InvalidInput as error:
            raise ConfigError(f"section flush: {error.why}", hint=error.hint) from None
        self._by_agent = {agent: _Context(each, each.cycle) for agent, each in monitors.items()}
        self._bank = bank
        self._room = settings.context_window - settings.reserve_tokens
        self._most = settings.summary_tokens
        self.flushes = 0
        """How many flushes this tick did."""
        self.failures = 0
        """How many flushes this tick gave up."""

    def begin_tick(self, observations: Sequence[Observation], memories: Sequence[Hits]) -> None:
        """Count the agents' observations and retrieved memories."""
        self.flushes = self.failures = 0
        for seen, hits in zip(observations, memories, strict=True):
            heard = (remark.text for remark in seen.heard)
            found_too = (render(answer.hits) for answer in seen.answers)
            self.saw(seen.agent_id, seen.text, *heard, render(hits), *found_too)

    def saw(self, agent: str, *texts: str) -> None:
        """Count texts that come into an agent's context."""
        count = self._bank.engine.search.count_tokens
        self._by_agent[agent].tokens += sum(int(count(text)) for text in texts)

    def end_tick(self, saving: Saving | None) -> None:
        """Flush the contexts that are nearly full, and compact the contexts that overflow.

        ``saving`` lets an agent save by itself. Without ``saving``, a summary goes into the agent's
        note of this tick. After two failures, a context has no flush until it is compacted.
        """
        is_skipped = self._bank.settings.notes.read_only
        for agent, context in self._by_agent.items():
            if not is_skipped and context.monitor.due(context.tokens, context.cycle):
                self._flush(agent, context, saving)
            if context.tokens > self._room:
                context.monitor.compacted()
                context.tokens, context.cycle = 0, context.monitor.cycle
                context.since = self._bank.engine.state.block(agent).next_sequence

    def get_state(self) -> dict[str, Any]:
        """Everything that changes, as JSON values."""
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
        """Go on from a state of :meth:`get_state`."""
        for agent, kept in state.items():
            context = self._by_agent[agent]
            context.tokens, context.cycle = kept["tokens"], kept["counted_in"]
            context.since = kept["since"]
            context.monitor.set_state(kept)

    def _flush(self, agent: str, context: _Context, saving: Saving | None) -> None:
        count = self._bank.engine.search.count_tokens
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
        """The memories of the context that are neither pinned nor in a note."""
        return [
            memory
            for memory in self._bank.agent(agent).all()
            if memory.sequence >= since and memory.kind != "note" and memory.tier is not Tier.PINNED
        ]

    def _note(self, agent: str, lost: str) -> None:
        if lost:
            text = f"{_HEADING}\n\n{lost}\n"
            add_to_note(self._bank.agent(agent), text, note_of(self._bank.tick))


def _prompt(lost: str) -> str:
    if not lost:
        return FLUSH_PROMPT
    return f"What your context holds, the most important first:\n{lost}\n\n{FLUSH_PROMPT}"


def _is_of_flush(error: TierMemError) -> bool:
    """Whether an error ends only the flush. A lost bank or cassette ends the run.

    A run that went on without its cassette could not be replayed.
    """
    if isinstance(error, ChatFailed | InvalidAction):
        return True
    return not isinstance(error, SimulationError | BankError | ConfigError)
