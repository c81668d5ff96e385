"""What a bank is made of, and how the parts work together."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..config.settings import Settings
from ..errors import BankClosed, NoteRefused
from ..memory.context import TokenCounter
from ..memory.events import Accessed
from ..memory.filters import ANY, Filter
from ..memory.records import Hit, Hits, Memory, check_whole
from ..memory.requests import check_searches
from ..movement.movement import Movement
from ..rules.caps import Caps
from ..rules.spill import HotLimits
from ..search.cold_search import ColdSearch
from ..search.query_reader import QueryReader
from ..search.search import Retrieval
from ..storage.embedding.cache import CachedEmbedder
from ..storage.embedding.embedders import Embedder
from ..storage.gc_pause import gc_paused
from ..storage.journal.journal import Journal
from ..storage.lock import BankLock
from ..storage.mem0.models import Extractor
from ..storage.mem0.store import payload
from ..storage.state.accesses import Given
from ..storage.state.ledger import Ledger
from ..storage.state.loading import Resident
from ..storage.store_sync import StoreSync
from .metrics import Metrics

__all__ = ["Engine", "Staged"]

logger = logging.getLogger(__name__)


class Staged(NamedTuple):
    """A note that is written once it is committed."""

    settle: Callable[[], None]
    """What to do then; NoteRefused if it can't be done now."""
    bases: dict[str, str]
    """For the token of each version that was to be written, the text on disk that it replaces."""


