"""The state of a bank and the journal behind it, changed together or not at all."""

import inspect
import logging
import signal
import threading
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from contextlib import nullcontext
from importlib import import_module
from itertools import count, repeat
from operator import add
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar, final, overload

import numpy as np

from ...errors import BankBroken, CommitFailed, CommitUnknown
from ...memory.events import (
    NO_CHANGES,
    Added,
    Cause,
    Change,
    Changes,
    Event,
    LifetimeSet,
    Moved,
    NoteWritten,
    Purged,
    Retained,
    Row,
    TickAdvanced,
    TierChanged,
    UseKind,
    ValueSet,
    VersionReplaced,
    count_changes,
    named,
)
from ...memory.records import Memory, memory_id
from ...memory.requests import memories_of
from ...memory.tiers import Retention, Temperature, Tier
from ...rules.tiers import Caps, Turn, demote_over_cap, make_room
from ..columns.table import Additions, begun
from ..embedding import Quantised, norms
from ..interrupts import gc_paused
from ..journal.attachments import Attachment
from ..journal.journal import Journal, encode
from ..journal.redaction import Purge
from ..note import kept_of
from . import snapshots
from .snapshots import Key, chunks_in, kept_chunks, load, replay
from .state import Accesses, State, needs_room

_WARM = int(Temperature.WARM)
_TIERS, _TEMPERATURES = tuple(Tier), tuple(Temperature)

logger = logging.getLogger(__name__)


class Kept(NamedTuple):
    """What is left when the last events are dropped."""

    events: Sequence[Event]
    vectors: Quantised | None
    touched: set[str]
    """The agents of the dropped events."""
    dropped: int


# Signals: a change of memory and journal is whole, whatever interrupts it
#
# A signal's handler runs between any two steps of a program, and may raise: Ctrl-C raises
# KeyboardInterrupt. An error between the two halves of a change would leave one half, so signals
# wait until the change is whole.

_Function = TypeVar("_Function", bound=Callable[..., Any])

