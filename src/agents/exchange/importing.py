"""Stores rows in a bank in one commit: all rows, or only the rows that can be kept."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from ..bank.memory_bank import MemoryBank
from ..engine import adding, groups
from ..errors import InvalidInput, TierFull
from ..memory.records import Memory
from ..memory.requests import NewBatch, NewMemory
from ..memory.retention import Retention
from ..memory.temperature import Temperature
from ..memory.tiers import Tier
from ..storage.embedding.cache import CachedEmbedder
from ..storage.embedding.embedders import NoEmbedder
from .memory_rows import New, Row, check_row
from .new_ids import NewIds

_CHUNK = 2000
"""Rows that are embedded at once; this bounds the memory that an import takes."""
_MOST_NAMED = 5
"""How many of the rows that were left out a report names."""
_CAPPED = (Tier.PINNED, Tier.CRITICAL)


class Refused(NamedTuple):
    """A row that can't be kept."""

    place: str
    why: str


class Imported(NamedTuple):
    """The outcome of an import."""

    agents: Counter[str]
    """How many memories, by agent."""
    archived: int
    moved_down: int
    """How many memories the bank's caps moved to a lower tier, new and old ones."""
    blank: int = 0
    """How many rows of a mem0 store had no text."""
    bad: int = 0
    """How many rows were left out because they can't be kept."""
    first_bad: Sequence[Refused] = ()

    @property
    def total(self) -> int:
        """How many memories in all."""
        return self.agents.total()


def store_rows(
    bank: MemoryBank, rows: Iterable[Row], agent_id: str | None = None, *, skip_bad: bool = False
) -> Imported:
    """Store rows in one commit, all or none; ``agent_id`` owns the rows that name no agent.

    The first row that can't be kept raises an :class:`InvalidInput` or a :class:`TierFull` with the
    row's place; with ``skip_bad``, rows that can't be kept are left out and counted.
    """
    sieve = _Sieve(skip_bad)
    agents: Counter[str] = Counter()
    archived = 0
    with bank.transaction():
        capped = [m for name in bank.agents() for t in _CAPPED for m in bank.agent(name).all(t)]
        news = _memories(bank, _checked(bank, rows, agent_id, sieve))
        ids = NewIds(bank.engine.state)
        while chunk := list(islice(news, _CHUNK)):
            for new, memory in _stored(bank, chunk, sieve, ids):
                agents[memory.agent_id] += 1
                tier = memory.tier if new.memory[4].keeps_tier else new.memory[2]
                if new.is_archived:
                    archived += 1
                    _archive(bank, memory, new.memory[2])
                elif tier in _CAPPED:
                    capped.append(memory._replace(tier=tier))
        moved = sum(_is_moved(bank, each) for each in capped)
    return Imported(agents, archived, moved, sieve.blank, sieve.bad, sieve.first)


def check_rows(
    copy: MemoryBank, rows: Iterable[Row], agent_id: str | None = None, *, skip_bad: bool = False
) -> Imported:
    """:func:`store_rows` on a copy of a bank that is thrown away.

    No text is embedded: an embedder may cost money, and sees the texts.
    """
    copy.engine.embedder = CachedEmbedder(
        _Unembedded(copy.engine.embedder.dims), 0, lambda keys: {}
    )
    return store_rows(copy, rows, agent_id, skip_bad=skip_bad)


class _Unembedded(NoEmbedder):
    def __init__(self, dims: int) -> None:
        self.dims = dims


class _Sieve:
    """Raises an error for a row that can't be kept, or leaves the row out and counts it."""

    def __init__(self, skip_bad: bool) -> None:
        self._skip_bad = skip_bad
        self.blank = self.bad = 0
        self.first: list[Refused] = []

    def refuse(self, place: str, error: InvalidInput | TierFull) -> None:
        if not self._skip_bad:
            raise _placed(place, error) from error
        self.bad += 1
        if len(self.first) < _MOST_NAMED:
            self.first.append(Refused(place, error.why))


