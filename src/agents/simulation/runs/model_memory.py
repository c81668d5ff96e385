"""One agent's memory in the steps of a program: what it remembers, finds and changes."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar, NoReturn, final

from ...bank.agent_memory import AgentMemory
from ...bank.agent_social import AgentSocial
from ...errors import BankError, InvalidInput
from ...memory.context import render
from ...memory.records import Hits, Memory, Scalar
from ...memory.requests import action_text
from ...memory.tiers import TIER_NAMES, Tier, TierLike, parse_tier
from ..protocols import Action
from .driven_run import OutsideRun

# The memories of one agent in the bank, to look at

READS = (
    "all", "count", "decay_score", "explain", "get", "get_pinned_memories",
    "get_relevant_memories", "history", "links", "search", "status",
)  # fmt: skip
"""The methods of :class:`AgentMemory` that only read. Those that read notes also index them."""
SOCIAL_READS = ("groups", "heard", "trust_of")
"""The methods of :class:`AgentSocial` that only read."""


class _Kept:
    """Reads what an agent has in the bank, and refuses to change it."""

    __slots__ = ("_memory",)
    _all: ClassVar[type]

    def __init__(self, memory: AgentMemory) -> None:
        self._memory = memory

    @property
    def agent_id(self) -> str:
        """The agent's name in the run."""
        return self._memory.agent_id

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """A method that does not only read: it is refused when it is called."""
        if name.startswith("_") or not callable(getattr(self._all, name, None)):
            raise AttributeError(f"agent.memory.kept has no {name}: it looks at memories")

        def refuse(*_: object, **__: object) -> NoReturn:
            raise InvalidInput(
                f"agent.memory.kept is to look at: {name}() would change memories",
                hint="change memories inside a step, by agent.memory itself: add, pin, delete, …",
            )

        return refuse


@final
class KeptSocial(_Kept):
    """What an agent of a model heard and believes, and its groups: ``agent.memory.kept.social``."""

    __slots__ = ()
    _all = AgentSocial

    def __repr__(self) -> str:
        return f"<KeptSocial {self.agent_id}>"


@final
class KeptMemories(_Kept):
    """What an agent of a model has in the bank, to look at: ``agent.memory.kept``.

    It has the methods of :class:`AgentMemory` that read: ``all``, ``get``, ``count``, ``search``,
    ``explain``, ``history``, … Nothing that they give counts as used, inside a step or outside.
    The methods that change memories raise :class:`InvalidInput`.
    """

    __slots__ = ()
    _all = AgentMemory

    def __repr__(self) -> str:
        return f"<KeptMemories {self.agent_id}: {self.count()} memories>"

    @property
    def social(self) -> KeptSocial:
        """What the agent heard and believes, and its groups."""
        return KeptSocial(self._memory)


def _looking(method: Callable[..., Any], of: Callable[[AgentMemory], object]) -> Callable[..., Any]:
    @wraps(method)
    def look(self: _Kept, *arguments: Any, **options: Any) -> Any:
        with self._memory.engine.observing():
            return method(of(self._memory), *arguments, **options)

    return look


for _name in READS:
    setattr(KeptMemories, _name, _looking(getattr(AgentMemory, _name), lambda memory: memory))
for _name in SOCIAL_READS:
    setattr(KeptSocial, _name, _looking(getattr(AgentSocial, _name), lambda memory: memory.social))


# The memory of one agent


def refuse_copies() -> NoReturn:
    """A copy of a model would write to the same run."""
    raise BankError(
        "a model with memories can't be copied or pickled: its memories are one run, with one "
        "writer",
        hint="make the model again with the same seed and another folder; "
        "memories.bank.checkpoint(file) keeps the memories alone",
    )


