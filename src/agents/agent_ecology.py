"""agent_ecology2's classes of memory over a bank: a program changes one import.

``AgentMemory`` finds memories by what they mean, ``ArtifactMemory`` the most recent ones. In both,
the agent's id comes first in each call, results are dictionaries, and what is refused is told in
the result: ``{"error": …}``, False, or nothing found. A bank that is closed or broken, or that
can't be read, raises its error: an empty result never stands for one.
"""

import json
import logging
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from os import PathLike
from threading import Lock
from typing import Any, Final, Literal, Self, TypeVar

from . import TIER_NAMES, TIER_VALUES, Hit, Hits, Memory, MemoryBank, Tier
from . import AgentMemory as Memories
from .adapting import (
    Names,
    Scalar,
    TierLike,
    agent_id_of,
    check_whole,
    clear,
    fitted,
    flat,
    given_metadata,
    glance,
    remove,
    render,
)
from .errors import (
    BankNotFound,
    InvalidInput,
    MemoryNotFound,
    MemoryPinned,
    TierFull,
    TierMemError,
)

__all__ = [
    "TIER_NAMES",
    "TIER_VALUES",
    "AgentMemory",
    "ArtifactMemory",
    "MemoryTier",
    "get_memory",
]

logger = logging.getLogger(__name__)

MemoryTier = Literal[0, 1, 2, 3, 4]
"""0 pinned, 1 critical, 2 important, 3 normal, 4 low."""

FOLDER: Final = "agent_memories"
"""The folder of the bank that :func:`get_memory` opens, in the current folder."""

_REFUSED: Final = (InvalidInput, MemoryNotFound, MemoryPinned, TierFull)
_REJECT: Final = {"on_tier_full": "reject"}
_DONE: Final = {
    "write_artifact": "I created an artifact with details:",
    "read_artifact": "I read an artifact:",
    "transfer": "I transferred credits:",
}
_KNOWLEDGE: Final = "knowledge"
"""The tag of what an agent knows by name, and the beginning of its keys."""
_TICK: Final = "tick"
"""The metadata that has the tick of a memory, where the bank's clock showed another one."""

T = TypeVar("T")


