"""What the operations between agents do with an agent's memory and arguments that were checked."""

from typing import Any

from ..bank.agent_memory import AgentMemory
from ..engine import upkeep
from ..errors import InvalidInput
from .shapes import shown

Json = dict[str, Any]


def tell(memory: AgentMemory, arguments: Json) -> Json:
    """Tell agents that the bank has; a client makes no new agents."""
    with memory.engine.using():
        known = set(upkeep.agents(memory.engine))
        for name in arguments["to"]:
            if name not in known and name != memory.agent_id:
                raise InvalidInput(f"there is no agent {name!r:.80}", hint="name another agent")
        told = memory.broadcast(**arguments)
        return {"told": [{"agent": each.listener, "is_new": each.is_new} for each in told]}


def retract(memory: AgentMemory, arguments: Json) -> Json:
    """Take a memory back; how far it went is not its teller's to know."""
    return {"corrected": len(memory.retract(**arguments))}


def trust(memory: AgentMemory, arguments: Json) -> Json:
    teller = arguments["teller"]
    with memory.engine.using():
        if "trust" in arguments:
            memory.trust(teller, arguments["trust"])
        return {"teller": teller, "trust": memory.trust_of(teller)}


def post(memory: AgentMemory, arguments: Json) -> Json:
    return shown(memory.engine, memory.post(**arguments))


def leave(memory: AgentMemory, arguments: Json) -> Json:
    memory.leave(arguments["group"])
    return {"groups": memory.groups()}
