"""The parts of an open bank, and how they work together."""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, final
from weakref import WeakSet, ref

import numpy as np
from numpy.typing import NDArray

from ..config.settings import Settings
from ..errors import BankClosed, NoteRefused
from ..memory.context import TokenCounter, whole_tokens
from ..memory.events import Changes
from ..memory.filters import ANY, Filter
from ..memory.records import Hit, Hits, Memory
from ..memory.requests import check_searches, check_whole
from ..memory.tiers import TEMPERATURE_VALUES
from ..rules.bounds import Duration
from ..rules.compaction import Rule, parse_rules
from ..rules.temperature import Decay, HotLimits, idle_limits
from ..rules.tiers import Caps
from ..search.request import SearchRequest
from ..search.search import Found, Search
from ..storage.embedding import CachedEmbedder, Embedder
from ..storage.files import BankLock, OneWriter
from ..storage.interrupts import gc_paused
from ..storage.journal.journal import Journal
from ..storage.mem0.models import Extractor
from ..storage.state.ledger import Ledger, hold_signals, interruptible, let_signals_come, whole
from ..storage.state.state import Accesses, State
from ..storage.store_sync import StoreSync
from ..storage.trust import Guard

logger = logging.getLogger(__name__)

_with_files = WeakSet["Engine"]()
"""The banks of this process that have files."""


class Staged(NamedTuple):
    """A note whose file is written after its commit."""

    settle: Callable[[], None]
    """Writes or drops the staged text; NoteRefused if the disk refuses it now."""
    bases: dict[str, str]
    """For the token of each staged version, the mark of the text on disk that it replaces."""


class _Ending:
    """``__exit__`` of a :class:`Block`."""

    def __get__(self, block: "Block | None", owner: "type[Block]") -> Callable[..., None]:
        if block is None:  # an ExitStack asks the class, and holds the block itself
            return owner.leave
        end = partial(owner.leave, block)
        if block.opened() is None:  # else somebody else holds it
            block.end = ref(end)
        return end


class Block:
    """A block that is over when its ``with`` statement is, even if ``__exit__`` never began.

    An error may come at the very call of ``__exit__``: another thread can raise one here. Nothing
    then ends the block. An object can notice that it dies, but the traceback of the error keeps the
    frame of ``__exit__``, and that frame keeps its object, for as long as the program keeps the
    error; a notebook keeps the last one. So a ``with`` statement gets no method to call, but an
    ``end`` that no frame has: it dies when the statement is left. It holds what notices that.

    A subclass has ``__enter__``, which calls :meth:`open`, and :meth:`leave`. Both call
    :meth:`close` while signals wait: Python prints an interrupt that comes in ``__del__``, with a
    traceback, and forgets it.
    """

    end: Callable[[], object] = staticmethod(lambda: None)
    """Gives the end that a statement holds, or None."""
    opened: Callable[[], "Opened | None"] = staticmethod(lambda: None)
    """Gives what :meth:`open` was told, until the block is closed or nothing will end it."""
    __exit__ = _Ending()

    def open(self, opened: "Opened") -> None:
        """Begin ``opened``, which is given up when nothing will end the block any more."""
        opened.outer = self.opened()
        self._holder().__dict__["holds"] = opened
        self.opened = ref(opened)
        opened.begin(self.opened)

    def close(self) -> None:
        """Give up what was opened last."""
        opened = self.opened()
        if opened is not None:
            try:
                if opened.is_open:
                    opened.give_up()
            except BaseException:  # its traceback keeps ``opened``: nothing else would give it up
                if opened.is_open:
                    opened.give_up()
                raise
            outer, self._holder().__dict__["holds"] = opened.outer, opened.outer
            self.opened = Block.opened if outer is None else ref(outer)

    def leave(self, kind: type[BaseException] | None, *error: Any) -> None:
        """Do what ``__exit__`` does, and :meth:`close`."""
        raise NotImplementedError

    def _holder(self) -> object:
        end = self.end()
        return self if end is None else end


class Opened:
    """What a :class:`Block` has opened, and gives up once, at its death if not before."""

    outer: "Opened | None" = None
    """What the same block had opened before."""
    is_open = False

    def begin(self, itself: Callable[[], object]) -> None:
        """Begin it, and :attr:`is_open`; ``itself`` gives this, and None when it is dead."""
        raise NotImplementedError

    def give_up(self) -> None:
        """Give it up, and end :attr:`is_open`."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Give it up because nothing holds it any more."""
        raise NotImplementedError

    def __del__(self) -> None:
        if self.is_open:
            self.abandon()