class _Ecology:
    """What both classes have: a bank, pins, tiers, and the checkpoint of it all."""

    def __init__(
        self, bank: MemoryBank | str | PathLike[str] | None = None, **memory: object
    ) -> None:
        """``bank`` is an open bank, or a folder; None for the bank of :func:`get_memory`.

        ``memory`` are settings of the section ``memory`` for a folder, such as ``max_pinned=3``. In
        a bank that is made here, a full tier refuses; ``on_tier_full="demote"`` lets it demote.
        """
        self.bank: MemoryBank = _bank_of(bank, memory)
        """The bank that keeps the memories of all agents."""

    def record_action(
        self,
        agent_id: str,
        action_type: str,
        details: str,
        success: bool,
        tick: int | None = None,
        tier: TierLike = 3,
    ) -> dict[str, Any]:
        """Store what the agent did, or tried to do."""
        text = _told(action_type, details, success)
        return self._store(agent_id, text, tick, tier, "action")

    def record_observation(
        self, agent_id: str, observation: str, tick: int | None = None, tier: TierLike = 3
    ) -> dict[str, Any]:
        """Store what the agent saw."""
        return self._store(agent_id, f"I observed: {observation}", tick, tier, "observation")

    def get_pinned_memories(self, agent_id: str) -> list[dict[str, Any]]:
        """The pinned memories, oldest pin first."""

        def pinned() -> list[dict[str, Any]]:
            return [_item(each, 1.0) for each in self._agent(agent_id).get_pinned_memories()]

        return _answer(pinned, [])

    def pin_memory(self, agent_id: str, memory_id: str) -> bool:
        """Pin a memory; whether it is pinned now."""
        return self._change(agent_id, lambda agent: agent.pin(memory_id))

    def unpin_memory(self, agent_id: str, memory_id: str) -> bool:
        """Move a pinned memory to the tier normal; whether it is unpinned now."""
        return self._change(agent_id, lambda agent: agent.unpin(memory_id))

    def checkpoint(self, path: str | PathLike[str]) -> None:
        """Write the memories of all agents to one file, from which :meth:`restore` makes a bank."""
        self.bank.checkpoint(path)

    @classmethod
    def restore(cls, path: str | PathLike[str], into: str | PathLike[str]) -> Self:
        """Make or reset the bank in a folder to a checkpoint; nobody may have it open."""
        return cls(MemoryBank.restore(path, into))

    def close(self) -> None:
        """Close the bank."""
        self.bank.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _agent(self, agent_id: str) -> Memories:
        """The agent's own memories; any text names an agent."""
        agent = self.bank.agent(agent_id_of(agent_id))
        self._look(agent_id, agent)
        return agent

    def _look(self, agent_id: str, agent: Memories) -> None:
        """Do what comes before each use of an agent's memories."""

    def _store(
        self, agent_id: str, content: str, tick: int | None, tier: TierLike, kind: str = "fact"
    ) -> dict[str, Any]:
        """Store a memory, and let the time pass up to its tick."""
        try:
            with self.bank.transaction():
                agent, metadata = self._agent(agent_id), self._reached(tick)
                Names(self.bank).keep(agent_id)
                memory = agent.add(content, tier, metadata, kind=kind)
                self._changed(agent_id, agent)
        except TierFull as error:
            name = TIER_NAMES[Tier(error.tier)]
            return {"error": f"Maximum {name} memories ({error.cap}) reached"}
        except TierMemError as error:
            return {"error": str(error)}
        return {"results": [{"id": memory.id, "memory": memory.content, "event": "ADD"}]}

    def _reached(self, tick: int | None) -> dict[str, Scalar] | None:
        """Let the time pass up to a tick. For one that has passed: the metadata that keeps it."""
        if tick is None or check_whole("tick", tick) == self.bank.tick:
            return None
        if tick < self.bank.tick:
            return {_TICK: tick}
        self.bank.pass_time(tick)
        return None

    def _change(self, agent_id: str, change: Callable[[Memories], object]) -> bool:
        def done() -> bool:
            with self.bank.transaction():
                agent = self._agent(agent_id)
                change(agent)
                self._changed(agent_id, agent)
            return True

        return _answer(done, False)

    def _changed(self, agent_id: str, agent: Memories) -> None:
        """Do what follows a change of an agent's memories, in the same transaction."""


class AgentMemory(_Ecology):
    """The memories of all agents, found by what they mean, as agent_ecology2's class of this name.

    ``AgentMemory("folder")`` opens the bank there or makes it; ``AgentMemory(bank)`` takes an open
    one; ``AgentMemory()`` is over the bank of :func:`get_memory`.
    """

    def add(
        self, agent_id: str, content: str, tier: TierLike = 3, *, tick: int | None = None
    ) -> dict[str, Any]:
        """Store a memory: ``{"results": [{"id": …}]}``, or ``{"error": …}``.

        A ``tick`` after the bank's lets the time pass up to it.
        """
        return self._store(agent_id, content, tick, tier)

    def search(self, agent_id: str, query: str, limit: int = 5) -> list[dict[str, Any]]:
        """The memories that matter most: pinned ones, then by score plus the boost of the tier."""

        def found() -> list[dict[str, Any]]:
            hits = self._agent(agent_id).search(query, limit)[:limit]
            return [_item(hit.memory, hit.score, hit.boosted_score) for hit in hits]

        return _answer(found, [])

    def get_relevant_memories(self, agent_id: str, context: str, limit: int = 5) -> str:
        """What the agent should have in mind, as lines ``- [tier] text``: all pinned ones first."""
        return _answer(
            lambda: self._agent(agent_id).get_relevant_memories(context, limit), render(Hits())
        )

    def set_memory_tier(self, agent_id: str, memory_id: str, tier: TierLike) -> bool:
        """Move a memory to a tier; whether it is there now."""
        return self._change(agent_id, lambda agent: agent.set_tier(memory_id, tier))


