"""A bank's state as bytes: each agent's snapshot, and a state read from snapshots and events."""

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import groupby
from typing import Any, Generic, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from ...errors import BankDamaged
from ...memory.events import Accessed, Added, Event, TickAdvanced
from ...memory.records import Memory, Traits, traits
from ...memory.requests import KeptMetadata
from ..columns.agent_columns import NUMBERS, AgentColumns
from ..columns.extras import Holdings
from ..columns.records import take_out
from ..columns.table import Additions
from ..embedding import Quantised, norms
from ..interrupts import first
from ..journal.journal import Journal, decode
from ..journal.redaction import Purge, Redaction
from ..journal.tables import SnapshotRow
from ..note import Note, is_transcript
from ..shelf import ShelfTable
from .state import Population, State

_Value = TypeVar("_Value")

_TOGETHER = 1 << 20
"""Bytes of numbers in snapshots that are read together."""
_TYPES = (str, int, bytes, bytes, str, bytes, bytes)
"""A flipped bit can turn bytes into a text with the same hash."""


_NO_EXTRAS = f'{{"metadata":[],"traits":[],"recalls":[],"shelf":"{0:064x}"}}'
"""What the extras of most agents are."""
_OF_OBJECTS = ("turns", "notes", "held")
"""The extras that only an agent's object has."""


def write(state: State, journal: Journal) -> None:
    """Write the agents that changed since the last snapshot."""
    # An agent whose only memories were undone is among the changed and has no block.
    changed = sorted(state.changed & state.blocks.keys())
    journal.write_snapshots(pack(state.blocks[agent]) for agent in changed)
    state.changed.clear()


def pack(block: AgentColumns) -> SnapshotRow:
    """The state of ``block``; equal states give equal bytes."""
    numbers = block.numbers()
    sequences = numbers[:, 0].tolist()
    row = SnapshotRow(
        agent=block.agent_id,
        next_sequence=block.next_sequence,
        columns=numbers.astype("<i8", copy=False).tobytes(),
        contents="\0".join(block.contents()).encode(),  # no text has a NUL
        extras=_extras(block, sequences),
        vectors=block.vectors().tobytes(),
        digest=b"",
    )
    return row._replace(digest=digest_of(row))


def check(row: SnapshotRow) -> None:
    """Raise :class:`BankDamaged` if the row is not what :func:`pack` made."""
    if tuple(map(type, row)) != _TYPES or digest_of(row) != row.digest:
        raise BankDamaged(
            f"the snapshot of agent {row.agent} is not what was written; nothing was changed",
        )


def unpack(row: SnapshotRow, seed: int, dims: int) -> AgentColumns:
    """The columns that ``row`` was packed from, of an agent in a population of its own."""
    alone = Population(seed, dims)
    unpack_all([row], alone)
    return alone[row.agent]