@final
class ModelMemory:
    """One agent's memory in the steps of a model: ``agent.memory``.

    What the agent remembers in a step is stored when the step ends, so the agent finds it from the
    next step on. What it remembers before the first step is its memory at the beginning.
    """

    __slots__ = ("_name", "_run")

    def __init__(self, run: OutsideRun, name: Callable[[], str]) -> None:
        """:class:`Memories` makes one for each agent."""
        self._run = run
        self._name: str | Callable[[], str] = name
        """The agent's name, or a function that gives it: a new agent may have no name yet."""

    def __repr__(self) -> str:
        return f"<ModelMemory {self.agent_id}>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        refuse_copies()

    def is_of(self, run: OutsideRun) -> bool:
        """Whether it is a memory of this run."""
        return self._run is run

    @property
    def agent_id(self) -> str:
        """The agent's name in the run: ``tiermem show RUN --agent NAME``."""
        if not isinstance(self._name, str):
            name = self._name()
            self._run.welcome(name)
            self._name = name
        return self._name

    # Remembering

    def add(
        self,
        content: str,
        tier: TierLike | None = None,
        metadata: Mapping[str, Scalar] | None = None,
        **options: object,
    ) -> None:
        """Remember a text. The arguments are those of :meth:`AgentMemory.add`."""
        row = (self.agent_id, content, tier, metadata, options or None)
        told = {"content": content}
        if tier is not None:
            told["tier"] = TIER_NAMES[parse_tier(tier)]
        self._run.do(self.agent_id, Action("store_memory", told), row)

    def record_observation(self, text: str, tier: TierLike = Tier.NORMAL) -> None:
        """Remember what the agent saw, as a memory of the kind observation."""
        row = (self.agent_id, text, tier, None, {"kind": "observation"})
        self._run.observe(self.agent_id, row)

    def record_action(
        self,
        action_type: str,
        details: str | Mapping[str, object] = "",
        success: bool = True,
        tier: TierLike = Tier.NORMAL,
    ) -> None:
        """Remember an action of the agent and whether it succeeded: a memory of the kind action."""
        text = action_text(action_type, details, success)
        metadata = {"action_type": action_type, "success": success}
        row = (self.agent_id, text, tier, metadata, {"kind": "action"})
        arguments = details if isinstance(details, Mapping) else {}
        self._run.do(self.agent_id, Action(action_type, arguments), row, success=success)

    # Finding

    @property
    def recalled(self) -> Hits:
        """What :meth:`Memories.recall` gave the agent in this step, or in the last one."""
        return self._run.given(self.agent_id)

    @property
    def text(self) -> str:
        """``recalled`` as lines for a prompt: ``- [tier] text``."""
        return render(self.recalled)

    def search(self, query: str, limit: int | None = None) -> Hits:
        """The memories that matter for ``query``: pinned ones, then the best.

        Inside a step, it counts as a use, and ``tiermem why`` shows it. Outside, it only looks.
        """
        return self._run.search(self.agent_id, query, limit)

    @property
    def kept(self) -> KeptMemories:
        """The agent's memories in the bank, to look at: ``all``, ``count``, ``search``, …"""
        return KeptMemories(self._own)

    # Changing

    def pin(self, memory_id: str) -> Memory:
        """Pin a memory, inside a step: :meth:`AgentMemory.pin`."""
        self._change("pin_memory", memory_id)
        return self._own.pin(memory_id)

    def unpin(self, memory_id: str, to: TierLike = Tier.NORMAL) -> Memory:
        """Unpin a memory, inside a step: :meth:`AgentMemory.unpin`."""
        self._change("unpin_memory", memory_id)
        return self._own.unpin(memory_id, to)

    def set_tier(self, memory_id: str, tier: TierLike) -> Memory:
        """Move a memory to a tier, inside a step: :meth:`AgentMemory.set_tier`."""
        self._change("set_memory_tier", memory_id)
        return self._own.set_tier(memory_id, tier)

    def delete(self, memory_id: str) -> None:
        """Delete a memory, inside a step: :meth:`AgentMemory.delete`."""
        self._change("forget_memory", memory_id)
        self._own.delete(memory_id)

    @property
    def _own(self) -> AgentMemory:
        return self._run.bank.agent(self.agent_id)

    def _change(self, name: str, memory_id: str) -> None:
        self._run.check_inside("memories are changed")
        self._own.get(memory_id)
        self._run.do(self.agent_id, Action(name, {"memory_id": memory_id}))
