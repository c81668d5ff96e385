"""One agent's view of a bank."""

import json
from collections.abc import Iterable, Mapping
from typing import final

from ..engine import agent_moves, reading, upkeep
from ..engine.open_bank import OpenBank
from ..engine.status import Status
from ..errors import InvalidContent, InvalidInput, InvalidTier
from ..memory.checks import check_query
from ..memory.context import render
from ..memory.filters import ANY, parse_filter
from ..memory.records import Explanation, Hits, Memory, Scalar
from ..memory.results import Compaction, Recall, Spill
from ..memory.retention import Retention
from ..memory.temperature import Temperature, TemperatureLike, parse_temperature
from ..memory.tiers import Tier, TierLike, parse_tier
from ..notes.agent_notes import AgentNotes, NoteLines
from ..notes.index import NoteIndex
from ..notes.search import Findings, search_notes
from ..search.request import SearchRequest
from ..storage.mem0.models import Message, as_messages

__all__ = ["AgentMemory"]


@final
class AgentMemory:
    """One agent's memories. Made by :meth:`MemoryBank.agent`; it can't reach another agent's.

    Everywhere a tier is taken, it may be a ``Tier``, a number 0–4, or a name in any case.
    Everywhere an id is taken, one that is not this agent's is :class:`MemoryNotFound`.
    """

    __slots__ = ("agent_id", "parts")

    def __init__(self, parts: OpenBank, agent_id: str) -> None:
        self.agent_id = agent_id
        self.parts = parts
        """The open bank itself, for the rooms of this package; its form may change."""

    def __repr__(self) -> str:
        return f"<AgentMemory {self.agent_id}: {self.count()} memories>"

    # Storing

    def add(
        self,
        content: str,
        tier: TierLike = Tier.NORMAL,
        metadata: Mapping[str, Scalar] | None = None,
        *,
        kind: str = "fact",
        tags: Iterable[str] = (),
        temperature: TemperatureLike | None = None,
        ttl: int | None = None,
        expires_tick: int | None = None,
        session: str | int | None = None,
        speaker: str | None = None,
    ) -> Memory:
        """Store a memory.

        ``content`` comes back byte for byte. ``metadata`` is flat JSON of your own. Where the tier
        is full, its oldest memory moves one tier down, or :class:`TierFull` is raised, as
        ``memory.on_tier_full`` says.

        ``kind`` is message, fact, decision, preference, entity, context, observation or action.
        Without a ``temperature`` it is what the settings say for its lifetime: ``ttl`` ticks, or
        until ``expires_tick``. Where hot becomes too full, the least relevant leave it; a memory
        that is larger than all of hot is warm.

        ``session`` is the conversation or episode that it is part of, and ``speaker`` who said it:
        memories of a session help to find each other. Both are kept as metadata of these names.
        """
        options = {
            "kind": kind,
            "tags": tags,
            "temperature": temperature,
            "ttl": ttl,
            "expires_tick": expires_tick,
            "session": session,
            "speaker": speaker,
        }
        return self.parts.add_many([(self.agent_id, content, tier, metadata, options)])[0]

    def add_many(
        self, items: Iterable[str | tuple[str] | tuple[str, TierLike] | tuple[object, ...]]
    ) -> list[Memory]:
        """Store many memories, all or none: texts, or tuples of text, tier, metadata, options.

        ``options`` is a mapping with what else :meth:`add` takes.
        """
        if isinstance(items, str):
            raise InvalidInput("add_many() takes a list of memories", hint="use add() for one text")
        rows: list[tuple[object, ...]] = []
        for item in items:
            if not isinstance(item, str | tuple | list):
                raise InvalidInput(f"a new memory is a text or a tuple; got {item!r:.80}")
            rows.append((self.agent_id, *([item] if isinstance(item, str) else item)))
        return list(self.parts.add_many(rows))

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
        metadata: dict[str, Scalar] = {"action_type": action_type, "success": success}
        return self.add(text, tier, metadata, kind="action")

    def record_observation(self, text: str, tier: TierLike = Tier.NORMAL) -> Memory:
        """Store what the agent saw."""
        return self.add(text, tier, kind="observation")

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
            with self.parts.using():
                texts = self.parts.facts_extractor().extract(self.agent_id, chat)
        else:
            texts = [message["content"] for message in chat if message["role"] != "system"]
        options = {"kind": "fact" if infer else "message"}
        return self.add_many([(text, wanted, metadata, options) for text in texts])

    # Changing

    def set_tier(self, memory_id: str, tier: TierLike) -> Memory:
        """Move a memory to a tier. One that is there already keeps its place in it."""
        wanted = parse_tier(tier)
        with self.parts.changing():
            return agent_moves.set_tier(self.parts, self.agent_id, self.get(memory_id), wanted)

    def pin(self, memory_id: str) -> Memory:
        """Make a memory always part of what the agent sees; it is active and hot then."""
        return self.set_tier(memory_id, Tier.PINNED)

    def unpin(self, memory_id: str, to: TierLike = Tier.NORMAL) -> Memory:
        """Move a pinned memory to another tier, warm; one that isn't pinned stays as it is."""
        tier = parse_tier(to)
        if tier is Tier.PINNED:
            raise InvalidTier(
                "unpin() moves to another tier than pinned",
                hint="use critical, important, normal or low, or 1 to 4",
            )
        with self.parts.changing():
            memory = self.get(memory_id)
            return self.set_tier(memory_id, tier) if memory.tier is Tier.PINNED else memory

    # Notes

    @property
    def notes(self) -> AgentNotes:
        """The agent's Markdown notes."""
        return AgentNotes(NoteIndex(self.parts, self.agent_id))

    def memory_search(
        self,
        query: str,
        max_results: int | None = None,
        min_score: float | None = None,
        *,
        group: bool = False,
    ) -> Findings:
        """What the agent's notes and memories say about ``query``, best first, with citations.

        Notes that changed on disk are indexed first. What nothing speaks for as much as
        ``min_score`` is no result, pinned or not: neither its score, nor its similarity, nor how
        much of the query's words it has. A blank query finds nothing.
        ``group`` says that others read along: with ``notes.citations: auto``, no citation is shown
        then.
        """
        index = NoteIndex(self.parts, self.agent_id)
        return search_notes(index, query, max_results, min_score, group)

    def memory_get(self, path: str, from_line: int = 1, lines: int | None = None) -> NoteLines:
        """Lines of one of the agent's notes, exactly; none, if there is no such note."""
        return self.notes.lines(path, from_line, lines)

    # Temperature

    def promote(self, memory_id: str) -> bool:
        """Make a memory hot, which counts as a use of it; False where it does not become so."""
        with self.parts.using():
            return agent_moves.promote(self.parts, self.agent_id, self.get(memory_id))

    def demote(self, memory_id: str, to: TemperatureLike = Temperature.WARM) -> bool:
        """Make a memory warm or cold; False where it is no hotter than that.

        :class:`MemoryPinned` for a pinned one.
        """
        with self.parts.using():
            return agent_moves.demote(
                self.parts, self.agent_id, self.get(memory_id), parse_temperature(to)
            )

    def warm(self, memory_id: str) -> bool:
        """Make a cold memory warm, so that searches see it; False where it is not cold."""
        with self.parts.using():
            return agent_moves.warm(self.parts, self.agent_id, self.get(memory_id))

    def spill(self, count: int | None = None, ids: Iterable[str] | None = None) -> Spill:
        """Let memories leave hot: the ``count`` least relevant, these, or as many as are too many.

        Those that were used often go to warm, the others to cold. Pinned ones stay.
        """
        if isinstance(ids, str):
            raise InvalidInput(
                "spill() takes a list of ids", hint="use spill(ids=[memory.id]) for one"
            )
        with self.parts.using():
            memories = None if ids is None else [self.get(each) for each in ids]
            return agent_moves.spill(self.parts, self.agent_id, count, memories)

    def recall(
        self,
        query: str,
        limit: int = 3,
        *,
        auto_promote: bool = True,
        kinds: Iterable[str] | str | None = None,
        min_relevance: float | None = None,
    ) -> Recall:
        """What the agent once knew: searches the warm and the cold memories, not the hot.

        What is at least ``temperature.promote_threshold`` similar, or was recalled
        ``promote_accesses`` times within ``promote_window``, becomes hot. A blank query finds
        nothing.
        """
        only = parse_filter(temperature=("warm", "cold"), kind=kinds, min_score=min_relevance)
        return agent_moves.recall(self.parts, self.agent_id, query, limit, only, auto_promote)

    def compact(self, *, dry_run: bool = False) -> Compaction:
        """:meth:`MemoryBank.compact` for this agent."""
        return upkeep.compact(self.parts, self.agent_id, dry_run=dry_run)

    def status(self) -> Status:
        """:meth:`MemoryBank.status` of this agent."""
        return upkeep.status(self.parts, self.agent_id)

    # Retention

    def archive(self, memory_id: str) -> Memory:
        """Hide a memory: it can be read by its id, and restored, and no search finds it."""
        with self.parts.using():
            return agent_moves.retain(
                self.parts, self.agent_id, self.get(memory_id), Retention.ARCHIVED
            )

    def delete(self, memory_id: str) -> None:
        """Delete a memory. For ``retention.grace`` it can be restored, then it is purged."""
        with self.parts.using():
            agent_moves.retain(self.parts, self.agent_id, self.get(memory_id), Retention.DELETED)

    def restore(self, memory_id: str) -> Memory:
        """Bring back a memory that was archived or deleted, as it was."""
        with self.parts.using():
            memory = self._found(memory_id)
            return agent_moves.retain(self.parts, self.agent_id, memory, Retention.ACTIVE)

    def forget(self, memory_id: str) -> None:
        """Purge a memory now: its text and its vector are gone, from the journal too.

        Only that there was a memory stays. Checkpoints that were made before still have it.
        A part of a note is forgotten once the note has it no longer, and the journal keeps the
        texts that the note had: what may have to be forgotten should not be written to notes.
        :meth:`MemoryBank.vacuum` clears the free space in the files as well.
        """
        with self.parts.using():
            agent_moves.forget(self.parts, self.agent_id, self._found(memory_id))

    # Reading

    def get(self, memory_id: str) -> Memory:
        """The memory with this id, an archived one as well."""
        return reading.find(self.parts, self.agent_id, memory_id)

    def find(self, sequence: int) -> Memory | None:
        """The agent's ``sequence``-th memory; None if it was deleted or never was."""
        with self.parts.using():
            memory = self.parts.ledger.resident.memory(self.agent_id, sequence)
            tick = self.parts.tick
        if memory is None or memory.retention is Retention.DELETED or memory.is_expired(tick):
            return None
        return memory

    def all(
        self, tier: TierLike | None = None, *, temperature: TemperatureLike | None = None
    ) -> list[Memory]:
        """The agent's active memories, or those of a tier or a temperature, oldest first."""
        wanted = None if tier is None else parse_tier(tier)
        heat = None if temperature is None else parse_temperature(temperature)
        return reading.active(self.parts, self.agent_id, wanted, heat)

    def count(self, tier: TierLike | None = None) -> int:
        """How many active memories the agent has, in all or in a tier; cold ones count."""
        wanted = None if tier is None else parse_tier(tier)
        return reading.count(self.parts, self.agent_id, wanted)

    def hidden(self, retention: Retention) -> list[Memory]:
        """The agent's archived or its deleted memories, newest first."""
        return reading.hidden(self.parts, self.agent_id, retention)

    def get_pinned_memories(self) -> list[Memory]:
        """The pinned memories, oldest pin first."""
        with self.parts.using():
            return self.parts.ledger.resident.block(self.agent_id).pinned_memories()

    def search(
        self,
        query: str,
        limit: int | None = None,
        *,
        context_tokens: int | None = None,
        tier: TierLike | Iterable[TierLike] | None = None,
        temperature: TemperatureLike | Iterable[TemperatureLike] | None = None,
        kind: str | Iterable[str] | None = None,
        tags: str | Iterable[str] | None = None,
        min_score: float | None = None,
        since_tick: int | None = None,
        include_cold: bool = False,
    ) -> Hits:
        """The memories that matter for ``query``, best first.

        All pinned memories come first, even beyond ``limit``; the rest of ``limit`` goes to those
        with the best similarity plus tier boost among the nearest candidates. A blank query gives
        the newest by tier. ``limit`` and ``context_tokens`` default to the config's.

        Only what passes the filters takes part, pinned memories too, except that these need no
        ``min_score``. Each filter takes one value or several, of which any will do. Cold memories
        take part with ``include_cold``, or where ``temperature`` names them.
        """
        only, cold = ANY, include_cold
        given = (tier, temperature, kind, tags, min_score, since_tick)
        if any(value is not None for value in given):
            only = parse_filter(*given)
            cold = include_cold or only.wants_cold
            if include_cold and only.temperatures is not None:
                only = only._replace(temperatures=only.temperatures | {Temperature.COLD})
        with self.parts.using():
            most, budget = self.parts.limits_of(limit, context_tokens)
            agents, queries = [self.agent_id], [check_query(query)]
            request = SearchRequest(agents, queries, most, budget, only, with_cold=cold)
            return self.parts.find(request)[0]

    def get_relevant_memories(
        self, query: str, limit: int | None = None, *, context_tokens: int | None = None
    ) -> str:
        """What the agent should have in mind, as lines for a prompt: ``- [tier] text``.

        First the pinned memories, then the other hot ones, most recently used first, as many as
        ``temperature.hot_max_tokens`` and ``hot_max_facts`` allow, then what a search for ``query``
        finds among the warm: ``limit`` less the pinned. None of them twice.
        """
        request, hot = [(self.agent_id, query)], self.parts.movement.limits
        (hits,) = self.parts.search_many(request, limit, context_tokens, hot=hot)
        return render(hits)

    def hot_context(self) -> str:
        """The pinned and the hot memories alone, for the start of a session."""
        with self.parts.using():
            limits = self.parts.movement.limits
            return render(Hits(self.parts.search.front(self.agent_id, limits)))

    def explain(
        self, query: str, limit: int | None = None, *, context_tokens: int | None = None
    ) -> list[Explanation]:
        """For each memory that :meth:`search` sees, how it was scored and why it was dropped."""
        with self.parts.using():
            most, budget = self.parts.limits_of(limit, context_tokens)
            return self.parts.search.explain(self.agent_id, check_query(query), most, budget)

    def _found(self, memory_id: str) -> Memory:
        return reading.find(self.parts, self.agent_id, memory_id, deleted=True)