def unpack_all(rows: Sequence[SnapshotRow], population: Population) -> None:
    """The agents that these rows were packed from come to the population."""
    texts, table = list[str](), population.table
    metadata, kinds = _Spread[KeptMetadata](), _Spread[Traits]()
    numbers = np.frombuffer(b"".join([row.columns for row in rows]), "<i8").reshape(-1, NUMBERS)
    rare: list[tuple[str, dict[str, Any]]] = []
    for row in rows:
        own = texts_of(row)
        if row.extras != _NO_EXTRAS:
            sequences = numbers[len(texts) : len(texts) + len(own), 0].tolist()
            extras, keep = json.loads(row.extras), table.shared_metadata.keep
            metadata.put(
                len(texts), sequences, [(keep(own), rows) for own, rows in extras["metadata"]]
            )
            kinds.put(
                len(texts),
                sequences,
                [(traits(k, tuple(t)), rows) for (k, t), rows in extras["traits"]],
            )
            rare.append((row.agent, extras))
        texts += own
    dims = table.vectors.shape[1]
    vectors = np.frombuffer(b"".join([row.vectors for row in rows]), np.int8).reshape(-1, dims)
    sizes = [len(row.columns) // (8 * NUMBERS) for row in rows]
    count, agents = len(texts), [row.agent for row in rows]
    following = [row.next_sequence for row in rows]
    spread = metadata.among(count), kinds.among(count)
    population.load(agents, following, sizes, numbers, texts, *spread, vectors)
    for agent, extras in rare:
        _take_extras(population, agent, extras)


def _take_extras(population: Population, agent: str, extras: dict[str, Any]) -> None:
    """Give an agent the extras that a snapshot has as JSON."""
    if shelf_sum := int(extras["shelf"], 16):
        population.peek(agent).shelf_sum = shelf_sum
    if extras.keys().isdisjoint(_OF_OBJECTS) and not extras["recalls"]:
        return
    block = population[agent]
    if recalls := extras["recalls"]:
        block.recalls.update({sequence: tuple(ticks) for sequence, ticks in recalls})
    if turns := extras.get("turns"):
        block.tier_order.update({each: (place, number) for each, place, number in turns})
    if notes := extras.get("notes"):
        block.notes.update({path: Note.of(text, chunks) for path, text, chunks in notes})
    if held := extras.get("held"):
        block.holdings = Holdings(held)


def texts_of(row: SnapshotRow) -> list[str]:
    """The texts of the memories in a snapshot, in the order of its vectors."""
    check(row)
    return row.contents.decode().split("\0") if row.contents else []


def with_vectors(row: SnapshotRow, vectors: bytes, dims: int, shelf_sum: int) -> SnapshotRow:
    """The snapshot with other vectors; ``shelf_sum`` is over what was not resident."""
    row = row._replace(vectors=vectors)
    block = unpack(row._replace(digest=digest_of(row)), 0, dims)
    block.shelf_sum = shelf_sum
    return pack(block)


def _without(
    row: SnapshotRow, sequences: Sequence[int], shelf: ShelfTable, commit: int
) -> SnapshotRow:
    """The snapshot, made after a commit, without these memories, resident or on the shelf."""
    numbers = len(row.columns) // (8 * NUMBERS)
    dims = len(row.vectors) // numbers if numbers else 1
    block = unpack(row, 0, dims)
    for sequence in sequences:
        place = block.row_of(sequence)
        if place is not None:
            take_out(block, [place])
        elif stored := shelf.get((row.agent, sequence), commit + 1):
            block.shelf_sum -= int.from_bytes(stored.digest, "big")
    block.forget(sequences)
    return pack(block)


def _extras(block: AgentColumns, sequences: list[int]) -> str:
    """JSON: metadata, traits, recalls, notes, turns, held values, and the shelf's hash."""
    held, notes, recalls, turns = "", "", "[]", ""
    if block.has_extras and block.tier_order:
        order = [[sequence, *turn] for sequence, turn in sorted(block.tier_order.items())]
        turns = f',"turns":{json.dumps(order)}'
    if block.has_extras and block.recalls:
        recalls = json.dumps(sorted(block.recalls.items()))
    if block.has_extras and block.notes:
        rows = [[path, note.text, note.chunks] for path, note in sorted(block.notes.items())]
        notes = f',"notes":{json.dumps(rows, ensure_ascii=False)}'
    if block.holdings:
        held = f',"held":{json.dumps(block.holdings.rows(), ensure_ascii=False)}'
    return (
        f'{{"metadata":{_grouped(sequences, block.metadata())},'
        f'"traits":{_grouped(sequences, block.traits())},'
        f'"recalls":{recalls},'
        f'"shelf":"{block.shelf_sum % (1 << 256):064x}"{notes}{turns}{held}}}'
    )


def _grouped(sequences: list[int], values: Sequence[KeptMetadata | Traits | None]) -> str:
    """JSON: each value once, with the sequence numbers of the memories that have it."""
    if values.count(None) == len(values):
        return "[]"
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for sequence, value in zip(sequences, values, strict=True):
        if value is not None:
            groups[value.json].append(sequence)
    parts = [f"[{text},{orjson.dumps(numbers).decode()}]" for text, numbers in groups.items()]
    return f"[{','.join(parts)}]"


class _Spread(Generic[_Value]):
    """A value for some of the memories of many agents."""

    def __init__(self) -> None:
        self._kept: dict[int, _Value] = {}

    def put(self, start: int, sequences: list[int], groups: list[tuple[_Value, list[int]]]) -> None:
        """The values of an agent's memories, the first of which is at ``start``."""
        places = {sequence: place for place, sequence in enumerate(sequences, start)}
        for value, numbers in groups:
            self._kept.update({places[number]: value for number in numbers if number in places})

    def among(self, count: int) -> list[_Value | None] | None:
        """The value of each of ``count`` memories; None if none has one."""
        return [self._kept.get(place) for place in range(count)] if self._kept else None


def digest_of(row: SnapshotRow) -> bytes:
    """The hash over all of a row."""
    columns, contents, extras, vectors = [
        part.encode() if isinstance(part, str) else part for part in row[2:6]
    ]
    parts = (
        b"%s\0%d\0%d\0" % (row.agent.encode(), row.next_sequence, len(columns)), columns,
        b"\0%d\0" % len(contents), contents,
        b"\0%d\0" % len(extras), extras,
        b"\0%d\0" % len(vectors), vectors,
    )  # fmt: skip
    return hashlib.sha256(b"".join(parts)).digest()


def redaction(purges: Sequence[Purge], journal: Journal) -> Redaction:
    """The purges, with the snapshots of their agents without the purged memories."""
    purged: dict[str, list[int]] = {}
    for purge in purges:
        purged.setdefault(purge.agent, []).append(purge.sequence)
    made_after = journal.snapshot().commit
    rows = [
        _without(row, purged[row.agent], journal.shelf, made_after)
        for row in journal.snapshots(purged)
    ]
    return Redaction(purges, rows)


def load(state: State, journal: Journal, agents: Collection[str] | None = None) -> int:
    """Read the state of all agents, or of some, as of the journal's last commit.

    Returns the number of events after the last snapshot.
    """
    state.forget(agents)
    count = 0
    with (
        journal.reading(),
        state.shelf.replaying(agents),
        journal.rebuilding_shelf() if agents is None else nullcontext(False) as rebuilding,
    ):
        snapshot = journal.snapshot()
        if snapshot.commit:
            _load_snapshots(state, journal, snapshot.commit, agents)
        state.tick = snapshot.tick
        for commit in journal.commits(after=snapshot.commit):
            events = decode(commit.events, state.table.shared_metadata.keep)
            vectors = np.frombuffer(commit.vectors, np.int8).reshape(-1, state.dims)
            state.shelf.commit = commit.id
            replay(state, events, vectors, agents)
            if rebuilding:
                journal.shelf.write(commit.id, state.shelf.changes())
            state.shelf.clear()
            count += len(events)
        if agents is None:
            journal.check_shelf(state.shelf_sum())
    return count


def _load_snapshots(
    state: State, journal: Journal, commit: int, agents: Collection[str] | None
) -> None:
    if agents is None:
        size, count = journal.snapshot_size(), journal.snapshot().agents
        state.table.expect(size // (8 * NUMBERS), count)
    for rows in _portions(journal.snapshots(None if agents is None else sorted(agents))):
        unpack_all(rows, state.blocks)
    for agent in [None] if agents is None else sorted(agents):
        for owner, stored in journal.shelf.critical(agent, commit + 1):
            state.note_critical(state.blocks[owner], stored.record)


def _portions(rows: Iterable[SnapshotRow]) -> Iterator[list[SnapshotRow]]:
    """Snapshots that are read together: of many agents, if these have few memories."""
    together: list[SnapshotRow] = []
    size = 0
    for row in rows:
        together.append(row)
        size += len(row.columns)
        if size >= _TOGETHER:
            yield together
            together, size = [], 0
    if together:
        yield together


def replay(
    state: State,
    events: Sequence[Event],
    vectors: Quantised | None,
    agents: Collection[str] | None = None,
) -> None:
    """Apply events of all agents, or of some; ``vectors`` has one for each added memory."""
    lengths = None if vectors is None else norms(vectors)
    added = 0
    for kind, run in groupby(events, _kind):
        if kind is _WITH_TEXT:
            new = [event for event in run if isinstance(event, Added)]
            _replay_added(state, new, vectors, lengths, added, agents)
            added += len(new)
        elif kind is Accessed:
            state.access([event for event in run if agents is None or event[1] in agents])
        else:
            added += _replay_others(state, run, agents)


def _replay_others(state: State, events: Iterable[Event], agents: Collection[str] | None) -> int:
    """Apply events other than uses and memories with a text; how many memories were added."""
    added = 0
    for event in events:
        if isinstance(event, TickAdvanced):
            state.tick = event.tick
        elif isinstance(event, Added):  # purged since
            added += 1
            if agents is None or event.agent_id in agents:
                state.blocks.own(event.agent_id).next_sequence += 1
                state.touch([event.agent_id])
        elif not isinstance(event, Accessed) and (agents is None or event.agent_id in agents):
            state.apply(event)
    return added


def _replay_added(
    state: State,
    events: Sequence[Added],
    vectors: Quantised | None,
    lengths: NDArray[np.float64] | None,
    start: int,
    agents: Collection[str] | None,
) -> None:
    """Apply events that add memories, whose vectors begin at ``start``."""
    stop = start + len(events)
    if vectors is None or lengths is None or stop > len(vectors):
        raise ValueError("an added memory has no vector")
    vectors, lengths = vectors[start:stop], lengths[start:stop]
    if agents is not None:
        places = [place for place, event in enumerate(events) if event.agent_id in agents]
        events = [events[place] for place in places]
        vectors, lengths = vectors[places], lengths[places]
    if events:
        _check_sequences(state, events)
        state.add(Additions.of(events), vectors, lengths)


def _check_sequences(state: State, events: Sequence[Added]) -> None:
    following: dict[str, int] = {}
    for event in events:
        agent_id, sequence = event.agent_id, event.sequence
        if sequence != (following.get(agent_id) or state.block(agent_id).next_sequence):
            raise BankDamaged(f"the journal gives {agent_id} a memory out of sequence")
        following[agent_id] = sequence + 1


_WITH_TEXT = "added, and not purged since"


def _kind(event: Event) -> Any:
    """Consecutive events of one kind are replayed together."""
    return _WITH_TEXT if isinstance(event, Added) and event.content is not None else type(event)


# Which texts of memories a journal keeps anyway, because they are the text of a note


Key = tuple[str, int]
"""An agent, and the sequence number of its memory."""


def chunks_in(events: Iterable[Sequence[Any]]) -> Iterator[Key]:
    """The memories that are chunks of the notes whose texts these events have.

    The event of a transcript has a bookmark and no text.
    """
    for event in events:
        if event[0] == "note":
            _, agent, path, _, text, chunks = event
            if text is not None:
                yield from _chunks_of(agent, path, chunks)


def kept_chunks(journal: Journal, memories: Sequence[Memory]) -> set[Key]:
    """Of these memories, those that were chunks of a note whose text a journal has.

    A chunk is added in the commit that has its note. What the journal has of the time before its
    first commit is a snapshot.
    """
    found: set[Key] = set()
    with journal.reading():
        for number in _commits_of(journal, {memory.created_tick for memory in memories}):
            commit = first(journal.commits(after=number - 1))
            found.update(() if commit is None else chunks_in(json.loads(commit.events)))
        agents = sorted({memory.agent_id for memory in memories}) if journal.base else ()
        for agent in agents:
            for row in journal.snapshots([agent]):
                for path, _, chunks in json.loads(row.extras).get("notes", ()):
                    found.update(_chunks_of(agent, path, chunks))
    return found


def _commits_of(journal: Journal, ticks: Iterable[int]) -> list[int]:
    """The commits in which memories of these ticks came; one may have ended in a later tick."""
    rows = journal.file.db.execute("SELECT id, tick FROM commits ORDER BY id").fetchall()
    ended = [tick for _, tick in rows]
    places = {
        place
        for tick in ticks
        for place in range(bisect_left(ended, tick), bisect_right(ended, tick) + 1)
    }
    return [rows[place][0] for place in sorted(places) if place < len(rows)]


def _chunks_of(agent: str, path: str, chunks: Iterable[Sequence[int]]) -> Iterator[Key]:
    if not is_transcript(path):
        yield from ((agent, number) for number, _, _ in chunks)