_SIGNALS = tuple(
    int(getattr(signal, name))
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
# The functions of the module signal make enums of their numbers, at ten times the cost of the call.
_plain = import_module("_signal")
_get: Callable[[int], Any] = _plain.getsignal
_set: Callable[[int, Any], Any] = _plain.signal
_whole: set[CodeType] = set()
_interruptible: set[CodeType] = set()


def whole(function: _Function) -> _Function:
    """While signals are held, a signal that comes during ``function`` waits."""
    _whole.add(function.__code__)
    return function


def interruptible(function: _Function) -> _Function:
    """A signal that comes during ``function`` does not wait, though a whole function called it."""
    _interruptible.add(function.__code__)
    return function


class _Held:
    """The handlers that ours replaces in the main thread, and the signals that wait."""

    def __init__(self) -> None:
        self.depth = 0
        self.handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self.waiting: list[int] = []

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Let the signal wait if a whole function runs, or call the handler that was there."""
        inner = frame
        while inner is not None:
            if inner.f_code in _interruptible:
                break
            if inner.f_code in _whole:
                self.waiting.append(number)
                return
            inner = inner.f_back
        self.tell(number, frame)

    @whole
    def replace(self) -> None:
        found = {number: own for number in _SIGNALS if callable(own := _get(number))}
        # An error may have left ours in place.
        self.handlers |= {number: own for number, own in found.items() if own != self.handle}
        try:
            for number in found:
                _set(number, self.handle)
        except BaseException:
            self.put_back()
            raise

    @whole
    def put_back(self) -> None:
        for number, handler in self.handlers.items():
            if _get(number) == self.handle:  # the program may have set its own
                _set(number, handler)

    def run(
        self,
        handle: Callable[[int, FrameType | None], object],
        waiting: list[int],
        frame: FrameType | None,
    ) -> None:
        """Handle all signals that waited, even if the handler of one raises."""
        if waiting:
            try:
                handle(waiting[0], frame)
            finally:
                self.run(handle, waiting[1:], frame)

    def tell(self, number: int, frame: FrameType | None) -> None:
        """Call the handler that was there."""
        self.handlers[number](number, frame)


_held = _Held()


def hold_signals() -> None:
    """From now on, a signal that comes during a :func:`whole` function waits.

    Each call has its :func:`let_signals_come`. Python runs handlers in the main thread alone, so
    in any other thread both do nothing.
    """
    if threading.current_thread() is threading.main_thread():
        if not _held.depth:
            _held.replace()
        _held.depth += 1


def let_signals_come() -> None:
    """Handle the signals that waited, if nothing is held any more.

    Otherwise they wait on if a whole function called the caller. The caller does this last: the
    errors of the handlers come out of this call.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    _held.depth = max(0, _held.depth - 1)
    if not _held.depth:
        _held.put_back()
    if _held.waiting:
        waiting, _held.waiting = _held.waiting, []
        here = inspect.currentframe()
        caller = here and here.f_back
        handle = _held.handle if _held.depth else _held.tell
        _held.run(handle, waiting, caller and caller.f_back)


whole(hold_signals)
whole(let_signals_come)


# The ledger


class Pending:
    """Events that are applied to the state and not written to the journal yet."""

    def __init__(self) -> None:
        self.events: list[Row] = []
        self.vectors: list[Quantised] = []
        """Of the added memories, in the order of their events."""
        self.accesses: list[Row] = []
        """The events of searches, which come before the next other event."""
        self.purges: list[Purge] = []
        self.attachment: Attachment | None = None
        self.clock: Sequence[int] | None = None
        """How the wall clock moves the tick, if the commit changes that."""
        self.is_plain = True
        """Whether there is nothing but new memories and what searches gave."""

    def __bool__(self) -> bool:
        return bool(self.events or self.accesses or self.attachment)

    def __len__(self) -> int:
        return len(self.events) + len(self.accesses)

    def changes(self, leaves_out: Callable[[str], bool] | None = None) -> Changes:
        """How many changes of each kind there are, but for owners that are left out."""
        if leaves_out is not None:
            every = (*self.events, *self.accesses)
            return count_changes(
                event for event in every if event[0] == "tick" or not leaves_out(event[1])
            )
        if self.is_plain:  # as in most commits; to look at each event takes its time
            return Changes(sum(map(len, self.vectors)), *NO_CHANGES[1:])
        return count_changes((*self.events, *self.accesses))

    def purged(self) -> bool:
        """Whether memories were purged."""
        return not self.is_plain and any(isinstance(event, Purged) for event in self.events)

    def packed_vectors(self) -> bytes:
        """The vectors of the added memories, without the memories that were purged since."""
        if self.purges and self.vectors:
            gone = {(purge.agent, purge.sequence) for purge in self.purges}
            self.vectors = [_forget_texts(self.events, self.vectors, gone)]
        return b"".join([vector.tobytes() for vector in self.vectors])

    def drop(self, mark: int) -> Kept:
        """Drop the events from ``mark`` on. It can be done again if an error comes in between."""
        events = named(self.events)
        undone = events[mark:]
        del events[mark:]
        # An error may have come before the event of a purge.
        purged = [event for event in events if isinstance(event, Purged)]
        gone = {(event.agent_id, each) for event in purged for each in event.sequences}
        self.purges = [each for each in self.purges if (each.agent, each.sequence) in gone]
        added = sum(isinstance(event, Added) for event in events)
        vectors = np.concatenate(self.vectors)[:added] if self.vectors else None
        self.vectors = [] if vectors is None else [vectors]
        del self.events[mark:]
        touched = {event.agent_id for event in undone if not isinstance(event, TickAdvanced)}
        return Kept(events, vectors, touched, len(undone))

    def forget(self) -> None:
        """The journal has everything, or nothing is to be kept."""
        self.events.clear()
        self.vectors.clear()
        self.purges.clear()
        self.is_plain = True
        self.attachment = self.clock = None


class _Transaction(NamedTuple):
    """Where an open transaction began."""

    events: int
    """How many events were pending."""
    attachment: Attachment | None
    clock: Sequence[int] | None
    holder: Callable[[], object]
    """Gives what holds the transaction open; None when nothing will end it any more."""


class Ledger:
    """Applies events to the state, and writes them to the journal commit by commit.

    An error may come between any two steps: a MemoryError, or an interrupt. Then state and journal
    may differ. They are made equal again by reading the journal. Where that fails too, the ledger
    is broken, and writes nothing any more.
    """

    SNAPSHOT_ON_CLOSE = 10_000
    """Closing writes a snapshot when this many events came after the last one."""
    SNAPSHOT_ON_COMMIT = 1_000_000
    """A commit writes a snapshot after this many events, if they are twice as many as memories."""

    MOST_OF_SEARCHES = 20_000
    """Uses of searches, or vectors of queries, that wait for a commit; more get their own."""

    def __init__(self, journal: Journal, state: State) -> None:
        self.journal = journal
        self.state = state
        self.unsaved_embeddings: dict[bytes, bytes] = {}
        """Vectors, by the hash of their text, to be kept with the next commit."""
        self._pending = Pending()
        self._open: list[_Transaction] = []
        """The open transactions, the outermost first."""
        self.totals = NO_CHANGES
        """What was committed since the bank was opened."""
        self._is_half_done = False
        """Whether a change is begun and not done, so that state and journal may differ."""
        self._is_unknown = False
        """Whether the last commit is known only when the journal is opened again."""
        self._since_snapshot = load(state, journal)

    @property
    def is_broken(self) -> bool:
        """Whether state and journal may differ, or nothing will end an open transaction."""
        if self._open and self._open[-1].holder() is None:
            return True
        return self._is_half_done or self._is_unknown

    def check(self) -> None:
        """Raise :class:`BankBroken` if state and journal may differ."""
        if self.is_broken:
            raise BankBroken(
                "an error or an interrupt came in the middle of a change, and undoing the change "
                "failed as well; memory may differ from the journal, and nothing more is written",
                hint="close the bank and open it again: the journal has everything",
            )

    def give_up(self, depth: int) -> None:
        """If the transaction that was begun at ``depth`` has not ended, it never will."""
        if len(self._open) > depth:
            self._is_half_done = True
            del self._open[depth:]

    # Events

    @whole
    def add_many(
        self,
        new: Additions,
        vectors: Quantised,
        caps: Caps,
        relieve_hot: Callable[[str, list[int]], object],
    ) -> Sequence[Memory]:
        """Number memories and add them in order; a full tier makes room first.

        ``relieve_hot`` is called for an agent that got hot memories.
        """
        size = len(new.agents)
        if not size:
            return []
        self._flush_accesses()
        state = self.state
        blocks = state.blocks_of(dict.fromkeys(new.agents))
        prefixes = {block.agent_id: block.prefix for block in blocks}
        following = {block.agent_id: count(block.next_sequence) for block in blocks}
        numbers = list(map(next, map(following.__getitem__, new.agents)))
        new = new._replace(sequences=numbers)
        lengths = norms(vectors)
        events = new.rows()
        logged = written = 0
        entered = set[str]()
        """The agents with a waiting memory that is hot or in a tier with a cap."""
        others: dict[int, Memory] = {}

        def log_until(stop: int) -> None:
            nonlocal logged
            self._pending.events += events[logged:stop]
            self._pending.vectors.append(vectors[logged:stop])
            logged = stop

        def write_until(stop: int) -> None:
            """Write the waiting memories to the table, all at once."""
            nonlocal written
            log_until(stop)
            rows = slice(written, stop)
            if written < stop:
                self._is_half_done = True
                if stop - written == size:
                    state.add(new, vectors, lengths)
                else:
                    state.add(new.part(rows), vectors[rows], lengths[rows])
                self._is_half_done = False
            written = stop
            entered.clear()

        for place in needs_room(new):
            agent_id, tier, start = new.agents[place], Tier(new.tiers[place]), new.starts[place]
            if agent_id in entered:
                write_until(place)
            log_until(place)
            if caps.of(tier) is not None:
                # The memories before this one may not be in the table yet. In a replay they are.
                self.make_room(agent_id, tier, caps, None, numbers[place] - 1)
            entered.add(agent_id)
            is_hot = start is not None and start.temperature == Temperature.HOT
            if (tier is not Tier.PINNED and is_hot) or state.block(agent_id).has_hot:
                # Hot may be too full now.
                write_until(place + 1)
                relieve_hot(agent_id, [numbers[place]])
                memory = state.memory(agent_id, numbers[place])
                if memory is not None:
                    others[place] = memory
        write_until(size)
        return AddedMemories(new, prefixes, state.tick, others)

    def make_room(
        self, agent_id: str, tier: Tier, caps: Caps, newcomer: int | None, newest: int = 0
    ) -> None:
        """Demote what has to go before a memory enters ``tier``, or raise :class:`TierFull`.

        ``newest`` is the number of the agent's newest memory, if the table may lack it.
        """
        block = self.state.block(agent_id)
        for memory, lower in make_room(tier, caps, block.occupants, newcomer):
            if newest:
                block.tier_order.newest = newest
            self.change_tier(agent_id, memory.sequence, lower, demoted=True)

    def demote_over_caps(self, caps: Caps) -> None:
        """Bring every agent within caps that may be smaller than when it last wrote."""
        state, tiers = self.state, self.state.table.tiers
        full = {block.agent_id for block in state.blocks.loaded() if block.has_extras}
        full.update(state.with_more(tiers == int(Tier.PINNED), caps.pinned))
        full.update(state.with_more(tiers == int(Tier.CRITICAL), caps.critical))
        for agent_id in sorted(full):
            block = state.block(agent_id)
            for tier in (Tier.PINNED, Tier.CRITICAL):
                while demotions := demote_over_cap(tier, caps, block.occupants):
                    for memory, lower in demotions:
                        self.change_tier(agent_id, memory.sequence, lower, demoted=True)

    def change_tier(self, agent_id: str, sequence: int, tier: Tier, *, demoted: bool) -> None:
        """A memory enters another tier."""
        self._happen(
            TierChanged("tier", agent_id, sequence, int(tier), "demote" if demoted else "set")
        )

    def move(
        self, agent_id: str, sequences: Sequence[int], to: Temperature, cause: Cause | str
    ) -> None:
        """Memories get another temperature."""
        if sequences:
            self._happen(Moved("move", agent_id, list(sequences), int(to), cause))

    def retain(
        self, agent_id: str, sequences: Sequence[int], retention: Retention, cause: Cause
    ) -> None:
        """Memories are archived, deleted or restored."""
        if sequences:
            self._happen(Retained("retain", agent_id, list(sequences), int(retention), cause))

    def last(self, agent_id: str, sequences: Sequence[int], expires_tick: int) -> None:
        """Memories live until another tick."""
        if sequences:
            self._happen(LifetimeSet("last", agent_id, list(sequences), expires_tick))

    def succeed(self, memory: Memory, former: Memory, turn: Turn) -> None:
        """A new memory takes the place of a former one, which is archived already.

        ``former`` is the memory as it was, and ``turn`` the one that it had then.
        """
        has_place = memory.tier is former.tier and memory.tier <= Tier.CRITICAL
        place = (former.tier_tick, *turn) if has_place else None
        number, before = memory.sequence, former.sequence
        self._happen(VersionReplaced("succeed", memory.agent_id, number, before, place))

    def purge(self, memories: Sequence[Memory], *, redacted: bool = True) -> None:
        """Remove memories of one agent for good, wherever they are kept.

        If not ``redacted``, the bank's earlier states still have them.
        """
        if memories:
            if redacted:
                self._pending.purges += [
                    Purge(memory.agent_id, memory.sequence, memory.created_tick, memory.content)
                    for memory in memories
                ]
            sequences = [memory.sequence for memory in memories]
            self._happen(Purged("purge", memories[0].agent_id, sequences))

    def kept_chunks(self, memories: Sequence[Memory]) -> set[Key]:
        """Of these memories, those that were chunks of a note whose text the journal has."""
        if not memories:
            return set()
        return kept_chunks(self.journal, memories).union(chunks_in(self._pending.events))

    def used(
        self, agents: Sequence[str], accesses: Sequence[Accesses], kind: UseKind = "access"
    ) -> None:
        """Count the memories that searches gave; ``agents`` has the agent of each search.

        The next commit writes the uses, or :meth:`save_searches` if there are many.
        """
        pending = self._pending
        self._is_half_done = True
        try:
            pending.accesses += self.state.count_uses(agents, accesses, kind)
            pending.is_plain = pending.is_plain and kind != "recall"
            self._is_half_done = False
        except BaseException:
            if self._is_half_done:
                hold_signals()
                try:
                    self._undo(len(self._pending), everything=True)
                finally:
                    let_signals_come()
            raise

    def save_searches(self) -> None:
        """Commit what searches left, if it is much and no transaction is open."""
        left = max(len(self._pending.accesses), len(self.unsaved_embeddings))
        if left <= self.MOST_OF_SEARCHES or self._open:
            return
        try:
            self.commit()
        except CommitUnknown:
            raise
        except CommitFailed as error:  # the search has its answer
            logger.warning("the uses of the last searches are not counted: %s", error)

    def noted(
        self, agent_id: str, path: str, text: str | None, chunks: list[tuple[int, int, int]]
    ) -> None:
        """A note has another text, or is gone; ``chunks`` are the memories that stand for it."""
        kept = kept_of(self.state.block(agent_id).notes.get(path), text)
        text = None if text is None else text[kept:]
        self._happen(NoteWritten("note", agent_id, path, kept, text, chunks))

    def hold(self, agent_id: str, topic: str, name: str, value: object) -> None:
        """An agent holds a value under a topic and a name from now on; None for nothing."""
        self._happen(ValueSet("hold", agent_id, topic, name, value))

    @whole
    def _happen(self, event: Change) -> None:
        self._flush_accesses()
        self._pending.is_plain = False
        self._is_half_done = True
        self._pending.events.append(event)
        self.state.apply(event)
        self._is_half_done = False

    def _flush_accesses(self) -> None:
        before, self._is_half_done = self._is_half_done, True
        self._pending.events += self._pending.accesses
        self._pending.accesses.clear()
        self._is_half_done = before

    @whole
    def advance(self, tick: int, clock: Sequence[int] | None = None) -> None:
        """The clock moves; ``clock`` says how the wall clock moves it from now on."""
        self._flush_accesses()
        self._is_half_done = True
        self._pending.events.append(TickAdvanced("tick", tick))
        self._pending.clock = clock or self._pending.clock
        self.state.tick = tick
        self._is_half_done = False

    def attach(self, attachment: Attachment) -> None:
        """Keep this with the next commit."""
        self._pending.attachment = attachment

    def pending(self, leaves_out: Callable[[str], bool] | None = None) -> Changes:
        """What happened since the last commit, but for owners of memories that are left out."""
        return self._pending.changes(leaves_out)

    # Transactions

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._open)

    @property
    def depth(self) -> int:
        """How many transactions are open, one inside the other."""
        return len(self._open)

    @whole
    def begin(self, holder: Callable[[], object]) -> None:
        """Begin a transaction: :meth:`end` commits what happens from now on, or undoes it.

        In a transaction inside another, an undo concerns the inner one alone. When ``holder``
        gives None, nothing will end the transaction any more, and the ledger is broken.
        """
        self.check()
        self._flush_accesses()
        pending = self._pending
        mark = len(pending.events)
        self._open.append(_Transaction(mark, pending.attachment, pending.clock, holder))

    @whole
    def end(self, *, undo: bool) -> None:
        """End the innermost transaction. An error of its commit undoes it as well.

        After an error of the undoing it stays open, until :meth:`give_up`.
        """
        if undo:
            everything, self._is_half_done = self._is_half_done, True
            mark, self._pending.attachment, self._pending.clock, _ = self._open[-1]
            self._undo(mark, everything=everything)
            self._open.pop()
            return
        try:
            self.check()  # or what is pending might never be written
            if len(self._open) == 1 and self._pending:
                self.commit()
        finally:
            self._open.pop()

    @whole
    def commit(self) -> None:
        """Write what is pending to the journal, durably. On an error nothing of it is kept."""
        hold_signals()
        try:
            self.check()
            with gc_paused() if len(self._pending.events) > 1 else nullcontext():
                self._commit()
        finally:
            let_signals_come()

    def _commit(self) -> None:
        self._flush_accesses()
        if not self._pending.events and self._pending.attachment is None:
            if self.unsaved_embeddings:  # of searches alone
                self.journal.save_embeddings(self.unsaved_embeddings)
                self.unsaved_embeddings.clear()
            return
        self._is_half_done = True
        try:
            self._write()
            self._is_half_done = False
        except CommitUnknown:
            self._is_unknown = True
            raise
        except BaseException as error:
            # Memory is whole if the journal refused the commit.
            self._undo(0, everything=not isinstance(error, CommitFailed))
            self._forget_pending()
            raise
        if self._since_snapshot >= self.SNAPSHOT_ON_COMMIT:
            try:
                self._snapshot_if(2 * len(self.state))
            except CommitFailed as error:  # the commit itself is safe, and says so by returning
                logger.warning("no snapshot, so the next opening takes longer: %s", error)

    def _write(self) -> None:
        """Write what is pending to the journal, and forget it."""
        pending, shelf = self._pending, self.state.shelf
        vectors = pending.packed_vectors()
        changes = shelf.changes() if shelf.pending else None
        self.journal.append(
            self.state.tick,
            encode(pending.events),
            vectors,
            self.unsaved_embeddings,
            pending.attachment,
            changes,
            self.state.shelf_sum() if changes else 0,
            snapshots.redaction(pending.purges, self.journal) if pending.purges else None,
            pending.purged(),
            pending.clock,
        )
        shelf.commit = self.journal.head + 1
        if changes:
            shelf.clear()
        self._since_snapshot += len(pending.events)
        self.totals = Changes._make(map(add, self.totals, pending.changes()))
        self._forget_pending()
        self.unsaved_embeddings.clear()

    @whole
    def close(self) -> None:
        """Write what searches left, and a snapshot if it makes the next opening faster.

        A broken ledger writes nothing: its journal has everything that was acknowledged.
        """
        if not self.is_broken:
            self.commit()
            self._snapshot_if(self.SNAPSHOT_ON_CLOSE)

    def _forget_pending(self) -> None:
        self._pending.forget()
        self._open = [_Transaction(0, None, None, transaction.holder) for transaction in self._open]

    def _snapshot_if(self, events: int) -> None:
        if self._since_snapshot < max(1, events):
            return
        if self.journal.base:  # its first snapshot is all it has of the past: it is not replaced
            return
        snapshots.write(self.state, self.journal)
        self._since_snapshot = 0

    @whole
    def _undo(self, mark: int, *, everything: bool) -> None:
        """Undo the events from ``mark`` on. The caller sets ``_is_half_done``, and this resets it.

        The agents of these events are read from the journal again, and the events before ``mark``
        are applied once more: slower than to undo each, but it can't differ from opening the bank.
        After a change that was begun and not done, ``everything`` is read again.
        """
        self._flush_accesses()
        kept = self._pending.drop(mark)
        if kept.dropped or everything:
            agents = None if everything else kept.touched
            self.journal.settle()
            self.state.shelf.commit = self.journal.head + 1
            before = self.state.tick
            load(self.state, self.journal, agents)
            replay(self.state, kept.events, kept.vectors, agents)
            if self.state.tick < before:
                self.state.went_back()
        self._is_half_done = False


