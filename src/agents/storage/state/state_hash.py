"""The hash over all agents of a state. A change costs as much as the agents that it changed."""

from hashlib import sha256

from ..resident.fingerprint import make_parts
from ..resident.population import Population


class StateHash:
    """Joins the bytes that each agent adds to the hash; those of agents that changed are made anew.

    The hash is over all bytes, of which the first are the tick's: so no hash over a part of them is
    of use for the next hash.
    """

    def __init__(self, agents: Population) -> None:
        self._agents = agents
        self._order: list[int] = []
        """The seats of all agents, in the order of their ids."""
        self._changes = -1

    def digest(self, head: str) -> str:
        """The hash over ``head`` and all agents."""
        agents = self._agents
        if self._changes != agents.changes:
            self._order, self._changes = agents.in_order(), agents.changes
        parts = agents.parts
        stale = [seat for seat in self._order if parts[seat] is None]
        if stale:
            make_parts(agents, stale)
        whole = sha256(head.encode())
        whole.update(b"".join([parts[seat] or b"" for seat in self._order]))
        return whole.hexdigest()
