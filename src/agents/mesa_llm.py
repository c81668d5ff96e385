"""Memory for Mesa-LLM's agents, and a record of what their language model said.

Needs ``pip install 'tiermem[mesa-llm]'``: ``TierMemory(agent, bank)`` in place of their memory.
"""

import json
import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from . import Hit, Hits, MemoryBank, Tier
from . import Memory as BankMemory
from .adapting import (
    Cassette,
    Exchange,
    Scalar,
    TierLike,
    agent_id_of,
    hash_prompt,
    needed,
    parse_tier,
    render,
)

with needed("tiermem.mesa_llm", "mesa_llm", otherwise=", with Python 3.12 or newer"):
    from mesa_llm.memory.memory import Memory, MemoryEntry
    from mesa_llm.memory.st_lt_memory import STLTMemory

__all__ = ["TierMemory", "record"]

_ASSIGNED = "long_term_memory"
"""The key of the text that was assigned as the long term memory."""
_STEP = "step"
"""The name, in a memory's metadata, of the step in which the event was."""
_KINDS = {"plan": "decision", **{name: name for name in ("action", "message", "observation")}}
_GRADES = {5: Tier.CRITICAL, 4: Tier.IMPORTANT, 3: Tier.NORMAL, 2: Tier.LOW, 1: Tier.LOW}
"""The tier of an event that says its importance, as Mesa-LLM's episodic memory grades it."""
_DEEPEST = 32
_LONGEST_SPEAKER = 256
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
            _item(name, event, step, self.tiers.get(name), most)
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
            step, typed = memory.metadata.get(_STEP), _event_of(memory)
            if not isinstance(step, int) or typed is None:
                continue
            if not steps or steps[-1].step != step:
                steps.append(MemoryEntry({}, step, self.agent))
                steps[-1].first_sequence = memory.sequence
            name, event = typed
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
        kept = [(memory.metadata.get(_STEP), _event_of(memory)) for memory in self.memories.all()]
        entries = [(step, *event) for step, event in kept if event is not None]
        staged = [entry.content for entry in self.short_term_memory if entry.step is None]
        for content in (*staged, self.step_content):
            entries += [(self.agent.model.steps, *event) for event in _events(content)]
        return [MemoryEntry({name: event}, step, self.agent) for step, name, event in entries]

    def format_long_term(self) -> str:
        """What the bank has for the newest step, but for the steps of the short term memory."""
        steps = [entry for entry in self.short_term_memory if entry.step is not None]
        starts = [getattr(entry, "first_sequence", None) or math.inf for entry in steps]
        first = min(starts, default=math.inf)
        shown = sum(len(_events(entry.content)) for entry in steps)
        told: dict[str, Hit] = {}
        for hit in self.memories.search(self._query(), self.considered_entries + shown):
            memory = hit.memory
            if memory.sequence >= first and _event_of(memory) is not None:
                continue
            if len(told) < self.considered_entries or memory.tier is Tier.PINNED:
                told.setdefault(memory.content, hit)
        return render(Hits(told.values())) if told else ""

    def _query(self) -> str:
        newest = self.short_term_memory[-1].content if self.short_term_memory else {}
        about = _text_of({**newest, **self.step_content})
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


# An event of an agent, which is a dictionary, as a memory; and back


def _item(
    event_type: str, event: object, step: int | None, tier: Tier | None, most_bytes: int
) -> tuple[object, ...]:
    """What ``add_many`` takes for an event."""
    kept = _plain(event)
    grade = kept.get("importance") if isinstance(kept, dict) else None
    if tier is None and isinstance(grade, int):
        tier = _GRADES.get(grade)
    text = f"{event_type}: {_text_of(kept)}".replace("\0", "").encode(errors="replace")
    metadata: dict[str, Scalar] = {} if step is None else {_STEP: step}
    options: dict[str, object] = {
        "kind": _KINDS.get(event_type.lower(), "fact"),
        "value": {"type": event_type, "event": kept},
    }
    if isinstance(kept, dict) and (sender := kept.get("sender")) not in (None, ""):
        options["speaker"] = str(sender)[:_LONGEST_SPEAKER]
    return text[:most_bytes].decode(errors="ignore"), tier, metadata, options


