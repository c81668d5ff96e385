"""One agent's resident memories, as columns: how they change."""

from collections.abc import Mapping, Sequence
from itertools import compress, repeat
from operator import add

import numpy as np
from numpy.typing import NDArray

from ...memory.events import Additions, Start
from ...memory.kinds import Traits
from ...memory.metadata import KeptMetadata
from ...memory.records import NEVER
from ...memory.temperature import Temperature
from ...rules.transitions import axes_of, entered
from ..digests import of_new
from ..full_record import MOST_RECALLS, Shelved
from ..vectors import Quantised, norms
from .agent_rows import NUMBERS, AgentRows
from .table import WIDTH

__all__ = ["NUMBERS", "AgentColumns", "add_all"]


# NumPy takes its time to find out that an enum is a number.
_HOT = int(Temperature.HOT)
_MANY = 64
"""From this many leaving memories on, a look at those that stay may cost less."""


class AgentColumns(AgentRows):
    """One agent's memories, which come, change and go."""

    __slots__ = ()

    @property
    def is_hashed(self) -> bool:
        """Whether somebody asked for the fingerprint, which is kept up to date since."""
        return self._fingerprint is not None

    def take_in(self, count: int) -> int:
        """So many new memories come; what to add to a sequence number to have its row."""
        to_row = self.start + self.size - self.next_sequence
        self.size += count
        self.next_sequence += count
        return to_row

    def notice(self, tier: int, start: Start | None) -> None:
        """One of the new memories is in this tier, and begins so."""
        if start is not None and start[3] is not None:
            self.next_expiry = min(self.next_expiry, start[3])
        if tier == 0 or (start is not None and start[0] == _HOT):
            self._pinned = self._hot = self.hot_tokens = None

    def count_in(self, mark: int) -> None:
        """A new memory, with this hash over it, is part of the fingerprint from now on."""
        if self._fingerprint is not None:
            self._fingerprint += mark

    def change_tier(self, row: int, tier: int, tick: int) -> None:
        """Move a memory to a tier that it enters in ``tick``."""
        self._without(row)
        if tier == 0 or self._tiers[row] == 0:
            now = axes_of(self._tiers.item(row), self._temperatures.item(row))
            self._temperatures[row] = int(entered(now, tier).temperature)
            self._hot = None
            if tier:  # while it was pinned, it could not expire
                self.next_expiry = min(self.next_expiry, self._numbers[WIDTH * row + 3])
        self._tiers[row] = tier
        self._numbers[WIDTH * row + 2] = tick
        self._pinned = self.hot_tokens = None
        self.next_decay = 0
        self._with(row)

    def set_temperature(self, rows: Sequence[int], temperature: int) -> None:
        """Memories are hot or warm now."""
        for row in rows:
            self._without(row)
            self._temperatures[row] = temperature
            self._with(row)
        self._hot = self.hot_tokens = None
        self.next_decay = 0

    def count_use(self, more: int) -> None:
        """Memories were used, and the sum of the hashes over that is so much more."""
        self._activity += more

    def recalled(self, sequence: int, tick: int) -> None:
        """An agent asked for a memory by :meth:`AgentMemory.recall`."""
        self.recalls[sequence] = (*self.recalls.get(sequence, ()), tick)[-MOST_RECALLS:]

    def take(self, rows: Sequence[int], temperature: int | None = None) -> list[Shelved]:
        """Remove memories, all that there is of them; with another temperature, if one is given."""
        places = np.asarray(rows, np.intp)
        numbers = self._figures[places]
        sequences, created, entered, expires, counts, last = numbers.T.tolist()
        zeros = [0] * len(rows)
        if temperature is None:
            temperatures = self._temperatures[places].tolist()
        else:
            temperatures = [temperature] * len(rows)
        recalls: list[tuple[int, ...]] = [()] * len(rows)
        if self.recalls:
            recalls = [self.recalls.pop(each, ()) for each in sequences]
        data, dims = self._vectors[places].tobytes(), self._vectors.shape[1]
        fields = zip(
            sequences,
            self._tiers[places].tolist(),
            temperatures,
            zeros,
            zeros,
            created,
            entered,
            expires,
            counts,
            last,
            np.asarray(self._relevance)[places].tolist(),
            recalls,
            self._traits[places].tolist(),
            self._metadata[places].tolist(),
            self._contents[places].tolist(),
            [data[start : start + dims] for start in range(0, len(data), dims)],
            strict=True,
        )
        taken = list(map(tuple.__new__, repeat(Shelved), fields))  # Shelved(…), at half its cost
        self._forget_hashes(rows)
        self._close_gaps(rows)
        return taken

    def _forget_hashes(self, rows: Sequence[int]) -> None:
        """Take memories out of the fingerprint."""
        if self._fingerprint is None:
            return
        if len(rows) >= _MANY and 2 * len(rows) > self.size:
            self._fingerprint = None  # what stays is less to count again than what goes
            self.unmark(slice(self.size))
            return
        self._activity -= self.unmark(rows)
        for row in rows:
            self._without(row)

    def _close_gaps(self, rows: Sequence[int]) -> None:
        keep = np.ones(self.size, bool)
        keep[rows] = False
        self._reorder(keep)
        if self._keywords is not None:
            self._keywords.keep(keep)
        self._changed()

    def put(self, records: Sequence[Shelved]) -> None:
        """Take memories back, each into its place."""
        first, last = self.size, self.size + len(records)
        self.table.make_room([(self, len(records))])
        vectors = np.frombuffer(b"".join([each.vector for each in records]), np.int8)
        self._vectors[first:last] = vectors.reshape(len(records), -1)
        self._norms[first:last] = norms(self._vectors[first:last])
        for row, record in enumerate(records, first):
            self._contents[row] = record.content
            self._metadata[row] = record.metadata
            self._traits[row] = record.traits
            if record.metadata is not None or record.traits is not None:
                self.table.all_plain = False
            self._tiers[row] = record.tier
            self._temperatures[row] = record.temperature
            self._figures[row] = (
                record.sequence, record.created_tick, record.tier_tick, record.expires_tick,
                record.access_count, record.last_access_tick,
            )  # fmt: skip
            self._relevance[row] = record.relevance
            self._places[row] = 0
            if self._fingerprint is not None:
                self._with(row)
                if record.access_count:
                    self._mark([row])
            if record.recalls:
                self.recalls[record.sequence] = record.recalls
            self.next_expiry = min(self.next_expiry, record.expires_tick)
        self.size = last
        order = np.argsort(self._figures[:last, 0], kind="stable")
        self._reorder(order)
        if self._keywords is not None and self._keywords.size == first:
            self._keywords.extend([record.content for record in records])
            self._keywords.reorder(order)
        else:  # some are not indexed yet, and would be in the midst of others
            self._keywords = None
        self._changed()

    def load(
        self,
        numbers: NDArray[np.int64],
        contents: list[str],
        metadata: list[KeptMetadata | None],
        kinds: list[Traits | None],
        vectors: Quantised,
    ) -> None:
        """Take over a whole state; ``numbers`` is what :meth:`numbers` gives."""
        self.unmark(slice(self.size))
        self.table.make_room([(self, len(contents))])
        self.size = len(contents)
        own = self.columns()
        own[0][:], own[1][:] = vectors, norms(vectors)
        own[2][:], own[3][:], own[4][:] = numbers[:, 6], numbers[:, 7], numbers[:, :WIDTH]
        own[5][:] = np.ascontiguousarray(numbers[:, 8]).view(np.float64)
        own[6][:] = 0
        own[7][:], own[8][:], own[9][:] = contents, metadata, kinds
        if any(each is not None for each in (*metadata, *kinds)):
            self.table.all_plain = False
        self.next_expiry = int(numbers[:, 3].min(initial=NEVER))
        self._fingerprint = self._keywords = None
        self._changed()

    def _without(self, row: int) -> None:
        if self._fingerprint is not None:
            self._fingerprint -= self._fingerprint_of(row)

    def _with(self, row: int) -> None:
        if self._fingerprint is not None:
            self._fingerprint += self._fingerprint_of(row)

    def _changed(self) -> None:
        """Rows are other memories now."""
        self._sessions = None
        self._pinned = self._hot = self.hot_tokens = None
        self.next_decay = 0

    def _reorder(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> None:
        """Keep these rows, in this order."""
        for column in self.columns():
            kept = column[rows]
            column[: len(kept)] = kept
            if column.dtype == object:
                column[len(kept) :] = None
        self.size = len(kept)


def add_all(
    blocks: Mapping[str, AgentColumns],
    counts: Mapping[str, int],
    new: Additions,
    tick: int,
    vectors: Quantised,
    lengths: NDArray[np.float64],
) -> None:
    """New memories of these agents, so many of each, of this tick.

    Of each agent, they have the sequence numbers that follow. Their vectors have these lengths.
    """
    table = blocks[new.agents[0]].table
    table.make_room([(block, counts[agent]) for agent, block in blocks.items()])
    to_row = {agent: block.take_in(counts[agent]) for agent, block in blocks.items()}
    rows = list(map(add, map(to_row.__getitem__, new.agents), new.sequences))
    table.write(rows, new, tick, vectors, lengths)
    if 0 in new.tiers or new.starts.count(None) < len(new.starts):
        for agent, tier, start in zip(new.agents, new.tiers, new.starts, strict=True):
            if start is not None or tier == 0:
                blocks[agent].notice(tier, start)
    hashed = {agent for agent, block in blocks.items() if block.is_hashed}
    if hashed:
        is_hashed = [agent in hashed for agent in new.agents]
        if not all(is_hashed):
            new = Additions._make([list(compress(column, is_hashed)) for column in new])
            vectors = vectors[is_hashed]
        for agent, mark in zip(new.agents, of_new(new, tick, vectors.tobytes()), strict=True):
            blocks[agent].count_in(mark)
