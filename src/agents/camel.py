"""Memory for CAMEL's agents. Needs ``pip install 'tiermem[camel]'``.

``ChatAgent(…, memory=TierMemory(context_creator, bank.agent("alice")))``
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from . import AgentMemory, Hits, Memory, MemoryBank, Retention, Tier
from .adapting import bank_of, fitted, in_mind, needed, remove, render, shown
from .errors import InvalidInput, MemoryNotFound

with needed("tiermem.camel", "camel"):
    from camel.memories import AgentMemory as CamelMemory
    from camel.memories import BaseContextCreator, ContextRecord, MemoryRecord
    from camel.messages import BaseMessage
    from camel.types import OpenAIBackendRole, RoleType

__all__ = ["TierMemory"]

_RECORD = "camel"
"""The name, in a memory's value, of the record."""
_NUMBER = "conversation"
"""The name, in a memory's metadata, of the number of the conversation."""
_SHOWN = {"tiermem": "shown"}
"""What says that a record was made of memories, and is none itself."""
_RULES = (OpenAIBackendRole.SYSTEM, OpenAIBackendRole.DEVELOPER)
_TOOLS = (OpenAIBackendRole.FUNCTION, OpenAIBackendRole.TOOL)
_FADING = 0.9
"""By how much the score of a record is less than that of the next one, as in CAMEL."""


class _Kept(NamedTuple):
    """A record of the conversation, and the id of its memory."""

    memory_id: str
    record: MemoryRecord


class TierMemory(CamelMemory):  # type: ignore[misc]
    """The memories of one agent of a bank, for ``ChatAgent(memory=…)``.

    ``memories`` is ``bank.agent("alice")``; without it, they are in a bank in this process. The
    bank is yours to close. A model reads the newest ``window_size`` records of the conversation,
    or all of them, and before these one message: the pinned and the hot memories, and those that
    matter for the newest message of the user, ``retrieve_limit`` at most beside the hot ones.

    Each record is a memory. CAMEL clears the memory of every agent that it makes: :meth:`clear`
    ends the conversation, and its records stay memories that a later conversation can find.
    """

    teller = OpenAIBackendRole.SYSTEM
    """The role of the message that has the memories that matter."""

    def __init__(
        self,
        context_creator: BaseContextCreator,
        memories: AgentMemory | None = None,
        *,
        window_size: int | None = None,
        retrieve_limit: int = 3,
        agent_id: str | None = None,
    ) -> None:
        if window_size is not None and window_size < 0:
            raise InvalidInput("window_size is a whole number from 0 on, or None")
        self.memories = MemoryBank.ephemeral().agent("agent") if memories is None else memories
        self.window_size = window_size
        self.retrieve_limit = retrieve_limit
        self._context_creator = context_creator
        self._agent_id = agent_id
        records = [memory for memory in self.memories.all() if _is_record(memory)]
        self._number = max([_number(memory) for memory in records], default=0)
        self._conversation = [
            _Kept(memory.id, _record(memory))
            for memory in records
            if _number(memory) == self._number
        ]
        self._cleared: list[_Kept] = []
        """The conversation before: CAMEL writes its records again where it changes their order."""
        asked = [kept.record for kept in reversed(self._conversation) if _asks(kept)]
        self._topic = self.topic(asked[0]) if asked else ""

    @property
    def agent_id(self) -> str | None:
        """CAMEL's id of the agent, which the bank does not know."""
        return self._agent_id

    @agent_id.setter
    def agent_id(self, val: str | None) -> None:
        self._agent_id = val

    def get_context_creator(self) -> BaseContextCreator:
        """What makes messages for a model of records."""
        return self._context_creator

    def retrieve(self) -> list[ContextRecord]:
        """What a model reads: the system's record, memories that matter, the newest records."""
        kept = self._live()
        records = [one.record for one in kept]
        rules = [record for record in records[:1] if record.role_at_backend in _RULES]
        rest = records[len(rules) :]
        if self.window_size is not None:
            rest = rest[max(0, len(rest) - self.window_size) :]
            while rest and rest[0].role_at_backend in _TOOLS:  # its call is before the window
                rest = rest[1:]
        newest = {one.memory_id for one in kept[len(kept) - len(rest) :]}
        result = [_scored(record, 1.0) for record in rules]
        matters = self._matters(newest | self.shown())
        if matters:
            first = min([record.timestamp for record in rest], default=0.0)
            result.append(_scored(_told(matters, self.teller, first), 1.0))
        fades = [_FADING**place for place in range(len(rest), 0, -1)]
        return result + [_scored(record, score) for record, score in zip(rest, fades, strict=True)]

    def write_records(self, records: list[MemoryRecord]) -> None:
        """Store records, in one commit; a record that is in the conversation already moves up."""
        new = {record.uuid: record for record in records if record.extra_info != _SHOWN}
        known = [*self._cleared, *self._conversation]
        again = [kept for kept in known if kept.record.uuid in new]
        for record in new.values():
            if record.agent_id == "" and self.agent_id is not None:
                record.agent_id = self.agent_id
        with bank_of(self.memories).transaction():
            self._delete(again)
            stored = self.memories.add_many([self.item(record) for record in new.values()])
        self._leave_out(again)
        for memory, record in zip(stored, new.values(), strict=True):
            self._conversation.append(_Kept(memory.id, record))
            if record.role_at_backend is OpenAIBackendRole.USER:
                self._topic = self.topic(record)

    def clear(self) -> None:
        """End the conversation; its records stay memories."""
        if self._conversation:
            self._number += 1
            self._cleared = self._conversation
        self._conversation, self._topic = [], ""

    def pop_records(self, count: int) -> list[MemoryRecord]:
        """Delete the newest records of the conversation, but for the system's, and return them."""
        if count < 0:
            raise InvalidInput("count is a whole number from 0 on")
        kept = self._live()
        return self.remove_records_by_indices(list(range(max(0, len(kept) - count), len(kept))))

    def remove_records_by_indices(self, indices: list[int]) -> list[MemoryRecord]:
        """Delete records of the conversation by place, but for the system's, and return them."""
        kept = self._live()
        first = 1 if kept and kept[0].record.role_at_backend in _RULES else 0
        chosen = [kept[place] for place in sorted(set(indices)) if first <= place < len(kept)]
        with bank_of(self.memories).transaction():
            self._delete(chosen)
        self._leave_out(chosen)
        return [one.record for one in chosen]

    def clean_tool_calls(self) -> None:
        """Delete calls of tools and their results from the conversation."""
        calls = [kept for kept in self._live() if _is_call(kept.record)]
        with bank_of(self.memories).transaction():
            self._delete(calls)
        self._leave_out(calls)

    # What a subclass may say otherwise

    def topic(self, record: MemoryRecord) -> str:
        """What memories have to matter for, while a message of the user is the newest one."""
        return str(record.message.content)

    def shown(self) -> set[str]:
        """The ids of memories that a model reads in the newest records, beside their own."""
        return set()

    def item(self, record: MemoryRecord) -> tuple[object, ...]:
        """What ``add_many`` takes for a record; a subclass may say otherwise.

        The record's random id and its time stay out of the bank, as does CAMEL's id of this agent:
        the same conversation leaves the same bytes.
        """
        kept = record.to_dict()
        del kept["uuid"], kept["timestamp"]
        if kept["agent_id"] == self.agent_id:
            del kept["agent_id"]
        role = record.role_at_backend
        options: dict[str, object] = {
            "kind": "message",
            "speaker": "system" if role in _RULES else role.value,
            "value": {_RECORD: kept},
        }
        text = fitted(self.memories, _words(record))
        if role in _RULES:
            options["key"] = f"camel:{hashlib.sha256(text.encode()).hexdigest()}"
        return text, record.extra_info.get("tier"), {_NUMBER: self._number}, options

    # Inside

    def _live(self) -> list[_Kept]:
        """The conversation, but for what other code deleted."""
        return [kept for kept in self._conversation if self._memory_of(kept)]

    def _memory_of(self, kept: _Kept) -> Memory | None:
        try:
            return self.memories.get(kept.memory_id)
        except MemoryNotFound:
            return None

    def _delete(self, chosen: Iterable[_Kept]) -> None:
        for kept in chosen:
            memory = self._memory_of(kept)
            if memory is not None and memory.retention is Retention.ACTIVE:
                remove(self.memories, memory)

    def _leave_out(self, chosen: Iterable[_Kept]) -> None:
        gone = {kept.memory_id for kept in chosen}
        self._conversation = [kept for kept in self._conversation if kept.memory_id not in gone]

    def _matters(self, newest: set[str]) -> Hits:
        """What the agent should have in mind, but for what the model reads anyway."""
        hits = [
            hit
            for hit in in_mind(self.memories, self._topic, self.retrieve_limit + len(newest))
            if hit.memory.id not in newest and hit.memory.metadata.get("speaker") != "system"
        ]
        pinned = [hit for hit in hits if hit.memory.tier is Tier.PINNED]
        others = [hit for hit in hits if hit.memory.tier is not Tier.PINNED]
        return Hits(pinned + others[: self.retrieve_limit])


