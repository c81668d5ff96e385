"""The record of a run: what its journal has of each tick, opened once.

Whoever reads a run reads it here: why, compare, replay, the tables, the effects of changes. The log
of decisions has no texts; the events of the same tick have them, and :func:`births` brings the two
together.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self, final

from ...bank import history
from ...bank.memory_bank import MemoryBank
from ...config.settings import Settings
from ...errors import RunError
from ...memory.events import Added, Event, NoteWritten
from ...memory.sources import INSIGHT, source_of
from ...storage.interrupts import first
from ...storage.journal.journal import Journal
from ..kept_ticks import KeptTicks
from ..tick.decision_log import LoggedDecision, unpack
from ..worlds.outside import agents_of
from .folder import as_run_error
from .placement import reading

FORGOTTEN = "(forgotten)"


class Births(NamedTuple):
    """The memories of an agent's tick, by sequence number."""

    perceived: list[int]
    """What the agent observed and heard, in this order; old memories, where it was repeated."""
    done: list[int | None]
    """For each action the memory that it became; None if it became none."""
    told: list[int]
    """What others told it."""
    insights: list[int]
    rest: list[int]
    """What it saved before its context was compacted, if contexts are flushed."""


def new_memories(events: Iterable[Event]) -> dict[str, dict[int, Added]]:
    """The new memories of a commit, by agent and number, without the chunks of notes."""
    new: dict[str, dict[int, Added]] = {}
    chunks: set[tuple[str, int]] = set()
    for event in events:
        if isinstance(event, Added):
            new.setdefault(event.agent_id, {})[event.sequence] = event
        elif isinstance(event, NoteWritten):
            chunks.update((event.agent_id, number) for number, *_ in event.chunks)
    for agent, number in chunks:
        new.get(agent, {}).pop(number, None)
    return new


def births(kept: LoggedDecision, new: Mapping[int, Added]) -> Births:
    """What became of all that the log has of an agent; ``new`` are its new memories."""
    is_told = {number: source_of(new[number].metadata or {}) is not None for number in new}
    untold = iter([number for number in new if not is_told[number]])
    repeated = dict(kept.repeated)

    def numbers(first: int, count: int) -> list[int | None]:
        return [repeated.get(at) or next(untold, None) for at in range(first, first + count)]

    seen = kept.has_text + kept.heard
    perceived = [number for number in numbers(0, seen) if number is not None]
    became = iter(numbers(seen, sum(born for *_, born in kept.did)))
    done = [next(became) if born else None for *_, born in kept.did]
    insights, rest = list[int](), list[int]()
    for number in untold:
        start = new[number].start
        (insights if start is not None and start.kind == INSIGHT else rest).append(number)
    return Births(perceived, done, list(filter(is_told.get, new)), insights, rest)


def text_of(event: Added) -> str:
    """The text of a new memory, as it is told."""
    return FORGOTTEN if event.content is None else event.content


@final
class RunRecord(KeptTicks):
    """What the journal of a run has of its ticks, with the settings of the run."""

    def __init__(self, journal: Journal, settings: Settings, folder: Path | None = None) -> None:
        """Callers use :meth:`read` or :meth:`of`."""
        super().__init__(journal)
        self.settings = settings
        self._folder = folder

    @classmethod
    @contextmanager
    def read(cls, folder: Path) -> Iterator[Self]:
        """The record of the run in a folder, as it is now; the run may go on meanwhile.

        It is a copy in memory: nothing is opened but the journal, and that once. The bank of a run
        over workers is brought up to date first, as far as it can be.
        """
        settings, _ = reading(folder)
        journal = history.past(folder / "bank", None)
        try:
            yield cls(journal, settings, folder)
        finally:
            journal.close()

    @classmethod
    def of(cls, bank: MemoryBank, settings: Settings) -> Self:
        """The record of a run whose bank is open; it has the ticks that the bank has."""
        return cls(bank.engine.journal, settings)

    @property
    def last(self) -> int:
        """The last tick."""
        return self._journal.tick

    @cached_property
    def agents(self) -> list[str]:
        """The agents of the run, in the order of its log."""
        return agents_of(self._journal, self.settings)

    def errors(self, tick: int) -> dict[str, list[str]]:
        """By agent, what was wrong with its actions in a tick.

        A run that was restored from a checkpoint has nothing of the ticks before.
        """
        kept = self.tick(tick)
        if kept is None or not kept.has_state:
            return {}
        errors: dict[str, list[str]] = kept.state()["errors"]
        return errors

    # Memories

    def new_memories(self, tick: int) -> dict[str, dict[int, Added]]:
        """The new memories of a tick, by agent and number, without the chunks of notes.

        The first commit of a tick is the tick's own; a later one is somebody's edit.
        """
        new = first(self.events(tick - 1))
        return {} if new is None or new[0] != tick else new_memories(new[1])

    def births(self) -> Iterator[tuple[int, Added]]:
        """The memories that were born in the run and have a text, oldest first, with their ticks.

        Parts of notes are left out.
        """
        for tick, events in self.events():
            for event in events:
                if not isinstance(event, Added) or event.content is None:
                    continue
                if event.start is None or event.start.kind != "note":
                    yield tick, event

    def bank(self, tick: int | None = None) -> MemoryBank:
        """A copy of the run's bank as it was after a tick, or as it is now."""
        if self._folder is None:
            raise RuntimeError("the bank of this record is open")
        if tick is not None and tick > self.last:
            raise RunError(
                f"{self._folder} has {self.last} ticks, so there is no tick {tick} to look at",
                hint=f"name a tick from 0 to {self.last}",
            )
        with as_run_error(f"the memories after tick {tick} can't be seen"):
            return MemoryBank.at(self._folder / "bank", tick, self.settings)

    # Decisions

    def decisions(self, after: int = -1) -> Iterator[tuple[int, list[LoggedDecision]]]:
        """What the log has of all agents, tick by tick after ``after``."""
        for tick, data in self.logs(after):
            kept = self.tick(tick)
            try:
                if kept is not None:
                    yield tick, unpack(data, kept.retrieved, self.agents)
            except (ValueError, LookupError, TypeError, RecursionError) as error:
                raise RunError(f"the decisions of tick {tick} can't be read: {error}") from None


def last_tick(folder: Path) -> int:
    """The last tick of a run."""
    with RunRecord.read(folder) as record:
        return record.last


def agents_of_run(folder: Path) -> list[str]:
    """The agents of a run, in the order of its log."""
    with RunRecord.read(folder) as record:
        return record.agents


def past_bank(folder: Path, tick: int | None) -> MemoryBank:
    """A copy of a run's bank as it was after a tick, or as it is now."""
    with RunRecord.read(folder) as record:
        return record.bank(tick)
