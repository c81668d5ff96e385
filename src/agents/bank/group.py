"""A group of agents, and the board that its members share."""

from collections.abc import Iterable
from typing import final

from ..engine import agent_moves, groups, reading
from ..engine.engine import Engine
from ..errors import InvalidInput
from ..memory.records import Memory
from ..memory.tiers import TierLike


@final
class Group:
    """A group of agents with a board, made by :meth:`MemoryBank.group`.

    Members find what is on the board by ``search(..., include_groups=True)``. The board belongs to
    no agent: no other call of an agent reaches it, and agents only add to it.
    """

    __slots__ = ("engine", "name")

    def __init__(self, engine: Engine, name: str) -> None:
        self.name = name
        self.engine = engine
        """The open bank itself, for the code of this package; its form may change."""

    def __repr__(self) -> str:
        return f"<Group {self.name}: {len(self.members())} members>"

    def members(self) -> dict[str, int]:
        """The members, each with the tick in which it joined, in alphabetical order."""
        with self.engine.using():
            return groups.members(self.engine, groups.board_of(self.name))

    def join(self, agents: Iterable[str]) -> None:
        """Make agents members; they find all that is on the board, also what was there before."""
        if isinstance(agents, str):
            raise InvalidInput("join() takes a list of agents", hint="use join([name]) for one")
        groups.join(self.engine, self.name, agents)

    def leave(self, agent_id: str) -> None:
        """End a membership: from now on, the agent neither reads nor writes the board."""
        groups.leave(self.engine, self.name, agent_id)

    def post(self, agent_id: str, content: str, tier: TierLike | None = None) -> Memory:
        """Let a member write to the board. ``memory.speaker`` is the writer."""
        return groups.post(self.engine, self.name, agent_id, content, tier)

    def all(self) -> list[Memory]:
        """What is on the board, oldest first, whoever asks: a look from outside the simulation."""
        return reading.active(self.engine, groups.board_of(self.name), None, None)

    def forget(self, memory_id: str) -> None:
        """Purge a memory of the board now: its text and its vector are gone, from the journal too.

        As with :meth:`AgentMemory.forget`, older checkpoints still have its text, and
        :meth:`MemoryBank.vacuum` clears the free space in the files as well. What members stored of
        it is their own.
        """
        board = groups.board_of(self.name)
        with self.engine.using():
            memory = reading.find(self.engine, board, memory_id, deleted=True)
            agent_moves.forget(self.engine, board, memory)