class ArtifactMemory(_Ecology):
    """The history of each agent, most recent first, as agent_ecology2's class of this name.

    ``store`` is a bank or a folder, as for :class:`AgentMemory`, or agent_ecology2's store of
    artifacts. Then the artifacts keep the memories, in its own form: its checkpoints have them, and
    other code may read, write and trade them. The bank is in memory, and reads an artifact again
    that is not as it was left. An agent has ``max_history`` memories: beyond that, the oldest that
    are not pinned are deleted.
    """

    def __init__(self, store: Any, max_history: int = 100, **memory: object) -> None:
        self._most = check_whole("max_history", max_history, 1)
        self._artifacts: Any = None
        self._left: dict[str, tuple[str, Hashable]] = {}
        """By agent, the content of its artifact as it was left, and a glance at its memories: after
        an undone transaction, they are not what the artifact has."""
        if callable(getattr(store, "get", None)):
            # Only the pinned memories of artifacts have a cap.
            settings = {**_REJECT, "max_critical": self._most, **memory}
            self._artifacts, store, memory = store, MemoryBank.ephemeral(memory=settings), {}
        super().__init__(store, **memory)

    def add(
        self, agent_id: str, content_text: str, tick: int | None = None, tier: TierLike = 3
    ) -> dict[str, Any]:
        """Store a memory: ``{"results": [{"id": …}]}``, or ``{"error": …}``.

        A ``tick`` after the bank's lets the time pass up to it.
        """
        return self._store(agent_id, content_text, tick, tier)

    def search(self, agent_id: str, query: str, limit: int = 5) -> list[dict[str, Any]]:
        """The best memories by how recent they are, from 0 to 1, plus the boost of their tier.

        The query does not matter: :class:`AgentMemory` finds what it is about.
        """

        def found() -> list[dict[str, Any]]:
            best = self._recent(self._agent(agent_id))[: check_whole("limit", limit)]
            return [_item(hit.memory, hit.score, hit.boosted_score) for hit in best]

        return _answer(found, [])

    def get_relevant_memories(self, agent_id: str, context: str, limit: int = 5) -> str:
        """All pinned memories, then the best of :meth:`search`, as lines ``- [tier] text``."""

        def lines() -> str:
            agent, most = self._agent(agent_id), check_whole("limit", limit)
            pinned = [Hit(memory, 1.0, 0.0, 1.0) for memory in agent.get_pinned_memories()]
            rest = [hit for hit in self._recent(agent) if hit.memory.tier is not Tier.PINNED]
            return render(Hits([*pinned, *rest[: max(0, most - len(pinned))]]))

        return _answer(lines, render(Hits()))

    def set_memory_tier(self, agent_id: str, memory_index: int | str, tier: TierLike) -> bool:
        """Move a memory to a tier: the one at this place of the history, from 0, or of this id."""

        def move(agent: Memories) -> None:
            place = memory_index
            if not isinstance(place, str):
                history = _history(agent)
                place = history[check_whole("memory_index", place, 0, len(history) - 1)].id
            agent.set_tier(place, tier)

        return self._change(agent_id, move)

    def get_all_memories(self, agent_id: str) -> list[dict[str, Any]]:
        """The history, oldest first: ``tick``, ``content``, ``memory_type`` and ``tier`` of each.

        A bank keeps no time of day; what an artifact had beside these, its entry still has.
        """
        return _answer(lambda: [_entry(each) for each in _history(self._agent(agent_id))], [])

    def clear_memories(self, agent_id: str) -> bool:
        """Delete the history; what the agent knows by name stays."""

        def emptied(agent: Memories) -> None:
            for memory in _history(agent):
                remove(agent, memory)

        return self._change(agent_id, emptied)

    def set_knowledge(self, agent_id: str, key: str, value: Any) -> bool:
        """Keep a JSON value under a name, in the place of the one before."""
        return self._change(agent_id, lambda agent: _learn(agent, key, value))

    def get_knowledge(self, agent_id: str, key: str, default: Any = None) -> Any:
        """The value that is kept under a name."""
        return _answer(lambda: _known(self._agent(agent_id)).get(f"{key}", default), default)

    def _recent(self, agent: Memories) -> list[Hit]:
        """The history by the boosted score; of two that are equal, the older one comes first."""
        history, boosts = _history(agent), self.bank.settings.memory.tier_boosts
        scored = [(place / len(history), memory) for place, memory in enumerate(history)]
        hits = [
            Hit(memory, score, boosts[memory.tier], score + boosts[memory.tier])
            for score, memory in scored
        ]
        return sorted(hits, key=lambda hit: hit.boosted_score, reverse=True)

    # Artifacts

    def _look(self, agent_id: str, agent: Memories) -> None:
        """Read the agent's artifact, if it is not as it was left."""
        artifact = self._artifact(agent_id)
        if artifact is not None and (artifact.content, glance(agent)) != self._left.get(agent_id):
            content = _content_of(self._name(agent_id), artifact.content)
            with self.bank.transaction():
                clear(agent)
                agent.add_many([_row(each) for each in content.get("history", [])])
                for key, value in content.get("knowledge", {}).items():
                    _learn(agent, key, value)
            self._left[agent_id] = artifact.content, glance(agent)

    def _changed(self, agent_id: str, agent: Memories) -> None:
        """Delete what is beyond the most, and write the agent's artifact."""
        history = _history(agent)
        lasting = [each for each in history if each.tier is not Tier.PINNED]
        for memory in lasting[: max(0, len(history) - self._most)]:
            remove(agent, memory)
        if self._artifacts is None:
            return
        text, artifact = json.dumps(_content(agent)), self._artifact(agent_id)
        if artifact is not None:
            artifact.content = text
        else:
            nobody: dict[str, list[str]] = {
                f"allow_{act}": [] for act in ("read", "write", "invoke")
            }
            self._artifacts.write(
                artifact_id=self._name(agent_id),
                type="memory",
                content=text,
                created_by=agent_id,
                policy=nobody,
            )
        self._left[agent_id] = text, glance(agent)

    def _artifact(self, agent_id: str) -> Any:
        return None if self._artifacts is None else self._artifacts.get(self._name(agent_id))

    def _name(self, agent_id: str) -> str:
        """The id of the artifact that has an agent's memories: the agent's may name another one."""
        linked = getattr(self._artifacts.get(agent_id), "memory_artifact_id", None)
        return linked or f"{agent_id}_memory"

    def _get_memory_content(self, agent_id: str) -> dict[str, Any]:
        """What an artifact has; agent_ecology2's own tests look at it by this name."""
        return _content(self._agent(agent_id))


