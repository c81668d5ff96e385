"""The memories of one agent in the bank, to look at."""

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, final

from ...bank.agent_memory import AgentMemory
from ...errors import InvalidInput

READS = (
    "all", "count", "decay_score", "explain", "find", "get", "get_pinned_memories",
    "get_relevant_memories", "groups", "heard", "history", "links", "search", "status", "trust_of",
)  # fmt: skip
"""The methods of :class:`AgentMemory` that only read. Those that read notes also index them."""


@final
class KeptMemories:
    """What an agent of a model has in the bank, to look at: ``agent.memory.kept``.

    It has the methods of :class:`AgentMemory` that read: ``all``, ``get``, ``count``, ``search``,
    ``explain``, ``history``, … Nothing that they give counts as used, inside a step or outside.
    The methods that change memories raise :class:`InvalidInput`.
    """

    __slots__ = ("_memory",)

    def __init__(self, memory: AgentMemory) -> None:
        self._memory = memory

    def __repr__(self) -> str:
        return f"<KeptMemories {self.agent_id}: {self.count()} memories>"

    @property
    def agent_id(self) -> str:
        """The agent's name in the run."""
        return self._memory.agent_id

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """What is none of ``READS``: the other methods are refused when they are called."""
        if name.startswith("_") or not callable(getattr(AgentMemory, name, None)):
            raise AttributeError(f"agent.memory.kept has no {name}: it looks at memories")

        def refuse(*_: object, **__: object) -> NoReturn:
            raise InvalidInput(
                f"agent.memory.kept is to look at: {name}() would change memories",
                hint="change memories inside a step, by agent.memory itself: add, pin, delete, …",
            )

        return refuse


def _looking(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def look(self: KeptMemories, *arguments: Any, **options: Any) -> Any:
        own = self._memory
        with own.engine.observing():
            return method(own, *arguments, **options)

    return look


for _name in READS:
    setattr(KeptMemories, _name, _looking(getattr(AgentMemory, _name)))
