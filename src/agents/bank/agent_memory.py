"""One agent's view of its own memories in a bank."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, final

from ..engine import clock, move, read, upkeep, write
from ..engine.engine import Engine
from ..engine.status import Status
from ..errors import InvalidInput, InvalidTier
from ..memory.context import render
from ..memory.filters import ANY, Filter, parse_filter
from ..memory.records import Compaction, Explanation, Hits, Memory, Recall, Scalar, Spill
from ..memory.requests import (
    action_text,
    check_query,
    check_session,
    optional_session,
    with_session,
)
from ..memory.sources import Links
from ..memory.tiers import (
    Retention,
    RetentionLike,
    Temperature,
    TemperatureLike,
    Tier,
    TierLike,
    parse_retention,
    parse_temperature,
    parse_tier,
)
from ..notes.agent_notes import AgentNotes
from ..notes.index import NoteIndex
from ..notes.search import Findings, search_notes
from ..search.request import SearchRequest
from ..storage.mem0.models import Message, as_messages
from ..telling import groups, links
from .agent_social import AgentSocial
from .renaming import doing, under_our_names

if TYPE_CHECKING:
    from .agent_session import AgentSession


P = ParamSpec("P")
T = TypeVar("T")
_Method = Callable[Concatenate["AgentMemory", P], T]


def named_by_profile(does: str) -> Callable[[_Method[P, T]], _Method[P, T]]:
    """Let a method take the names and defaults that the bank's profile has for an operation.

    Of the arguments of the profile's operation that ``does`` this one of ours, the method takes
    those that have another name or other values here, and has their defaults.
    """

    def decorated(method: _Method[P, T]) -> _Method[P, T]:
        parameters = inspect.signature(method).parameters
        names = tuple(parameters)[1:]
        takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())

        @functools.wraps(method)
        def called(self: "AgentMemory", /, *args: P.args, **kwargs: P.kwargs) -> T:
            name = self.engine.settings.profile
            if name is not None and (operation := doing(name, does)) is not None:
                given = names[: len(args)]
                known = None if takes_all else names
                kwargs = under_our_names(self, operation, kwargs, given, known)  # type: ignore[assignment]
            return method(self, *args, **kwargs)

        return called

    return decorated


@final
class AgentMemory:
    """One agent's memories, made by :meth:`MemoryBank.agent`. It reaches no other agent's memories.

    A tier may be given as a ``Tier``, a number 0–4, or a name in any case. A temperature may be
    given as a ``Temperature`` or a name. :meth:`add`, :meth:`search`, :meth:`recall` and
    :meth:`memory_search` also take the names of the bank's profile. The id of a memory that this
    agent does not have raises :class:`MemoryNotFound`. Each call that changes something commits it
    before it returns, as :class:`MemoryBank` says.
    """

    __slots__ = ("agent_id", "engine")

    def __init__(self, engine: Engine, agent_id: str) -> None:
        self.agent_id = agent_id
        self.engine = engine
        """The open bank itself, for the code of this package; its form may change."""

    def __repr__(self) -> str:
        return f"<AgentMemory {self.agent_id}: {self.count()} memories>"

    def call(self, name: str, /, **arguments: object) -> dict[str, Any]:
        """Do an operation by its name: of docs/reference/operations.md, or of the profile.

        The result is a JSON object. What is wrong is raised, as by the other calls.
        """
        from ..tools import calling  # which is made of the calls of this class

        clock.follow(self.engine)
        return calling.run(self, name, arguments)

    def session(self, name: str | int) -> "AgentSession":
        """The memories of the agent that are part of one session, such as a conversation.

        Nothing begins and nothing is stored: a session is there as long as a memory says its name.
        """
        from .agent_session import AgentSession  # its methods are made from those of this class

        return AgentSession(self, check_session(name))

    # Storing

    @named_by_profile("memory_add")
    def add(
        self,
        content: str,
        tier: TierLike | None = None,
        metadata: Mapping[str, Scalar] | None = None,
        *,
        key: str | None = None,
        kind: str = "fact",
        tags: Iterable[str] = (),
        temperature: TemperatureLike | None = None,
        ttl: int | None = None,
        expires_tick: int | None = None,
        session: str | int | None = None,
        speaker: str | None = None,
        value: object = None,
        importance: int | None = None,
        supersedes: str | None = None,
        contradicts: str | None = None,
        evidence: Iterable[str] | None = None,
    ) -> Memory:
        """Store a memory, in the tier normal unless another is given.

        ``content`` comes back byte for byte. ``metadata`` is flat JSON of your own. If the tier is
        full, its oldest memory moves one tier down, or :class:`TierFull` is raised;
        ``memory.on_tier_full`` decides which.

        With a ``key``, the memory supersedes the one that the agent stored under this key before,
        pinned or not: that one is archived, and :meth:`history` still has it. Without a ``tier``,
        the new memory has the former's tier, and its place there if the tier has a cap.

        ``kind`` is message, fact, decision, preference, entity, context, observation, action or
        insight.
        The memory lives for ``ttl`` ticks, or until ``expires_tick``, or without end. Without a
        ``temperature``, the settings choose one by that lifetime. If hot becomes too full, the
        least relevant memories leave it; a memory that is larger than all of hot becomes warm.

        ``session`` names the conversation or episode, ``speaker`` the person that said the text.
        Memories of one session help a search to find each other. Both are kept as metadata.

        ``value`` is JSON of any depth up to 64, and of at most 1 MiB. No search looks into it;
        ``memory.value`` returns it.

        ``importance`` is a whole number from 1 (mundane) to 10 (poignant), kept as metadata.
        ``retrieval.score: generative`` ranks by it; without one, the tier stands for it.

        ``supersedes`` is the id of a memory that this one supersedes, as if both had its key.
        ``contradicts`` is the id of one that it contradicts: :meth:`links` shows it, and searches
        find both.

        ``evidence`` has the ids of the agent's memories that an insight is drawn from, up to 32.
        :meth:`links` says which of them no longer hold.
        """
        options = {
            "kind": kind,
            "tags": tags,
            "temperature": temperature,
            "ttl": ttl,
            "expires_tick": expires_tick,
            "session": session,
            "speaker": speaker,
            "key": key,
            "value": value,
            "importance": importance,
            "evidence": evidence,
        }
        if supersedes is None and contradicts is None:
            item: tuple[object, ...] = (self.agent_id, content, tier, metadata, options)
            return write.add_many(self.engine, [item])[0]
        with self.engine.changing():
            if supersedes is not None:
                former = self.get(supersedes)
                write.check_is_live(self.engine, former)
                options["key"] = links.key_for(former, key)
            against = None if contradicts is None else self.get(contradicts)
            item = (self.agent_id, content, tier, metadata, options)
            (memory,) = write.add_many(self.engine, [item])
            if against is not None:
                links.contradict(self.engine, memory, against)
            return memory

    def add_many(
        self,
        items: Iterable[str | tuple[str] | tuple[str, TierLike] | tuple[object, ...]],
        *,
        session: str | int | None = None,
    ) -> list[Memory]:
        """Store many memories in one commit: texts, or tuples of text, tier, metadata, options.

        ``options`` is a mapping of the other arguments of :meth:`add`; ``session`` is that of all.
        If one memory is refused, none is stored.
        """
        if isinstance(items, str):
            raise InvalidInput("add_many() takes a list of memories", hint="use add() for one text")
        rows: list[tuple[object, ...]] = []
        for item in items:
            if not isinstance(item, str | tuple | list):
                raise InvalidInput(f"a new memory is a text or a tuple; got {item!r:.80}")
            rows.append((self.agent_id, *([item] if isinstance(item, str) else item)))
        if session is not None:
            rows = [with_session(row, session) for row in rows]
        return list(write.add_many(self.engine, rows))

    def record_action(
        self,
        action_type: str,
        details: str | Mapping[str, object] = "",
        success: bool = True,
        tier: TierLike = Tier.NORMAL,
    ) -> Memory:
        """Store an action of the agent and whether it succeeded, as a memory of the kind action."""
        text = action_text(action_type, details, success)
        metadata: dict[str, Scalar] = {"action_type": action_type, "success": success}
        return self.add(text, tier, metadata, kind="action")

    def record_observation(self, text: str, tier: TierLike = Tier.NORMAL) -> Memory:
        """Store what the agent saw, as a memory of the kind observation."""
        return self.add(text, tier, kind="observation")

    def add_messages(
        self,
        messages: str | Message | list[Message],
        *,
        infer: bool = True,
        tier: TierLike = Tier.NORMAL,
        metadata: Mapping[str, Scalar] | None = None,
        session: str | int | None = None,
    ) -> list[Memory]:
        """Store what chat messages say, as memories of a session if one is given.

        With ``infer``, mem0 lets the configured LLM extract the new facts to store, or raises
        :class:`ExtractionError`. While the LLM answers, other threads wait only if a transaction
        is open. Without ``infer``, each message is stored as it is, except system messages.
        """
        wanted, chat = parse_tier(tier), as_messages(messages)
        if infer:
            texts = write.extract(self.engine, self.agent_id, chat)
        else:
            texts = [message["content"] for message in chat if message["role"] != "system"]
        options = {"kind": "fact" if infer else "message"}
        items = [(text, wanted, metadata, options) for text in texts]
        return self.add_many(items, session=session)

    # Changing

    @named_by_profile("memory_update")
    def update(
        self,
        memory_id: str,
        content: str | None = None,
        tier: TierLike | None = None,
        metadata: Mapping[str, Scalar] | None = None,
        *,
        value: object = None,
        temperature: TemperatureLike | None = None,
        retention: RetentionLike | None = None,
    ) -> Memory:
        """Change a memory's text, tier, temperature or retention, in one commit.

        A new ``content`` is stored as a new version, which supersedes the memory as :meth:`add`
        with its key does, and which is returned. The new version has an id of its own, and all of
        the former that is not given: tier, metadata, value, kind, tags, temperature and lifetime.
        Where the former has no key, its id is the key of all later versions.

        ``temperature``: a memory that becomes hot counts as used, and is the most relevant of what
        is hot; a memory that is larger than all of hot stays as it is. :class:`MemoryPinned` if a
        pinned memory is to become warm or cold.

        ``retention``: no search finds an archived memory, but its id still reads it. A deleted
        memory can be restored within ``retention.grace``; then it is purged. ``"active"`` restores
        an archived or deleted memory, with its tier and temperature.
        """
        given = (content, tier, metadata, value, temperature, retention)
        if given == (None,) * len(given):
            raise InvalidInput("say what is to change: content, tier, temperature or retention")
        for name, beside in (("value", value), ("metadata", metadata)):
            if beside is not None and content is None:
                raise InvalidInput(f"a new {name} comes with a content", hint="give the text again")
        wanted = None if tier is None else parse_tier(tier)
        heat = None if temperature is None else parse_temperature(temperature)
        kept = None if retention is None else parse_retention(retention)
        if wanted is Tier.PINNED:
            move.check_may_be_pinned(heat, kept)
        bank, agent_id = self.engine, self.agent_id
        with bank.changing():
            memory = self._found(memory_id)
            if kept is Retention.ACTIVE:
                memory = move.retain(bank, agent_id, memory, kept)
            if content is not None:
                memory = write.update(bank, self.get(memory_id), content, wanted, metadata, value)
            elif wanted is not None:
                memory = move.set_tier(bank, agent_id, self.get(memory_id), wanted)
            if heat is not None:
                move.set_temperature(bank, agent_id, self.get(memory.id), heat)
            if kept in (Retention.ARCHIVED, Retention.DELETED):
                move.retain(bank, agent_id, self.get(memory.id), kept)
            return self._found(memory.id)

    def set_tier(self, memory_id: str, tier: TierLike) -> Memory:
        """Move a memory to a tier. A memory that is in the tier already keeps its place there."""
        wanted = parse_tier(tier)
        with self.engine.changing():
            return move.set_tier(self.engine, self.agent_id, self.get(memory_id), wanted)

    def pin(self, memory_id: str) -> Memory:
        """Pin a memory: it becomes active and hot, and every search and context includes it."""
        return self.set_tier(memory_id, Tier.PINNED)

    def unpin(self, memory_id: str, to: TierLike = Tier.NORMAL) -> Memory:
        """Move a pinned memory to another tier; it becomes warm. Any other memory stays."""
        tier = parse_tier(to)
        if tier is Tier.PINNED:
            raise InvalidTier(
                "unpin() moves to another tier than pinned",
                hint="use critical, important, normal or low, or 1 to 4",
            )
        with self.engine.changing():
            memory = self.get(memory_id)
            return self.set_tier(memory_id, tier) if memory.tier is Tier.PINNED else memory

    # What is linked

    def link(
        self, memory_id: str, *, supersedes: str | None = None, contradicts: str | None = None
    ) -> Links:
        """Link a memory to another one of the agent.

        The memory that it supersedes is archived: no search finds it, unless it is asked for.
        """
        if supersedes is None and contradicts is None:
            raise InvalidInput("a link names a memory", hint="give supersedes or contradicts")
        with self.engine.changing():
            memory = self.get(memory_id)
            if contradicts is not None:
                links.contradict(self.engine, memory, self.get(contradicts))
            if supersedes is not None:
                links.supersede(self.engine, memory, self.get(supersedes))
            return links.links(self.engine, memory)

    def links(self, memory_id: str) -> Links:
        """What superseded a memory, what contradicts it, and which of its evidence is lost."""
        with self.engine.using():
            return links.links(self.engine, self._found(memory_id))

    # What agents tell each other

    @property
    def social(self) -> AgentSocial:
        """What the agent tells others, hears from them and believes, and its groups."""
        return AgentSocial(self.engine, self.agent_id)

    # Notes

    @property
    def notes(self) -> AgentNotes:
        """The agent's Markdown notes."""
        return AgentNotes(NoteIndex(self.engine, self.agent_id))

    @named_by_profile("memory_search")
    def memory_search(
        self,
        query: str,
        max_results: int | None = None,
        min_score: float | None = None,
        *,
        group: bool = False,
        kind: str | Iterable[str] | None = None,
    ) -> Findings:
        """Search the agent's notes and memories; findings with citations, best first.

        Notes that changed on disk are indexed first. A memory is found, pinned or not, if its
        score, its similarity or its share of the query's words is at least ``min_score``. A blank
        query finds nothing. ``group`` says that other people read the result: with
        ``notes.citations: auto``, it then has no citations. ``kind`` names one kind of memory, or
        several: with ``note``, only notes and transcripts are searched.
        """
        index = NoteIndex(self.engine, self.agent_id)
        return search_notes(index, query, max_results, min_score, group, kind)

    # Temperature

    def spill(
        self,
        count: int | None = None,
        ids: Iterable[str] | None = None,
        *,
        tokens: int | None = None,
        session: str | int | None = None,
    ) -> Spill:
        """Move memories out of hot: the ``count`` least relevant, or those with these ``ids``.

        ``tokens`` lets the least relevant leave until they free this many tokens. Without
        arguments, memories leave until hot is within its limits, and one leaves at least.
        Memories that were used often become warm, other memories cold. Pinned memories stay. With a
        ``session``, only its memories leave, and the limits are those of a session.
        """
        if isinstance(ids, str):
            raise InvalidInput(
                "spill() takes a list of ids", hint="use spill(ids=[memory.id]) for one"
            )
        bank, name = self.engine, optional_session(session)
        with bank.using():
            memories = None if ids is None else [self.get(each) for each in ids]
            return move.spill(bank, self.agent_id, count, memories, tokens, name)

    @named_by_profile("memory_recall")
    def recall(
        self,
        query: str,
        limit: int = 3,
        *,
        auto_promote: bool | None = None,
        kinds: Iterable[str] | str | None = None,
        min_relevance: float | None = None,
        min_probability: float | None = None,
        filters: Mapping[str, object] | None = None,
        session: str | int | None = None,
        include_cold: bool = True,
        include_hot: bool = True,
    ) -> Recall:
        """Search memories of every temperature, and promote the memories that are needed again.

        With ``auto_promote``, or ``temperature.auto_promote`` unless it is given, a memory becomes
        hot if its text is at least ``temperature.promote_threshold`` similar to the query, or if it
        was recalled ``promote_accesses`` times within ``promote_window``. A recall counts from the
        score ``temperature.min_score`` on. A blank query finds nothing. ``filters`` and
        ``session`` are those of :meth:`search`. Without ``include_hot``, what is in front of the
        agent anyway takes no place.
        """
        hot, cold = ("hot",) * include_hot, ("cold",) * include_cold
        wanted = (*hot, "warm", *cold)
        only = parse_filter(
            None, wanted, kinds, None, min_relevance, None, filters, session, min_probability
        )
        if auto_promote is None:
            auto_promote = self.engine.settings.temperature.auto_promote
        return move.recall(
            self.engine, self.agent_id, query, limit, only, auto_promote, include_cold
        )

    def compact(self, *, dry_run: bool = False, session: str | int | None = None) -> Compaction:
        """:meth:`MemoryBank.compact` for this agent; for a session, it prunes nothing."""
        name = optional_session(session)
        return upkeep.compact(self.engine, self.agent_id, dry_run=dry_run, session=name)

    def status(self, *, session: str | int | None = None) -> Status:
        """:meth:`MemoryBank.status` of this agent, or of a session: its memories and its limits."""
        return groups.status(self.engine, self.agent_id, optional_session(session))

    def delete(self, memory_id: str) -> None:
        """Delete a memory. It can be restored within ``retention.grace``; then it is purged."""
        with self.engine.using():
            move.retain(self.engine, self.agent_id, self.get(memory_id), Retention.DELETED)

    def forget(self, memory_id: str) -> None:
        """Purge a memory now: its text and its vector are gone, from the journal too.

        The journal keeps only that the memory existed. Older checkpoints still have its text.
        A part of a note can be forgotten after it was removed from the note, but the journal keeps
        the note's earlier texts: do not write to notes what may have to be forgotten.
        :meth:`MemoryBank.vacuum` clears the free space in the files as well.
        """
        with self.engine.using():
            move.forget(self.engine, self.agent_id, self._found(memory_id))

    # Reading

    def get(self, memory_id: str) -> Memory:
        """The memory with this id, active or archived."""
        return read.find(self.engine, self.agent_id, memory_id)

    def decay_score(self, memory_id: str) -> float:
        """How little a memory has faded: 1 when it is used, halved with each half-life it is idle.

        It is 1 for a pinned memory, and where ``decay.enabled`` is false.
        """
        with self.engine.using():
            return read.decay_score(self.engine, self.get(memory_id))

    def all(
        self,
        tier: TierLike | None = None,
        *,
        temperature: TemperatureLike | None = None,
        filters: Mapping[str, object] | None = None,
        session: str | int | None = None,
        retention: RetentionLike = Retention.ACTIVE,
    ) -> list[Memory]:
        """The agent's memories, of one tier or temperature if given, oldest first.

        They are the active ones, or, by ``retention``, the archived or the deleted ones.
        ``filters`` and ``session`` are those of :meth:`search`.
        """
        only = parse_filter(tier, temperature, filters=filters, session=session)
        kept = parse_retention(retention)
        if kept is not Retention.ACTIVE:
            found = read.hidden(self.engine, self.agent_id, kept)[::-1]
        else:
            wanted = None if tier is None else parse_tier(tier)
            heat = None if temperature is None else parse_temperature(temperature)
            found = read.active(self.engine, self.agent_id, wanted, heat)
        return found if only is ANY else [memory for memory in found if only.allows(memory)]

    def count(self, tier: TierLike | None = None) -> int:
        """The number of the agent's active memories, cold ones included, in all tiers or in one."""
        wanted = None if tier is None else parse_tier(tier)
        return read.count(self.engine, self.agent_id, wanted)

    def history(self, key: str) -> list[Memory]:
        """The versions of what is stored under a key, oldest first; the last may be active.

        ``key`` may also be the id of one of these memories. ``created_tick`` says since when a
        version held. Deleted and forgotten versions are left out.
        """
        return read.history(self.engine, self.agent_id, key)

    def get_pinned_memories(self) -> list[Memory]:
        """The pinned memories, oldest pin first."""
        with self.engine.using():
            return self.engine.state.block(self.agent_id).pinned_memories()

    @named_by_profile("memory_query")
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
        filters: Mapping[str, object] | None = None,
        session: str | int | None = None,
        min_probability: float | None = None,
        include_cold: bool = False,
        include_superseded: bool = False,
        include_groups: bool = False,
    ) -> Hits:
        """The memories that matter for ``query``, best first.

        All pinned memories come first, even beyond ``limit``. The memories with the best score
        plus tier boost follow, up to ``limit`` in all. A blank query returns the newest memories by
        tier. ``limit`` and ``context_tokens`` default to the settings'. The memories that a search
        returns count as used.

        Only memories that pass all filters take part; pinned memories need no ``min_score`` and no
        ``min_probability``. Each filter takes one value or several, and passes a memory that has
        one of them. Cold memories take part with ``include_cold``, or if ``temperature`` names
        cold. With a ``min_probability``, which may be 0, each hit has its
        ``relevance_probability``: it means the same with every embedder, and ``min_score`` doesn't.

        ``filters`` are conditions on metadata, such as ``{"metadata.place": "bay"}`` or
        ``{"metadata.day": {"$gte": 3}}``. The operators are ``$eq``, ``$ne``, ``$in``, ``$nin``,
        ``$gt``, ``$gte``, ``$lt``, ``$lte`` and ``$exists``; ``$and`` and ``$or`` take a list of
        filters, ``$not`` takes one. Pinned memories have to pass them, too. ``session`` is one more
        condition: the memory was stored with this session; 7 and "7" name the same one.

        With ``include_superseded``, memories that another one superseded take part as well. With
        ``include_groups``, what is on the boards of the agent's groups takes part as well.
        """
        given = (tier, temperature, kind, tags, min_score, since_tick, filters, session)
        only, cold = _filter_and_cold(include_cold, *given, min_probability)
        with self.engine.using():
            request = self._request(query, limit, context_tokens)
            request = request._replace(only=only, with_cold=cold)
            if include_superseded and include_groups:
                raise InvalidInput(
                    "a search includes superseded memories or groups, not both",
                    hint="leave one out",
                )
            if include_superseded:
                former = read.former(self.engine, self.agent_id, with_cold=cold)
                request = request._replace(with_cold=True, shelved=former)
            if include_groups:
                return groups.search(self.engine, request)
            return self.engine.find(request)[0]

    def get_relevant_memories(
        self,
        query: str | None = None,
        limit: int | None = None,
        *,
        context_tokens: int | None = None,
        session: str | int | None = None,
    ) -> str:
        """What the agent should have in mind, as lines for a prompt: ``- [tier] text``.

        First come the pinned memories, then the other hot memories, most recently used first, up to
        ``temperature.hot_max_tokens`` and ``hot_max_facts``. Then come the warm memories that a
        search for ``query`` finds: ``limit`` less the pinned ones. No memory comes twice.

        Without a ``query``, for the start of a session, the pinned and the hot memories come alone,
        and do not count as used.

        With a ``session``, all of this is about its memories alone, up to the limits of a session.
        """
        bank, only = self.engine, parse_filter(session=session)
        with bank.using():
            hot = bank.limits_in(only.session)
            if query is not None:
                request = self._request(query, limit, context_tokens)
                return render(bank.find(request._replace(only=only, hot=hot))[0])
            if limit is not None or context_tokens is not None:
                raise InvalidInput(
                    "limit and context_tokens are for what a query finds", hint="give a query"
                )
            return render(Hits(bank.search.front(self.agent_id, hot, only)))

    @named_by_profile("memory_query")
    def explain(
        self,
        /,
        query: str,
        limit: int | None = None,
        *,
        context_tokens: int | None = None,
        context: bool = False,
        include_cold: bool = False,
        include_groups: bool = False,
        **filters: object,
    ) -> list[Explanation]:
        """For each memory: its score, and why a search gives it or not.

        First comes what :meth:`search` gives with the same arguments, in that order. With
        ``context``, it is what :meth:`get_relevant_memories` and a simulation give: the hot
        memories follow the pinned ones. Then comes each memory that was not given, with the
        reason: over the token budget, below the cut, outside the candidates, over the limits of
        hot, filtered, expired, cold or archived. It counts as no use.
        """
        only, cold = _filter_and_cold(include_cold, **filters)
        if context and include_groups:
            raise InvalidInput("a context has nothing of boards", hint="leave one of both out")
        with self.engine.using():
            request = self._request(query, limit, context_tokens)
            if include_groups:
                request = request._replace(only=only, with_cold=cold)
                return groups.explain(self.engine, request)
            hot = self.engine.limits_in(only.session) if context else None
            request = request._replace(only=only, with_cold=cold, hot=hot)
            return self.engine.search.explain(request, may_sync=self.engine.may_sync())

    def _request(self, query: str, limit: int | None, tokens: int | None) -> SearchRequest:
        most, budget = self.engine.limits_of(limit, tokens)
        return SearchRequest([self.agent_id], [check_query(query)], most, budget)

    def _found(self, memory_id: str) -> Memory:
        return read.find(self.engine, self.agent_id, memory_id, deleted=True)


def _filter_and_cold(include_cold: bool, *values: object, **named: object) -> tuple[Filter, bool]:
    """A filter from a caller's values, and whether cold memories take part.

    Cold memories take part if they are asked for, or if the filter names cold.
    """
    if all(value is None for value in (*values, *named.values())):
        return ANY, include_cold
    only = parse_filter(*values, **named)
    if include_cold and only.temperatures is not None:
        only = only._replace(temperatures=only.temperatures | {Temperature.COLD})
    return only, include_cold or only.wants_cold
