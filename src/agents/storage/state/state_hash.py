"""The hash over all agents of a state. A change costs as much as the agents that it changed."""

from collections.abc import Mapping
from hashlib import sha256

from ..resident.agent_columns import AgentColumns
from ..resident.fingerprint import fingerprint, hash_all

__all__ = ["StateHash"]


class StateHash:
    """Keeps the bytes that each agent adds to the hash until the agent changes."""

    def __init__(self, blocks: Mapping[str, AgentColumns]) -> None:
        self._blocks = blocks
        self._parts: dict[str, bytes] = {}
        self._is_sorted = True
        """Whether the parts are in the order of the agents' ids."""
        self.changed: set[str] = set()
        """The agents that changed since they were hashed."""

    def forget(self) -> None:
        """All agents may have changed."""
        self._parts.clear()
        self.changed.clear()

    def digest(self, head: str) -> str:
        """The hash over ``head`` and all agents."""
        blocks, parts = self._blocks, self._parts
        new = blocks.keys() - parts.keys()
        self._is_sorted = self._is_sorted and not new
        stale = [(agent, blocks[agent]) for agent in new | (self.changed & blocks.keys())]
        hash_all([block for _, block in stale if block.memory_sum is None])
        for agent, block in stale:
            own = agent.encode(), block.next_sequence, fingerprint(block)
            parts[agent] = b"\0%s\0%d\0%s" % own
        if not self._is_sorted or len(parts) != len(blocks):
            self._parts = parts = {agent: parts[agent] for agent in sorted(blocks)}
            self._is_sorted = True
        self.changed.clear()
        return sha256(head.encode() + b"".join(parts.values())).hexdigest()
