"""What agents saw and did again: with ``memory.merge_duplicates``, it becomes no new memory."""

from collections import Counter
from collections.abc import Iterable, Sequence

from ...bank.memory_bank import MemoryBank
from ...memory.records import Memory


class Repeats:
    """Notes which of the memories that a tick gives its agents are not new ones."""

    def __init__(self, bank: MemoryBank) -> None:
        self._resident = bank.engine.state
        self._merges = bank.settings.memory.merge_duplicates
        self._next: dict[str, int] = {}
        self._count: Counter[str] = Counter()
        self.found: dict[str, list[tuple[int, int]]] = {}
        """By agent: the place among what the agent saw and did, and the memory's number."""

    def before(self, agents: Iterable[str]) -> None:
        """These agents are about to be given memories."""
        if self._merges:
            for agent in set(agents):
                self._next[agent] = self._resident.block(agent).next_sequence

    def stored(self, memories: Sequence[Memory]) -> None:
        """This is what became of the memories, in the order in which they were given."""
        if not self._merges:
            return
        for memory in memories:
            agent, number = memory.agent_id, memory.sequence
            if number < self._next[agent]:
                self.found.setdefault(agent, []).append((self._count[agent], number))
            else:
                self._next[agent] = number + 1
            self._count[agent] += 1