def _is_record(memory: Memory) -> bool:
    return isinstance(memory.value, dict) and _RECORD in memory.value


def _number(memory: Memory) -> int:
    number = memory.metadata.get(_NUMBER)
    return number if isinstance(number, int) else 0


def _record(memory: Memory) -> MemoryRecord:
    """The record that a memory keeps; the memory's id is its id, and its place its time."""
    value: Any = memory.value
    identity = {"uuid": str(UUID(memory.id)), "timestamp": float(memory.sequence)}
    return MemoryRecord.from_dict({"agent_id": "", **value[_RECORD], **identity})


def _words(record: MemoryRecord) -> str:
    """The words by which a record is found."""
    message = record.message
    if message.content and message.content.strip():
        return str(message.content)
    call = [getattr(message, name, None) for name in ("func_name", "args", "result")]
    said = [each for each in call if each is not None]
    return json.dumps(said, ensure_ascii=False, default=shown) if said else "(no text)"


def _is_call(record: MemoryRecord) -> bool:
    if record.role_at_backend in _TOOLS:
        return True
    message = record.message.to_dict()
    calls = "tool_calls" in message or ("args" in message and "func_name" in message)
    return record.role_at_backend is OpenAIBackendRole.ASSISTANT and calls


def _asks(kept: _Kept) -> bool:
    return kept.record.role_at_backend is OpenAIBackendRole.USER


def _scored(record: MemoryRecord, score: float) -> ContextRecord:
    return ContextRecord(memory_record=record, score=score, timestamp=record.timestamp)


def _told(hits: Sequence[Any], teller: OpenAIBackendRole, timestamp: float) -> MemoryRecord:
    """A record that tells a model what matters, before the records of the conversation."""
    text = f"Relevant memories:\n{render(Hits(hits))}"
    return MemoryRecord(
        message=BaseMessage("memory", RoleType.DEFAULT, None, text),
        role_at_backend=teller,
        extra_info=_SHOWN,
        timestamp=timestamp - 1e-3,
    )