# The one memory of a process

_memory: AgentMemory | None = None
_turn: Final = Lock()


def get_memory() -> AgentMemory:
    """The memory that a whole process shares: the bank in the folder ``agent_memories``.

    The folder is in the current one. Once it was closed, the next call opens it again.
    """
    global _memory
    with _turn:
        if _memory is None or not _memory.bank.engine.is_open:
            _memory = AgentMemory(FOLDER)
        return _memory


def _bank_of(bank: object, memory: Mapping[str, object]) -> MemoryBank:
    """The bank that is given, or the one in the folder; a new one refuses what is over a cap."""
    if isinstance(bank, str | PathLike):
        settings: dict[str, Any] = {"memory": memory} if memory else {}
        with suppress(BankNotFound):
            return MemoryBank.open(bank, create=False, **settings)
        return MemoryBank.open(bank, memory={**_REJECT, **memory})
    if memory:
        raise InvalidInput(
            "settings are for a folder", hint="open the bank with them, then give it"
        )
    if bank is None:
        return get_memory().bank
    if isinstance(bank, MemoryBank):
        return bank
    raise InvalidInput(f"memories are in a bank or a folder, not in {type(bank).__name__}")


# Results


def _answer(ask: Callable[[], T], otherwise: T) -> T:
    """What a function returns; the other answer where the bank refuses what was asked."""
    try:
        return ask()
    except _REFUSED as error:
        logger.warning("%s", error)
        return otherwise


