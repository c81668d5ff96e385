"""One agent's resident memories, as columns: how they change."""

from array import array
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
from agents.storage.pack import Leaving
from agents.storage.rows import NUMBERS, SPACIOUS, WIDTH, AgentRows, Found
from agents.storage.shelved import MOST_RECALLS, NEVER, UNUSED, Shelved
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
        if last > len(self._norms):
            self._resize(last + max(8, last // 4))
        self._vectors[first:last] = vectors
        self._norms[first:last] = lengths
        self._temperatures[first:last] = _WARM
        self._traits[first:last] = None
        self._relevance.extend([NEW_RELEVANCE] * count)
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
            self._numbers.extend((sequence, tick, tick, expires, 0, UNUSED))
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
        self._close_gaps(rows)
        return taken

    def leaving(self, rows: Sequence[int], temperature: int) -> Leaving:
        """All that there is of memories, but for recalls, with another temperature."""
        places = np.asarray(rows, np.intp)
        numbers = np.zeros((len(rows), 11), np.int64)
        own = np.array(self._numbers, np.int64).reshape(-1, WIDTH)
        numbers[:, [0, 5, 6, 7, 8, 9]] = own[places]
        numbers[:, 1], numbers[:, 2] = self._tiers[places], temperature
        numbers[:, 10] = np.array(self._relevance, np.float64).view(np.int64)[places]
        return Leaving(
            numbers,
            self._traits[places].tolist(),
            self._metadata[places].tolist(),
            self._contents[places].tolist(),
            self._vectors[places],
        )

    def drop(self, rows: Sequence[int]) -> None:
        """Remove memories that were never recalled."""
        if self._fingerprint is not None and 2 * len(rows) > self.size:
            self._fingerprint = None  # what stays is less to count again than what goes
        elif self._fingerprint is not None:
            for row in rows:
                self._without(row)
                self._activity -= self._marks.pop(self.sequence(row), 0)
        self._close_gaps(rows)

    def _close_gaps(self, rows: Sequence[int]) -> None:
        keep = np.ones(self.size, bool)
        keep[rows] = False
        numbers = self._numbers
        for name in SPACIOUS:
            setattr(self, name, getattr(self, name)[: self.size][keep])
        self._set_numbers(
            np.array(numbers, np.int64).reshape(-1, WIDTH)[keep],
            np.array(self._relevance, np.float64)[keep],
        )
        if self._keywords is not None:
            self._keywords.keep(keep)
        self._changed()

    def put(self, records: Sequence[Shelved]) -> None:
        """Take memories back, each into its place."""
        first, last = self.size, self.size + len(records)
        if last > len(self._norms):
            self._resize(last + max(8, last // 4))
        vectors = np.frombuffer(b"".join([each.vector for each in records]), np.int8)
        self._vectors[first:last] = vectors.reshape(len(records), -1)
        self._norms[first:last] = norms(self._vectors[first:last])
        for row, record in enumerate(records, first):
            self._contents[row] = record.content
            self._metadata[row] = record.metadata
            self._traits[row] = record.traits
            self._tiers[row] = record.tier
            self._temperatures[row] = record.temperature
            self._numbers.extend((
                record.sequence, record.created_tick, record.tier_tick, record.expires_tick,
                record.access_count, record.last_access_tick,
            ))  # fmt: skip
            self._relevance.append(record.relevance)
            if record.recalls:
                self.recalls[record.sequence] = record.recalls
            self.next_expiry = min(self.next_expiry, record.expires_tick)
        self.size = last
        table = np.array(self._numbers, np.int64).reshape(-1, WIDTH)
        order = np.argsort(table[:, 0], kind="stable")
        for name in SPACIOUS:
            getattr(self, name)[:last] = getattr(self, name)[:last][order]
        self._set_numbers(table[order], np.array(self._relevance, np.float64)[order])
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
        self.size = len(contents)
        self._contents = np.array(contents, object)
        self._metadata, self._traits = np.empty(self.size, object), np.empty(self.size, object)
        self._metadata[:], self._traits[:] = metadata, kinds
        self._set_numbers(numbers[:, :WIDTH], np.ascontiguousarray(numbers[:, 8]).view(np.float64))
        self._tiers = numbers[:, 6].astype(np.int8)
        self._temperatures = numbers[:, 7].astype(np.int8)
        self._vectors = vectors.copy()
        self._norms = norms(vectors)
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
        self.size = len(self._relevance)
        self._sessions = None
        self._pinned = self._hot = self.hot_tokens = None
        self.next_decay = 0
        self.found.clear()

    def _set_numbers(self, numbers: NDArray[np.int64], relevance: NDArray[np.float64]) -> None:
        self._numbers = array("q", np.ascontiguousarray(numbers, np.int64).tobytes())
        self._relevance = array("d", relevance.astype(np.float64).tobytes())

    def _resize(self, capacity: int) -> None:
        rows = self.size
        for name in SPACIOUS:
            old = getattr(self, name)
            new = np.empty((capacity, *old.shape[1:]), old.dtype)
            new[:rows] = old[:rows]
            setattr(self, name, new)