@final
class AddedMemories(Sequence[Memory]):
    """The records of new memories, as these were stored; made when somebody looks at them.

    Few callers that store thousands look at them, and to make the records takes as long as to store
    the memories. ``others`` has the records that are not what was asked for, by their place.
    """

    __slots__ = ("_made", "_new", "_others", "_prefixes", "_tick")

    def __init__(
        self, new: Additions, prefixes: Mapping[str, str], tick: int, others: Mapping[int, Memory]
    ) -> None:
        self._new = new
        self._prefixes = prefixes
        self._tick = tick
        self._others = others
        self._made: list[Memory] | None = None

    def __len__(self) -> int:
        return len(self._new.agents)

    def ids_and_texts(self) -> Iterator[tuple[str, str]]:
        """The id and the text of each memory, without its record."""
        prefixes = map(self._prefixes.__getitem__, self._new.agents)
        ids = map(memory_id, prefixes, self._new.sequences)
        return zip(ids, self._new.contents, strict=True)

    @overload
    def __getitem__(self, place: int) -> Memory: ...
    @overload
    def __getitem__(self, place: slice) -> list[Memory]: ...
    def __getitem__(self, place: int | slice) -> Memory | list[Memory]:
        return self._memories()[place]

    def __iter__(self) -> Iterator[Memory]:
        return iter(self._memories())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list | tuple | AddedMemories):
            return self._memories() == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a list's

    def __repr__(self) -> str:
        return repr(self._memories())

    def _memories(self) -> list[Memory]:
        if self._made is None:
            new = self._new
            heats: Iterable[int] = repeat(_WARM)
            kinds = expires = None  # as of most memories
            if 0 in new.tiers or new.starts.count(None) < len(new.starts):
                heats, kinds, expires = zip(*map(begun, new.tiers, new.starts), strict=True)
            made = memories_of(
                prefixes=map(self._prefixes.__getitem__, new.agents),
                agents=new.agents,
                contents=new.contents,
                tiers=map(_TIERS.__getitem__, new.tiers),
                created=repeat(self._tick),
                entered=repeat(self._tick),
                sequences=new.sequences,
                temperatures=map(_TEMPERATURES.__getitem__, heats),
                metadata=new.metadata,
                traits=kinds,
                expires=expires,
            )
            for place, memory in self._others.items():
                made[place] = memory
            self._made = made
        return self._made


def _forget_texts(
    events: list[Row], vectors: Sequence[Quantised], gone: Set[tuple[str, int]]
) -> Quantised:
    """Blank the events that add memories which are purged in the same commit; all their vectors.

    ``gone`` has the agent and the sequence number of each purged memory.
    """
    kept = np.concatenate(vectors)
    place = -1
    for index, event in enumerate(named(events)):
        if isinstance(event, Added):
            place += 1
            if (event.agent_id, event.sequence) in gone:
                events[index] = event._replace(content=None, metadata=None, start=None)
                kept[place] = 0
    return kept
