"""How adapters delete a memory: other libraries know no pinned memories."""

from ..bank.agent_memory import AgentMemory
from ..memory.records import Memory


def remove(agent: AgentMemory, memory: Memory) -> None:
    """Delete a memory, pinned or not. One that was pinned past its end expires with its pin."""
    agent.unpin(memory.id)
    if agent.find(memory.sequence) is not None:
        agent.delete(memory.id)