@final
class Engine(OneWriter):
    """The parts of an open bank, and what they do together.

    :class:`MemoryBank` and :class:`AgentMemory` hold one, and the code of this package uses its
    parts. Programs get one by :meth:`MemoryBank.open`.
    """

    def __init__(
        self,
        folder: Path | None,
        journal: Journal,
        identity: Mapping[str, Any],
        settings: Settings,
        embedder: Embedder,
        count_tokens: TokenCounter,
        lock: BankLock | None,
    ) -> None:
        self.id: str = identity["id"]
        """The bank's own, which no copy has."""
        self.settings = replace(settings, seed=identity["seed"])
        self.folder = folder
        self.lock = lock
        self.turn = threading.RLock()
        self.is_open = True
        self._closed = "this bank was closed", "open it again"
        self._is_observed = False
        memory = settings.memory
        self.caps = Caps(memory.max_pinned, memory.max_critical, memory.on_tier_full == "reject")
        self.embedder = CachedEmbedder(embedder, settings.embedder.cache_size, journal.embeddings)
        self.journal = journal
        self.state = state = State(identity["seed"], embedder.dims, journal)
        state.shelf.count_tokens = count_tokens = whole_tokens(count_tokens)
        self.ledger = Ledger(journal, state)
        self.ledger.unsaved_embeddings = self.embedder.unsaved
        self.count_tokens = count_tokens
        temperature = settings.temperature
        self.initial_temperature = TEMPERATURE_VALUES[temperature.initial]
        """Of new memories for which nothing says another."""
        self.hot_limits = HotLimits.of(temperature.hot_max_tokens, temperature.hot_max_facts)
        own = temperature.session_max_tokens, temperature.session_max_facts
        self.session_limits = None
        """Of the hot memories of one session; None if it has no limits of its own."""
        if own != (None, None):
            self.session_limits = HotLimits.of(*own).within(self.hot_limits)
        self.rules = _rules(settings)
        """By which compaction moves memories."""
        self.idle_limits = _idle_limits(settings)
        """After how many idle ticks memories cool; None if memories do not fade."""
        self.grace = settings.clock.ticks(settings.retention.grace)
        """For how many ticks a deleted memory can be restored."""
        self.store = StoreSync(journal, state, settings.store, folder, self.id)
        self.search = Search(state, self.embedder, self.store, settings, count_tokens)
        self.metrics = Metrics()
        self.extractor: Extractor | None = None
        """Made by ``extracting``, for the first chat messages."""
        self.guard: Guard | None = None
        """Says what remembered settings may do; None for a bank in memory."""
        self.settings_with: Callable[[Iterable[str]], Settings] | None = None
        """The settings that other assignments would have given; None for a bank in memory."""
        self.forgotten: list[Memory] = []
        """Memories that mem0's store forgets after the commit."""
        self.staged: dict[tuple[str, str], Staged] = {}
        """Notes, by agent and path, that wait for a commit, or for the disk after a commit. An
        empty path stands for all notes of an agent, whose files may be of another journal.
        """
        if lock is not None:
            _with_files.add(self)

    @property
    def tick(self) -> int:
        """The current tick."""
        return self.state.tick

    @whole
    def release(self) -> None:
        """Close every part, mem0's store first, even if one fails to close."""
        hold_signals()
        self.is_open = False
        with ExitStack() as parts:
            parts.callback(let_signals_come)
            if self.lock is not None:
                parts.callback(self.lock.release)
            parts.callback(self.journal.close)
            parts.callback(self.record_head)
            parts.callback(self.ledger.close)
            parts.callback(self.store.close, keep=not self.ledger.is_broken)

    def exchange(self, other: "Engine") -> None:
        """Go on as ``other``, and let ``other`` go on as this: whoever holds one has the other's
        memories. The caller sees to it that neither is in a transaction.
        """
        self.__dict__, other.__dict__ = other.__dict__, self.__dict__
        for each in (self, other):
            (_with_files.add if each.lock is not None else _with_files.discard)(each)

    def record_head(self) -> None:
        """Keep beside the journal what its last commit is."""
        journal = self.journal
        if self.folder is None or self.ledger.is_broken or not journal.file.is_there():
            return
        journal.rest()

    def leave_to_parent(self) -> None:
        """In a forked process: the bank is the parent's, and closed for this process.

        Nothing of it is ever freed here: SQLite and Chroma would tidy up the parent's files.
        """
        import ctypes  # only forked processes need it

        self.is_open = False
        self.turn = threading.RLock()  # a thread of the parent may hold the old one
        self._closed = (
            "this process was forked from the one that has the bank open, and can't use it",
            "use the bank in the process that opened it, or start processes by spawn",
        )
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def search_many(
        self,
        requests: Iterable[tuple[str, str]],
        limit: int | None = None,
        tokens: int | None = None,
        *,
        hot: HotLimits | None = None,
        only: Filter = ANY,
    ) -> list[Hits]:
        """The hits of many ``(agent_id, query)`` pairs; the returned memories count as used."""
        with self.using():
            agents, queries = check_searches(requests)
            most, budget = self.limits_of(limit, tokens)
            return self.find(SearchRequest(agents, queries, most, budget, only, hot))

    def find(self, request: SearchRequest) -> list[Hits]:
        """The hits of a checked request; the returned memories count as used."""
        return self.found(request).hits

    def found(self, request: SearchRequest) -> Found:
        """:meth:`find`, and the same memories as columns."""
        with self.using():
            read = self.search.read(request)  # may wait for somebody else's server
            with gc_paused() if len(request.agents) > 1 else nullcontext():
                found = self.search.run(read, may_sync=self.may_sync())
                answered = self.used(request.agents, found.accesses)
                self.metrics.searches += found.searches  # first: no more are answered than asked
                self.metrics.answered += answered
                return found

    def used(self, agents: Sequence[str], accesses: Sequence[Accesses]) -> int:
        """Count what searches gave as used, from ``temperature.min_score`` on.

        ``agents`` has the agent of each search. The result is the number of searches that count.
        """
        least = self.settings.temperature.min_score
        counted = [group.at_least(least) for group in accesses]
        if not self._is_observed:
            self.ledger.used(agents, counted)
        self.ledger.save_searches()
        return sum([len(group.members) for group in counted])

    def measured(self, hit: Hit) -> float:
        """What ``temperature.min_score`` is compared with: score or probability."""
        if self.settings.temperature.measure == "score":
            return hit.score
        return hit.relevance_probability or 0.0

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Inside, a search does not count as a use of memories: for callers that may only read.

        Other threads wait until it ends.
        """
        with self.using():
            before, self._is_observed = self._is_observed, True
            try:
                yield
            finally:
                self._is_observed = before

    @contextmanager
    def using(self) -> Iterator[None]:
        """Inside, the bank is open and no other thread uses it."""
        with self.turn:
            self.check_usable()
            yield

    def check_usable(self) -> None:
        """Raise :class:`BankClosed` or :class:`BankBroken` if the bank can't be used."""
        if not self.is_open:
            raise BankClosed(self._closed[0], hint=self._closed[1])
        self.ledger.check()

    def check_whole(self) -> None:
        """Raise :class:`BankBroken` if the bank is broken; never wait for another thread.

        While another thread is at work, it is for that thread to find out.
        """
        if self.turn.acquire(blocking=False):
            try:
                if self.ledger.is_broken:
                    self.check_usable()
            finally:
                self.turn.release()

    def changing(self) -> "Changing":
        """Inside, changes are one transaction: committed at the end, or undone by an error."""
        return Changing(self)

    @interruptible
    def after_commit(self) -> None:
        """Bring the notes on disk and mem0's store up to the last commit."""
        if self.folder is None or self.ledger.in_transaction:
            return
        self.settle_notes()
        find = self.state.memory  # finds a memory if its purge was undone
        gone = [m.id for m in self.forgotten if not find(m.agent_id, m.sequence)]
        self.forgotten.clear()
        is_pushed = self.settings.storage.sync == "commit"
        if gone or is_pushed:
            self.store.follow_commit(gone, push=is_pushed)

    def settle_undone_notes(self) -> None:
        """Drop the staged files of a transaction that was undone, if it was the outermost."""
        if not self.ledger.in_transaction and not self.ledger.is_broken:
            self.settle_notes()

    def settle_notes(self) -> None:
        """Write the files of committed notes; drop the staged files of undone ones.

        A file that the disk refuses is tried again later. Until then, the journal is ahead of the
        disk.
        """
        if self.folder is None:  # a copy reads files and never writes one
            return
        tried: set[tuple[str, str]] = set()
        while waiting := [key for key in self.staged if key not in tried]:
            tried.update(waiting)
            for key in waiting:
                try:
                    self.staged[key].settle()
                except NoteRefused as error:
                    logger.warning("not all notes of %s are on disk yet: %s", key[0], error)
                else:
                    del self.staged[key]

    def may_sync(self) -> bool:
        """Whether a search may first bring mem0's store up to date."""
        manual = self.settings.storage.sync == "manual"
        return self.folder is not None and not manual and not self.ledger.in_transaction

    def limits_in(self, session: str | None) -> HotLimits:
        """The limits of what is hot: in a session, or of all that is an agent's."""
        own = None if session is None else self.session_limits
        return self.hot_limits if own is None else own

    def limits_of(self, limit: int | None, tokens: int | None) -> tuple[int, int | None]:
        """The limits of a search: memories and tokens, from the arguments or the settings."""
        memory = self.settings.memory
        most = memory.default_limit if limit is None else check_whole("limit", limit)
        if tokens is None:
            return most, memory.context_tokens
        return most, check_whole("context_tokens", tokens, least=1)


