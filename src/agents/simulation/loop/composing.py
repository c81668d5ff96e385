"""Actions that reach beyond an agent's own memory, read before the world acts, as plain data."""

from collections.abc import Sequence

from ...bank.memory_bank import MemoryBank
from .actions import GROUP_ACTIONS, TELL_ACTIONS, as_action, name_of
from .grouping import wish
from .speaking import speech_of

_READERS = {**dict.fromkeys(TELL_ACTIONS, speech_of), **dict.fromkeys(GROUP_ACTIONS, wish)}


def composed(bank: MemoryBank, agent: str, actions: Sequence[object]) -> Sequence[object]:
    """The actions of an agent: a :class:`Speech` for what tells, a :class:`Wish` about a group.

    Both are as memories and groups were before the tick.
    """
    names = list(map(name_of, actions))
    if _READERS.keys().isdisjoint(names):
        return actions
    return [
        given if (read := _READERS.get(name or "")) is None else read(bank, agent, as_action(given))
        for name, given in zip(names, actions, strict=True)
    ]
