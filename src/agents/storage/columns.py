"""One agent's resident memories, as columns: how they change."""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agents.memory.events import Added
from agents.memory.metadata import KeptMetadata
from agents.memory.records import NEW_RELEVANCE
from agents.memory.temperature import Temperature
from agents.memory.traits import Traits, traits
from agents.storage.fingerprints import of_activity, of_memory
from agents.storage.rows import NUMBERS, AgentRows, Found
from agents.storage.shelved import MOST_RECALLS, NEVER, UNUSED, Shelved
from agents.storage.table import WIDTH
from agents.storage.vectors import Quantised, norms

__all__ = ["NUMBERS", "AgentColumns", "Found"]


# NumPy takes its time to find out that an enum is a number.
_HOT, _WARM = int(Temperature.HOT), int(Temperature.WARM)


class AgentColumns(AgentRows):
    """One agent's memories, which come, change and go."""

    __slots__ = ()

    def extend(
        self,
        events: Sequence[Added],
        tick: int,
        vectors: Quantised,
        lengths: NDArray[np.float64],
    ) -> None:
        """Add the newest memories, of this tick; their sequence numbers are the next ones."""
        first, count = self.size, len(events)
        last = first + count
        self.make_room(count)
        self._vectors[first:last] = vectors
        self._norms[first:last] = lengths
        self._temperatures[first:last] = _WARM
        self._traits[first:last] = None
        np.asarray(self._relevance)[first:last] = NEW_RELEVANCE
        changed = False
        for row, (_, _, sequence, tier, content, metadata, start) in enumerate(events, first):
            self._contents[row] = content
            self._tiers[row] = tier
            self._metadata[row] = metadata
            expires = NEVER
            if start is not None:
                heat, kind, tags, ends = start
                if heat != _WARM:
                    self._temperatures[row] = heat
                    changed = changed or heat == _HOT
                if kind != "fact" or tags:
                    self._traits[row] = traits(kind, tags)
                if ends is not None:
                    expires = ends
                    self.next_expiry = min(self.next_expiry, ends)
            if tier == 0:
                self._temperatures[row] = _HOT
                changed = True
            self._figures[row] = (sequence, tick, tick, expires, 0, UNUSED)
        self.size = last
        self.next_sequence += count
        if changed:
            self._pinned = self._hot = self.hot_tokens = None
            self.found.clear()
        if self._fingerprint is not None:
            self._fingerprint += self._fingerprint_of_new(events, first, tick, vectors)

    def _fingerprint_of_new(
        self, events: Sequence[Added], first: int, tick: int, vectors: Quantised
    ) -> int:
        data, size, total = vectors.tobytes(), vectors.shape[1], 0
        heats, kinds = self._temperatures[first : self.size].tolist(), self._traits
        place = 0
        for index, (_, _, sequence, tier, content, metadata, start) in enumerate(events):
            expires = NEVER if start is None or start[3] is None else start[3]
            vector = data[place : place + size]
            place += size
            total += of_memory(
                sequence, tier, heats[index], tick, tick, expires, content or "", vector,
                metadata, kinds[first + index],
            )  # fmt: skip
        return total

    def change_tier(self, row: int, tier: int, tick: int) -> None:
        """Move a memory to a tier that it enters in ``tick``. Pinned is hot, unpinned warm."""
        self._without(row)
        if tier == 0 or self._tiers[row] == 0:
            self.found.clear()  # pinned memories are no candidates
            self._temperatures[row] = _HOT if tier == 0 else _WARM
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
        self.found.clear()

    def access(self, sequences: Sequence[int], scores: Sequence[float], tick: int) -> list[int]:
        """A search gave these memories; the places in the list of those that are not here."""
        numbers, relevance, hashed = self._numbers, self._relevance, self._fingerprint is not None
        missing, marks = [], self._marks
        for index, sequence in enumerate(sequences):
            row = sequence - 1  # where there are no gaps, and that is nearly always
            if row >= self.size or numbers[WIDTH * row] != sequence:
                found = self.row_of(sequence)
                if found is None:
                    missing.append(index)
                    continue
                row = found
            place = WIDTH * row
            count = numbers[place + 4] = numbers[place + 4] + 1
            numbers[place + 5] = tick
            mean = relevance[row] = (relevance[row] + scores[index]) / 2
            if hashed:
                mark = of_activity(sequence, count, tick, mean)
                self._activity += mark - marks.get(sequence, 0)
                marks[sequence] = mark
        return missing

    def recalled(self, sequence: int, tick: int) -> None:
        """An agent asked for a memory by :meth:`AgentMemory.recall`."""
        self.recalls[sequence] = (*self.recalls.get(sequence, ()), tick)[-MOST_RECALLS:]

    def take(self, rows: Sequence[int], temperature: int | None = None) -> list[Shelved]:
        """Remove memories, all that there is of them; with another temperature, if one is given."""
        make, numbers, kinds, metadata = tuple.__new__, self._numbers, self._traits, self._metadata
        data, dims = self._vectors[rows].tobytes(), self._vectors.shape[1]
        tiers, relevance, contents = self._tiers, self._relevance, self._contents
        recalls, hashed = self.recalls, self._fingerprint is not None
        taken = []
        for index, row in enumerate(rows):
            place = WIDTH * row
            sequence, created, entered, expires, count, last = numbers[place : place + WIDTH]
            if hashed:
                self._without(row)
                self._activity -= self._marks.pop(sequence, 0)
            taken.append(
                make(
                    Shelved,
                    (
                        sequence,
                        tiers.item(row),
                        self._temperatures.item(row) if temperature is None else temperature,
                        0,
                        0,
                        created,
                        entered,
                        expires,
                        count,
                        last,
                        relevance[row],
                        recalls.pop(sequence, ()) if recalls else (),
                        kinds[row],
                        metadata[row],
                        contents[row],
                        data[index * dims : (index + 1) * dims],
                    ),
                )
            )
        keep = np.ones(self.size, bool)
        keep[rows] = False
        self._reorder(keep)
        if self._keywords is not None:
            self._keywords.keep(keep)
        self._changed()
        return taken

    def put(self, records: Sequence[Shelved]) -> None:
        """Take memories back, each into its place."""
        first, last = self.size, self.size + len(records)
        self.make_room(len(records))
        vectors = np.frombuffer(b"".join([each.vector for each in records]), np.int8)
        self._vectors[first:last] = vectors.reshape(len(records), -1)
        self._norms[first:last] = norms(self._vectors[first:last])
        for row, record in enumerate(records, first):
            self._contents[row] = record.content
            self._metadata[row] = record.metadata
            self._traits[row] = record.traits
            self._tiers[row] = record.tier
            self._temperatures[row] = record.temperature
            self._figures[row] = (
                record.sequence, record.created_tick, record.tier_tick, record.expires_tick,
                record.access_count, record.last_access_tick,
            )  # fmt: skip
            self._relevance[row] = record.relevance
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
        if self._fingerprint is not None:
            for record in records:
                row = bisect_left(range(last), record.sequence, key=self.sequence)
                self._with(row)
                if record.access_count:
                    mark = self._marks[record.sequence] = self._activity_of(row)
                    self._activity += mark

    def load(
        self,
        numbers: NDArray[np.int64],
        contents: list[str],
        metadata: list[KeptMetadata | None],
        kinds: list[Traits | None],
        vectors: Quantised,
    ) -> None:
        """Take over a whole state; ``numbers`` is what :meth:`numbers` gives."""
        self.make_room(len(contents))
        self.size = len(contents)
        own = self.columns()
        own[0][:], own[1][:] = vectors, norms(vectors)
        own[2][:], own[3][:], own[4][:] = numbers[:, 6], numbers[:, 7], numbers[:, :WIDTH]
        own[5][:] = np.ascontiguousarray(numbers[:, 8]).view(np.float64)
        own[6][:], own[7][:], own[8][:] = contents, metadata, kinds
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
        self.found.clear()

    def make_room(self, count: int) -> None:
        """Have room for so many more memories."""
        last = self.size + count
        if last > self.room:
            self._table.give(self, last + max(8, last // 4))

    def _reorder(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> None:
        """Keep these rows, in this order."""
        for column in self.columns():
            kept = column[rows]
            column[: len(kept)] = kept
            if column.dtype == object:
                column[len(kept) :] = None
        self.size = len(kept)
