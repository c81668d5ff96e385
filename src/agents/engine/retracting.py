"""Corrections: they follow the way of a memory that was told, as ordinary tells."""

from collections import deque
from collections.abc import Iterator

from ..errors import InvalidInput
from ..memory.records import Memory
from ..memory.requests import check_content
from ..memory.retention import Retention
from ..memory.sources import Telling, Told
from ..storage.state.links import superseding
from .adding import add_many
from .groups import is_board
from .linking import key_for, take_place_of
from .open_bank import OpenBank
from .reading import find
from .telling import copied, copies_told, correcting, deliver

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
        reached = {memory.id}  # agents may tell each other in circles
        while waiting:
            former, correction = waiting.popleft()
            one = correcting(copied(bank, correction), former)
            copies = [each for each in _copies(bank, one) if each.id not in reached]
            reached.update(each.id for each in copies)
            for copy in copies:
                for each in deliver(bank, [one._replace(receiver=copy.agent_id)]):
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
    if former.retention is not Retention.ACTIVE:
        (correction,) = add_many(bank, [(memory.agent_id, text)])
        take_place_of(bank, correction, former)
        return correction
    options = {"key": key_for(former, None), "kind": memory.kind, "tags": memory.tags}
    return add_many(bank, [(memory.agent_id, text, None, None, options)])[0]


def _copies(bank: OpenBank, one: Telling) -> Iterator[Memory]:
    """The copies of what a correction corrects, of all whom its sender told it, agent by agent."""
    for agent_id in sorted(bank.ledger.resident.blocks):
        if agent_id != one.sender and not is_board(agent_id):
            yield from copies_told(bank, agent_id, one)
