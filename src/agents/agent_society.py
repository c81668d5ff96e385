"""Memory for AgentSociety 2's people. Needs ``pip install 'tiermem[agent-society]'``.

``TierPersonAgent`` in the place of ``PersonAgent``
"""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from . import AgentMemory, Memory, MemoryBank
from .adapting import bank_of, fitted, flat, glance, in_mind, needed

with needed("tiermem.agent_society", "agentsociety2"):
    from agentsociety2.agent import AgentMemoryStore, PersonAgent, PersonMemoryRuntime

__all__ = ["TierMemoryStore", "TierPersonAgent"]

FOLDER = "bank"
"""The folder, in an agent's workspace, of its bank."""
_EPISODE = "episode"
"""The name, in a memory's value, of what AgentSociety calls an episode."""
_KINDS = {
    "commitment": "decision",
    "goal": "decision",
    "preference": "preference",
    "routine": "action",
    "observation": "observation",
}
"""The kinds of memories, by the types of episodes; of other types, it is a fact."""


class TierMemoryStore(AgentMemoryStore):  # type: ignore[misc]
    """AgentSociety's store of one agent's memory, over the memories of one agent of a bank.

    ``memories`` is ``bank.agent("agent_0001")``. Each episode is a memory, a commit for each step,
    and the bank's tick is the step. The files of the workspace are written as before, for whoever
    reads them; what is remembered is what the bank has. Episodes that AgentSociety wrote there
    without a bank are stored first, if the bank has none.
    """

    def __init__(self, memories: AgentMemory, workspace_root: Path, *, agent_id: int) -> None:
        super().__init__(workspace_root, agent_id=agent_id)
        self.memories = memories
        self._kept: list[dict[str, Any]] = []
        """The episodes, when :func:`glance` gave ``_seen``."""
        self._seen: Hashable = None
        if not any(map(_is_episode, memories.all())):
            _store(memories, AgentMemoryStore(workspace_root, agent_id=agent_id).iter_episodes())

    def append_episodes(
        self, episodes: list[dict[str, Any]], *, tick: int, t: datetime, step_count: int
    ) -> list[dict[str, Any]]:
        """Store episodes, and return them as they were written; one without text is none."""
        bank = bank_of(self.memories)
        with bank.transaction():
            bank.advance(max(bank.tick, step_count))
            written: list[dict[str, Any]] = super().append_episodes(
                episodes, tick=tick, t=t, step_count=step_count
            )
            _store(self.memories, written)
        return written

    def iter_episodes(self) -> list[dict[str, Any]]:
        """All memories of the agent as episodes, oldest first, whoever stored them."""
        seen = glance(self.memories)
        if seen != self._seen:
            self._kept, self._seen = [self._episode(each) for each in self.memories.all()], seen
        return list(self._kept)

    def search(self, query: str, *, limit: int = 20) -> list[dict[str, Any]]:
        """The episodes that match a query best, by meaning and by words, the best one first."""
        if not str(query or "").strip():
            return []
        hits = self.memories.search(str(query), max(1, int(limit or 20)))
        return [self._episode(hit.memory) for hit in hits]

    def in_mind(self, query: str, limit: int) -> list[dict[str, Any]]:
        """What the agent should have in mind: pinned and hot ones, then what matters most."""
        return [self._episode(hit.memory) for hit in in_mind(self.memories, query, limit)]

    # Inside

    def _episode(self, memory: Memory) -> dict[str, Any]:
        if _is_episode(memory):
            value: Any = memory.value
            return dict(value[_EPISODE])
        return {
            "id": memory.id,
            "agent_id": self.agent_id,
            "step_index": memory.created_tick,
            "step_count": memory.created_tick,
            "type": memory.kind,
            "importance": 0.5,
            "keywords": [],
            "text": memory.content,
            "source": "bank",
            "refs": [],
        }


