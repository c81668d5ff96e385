"""Corrections: they follow the way of a memory that was told, as ordinary tells."""

from collections import deque
from collections.abc import Iterator

from ..errors import InvalidInput
from ..memory.records import Memory
from ..memory.requests import check_content
from ..memory.retention import Retention
from ..memory.sources import Told
from ..storage.state.links import superseding
from ..storage.state.origins import origins_of
from .adding import add_many
from .linking import key_for
from .open_bank import OpenBank
from .reading import find
from .telling import deliver, telling

__all__ = ["correction_of", "retract"]

_RETRACTED = "Retracted: "


def correction_of(bank: OpenBank, memory: Memory) -> Memory:
    """The memory that superseded this one, or :class:`InvalidInput`."""
    found = superseding(bank.ledger.resident, memory)
    if found is None or not _holds(bank, found):
        raise InvalidInput(
            f"no memory of {memory.agent_id} superseded {memory.id}",
            hint="store the correction with supersedes first",
        )
    return found


def retract(bank: OpenBank, memory: Memory, text: str | None) -> list[Told]:
    """:meth:`AgentMemory.retract`."""
    told: list[Told] = []
    with bank.changing():
        waiting = deque([(memory, _correction(bank, memory, text))])
        while waiting:
            former, correction = waiting.popleft()
            for copy in list(_copies(bank, former)):
                one = telling(bank, correction, copy.agent_id)
                for each in deliver(bank, [one._replace(corrects=former.id)]):
                    told.append(each)
                    waiting.append((copy, find(bank, each.listener, each.memory_id)))
    return told


def _holds(bank: OpenBank, memory: Memory) -> bool:
    return memory.retention is Retention.ACTIVE and not memory.is_expired(bank.tick)


def _correction(bank: OpenBank, memory: Memory, text: str | None) -> Memory:
    """The agent's own correction: the text, or what superseded the memory, or that it is not so."""
    state = bank.ledger.resident
    after = superseding(state, memory)
    former = memory if after is None else after
    if text is None:
        if after is not None and _holds(bank, after):
            return after
        most = bank.settings.memory.max_content_bytes
        text = (_RETRACTED + memory.content).encode()[:most].decode(errors="ignore")
    check_content(text, bank.settings.memory.max_content_bytes)
    if former.retention is not Retention.ACTIVE:  # archived: nothing is left to supersede
        return add_many(bank, [(memory.agent_id, text)])[0]
    options = {"key": key_for(former, None), "kind": memory.kind, "tags": memory.tags}
    return add_many(bank, [(memory.agent_id, text, None, None, options)])[0]


def _copies(bank: OpenBank, memory: Memory) -> Iterator[Memory]:
    """The copies that agents got when this memory was told, agent after agent."""
    state = bank.ledger.resident
    for agent_id in sorted(state.blocks):
        numbers = origins_of(state, state.blocks[agent_id]).by_teller.get(memory.agent_id, ())
        for copy in state.memories(agent_id, numbers) if numbers else ():
            if copy.source is not None and copy.source.memory_id == memory.id:
                yield copy
