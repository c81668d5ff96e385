"""Corrections: they follow the way of a memory that was told, as ordinary tells."""

from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import takewhile
from typing import final

from ..errors import InvalidInput
from ..memory.records import Memory
from ..memory.requests import check_content
from ..memory.sources import Telling, Told
from ..memory.tiers import Retention
from ..storage.state.links import heirs, superseding
from .adding import add_many
from .engine import Engine
from .groups import is_board
from .linking import key_for, take_place_of
from .reading import find
from .telling import copied, copies_at, copies_told, correcting, deliver, tellers_again

MOST_EARLIER = 32
"""How many earlier corrections of a memory a correction replaces: the latest."""

_RETRACTED = "Retracted: "
_NOBODY: frozenset[str] = frozenset()


def correction_of(bank: Engine, memory: Memory) -> Memory:
    """The memory that superseded this one, or :class:`InvalidInput`."""
    found = superseding(bank.state, memory)
    if found is None or not _holds(bank, found):
        raise InvalidInput(
            f"no memory of {memory.agent_id} superseded {memory.id}",
            hint="store the correction with supersedes first",
        )
    return found


def said_before(bank: Engine, memory: Memory, correction: Memory) -> list[str]:
    """The origins of what superseded a memory before the correction did; the latest, if many."""
    heirs_before = takewhile(lambda each: each.id != correction.id, heirs(bank.state, memory))
    origins = dict.fromkeys(map(_origin, heirs_before))
    origins.pop(_origin(memory), None)
    return list(origins)[-MOST_EARLIER:]


def _origin(memory: Memory) -> str:
    return memory.id if memory.source is None else memory.source.origin_id


def retract(bank: Engine, memory: Memory, text: str | None) -> list[Told]:
    """:meth:`AgentMemory.retract`."""
    told: list[Told] = []
    with bank.changing():
        waiting = deque([(memory, _correction(bank, memory, text))])
        earlier = said_before(bank, memory, waiting[0][1])
        listeners = _Listeners(bank, memory)
        reached = {memory.id}  # agents may tell each other in circles
        while waiting:
            former, correction = waiting.popleft()
            one = correcting(copied(bank, correction), former, earlier)
            copies = [each for each in listeners.copies(one) if each.id not in reached]
            reached.update(each.id for each in copies)
            for copy in copies:
                for each in deliver(bank, [one._replace(receiver=copy.agent_id)]):
                    told.append(each)
                    waiting.append((copy, find(bank, each.listener, each.memory_id)))
                listeners.look_at(copy.agent_id)
    return told


def _holds(bank: Engine, memory: Memory) -> bool:
    return memory.retention is Retention.ACTIVE and not memory.is_expired(bank.tick)


def _correction(bank: Engine, memory: Memory, text: str | None) -> Memory:
    """The agent's own correction: the text, or what superseded the memory, or that it is not so."""
    state = bank.state
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


@final
class _Listeners:
    """Those who have copies of a memory or of its origin, by whom they had them from.

    All agents are looked at once; then each correction finds its listeners by a look-up.
    """

    def __init__(self, bank: Engine, memory: Memory) -> None:
        self._bank = bank
        self._origin = _origin(memory)
        self._by_memory = defaultdict[str, set[str]](set)
        """By the id of a teller's memory, who has a copy of it."""
        self._by_teller = defaultdict[str, set[str]](set)
        """By a teller, who was told by it what it had already."""
        for agent_id in bank.state.blocks:
            if not is_board(agent_id):
                self.look_at(agent_id)

    def look_at(self, agent_id: str) -> None:
        """Learn from whom an agent has its copies; a correction may have added a teller."""
        for copy in copies_at(self._bank, agent_id, self._origin):
            if copy.source is not None:
                self._by_memory[copy.source.memory_id].add(agent_id)
            for teller in tellers_again(self._bank, copy):
                self._by_teller[teller].add(agent_id)

    def copies(self, one: Telling) -> Iterator[Memory]:
        """The copies of what a correction corrects, of all whom its sender told it, by agent."""
        of_memory = self._by_memory.get(one.corrects or "", _NOBODY)
        for agent_id in sorted(of_memory | self._by_teller.get(one.sender, _NOBODY)):
            if agent_id != one.sender:
                yield from copies_told(self._bank, agent_id, one)
