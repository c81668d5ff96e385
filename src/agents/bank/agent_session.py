"""One session of an agent: the agent's own methods, about the memories of the session alone."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, final

from ..errors import InvalidInput
from ..memory.records import Compaction, Spill
from ..rules.temperature import ANY_NUMBER
from .agent_memory import AgentMemory

P = ParamSpec("P")
T = TypeVar("T")


def _in_session(
    method: Callable[Concatenate[AgentMemory, P], T],
) -> Callable[Concatenate["AgentSession", P], T]:
    """The agent's method with ``session`` given; the other arguments and the result are its own."""

    @wraps(method)
    def scoped(self: "AgentSession", /, *args: P.args, **kwargs: P.kwargs) -> T:
        if "session" in kwargs:
            raise InvalidInput(
                f"this is the session {self.name!r:.80}: its methods take no other",
                hint="leave session out, or ask the agent",
            )
        kwargs["session"] = self.name
        return method(self.agent, *args, **kwargs)

    return scoped


@final
class AgentSession:
    """The memories of one agent that are part of one session, made by :meth:`AgentMemory.session`.

    Its methods are those of :class:`AgentMemory` with ``session`` given. It reaches no memory of
    another session, nor one of none; the agent itself reaches all.
    """

    __slots__ = ("agent", "name")

    def __init__(self, agent: AgentMemory, name: str) -> None:
        self.agent = agent
        self.name = name
        """What its memories say as their session, as text."""

    def __repr__(self) -> str:
        return f"<AgentSession {self.name!r} of {self.agent.agent_id}>"

    add = _in_session(AgentMemory.add)
    add_many = _in_session(AgentMemory.add_many)
    add_messages = _in_session(AgentMemory.add_messages)
    search = _in_session(AgentMemory.search)
    recall = _in_session(AgentMemory.recall)
    get_relevant_memories = _in_session(AgentMemory.get_relevant_memories)
    explain = _in_session(AgentMemory.explain)
    all = _in_session(AgentMemory.all)
    spill = _in_session(AgentMemory.spill)
    status = _in_session(AgentMemory.status)

    def clear(self) -> Spill:
        """Let all that is hot leave the front, but for what is pinned: a spill of everything."""
        return self.spill(ANY_NUMBER)

    def end(self, *, dry_run: bool = False) -> Compaction:
        """Compact the session: ``temperature.rules`` say what of it stays in front of the agent.

        It can go on afterwards: a session that ended is one that is compacted.
        """
        return self.agent.compact(dry_run=dry_run, session=self.name)