class TierPersonAgent(PersonAgent):  # type: ignore[misc]
    """AgentSociety's ``PersonAgent``, whose memory is a bank in its workspace.

    AgentSociety makes an agent anew for each step, in some process: so each agent has a bank of
    its own, in the folder ``bank`` of its workspace, which is open while the agent steps or answers
    a question. Beside the newest episodes, a prompt has those that the agent should have in mind
    for what it observes or is asked, as ``relevant_episodes``; ``memory_search`` finds by meaning
    and by words.

    In an agent's config, ``relevant_memory_limit`` says how many; 5 unless it is given.
    """

    _memory_runtime: Any

    async def step(self, tick: int, t: datetime) -> str:
        """Run one step, with the bank open."""
        with self._remembering():
            return str(await super().step(tick, t))

    async def ask(self, message: str, readonly: bool = True, *, t: datetime | None = None) -> str:
        """Answer a question, with the bank open."""
        with self._remembering():
            return str(await super().ask(message, readonly, t=t))

    async def restore(self, workspace_path: Path, service_proxy: Any) -> None:
        """Read the person from its workspace."""
        await super().restore(workspace_path, service_proxy)
        self._memory_runtime = _Runtime.of(self._memory_runtime)
        limit = int(self._config.get("relevant_memory_limit", 5))
        self._memory_runtime.relevant_limit = max(0, limit)

    def build_react_messages(self, **given: Any) -> list[dict[str, str]]:
        """The messages of a prompt, with what matters for the question or the observations."""
        said = [str(each.get("observation") or "") for each in given["observations"]]
        self._memory_runtime.about = given.get("question") or "\n".join(said)
        messages: list[dict[str, str]] = super().build_react_messages(**given)
        return messages

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        if not self._enable_memory:
            yield
            return
        folder, runtime = self.workspace_root_path() / FOLDER, self._memory_runtime
        with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
            memories = bank.agent(f"agent_{self.id:04d}")
            runtime.opened = TierMemoryStore(memories, folder.parent, agent_id=self.id)
            runtime.opened.ensure()
            try:
                yield
            finally:
                runtime.opened = None


class _Runtime(PersonMemoryRuntime):  # type: ignore[misc]
    """What AgentSociety does with a person's store, with one that is open for a while."""

    opened: TierMemoryStore | None = None
    about = ""
    """What the person observes or is asked."""
    relevant_limit = 5

    @classmethod
    def of(cls, plain: PersonMemoryRuntime) -> "_Runtime":
        """What a runtime of AgentSociety is, made anew."""
        made = cls.__new__(cls)
        made.__dict__.update(vars(plain))
        return made

    @property
    def store(self) -> TierMemoryStore | None:
        """The store, while the person steps or answers."""
        return self.opened

    def ensure_store(self, workspace_root: Path) -> TierMemoryStore | None:
        """The store: the folder of the workspace says nothing more."""
        return self.opened

    def build_context(self) -> dict[str, Any]:
        """What a prompt has of memories: what matters beside the newest ones."""
        context: dict[str, Any] = super().build_context()
        if self.opened is not None and self.relevant_limit:
            read = {each["id"] for each in context["recent_episodes"]}
            found = self.opened.in_mind(self.about, self.relevant_limit + len(read))
            new = [each for each in found if each["id"] not in read]
            context["relevant_episodes"] = new[: self.relevant_limit]
        return context


def _is_episode(memory: Memory) -> bool:
    return isinstance(memory.value, dict) and _EPISODE in memory.value


def _store(memories: AgentMemory, episodes: Sequence[dict[str, Any]]) -> None:
    memories.add_many([_item(memories, episode) for episode in episodes])


def _item(memories: AgentMemory, episode: dict[str, Any]) -> tuple[object, ...]:
    """What ``add_many`` takes for an episode; its words are what it is found by."""
    text, words = str(episode["text"]), [str(each) for each in episode.get("keywords") or ()]
    new = [word for word in words if word.lower() not in text.lower()]
    content = fitted(memories, f"{text} ({', '.join(new)})" if new else text)
    kind = str(episode.get("type"))
    options = {
        "kind": _KINDS.get(kind, "fact"),
        "importance": 1 + round(9 * float(episode.get("importance") or 0)),
        "value": {_EPISODE: episode},
    }
    return content, None, flat({"type": kind, "step": episode.get("step_count")}), options
