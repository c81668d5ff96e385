"""What one agent tells others, hears from them and believes, and the groups it is in."""

from collections.abc import Iterable
from typing import final

from ..engine import read
from ..engine.engine import Engine
from ..errors import InvalidInput
from ..memory.records import Memory
from ..memory.sources import Heard, Told
from ..memory.tiers import TierLike
from ..telling import groups, tell
from ..telling import trust as trusting


@final
class AgentSocial:
    """What one agent tells, hears and believes, and its groups: :attr:`AgentMemory.social`."""

    __slots__ = ("agent_id", "engine")

    def __init__(self, engine: Engine, agent_id: str) -> None:
        self.agent_id = agent_id
        self.engine = engine
        """The open bank itself, for the code of this package; its form may change."""

    def __repr__(self) -> str:
        return f"<AgentSocial {self.agent_id}>"

    def tell(
        self,
        to: str,
        memory_id: str,
        as_tier: TierLike | None = None,
        note: str | None = None,
    ) -> Told:
        """Tell another agent a memory: the listener gets a copy, a memory of its own.

        The copy has the text, kind, tags, value, metadata and end of the memory. Its ``source``
        says who told it, and where it came from; ``note`` is kept as its metadata ``told_note``.
        Its tier is ``as_tier``, any but pinned, or the tier of the memory, important at most. What
        the listener knows from the same origin is counted, and not stored again: :meth:`heard`.
        A memory that another one superseded is :class:`InvalidInput`, which names the other one.
        """
        return self.broadcast(memory_id, [to], as_tier, note)[0]

    def broadcast(
        self,
        memory_id: str,
        to: Iterable[str],
        as_tier: TierLike | None = None,
        note: str | None = None,
    ) -> list[Told]:
        """:meth:`tell` for many listeners, each once, in one commit.

        If one is refused, nobody is told.
        """
        if isinstance(to, str):
            raise InvalidInput("broadcast() takes a list of agents", hint="use tell() for one")
        with self.engine.using():
            memory = read.find(self.engine, self.agent_id, memory_id)
            news = [tell.telling(self.engine, memory, each, as_tier, note) for each in to]
            each_once = {one.receiver: one for one in news}
            return tell.deliver(self.engine, each_once.values())

    def heard(self, memory_id: str) -> Heard:
        """How often the agent was told a memory, and by whom last; never, for one of its own."""
        with self.engine.using():
            return tell.heard(self.engine, read.find(self.engine, self.agent_id, memory_id))

    def retract(self, memory_id: str, correction: str | None = None) -> list[Told]:
        """Take back a memory, and let the correction follow all that were told it.

        The correction supersedes the memory. It is the text ``correction``; or the memory that
        superseded this one already; or a memory that says that this one is retracted. Each agent
        that told the memory tells the correction to those that it told, as ordinary tells, also if
        they had a copy from somebody else. There it supersedes their copies, and what that agent
        told them as an earlier correction; what is pinned there stays, and is contradicted. Each
        copy is reached once.
        """
        with self.engine.using():
            return tell.retract(
                self.engine, read.find(self.engine, self.agent_id, memory_id), correction
            )

    def trust(self, teller: str, trust: float) -> None:
        """Say how much the agent trusts what ``teller`` tells, from 0 to 1; 1 unless it is said.

        With ``retrieval.trust``, the trust multiplies score and boost of what that agent told.
        """
        with self.engine.using():
            trusting.trust(self.engine, self.agent_id, teller, trust)

    def trust_of(self, teller: str) -> float:
        """How much the agent trusts what ``teller`` tells."""
        with self.engine.using():
            return trusting.trust_of(self.engine, self.agent_id, teller)

    def post(self, group: str, content: str, tier: TierLike | None = None) -> Memory:
        """Write to the board of a group of which the agent is a member."""
        return groups.post(self.engine, group, self.agent_id, content, tier)

    def leave(self, group: str) -> None:
        """Leave a group: from now on, the agent neither reads nor writes its board."""
        groups.leave(self.engine, group, self.agent_id)

    def groups(self) -> list[str]:
        """The groups of which the agent is a member, in alphabetical order."""
        with self.engine.using():
            return groups.groups_of(self.engine, self.agent_id)