def _event_of(memory: BankMemory) -> tuple[str, Any] | None:
    """The type and the content of the event; None for a memory that is not an event."""
    value = memory.value
    if isinstance(value, dict) and value.keys() == {"type", "event"}:
        return value["type"], value["event"]
    return None


def _text_of(event: object) -> str:
    """An event in words, for people, prompts and searches."""
    if isinstance(event, Mapping):
        if "message" in event and event.get("sender") is not None:
            return f"Agent {event['sender']} says: {event['message']}"
        return "; ".join(f"{key}: {_text_of(value)}" for key, value in event.items())
    if isinstance(event, list):
        return ", ".join(map(_text_of, event))
    return str(event)


def _plain(value: object, depth: int = _DEEPEST) -> Any:
    """The value as JSON: anything that JSON does not have becomes its text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if depth and isinstance(value, Mapping):
        return {_clean(str(key)): _plain(entry, depth - 1) for key, entry in value.items()}
    if depth and isinstance(value, list | tuple | set | frozenset):
        values = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return [_plain(entry, depth - 1) for entry in values]
    return _clean(str(value))


def _clean(text: str) -> str:
    return text.replace("\0", "").encode(errors="replace").decode()


# What the language model of the agents said, in a cassette: recorded, and replayed


def record(agents: Iterable[Any], path: str | Path, *, replay: bool = False) -> None:
    """Let agents keep every answer of their language model in the file ``path``.

    A question that the file has an answer to is not asked again: a model that was stopped goes on
    without paying twice. With ``replay``, the file is not changed, nobody is asked, and a question
    that was not recorded is :class:`Diverged`. Agents that are made later need a call of their own.
    """
    cassette = Cassette(path, replay)
    for agent in agents:
        _Recorder(agent, cassette)


class _Recorder:
    """Stands between an agent and its ``ModuleLLM``."""

    def __init__(self, agent: Any, cassette: Cassette) -> None:
        self._agent = agent
        self._llm = agent.llm
        self._cassette = cassette
        self._asked: Counter[tuple[int, str]] = Counter()
        """How often a question was asked in a step."""
        self._generate, self._agenerate = self._llm.generate, self._llm.agenerate
        self._llm.generate, self._llm.agenerate = self.generate, self.agenerate

    def generate(self, *args: Any, **options: Any) -> Any:
        """``ModuleLLM.generate``: from the cassette, or from the model."""
        question = self._question(args, options)
        answer = self._found(question)
        return self._kept(question, self._generate(*args, **options)) if answer is None else answer

    async def agenerate(self, *args: Any, **options: Any) -> Any:
        """``ModuleLLM.agenerate``, likewise."""
        question = self._question(args, options)
        answer = self._found(question)
        if answer is None:
            return self._kept(question, await self._agenerate(*args, **options))
        return answer

    def _question(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> Exchange:
        """The question, and how often it was asked in this step before."""
        names = ("prompt", "tool_schema", "tool_choice", "response_format", "system_prompt")
        request = {**dict(zip(names, args, strict=False)), **options}
        request.setdefault("system_prompt", None)
        if request["system_prompt"] is None:
            request["system_prompt"] = self._llm.system_prompt
        text = json.dumps(request, sort_keys=True, default=_schema, ensure_ascii=False)
        messages = [{"model": self._llm.llm_model, "request": text}]
        step = self._agent.model.steps
        place = (step, hash_prompt(messages))
        attempt = self._asked[place]
        self._asked[place] += 1
        return Exchange(step, agent_id_of(str(self._agent.unique_id)), attempt, messages)

    def _found(self, question: Exchange) -> Any:
        exchange = self._cassette.find(*question.key)
        if exchange is None or exchange.reply is None:
            return None
        from litellm import ModelResponse

        return ModelResponse(**json.loads(exchange.reply))

    def _kept(self, question: Exchange, answer: Any) -> Any:
        self._cassette.record(question._replace(reply=answer.model_dump_json()))
        return answer


def _schema(value: Any) -> object:
    """A class of pydantic, as which the format of an answer may be given, by its schema."""
    make = getattr(value, "model_json_schema", None)
    return make() if callable(make) else type(value).__qualname__