def _item(memory: Memory, score: float, boosted_score: float | None = None) -> dict[str, Any]:
    """A memory as a result."""
    given = given_metadata(memory)
    ticks = {"created_tick": given.pop(_TICK, memory.created_tick)}
    boosted = {} if boosted_score is None else {"boosted_score": boosted_score}
    item = {"id": memory.id, "memory": memory.content, "score": score, **boosted}
    tier = int(memory.tier)
    return {**item, "tier": tier, "metadata": {**given, "tier": tier, **ticks}}


def _told(action_type: str, details: str, success: bool) -> str:
    if not success:
        return f"I tried to {action_type} but failed: {details}"
    return f"{_DONE.get(action_type) or f'I performed {action_type}:'} {details}"


# A history


def _history(agent: Memories) -> list[Memory]:
    """The agent's memories, oldest first, without its notes and what it knows by name."""
    return [each for each in agent.all() if each.kind != "note" and _KNOWLEDGE not in each.tags]


def _content(agent: Memories) -> dict[str, Any]:
    """All that an artifact has of an agent."""
    return {"history": [_entry(each) for each in _history(agent)], "knowledge": _known(agent)}


def _entry(memory: Memory) -> dict[str, Any]:
    """A memory as an artifact has it."""
    kind = memory.kind if memory.kind in ("action", "observation") else "custom"
    entry = {"tick": memory.created_tick, "content": memory.content, "memory_type": kind}
    return {**entry, **given_metadata(memory), "tier": int(memory.tier)}


def _row(entry: Any) -> tuple[object, ...]:
    """An entry of an artifact as a new memory; its tick and what else it has become metadata."""
    if not isinstance(entry, Mapping):
        raise InvalidInput(f"an entry of a history is a mapping, not {type(entry).__name__}")
    rest = {name: entry[name] for name in entry if name not in ("content", "tier")}
    kind = rest.get("memory_type")
    if kind in ("action", "observation", "custom"):
        del rest["memory_type"]
    options = {"kind": kind if kind in ("action", "observation") else "fact"}
    return entry.get("content"), entry.get("tier", Tier.NORMAL), flat(rest), options


def _content_of(name: str, text: str) -> Mapping[str, Any]:
    """What the text of an artifact says; InvalidInput unless it has a history and knowledge."""
    try:
        content = json.loads(text or "{}")
    except ValueError:
        content = None
    if (
        isinstance(content, dict)
        and isinstance(content.get("history", []), list)
        and isinstance(content.get("knowledge", {}), dict)
    ):
        return content
    raise InvalidInput(
        f"the artifact {name} has no memories as agent_ecology2 writes them",
        hint="its content is a JSON object with history, a list, and knowledge, an object",
    )


def _learn(agent: Memories, key: str, value: Any) -> None:
    """Keep a value under a name: as a memory of its own that no history has."""
    text = fitted(agent, f"{key}: {json.dumps(value, ensure_ascii=False, default=str)}")
    name = f"{_KNOWLEDGE}:{key}"
    agent.add(text, key=name, tags=[_KNOWLEDGE], value=[value])


def _known(agent: Memories) -> dict[str, Any]:
    """The values that an agent knows by name."""
    kept: Iterable[Memory] = (each for each in agent.all() if _KNOWLEDGE in each.tags)
    return {str(each.key).removeprefix(f"{_KNOWLEDGE}:"): each.value[0] for each in kept}
