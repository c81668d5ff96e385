"""Calls on one memory by their names, and moves of a memory with what they give."""

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any

from agents import AgentMemory
from agents.engine import move, read
from agents.engine.engine import Engine
from agents.memory.records import Memory
from agents.memory.tiers import Retention, parse_temperature


def _demote(bank: Engine, agent_id: str, memory: Memory, to: Any = "warm") -> bool:
    return move.demote(bank, agent_id, memory, parse_temperature(to))


_MOVES: MappingProxyType[str, Callable[..., Any]] = MappingProxyType(
    {
        "promote": move.promote,
        "demote": _demote,
        "warm": move.warm,
        "archive": partial(move.retain, retention=Retention.ARCHIVED),
        "restore": partial(move.retain, retention=Retention.ACTIVE),
    }
)


def asked(view: AgentMemory, name: str, memory_id: str, *arguments: Any) -> Any:
    """Do what the name says with a memory; promote, demote and warm say whether it changed."""
    if name not in _MOVES:
        return getattr(view, name)(memory_id, *arguments)
    bank, agent_id = view.engine, view.agent_id
    with bank.using():
        memory = read.find(bank, agent_id, memory_id, deleted=name == "restore")
        return _MOVES[name](bank, agent_id, memory, *arguments)


def asker(view: AgentMemory, name: str) -> Callable[..., Any]:
    """The call of this name, for the ids of the agent's memories."""
    return partial(asked, view, name)
