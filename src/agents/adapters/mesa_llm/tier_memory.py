"""The memory of a Mesa-LLM agent, in a bank."""

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from ...bank.memory_bank import MemoryBank
from ...memory.context import render
from ...memory.records import Hit, Hits
from ...memory.tiers import Tier, TierLike, parse_tier
from ...packages import needed
from ..names import agent_id_of
from .events import STEP, event_of, item, text_of

with needed("tiermem.mesa_llm", "mesa_llm", otherwise=", with Python 3.12 or newer"):
    from mesa_llm.memory.memory import Memory, MemoryEntry
    from mesa_llm.memory.st_lt_memory import STLTMemory

_ASSIGNED = "long_term_memory"
"""The key of the text that was assigned as the long term memory."""
_BANKS: WeakKeyDictionary[Any, MemoryBank] = WeakKeyDictionary()
"""The bank of each model whose agents were given none."""


class TierMemory(STLTMemory):  # type: ignore[misc]
    """In place of Mesa-LLM's short and long term memory, and of its episodic memory.

    The short term memory is theirs: the newest ``short_term_capacity`` steps, word for word. The
    long term memory is the bank: when a step ends, its events are stored in one commit, and a
    prompt gets the ``considered_entries`` that matter for the newest step. No language model is
    asked for that. Memories that you add to the bank yourself take part.

    ``bank`` has the memories of all agents of a model, by their ``unique_id``; without it, they
    are in a bank in this process. In a bank that exists, an agent goes on with the steps it had.
    ``tiers`` gives types of events a tier, such as ``{"plan": "important"}``; an event with an
    ``importance`` from 1 to 5 gets one by it. The last four arguments are those of the originals,
    which have no use here.
    """

    def __init__(
        self,
        agent: Any,
        bank: MemoryBank | None = None,
        *,
        short_term_capacity: int = 5,
        consolidation_capacity: int = 0,
        considered_entries: int = 10,
        display: bool = True,
        additive_event_types: Iterable[str] | None = None,
        tiers: Mapping[str, TierLike] | None = None,
        llm_model: str | None = None,
        api_base: str | None = None,
        max_capacity: int | None = None,
        recency_decay: float | None = None,
    ) -> None:
        # Not the parent's: it wants a language model.
        Memory.__init__(self, agent, display=display, additive_event_types=additive_event_types)
        self.capacity = short_term_capacity
        self.consolidation_capacity = max(0, consolidation_capacity) or None
        self.considered_entries = considered_entries
        self.tiers = {name: parse_tier(tier) for name, tier in (tiers or {}).items()}
        self.bank = _bank_of(agent.model) if bank is None else bank
        self.memories = self.bank.agent(agent_id_of(str(agent.unique_id)))
        self.short_term_memory = deque(self._kept_steps())

    # Steps

    def process_step(self, pre_step: bool = False) -> None:
        """Begin a step, or end it: then its events are stored."""
        entry, _ = self._process_step_core(pre_step)
        if entry is None:
            return
        self._store(entry)
        if self.display:
            entry.display()

    async def aprocess_step(self, pre_step: bool = False) -> None:
        """:meth:`process_step`, which waits for no language model."""
        self.process_step(pre_step)

    def _store(self, entry: Any) -> None:
        step = entry.step if isinstance(entry.step, int) else None
        most = self.bank.settings.memory.max_content_bytes
        items = [
            item(name, event, step, self.tiers.get(name), most)
            for name, event in _events(entry.content)
        ]
        if step is not None and step > self.bank.tick:
            self.bank.pass_time(step)
        stored = self.memories.add_many(items)
        entry.first_sequence = stored[0].sequence if stored else None

    def _kept_steps(self) -> list[Any]:
        """The newest steps that the bank has of the agent."""
        steps: list[Any] = []
        for memory in self.memories.all():
            step, found = memory.metadata.get(STEP), event_of(memory)
            if not isinstance(step, int) or found is None:
                continue
            if not steps or steps[-1].step != step:
                steps.append(MemoryEntry({}, step, self.agent))
                steps[-1].first_sequence = memory.sequence
            name, event = found
            content = steps[-1].content
            if name in self.additive_event_types:
                content.setdefault(name, []).append(event)
            else:
                content[name] = event
        return steps[-self.capacity :]

    # Prompts

    @property
    def long_term_memory(self) -> str:
        """:meth:`format_long_term`. A text that is assigned becomes a pinned memory.

        The next text that is assigned supersedes it.
        """
        return self.format_long_term()

    @long_term_memory.setter
    def long_term_memory(self, text: str) -> None:
        self.memories.add(text, Tier.PINNED, key=_ASSIGNED)

    @property
    def memory_entries(self) -> list[Any]:
        """All events, oldest first, an entry each: those of the bank, and of the step under way."""
        kept = [(each.metadata.get(STEP), event_of(each)) for each in self.memories.all()]
        entries = [(step, *found) for step, found in kept if found is not None]
        staged = [each.content for each in self.short_term_memory if each.step is None]
        for content in (*staged, self.step_content):
            entries += [(self.agent.model.steps, *event) for event in _events(content)]
        return [MemoryEntry({name: event}, step, self.agent) for step, name, event in entries]

    def format_long_term(self) -> str:
        """What the bank has for the newest step, but for the steps of the short term memory."""
        steps = [each for each in self.short_term_memory if each.step is not None]
        first = min(
            (getattr(each, "first_sequence", None) or math.inf for each in steps), default=math.inf
        )
        shown = sum(len(_events(each.content)) for each in steps)
        found: dict[str, Hit] = {}
        for hit in self.memories.search(self._query(), self.considered_entries + shown):
            memory = hit.memory
            if memory.sequence >= first and event_of(memory) is not None:
                continue
            if len(found) < self.considered_entries or memory.tier is Tier.PINNED:
                found.setdefault(memory.content, hit)
        return render(Hits(found.values())) if found else ""

    def _query(self) -> str:
        newest = self.short_term_memory[-1].content if self.short_term_memory else {}
        about = text_of({**newest, **self.step_content})
        prompt = self.agent.step_prompt
        return about or (prompt if isinstance(prompt, str) else "")


def _events(content: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Each event of a step with its type."""
    return [
        (name, event)
        for name, events in content.items()
        for event in (events if isinstance(events, list) else [events])
    ]


def _bank_of(model: Any) -> MemoryBank:
    if model not in _BANKS:
        _BANKS[model] = MemoryBank.ephemeral()
    return _BANKS[model]