def _rules(settings: Settings) -> tuple[Rule, ...]:
    """The rules of compaction; a duration of a rule may be a setting's name."""
    ticks, inactive = settings.clock.ticks, settings.temperature.inactive_preference

    def named(duration: Duration) -> int:
        return ticks(inactive if duration == "inactive_preference" else duration)

    return parse_rules(settings.temperature.rules, named)


def _idle_limits(settings: Settings) -> NDArray[np.int64] | None:
    decay, ticks = settings.decay, settings.clock.ticks
    if not decay.enabled:
        return None
    half_lives = (0, *map(ticks, decay.half_life))  # pinned memories never fade
    return idle_limits(Decay(half_lives, decay.hot_below, decay.warm_below))


class Metrics:
    """Counters since the bank was opened. Only the latency differs from machine to machine."""

    def __init__(self) -> None:
        self.searches = 0
        """Searches with a query that is not blank."""
        self.answered = 0
        """Searches that returned a memory with a score of at least ``temperature.min_score``."""
        self.recalls = 0
        self.recall_latency_ms = 0.0
        """How long the last recall took."""
        self.on_recall: Callable[[float], None] | None = None
        """Called with the latency of each recall."""

    @contextmanager
    def timed_recall(self) -> Iterator[None]:
        """Count a recall and measure its time."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.recalls += 1
            self.recall_latency_ms = (time.perf_counter() - begun) * 1000
            if self.on_recall is not None:
                self.on_recall(self.recall_latency_ms)

    def values(self, committed: Changes, hot_utilization: float) -> dict[str, float]:
        """Every metric by its name; ``committed`` are all changes since the bank was opened."""
        return {
            "memory_hot_utilization": hot_utilization,
            "memory_spill_count": committed.spilled,
            "memory_recall_count": self.recalls,
            "memory_promotion_count": committed.promoted,
            "memory_recall_latency_ms": self.recall_latency_ms,
            "memory_hit_rate": self.answered / self.searches if self.searches else 0.0,
            "memory_demotion_count": committed.demoted,
            "memory_expiration_count": committed.expired,
            "memory_purge_count": committed.purged,
        }


@final
class Changing(Block):
    """A transaction of a bank. An interrupt comes before it, inside its block, or after it.

    It is not a generator: an interrupt between a generator and its caller would leave it open.
    """

    def __init__(self, bank: Engine) -> None:
        self._bank = bank
        self._turn = bank.turn  # a forked process gets another

    @whole
    def __enter__(self) -> None:
        hold_signals()
        try:
            self.open(_Changes(self._bank, self._turn))
        except BaseException:
            self.close()
            let_signals_come()
            raise

    @whole
    def leave(self, kind: type[BaseException] | None, *error: object) -> None:
        """Commit, or undo what happened inside."""
        try:
            self._end(undo=kind is not None)
        finally:
            self.close()
            let_signals_come()

    def _end(self, *, undo: bool) -> None:
        bank = self._bank
        if not bank.is_open:  # this process was forked inside the block: nothing is its own
            if not undo:
                bank.check_usable()
            return
        try:
            bank.ledger.end(undo=undo)
        except BaseException:
            bank.settle_undone_notes()
            raise
        if undo:
            bank.settle_undone_notes()
        else:
            bank.after_commit()


@final
class _Changes(Opened):
    """The bank's turn, and what a transaction changes, until it ends."""

    def __init__(self, bank: Engine, turn: threading.RLock) -> None:
        self._bank = bank
        self._turn = turn
        self._depth = sys.maxsize  # there is nothing to give up yet

    @whole
    def begin(self, itself: Callable[[], object]) -> None:
        """Wait for the bank's turn, and begin to change it."""
        self._turn.acquire()
        self.is_open = True
        self._bank.check_usable()
        self._depth = self._bank.ledger.depth
        self._bank.ledger.begin(itself)

    @whole
    def give_up(self) -> None:
        """Undo what was not ended, and let others have the turn."""
        self._bank.ledger.give_up(self._depth)
        self.is_open = False
        self._turn.release()

    @whole
    def abandon(self) -> None:
        """Give the transaction up: an error came at the call of its end."""
        try:
            self.give_up()
        except RuntimeError:  # it dies in another thread than had it: no thread can free the bank
            self._bank.turn = threading.RLock()  # it is broken, and says so to all
        let_signals_come()


def _leave_to_parent() -> None:
    for bank in _with_files:
        if bank.is_open:
            bank.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)
