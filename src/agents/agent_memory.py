"""One agent's view of a bank."""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, final

from agents.errors import InvalidContent, InvalidInput, InvalidTier, MemoryNotFound
from agents.memory.records import Explanation, Hits, Memory, Scalar, check_query, sequence_of
from agents.memory.tiers import Tier, TierLike, parse_tier
from agents.storage.columns import AgentColumns
from agents.storage.mem0_models import Message, as_messages

if TYPE_CHECKING:
    from agents.bank import MemoryBank

__all__ = ["AgentMemory"]


@final
class AgentMemory:
    """One agent's memories. Made by :meth:`MemoryBank.agent`; it can't reach another agent's.

    Everywhere a tier is taken, it may be a ``Tier``, a number 0–4, or a name in any case.
    Everywhere an id is taken, one that is not this agent's is :class:`MemoryNotFound`.
    """

    __slots__ = ("_bank", "agent_id")

    def __init__(self, bank: "MemoryBank", agent_id: str) -> None:
        self._bank = bank
        self.agent_id = agent_id

    def __repr__(self) -> str:
        return f"<AgentMemory {self.agent_id}: {self.count()} memories>"

    # Storing

    def add(
        self,
        content: str,
        tier: TierLike = Tier.NORMAL,
        metadata: Mapping[str, Scalar] | None = None,
    ) -> Memory:
        """Store a memory.

        ``content`` comes back byte for byte. ``metadata`` is flat JSON of your own. Where the tier
        is full, its oldest memory moves one tier down, or :class:`TierFull` is raised, as
        ``memory.on_tier_full`` says.
        """
        return self._bank.add_many([(self.agent_id, content, tier, metadata)])[0]

    def add_many(
        self, items: Iterable[str | tuple[str] | tuple[str, TierLike] | tuple[object, ...]]
    ) -> list[Memory]:
        """Store many memories, all or none: texts, or tuples of text, tier and metadata."""
        if isinstance(items, str):
            raise InvalidInput("add_many() takes a list of memories; use add() for one text")
        rows: list[tuple[object, ...]] = []
        for item in items:
            if not isinstance(item, str | tuple | list):
                raise InvalidInput(f"a new memory is a text or a tuple; got {item!r:.80}")
            rows.append((self.agent_id, *([item] if isinstance(item, str) else item)))
        return self._bank.add_many(rows)

    def record_action(
        self,
        action_type: str,
        details: str | Mapping[str, object] = "",
        success: bool = True,
        tier: TierLike = Tier.NORMAL,
    ) -> Memory:
        """Store what the agent did and whether it worked."""
        if not isinstance(action_type, str) or not action_type.strip():
            raise InvalidContent(f"an action needs a type, as text; got {action_type!r}")
        if not isinstance(success, bool):
            raise InvalidInput(f"success is True or False, not {success!r:.40}")
        if isinstance(details, Mapping):
            try:
                details = json.dumps(
                    dict(details), ensure_ascii=False, sort_keys=True, allow_nan=False
                )
            except (TypeError, ValueError) as error:
                raise InvalidContent(f"an action's details must be JSON: {error}") from None
        elif not isinstance(details, str):
            raise InvalidContent(f"an action's details are text or a mapping, not {details!r:.40}")
        text = f"{action_type} {'succeeded' if success else 'failed'}"
        if details:
            text += f": {details}"
        metadata: dict[str, Scalar] = {
            "record": "action",
            "action_type": action_type,
            "success": success,
        }
        return self.add(text, tier, metadata)

    def record_observation(self, text: str, tier: TierLike = Tier.NORMAL) -> Memory:
        """Store what the agent saw."""
        return self.add(text, tier, {"record": "observation"})

    def add_messages(
        self,
        messages: str | Message | list[Message],
        *,
        infer: bool = True,
        tier: TierLike = Tier.NORMAL,
        metadata: Mapping[str, Scalar] | None = None,
    ) -> list[Memory]:
        """Store what chat messages say.

        With ``infer``, mem0 has the configured LLM extract the facts that are new, and these are
        stored; without, each message but a system message is stored as it is.
        """
        wanted = parse_tier(tier)
        chat = as_messages(messages)
        if infer:
            with self._bank._using():
                texts = self._bank._extractor_of_facts().extract(self.agent_id, chat)
        else:
            texts = [message["content"] for message in chat if message["role"] != "system"]
        return self.add_many([(text, wanted, metadata) for text in texts])

    # Changing

    def set_tier(self, memory_id: str, tier: TierLike) -> Memory:
        """Move a memory to a tier. One that is there already keeps its place in it."""
        wanted = parse_tier(tier)
        with self._bank._changing():
            memory = self.get(memory_id)
            if memory.tier is wanted:
                return memory
            ledger = self._bank._ledger
            ledger.make_room(self.agent_id, wanted, self._bank._caps, memory.sequence)
            ledger.change_tier(memory, wanted, demoted=False)
            return self.get(memory_id)

    def pin(self, memory_id: str) -> Memory:
        """Make a memory always part of what the agent sees."""
        return self.set_tier(memory_id, Tier.PINNED)

    def unpin(self, memory_id: str, to: TierLike = Tier.NORMAL) -> Memory:
        """Move a pinned memory to another tier; one that isn't pinned stays as it is."""
        tier = parse_tier(to)
        if tier is Tier.PINNED:
            raise InvalidTier("unpin() moves to another tier than pinned")
        with self._bank._changing():
            memory = self.get(memory_id)
            return self.set_tier(memory_id, tier) if memory.tier is Tier.PINNED else memory

    def delete(self, memory_id: str) -> None:
        """Delete a memory."""
        with self._bank._changing():
            self._bank._ledger.delete(self.get(memory_id))

    # Reading

    def get(self, memory_id: str) -> Memory:
        """The memory with this id."""
        block = self._block()
        sequence = sequence_of(block.prefix, memory_id)
        row = None if sequence is None else block.row_of(sequence)
        if row is None:
            hint = "" if isinstance(memory_id, str) else "; an id is text, such as memory.id"
            raise MemoryNotFound(f"{self.agent_id} has no memory {memory_id!r:.80}{hint}")
        return block.memory(row)

    def find(self, sequence: int) -> Memory | None:
        """The agent's ``sequence``-th memory; None if it was deleted or never was."""
        block = self._block()
        row = block.row_of(sequence)
        return None if row is None else block.memory(row)

    def all(self, tier: TierLike | None = None) -> list[Memory]:
        """The agent's memories, of all tiers or of one, oldest first."""
        if tier is None:
            return self._block().memories(range(len(self._block())))
        return self._block().in_tier(parse_tier(tier))

    def count(self, tier: TierLike | None = None) -> int:
        """How many memories the agent has, in all or in a tier."""
        if tier is None:
            return len(self._block())
        return int((self._block().tiers == parse_tier(tier)).sum())

    def get_pinned_memories(self) -> list[Memory]:
        """The pinned memories, oldest pin first."""
        return list(self._block().pinned.memories)

    def search(
        self, query: str, limit: int | None = None, *, context_tokens: int | None = None
    ) -> Hits:
        """The memories that matter for ``query``, best first.

        All pinned memories come first, even beyond ``limit``; the rest of ``limit`` goes to those
        with the best similarity plus tier boost among the nearest candidates. A blank query gives
        the newest by tier. ``limit`` and ``context_tokens`` default to the config's.
        """
        (hits,) = self._bank.search_many(
            [(self.agent_id, query)], limit, context_tokens=context_tokens
        )
        return hits

    def get_relevant_memories(
        self, query: str, limit: int | None = None, *, context_tokens: int | None = None
    ) -> str:
        """What :meth:`search` finds, as lines for a prompt: ``- [tier] text``."""
        (text,) = self._bank.relevant_many(
            [(self.agent_id, query)], limit, context_tokens=context_tokens
        )
        return text

    def explain(
        self, query: str, limit: int | None = None, *, context_tokens: int | None = None
    ) -> list[Explanation]:
        """For each of the agent's memories, how :meth:`search` scored it and why it was dropped."""
        bank = self._bank
        with bank._using():
            blank = not check_query(query).strip()
            vector = None if blank else bank._embedder.encode([query])[0]
            most, budget = bank._limits(limit, context_tokens)
            return bank._retrieval.explain(self._block(), vector, most, budget)

    def _block(self) -> AgentColumns:
        with self._bank._using():
            return self._bank._ledger.resident.block(self.agent_id)