def _placed(place: str, error: InvalidInput | TierFull) -> InvalidInput | TierFull:
    why = f"{place}: {error.why}"
    hint = "; ".join(filter(None, [error.hint, "--skip-bad leaves out such rows"]))
    if isinstance(error, TierFull):
        return TierFull(why, tier=error.tier, cap=error.cap, hint=hint)
    return type(error)(why, hint=hint)


def _checked(
    bank: MemoryBank, rows: Iterable[Row], agent_id: str | None, sieve: _Sieve
) -> Iterator[New]:
    most = bank.settings.memory.max_content_bytes
    for row in rows:
        if row.is_blank:
            sieve.blank += 1
            continue
        try:
            new = check_row(row, agent_id, most)
        except InvalidInput as error:
            sieve.refuse(row.place, error)
        else:
            yield new


def _memories(bank: MemoryBank, news: Iterable[New]) -> Iterator[New]:
    """The rows that are memories; the other rows make agents members of a group."""
    for new in news:
        if new.members is None:
            yield new
        else:
            groups.join(bank.engine, groups.group_of(new.memory[0]), new.members)


def _is_moved(bank: MemoryBank, memory: Memory) -> bool:
    """Whether a memory is in another tier than it was, or was meant for."""
    now = bank.agent(memory.agent_id).find(memory.sequence)
    if now is None or now.retention is not Retention.ACTIVE:
        return False
    return now.tier is not memory.tier


def _stored(
    bank: MemoryBank, chunk: Sequence[New], sieve: _Sieve, ids: NewIds
) -> Iterable[tuple[New, Memory]]:
    ids.begin()
    try:
        with bank.transaction():
            return zip(chunk, list(_added(bank, chunk, ids)), strict=True)
    except (InvalidInput, TierFull):
        ids.drop()
        return _stored_singly(bank, chunk, sieve, ids)  # to find the row that is wrong


def _added(bank: MemoryBank, chunk: Iterable[New], ids: NewIds) -> Iterator[Memory]:
    """Add rows in order; one that names others comes when their new ids are known."""
    part: list[New] = []
    waiting: set[str] = set()
    for new in chunk:
        if not waiting.isdisjoint(new.names):
            yield from _added_part(bank, part, ids)
            part, waiting = [], set()
        part.append(new)
        waiting.update(filter(None, (new.former_id, new.first_version)))
    if part:
        yield from _added_part(bank, part, ids)


def _added_part(bank: MemoryBank, part: Sequence[New], ids: NewIds) -> Iterator[Memory]:
    """Add rows, of which none names another.

    One that is archived, or is on a board, supersedes nothing, and is not a repetition.
    """
    for new, memory in zip(part, _added_apart(bank, map(ids.renamed, part)), strict=True):
        ids.know(new, memory.id)
        yield memory


def _added_apart(bank: MemoryBank, rows: Iterable[New]) -> Iterator[Memory]:
    for is_apart, run in groupby(rows, _is_apart):
        if is_apart:
            yield from bank.engine.add_new(NewBatch.of(map(_startable, run)))
        else:
            yield from adding.add_new(bank.engine, NewBatch.of(map(_startable, run)))


def _is_apart(new: New) -> bool:
    return new.is_archived or groups.group_of(new.memory[0]) is not None


def _stored_singly(
    bank: MemoryBank, chunk: Sequence[New], sieve: _Sieve, ids: NewIds
) -> Iterator[tuple[New, Memory]]:
    for new in chunk:
        try:
            (memory,) = _added(bank, [new], ids)
        except (InvalidInput, TierFull) as error:
            sieve.refuse(new.place, error)
        else:
            yield new, memory


def _startable(new: New) -> NewMemory:
    """The memory to store. One to be archived starts low and not hot, to displace nothing."""
    if not new.is_archived:
        return new.memory
    agent, content, _, metadata, options = new.memory
    if options.temperature is Temperature.HOT:
        options = options._replace(temperature=Temperature.WARM)
    return agent, content, Tier.LOW, metadata, options


def _archive(bank: MemoryBank, memory: Memory, tier: Tier) -> None:
    agent = bank.agent(memory.agent_id)
    agent.archive(memory.id)
    agent.set_tier(memory.id, tier)