class Engine:
    """The parts of an open bank. :class:`MemoryBank` is what callers see of it."""

    def __init__(
        self,
        folder: Path | None,
        journal: Journal,
        settings: Settings,
        embedder: Embedder,
        count_tokens: TokenCounter,
        lock: BankLock | None,
    ) -> None:
        """For :meth:`MemoryBank.open` and its like; callers use these."""
        identity = journal.get("bank")
        self.settings = replace(settings, seed=identity["seed"])
        self._folder = folder
        self._lock = lock
        self._turn = threading.RLock()
        self._is_open = True
        self._is_observed = False
        memory = settings.memory
        self._caps = Caps(memory.max_pinned, memory.max_critical, memory.on_tier_full == "reject")
        self._embedder = CachedEmbedder(embedder, settings.embedder.cache_size, journal.embeddings)
        self._retrieval = Retrieval(memory.tier_boosts, memory.candidate_multiplier, count_tokens)
        self._queries = QueryReader(self._embedder, settings.retrieval)
        resident = Resident(identity["seed"], embedder.dims, journal)
        resident.shelf.count_tokens = count_tokens
        self._ledger = Ledger(journal, resident)
        self._ledger.unsaved_embeddings = self._embedder.unsaved
        self._movement = Movement(self._ledger, settings, count_tokens)
        self._store = StoreSync(journal, resident, settings.store, folder, identity["id"])
        self._cold = ColdSearch(resident, self._store, self._retrieval)
        self._metrics = Metrics()
        self._extractor: Extractor | None = None
        self._forgotten: list[Memory] = []
        """What mem0's store has to forget once it is committed."""
        self._staged: dict[tuple[str, str], Staged] = {}
        """Notes, by agent and path, that wait for a commit, or for the disk after one. An empty
        path stands for all of an agent's: what is on disk is not known to be of this journal.
        """

    @property
    def tick(self) -> int:
        """The current tick; a new memory is created in it."""
        return self._ledger.resident.tick

    def _release(self) -> None:
        """Close every part, mem0's store first."""
        self._is_open = False
        with ExitStack() as parts:
            if self._lock is not None:
                parts.callback(self._lock.release)
            parts.callback(self._ledger.journal.close)
            parts.callback(self._ledger.close)
            parts.callback(self._store.close)

    def _search_many(
        self,
        requests: Iterable[tuple[str, str]],
        limit: int | None,
        tokens: int | None,
        only: Filter,
        hot: HotLimits | None,
    ) -> list[Hits]:
        with gc_paused(), self._using():
            agents, queries = check_searches(requests)
            most, budget = self._limits(limit, tokens)
            blocks = self._ledger.resident.blocks_of(agents)
            worded = [i for i, query in enumerate(queries) if query and not query.isspace()]
            read = self._queries.read(
                [blocks[i] for i in worded], [queries[i] for i in worded], self.tick
            )
            found, given = self._retrieval.search(
                blocks, queries, worded, read, most, budget, self.tick, only, hot
            )
            for place, note in read.notes.items():
                found[worded[place]].note = note
            if budget is None and 1 < len(worded) == len({agents[i] for i in worded}):
                self._count_given(agents, len(worded), given)
            else:
                self._count_accesses([agents[i] for i in worded], [found[i] for i in worded])
            return found

    @contextmanager
    def _observing(self) -> Iterator[None]:
        """Inside, to read a memory does not count as its use: for who looks on, or may only read.

        Other threads wait.
        """
        with self._using():
            before, self._is_observed = self._is_observed, True
            try:
                yield
            finally:
                self._is_observed = before

    def _count_given(self, agents: Sequence[str], searches: int, given: Sequence[Given]) -> None:
        """:meth:`_count_accesses` of many agents, each of which searched once."""
        self._metrics.searches += searches
        least = self.settings.temperature.min_score
        enough = [each.at_least(least) for each in given]
        self._metrics.answered += sum(len(each.members) for each in enough)
        if not self._is_observed:
            self._ledger.given(agents, enough)

    def _count_accesses(self, agents: Iterable[str], found: Iterable[Sequence[Hit]]) -> None:
        """Each retrieval that gives a memory to an agent counts, unless it is not similar."""
        least, metrics = self.settings.temperature.min_score, self._metrics
        events = []
        for agent, hits in zip(agents, found, strict=True):
            metrics.searches += 1
            scores = [hit[1] for hit in hits]
            if scores and min(scores) < least:
                hits = [hit for hit in hits if hit[1] >= least]
                scores = [hit[1] for hit in hits]
            if scores:
                sequences = [hit[0].sequence for hit in hits]
                events.append(Accessed("access", agent, sequences, scores))
        metrics.answered += len(events)
        if events and not self._is_observed:
            self._ledger.accessed_by_all(events)

    @contextmanager
    def _using(self) -> Iterator[None]:
        with self._turn:
            if not self._is_open:
                raise BankClosed("this bank was closed", hint="open it again")
            yield

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._using():
            try:
                with self._ledger.transaction():
                    yield
            except BaseException:
                if not self._ledger.in_transaction:
                    self._settle_notes()
                raise
            self._after_commit()

    def _after_commit(self) -> None:
        if self._folder is None or self._ledger.in_transaction:
            return
        self._settle_notes()
        if self._forgotten:
            find = self._ledger.resident.memory  # one whose transaction was undone is still there
            gone = [m.id for m in self._forgotten if not find(m.agent_id, m.sequence)]
            self._store.forget(gone)
            self._forgotten.clear()
        if self.settings.storage.sync == "commit":
            self._store.push()

    def _settle_notes(self) -> None:
        """Write the notes of what was committed; drop those of what was undone.

        What the disk refuses is tried again later: until then, the journal is ahead of the disk.
        """
        if self._folder is None:  # a copy, which may look at files and never writes one
            return
        tried: set[tuple[str, str]] = set()
        while waiting := [key for key in self._staged if key not in tried]:
            tried.update(waiting)
            for key in waiting:
                try:
                    self._staged[key].settle()
                except NoteRefused as error:
                    logger.warning("not all notes of %s are on disk yet: %s", key[0], error)
                else:
                    del self._staged[key]

    def _may_sync(self) -> bool:
        """Whether mem0's store may be written now, because somebody looks for what it lacks."""
        manual = self.settings.storage.sync == "manual"
        return self._folder is not None and not manual and not self._ledger.in_transaction

    def _limits(self, limit: int | None, tokens: int | None) -> tuple[int, int | None]:
        memory = self.settings.memory
        most = memory.default_limit if limit is None else check_whole("limit", limit)
        if tokens is None:
            return most, memory.context_tokens
        return most, check_whole("context_tokens", tokens, least=1)

    def _extractor_of_facts(self) -> Extractor:
        if self._extractor is None:
            self._extractor = Extractor(self.settings.llm, self._embedder.units, self._nearest)
        return self._extractor

    def _nearest(self, agent_id: str, query: str, limit: int) -> list[tuple[str, dict[str, Any]]]:
        (hits,) = self._search_many([(agent_id, query)], limit, None, ANY, None)
        return [(hit.memory.id, payload(hit.memory)) for hit in hits]
