"""A run or a bank that is looked at: what it is, its ticks, and its past."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from ...bank.history import journal_of
from ...config.settings import LlmSettings, Settings
from ...errors import BankDamaged, TierMemError
from ...memory.records import id_prefix, sequence_of
from ...memory.tiers import TEMPERATURE_NAMES, TIER_NAMES, Temperature, Tier
from ...simulation.kept_ticks import KeptTick, KeptTicks
from ...simulation.policies.cassette import Cassette, Exchange, read_from
from ...simulation.policies.costs import Call, calls_of
from ...simulation.protocols import Persona
from ...simulation.reports.networks import MOST, drawn
from ...simulation.runs.folder import places_of_code
from ...simulation.runs.interviews import interview_cassettes
from ...simulation.runs.personas import personas_of
from ...simulation.runs.placement import reading
from ...simulation.runs.study import society_after
from ...simulation.workers.cells import CASSETTE
from ...simulation.worlds.outside import agents_in, agents_of, is_outside
from ...storage.interrupts import first
from ...storage.journal.journal import Journal
from ...telling.groups import is_board
from .parameters import CantTell, NotThere, Parameters, Reading
from .past import PastBanks
from .slices import AGAIN, MATTER, Progress, Sorted
from .sorting import WorldNumbers

COUNTED = ("retrievals", "actions", "refusals")
"""Numbers of an agent that count what happened in a tick."""
_AGAIN = 0.02
"""Seconds after which an export looks again how far the reading is."""
_PIECE = 8 * 2**20
"""Bytes of a cassette that are read at once."""


class Recorded:
    """The calls in a cassette that may grow; what was read of it is not read again."""

    def __init__(self, path: Path, settings: LlmSettings) -> None:
        self._path = path
        self._settings = settings
        self._end = 0
        self._known: dict[object, tuple[bool, Call]] = {}

    def calls(self) -> list[Call]:
        """All of them; an answer counts before a line that says that there was none."""
        size = self._path.stat().st_size
        if size < self._end:  # it was made anew
            self._end, self._known = 0, {}
        while self._end < size:
            exchanges, end = read_from(self._path, self._end, self._end + _PIECE)
            if end == self._end:  # a line that is being written
                break
            for exchange in exchanges:
                if not self._known.get(exchange.key, (False,))[0]:
                    (call,) = calls_of([exchange], self._settings)
                    self._known[exchange.key] = exchange.reply is not None, call
            self._end = end
        return [call for _, call in self._known.values()]


class Inspected:
    """A run, or a bank that no run made. It is read, never written, and may go on meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_run = (folder / "run.json").exists()
        self.settings: Settings | None = None
        if self.is_run:
            self.settings, self.made = reading(folder)
        self.bank_folder = folder / "bank" if self.is_run else folder
        self._path = journal_of(self.bank_folder)
        with self.journal() as journal:
            identity = journal.get("bank")
            self._own: list[str] = []
            if self.settings is not None:
                self._own = agents_of(journal, self.settings)
        if identity is None:
            raise CantTell(
                f"the journal in {self.bank_folder} is empty: no bank was made there",
                hint="name another folder",
            )
        self.seed: int = identity["seed"]
        self._is_outside = self.settings is not None and is_outside(self.settings)
        world = self.settings and WorldNumbers.of_run(folder, self.settings)
        self._world_names = world.names() if world else []
        self._society: tuple[int, dict[str, Any] | None] | None = None
        """The tick of the last one that was asked for, and the society."""
        self._records: list[dict[str, Any]] = []
        self._cassette: tuple[float, Cassette] | None = None
        self._calls: dict[Path, Recorded] = {}
        self._prefixes: dict[str, str] = {}
        self._held: tuple[int, int] | None = None
        """The first and the last tick, while the view stands still."""
        self._errors: dict[int, dict[str, list[str]]] = {}
        self._dims: int = identity["embedder"]["dims"]
        self.reading = Sorted(self._dims)
        self.slices = self.reading.slices
        self.past = PastBanks(self.slices, self.bank_folder, self.settings)

    def persona(self, agent: str) -> str:
        """Who an agent is; empty if the run does not say."""
        return who.shown() if (who := self._personas.get(agent)) else ""

    @cached_property
    def _personas(self) -> Mapping[str, Persona]:
        if self.settings is None:
            return {}
        with suppress(TierMemError):  # the table may be gone
            return personas_of(self.settings, *places_of_code(self.folder, self.made))
        return {}

    def society(self, tick: int) -> dict[str, Any] | None:
        """Who could hear whom after a tick: agents, their places in a picture, ties by number.

        None if the run does not say, or has too many agents for a picture.
        """
        if self.settings is None or self._is_outside:
            return None
        if self._society is None or self._society[0] != tick:
            self._society = tick, None
            with suppress(TierMemError):  # its file, or the world's code, may be gone
                society = society_after(self.folder, tick)
                if society is not None and len(society.agents) <= MOST:
                    self._society = tick, drawn(society)
        return self._society[1]

    def hold(self) -> None:
        """Read all that is whole, and stand still: what the run does from now on is not shown."""
        first = self.first_tick()
        while self._held is None:
            try:
                self._held = first, self.need_whole()
            except Reading:
                time.sleep(_AGAIN)

    def start(self) -> None:
        """Begin to read the journal."""
        self.reading.start(
            journal=str(self._path.absolute()),
            run=str(self.folder.absolute()) if self.is_run else None,
            seed=self.seed,
            dims=self._dims,
            agents=self._own,
        )

    def close(self) -> None:
        """Stop reading, and close what is open."""
        self.past.close()
        self.reading.close()

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        """The journal as it is now."""
        journal = Journal(None, seen=self._path)
        try:
            with journal.reading():
                yield journal
        finally:
            journal.leave()

    # What there is

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    @property
    def agents(self) -> list[str]:
        """The agents of the run, or those that the bank has had so far; without boards."""
        if self._own and not self._is_outside:
            return self._own
        known = self._known(is_of_board=False)
        return [*known, *(name for name in self._own if self.slices.place(name) < 0)]

    @property
    def boards(self) -> list[str]:
        """The boards of groups, as far as the journal is read."""
        return self._known(is_of_board=True)

    def _known(self, *, is_of_board: bool) -> list[str]:
        return [name for name in self.slices.agents() if is_board(name) == is_of_board]

    def deciders(self, kept: KeptTick) -> list[str]:
        """The agents of the run in a tick, in the order of its decisions."""
        return agents_in(kept) if self._is_outside else self._own

    def agent(self, given: Parameters) -> str:
        """The agent that a request names."""
        name = given.text("agent")
        if name in self._own or self.slices.place(name) >= 0:
            return name
        if not self._own:
            self.need(self.last_tick())
            if self.slices.place(name) >= 0:
                return name
        raise NotThere(
            f"{self.name} has no agent {name!r:.60}", hint="the page lists them (api/about)"
        )

    def tick(self, given: Parameters) -> int:
        """The tick that a request names; the last one if it names none."""
        last = self.last_tick()
        tick = given.whole("tick", last)
        if not self.first_tick() <= tick <= last:
            raise NotThere(
                f"{self.name} has no tick {tick}",
                hint=f"it has ticks {self.first_tick()} to {last}",
            )
        return tick

    def owner(self, identifier: str) -> tuple[str, int]:
        """The agent, or the board, and the number of the memory with this id."""
        for agent in (*self.agents, *self.boards):
            prefix = self.prefix(agent)
            if (number := sequence_of(prefix, identifier)) is not None:
                return agent, number
        raise NotThere(
            f"{self.name} has no memory {identifier!r:.80}",
            hint="the ids of another run are others",
        )

    def prefix(self, agent: str) -> str:
        """The first part of the ids of an agent's memories."""
        found = self._prefixes.get(agent)
        if found is None:
            found = self._prefixes[agent] = id_prefix(self.seed, agent)
        return found

    def need(self, tick: int) -> None:
        """:class:`Reading` says that a tick is not read so far."""
        if self._held is not None:
            return
        ended, progress = self.reading.ended(), self.slices.progress()
        if self._is_read(tick, progress):
            return
        if progress.damaged is not None:
            raise CantTell(f"{self.name} is damaged: {progress.damaged}", hint=BankDamaged.hint)
        if ended is not None:
            raise CantTell(f"{self.name} is read up to tick {progress.tick}: {ended}", hint=AGAIN)
        raise Reading(max(0, progress.tick), max(tick, self.last_tick()))

    def need_whole(self) -> int:
        """The last tick of all that is whole; :class:`Reading` says that it is not read so far.

        :class:`CantTell` says that the journal is damaged from its beginning on.
        """
        last = self.last_tick()
        try:
            self.need(last)
        except CantTell:
            begins, progress = self.first_tick(), self.slices.progress()
            whole = progress.tick
            if whole >= begins and not self._is_read(whole, progress):
                whole -= 1  # the damage is in the midst of this tick
            if whole < begins:
                raise
            return whole
        return last

    @property
    def damaged(self) -> str | None:
        """What is wrong with the journal, as far as it is read; None while nothing is."""
        lost = self.slices.lost()
        more = f" ({len(lost)} ticks are like that)" if len(lost) > 1 else ""
        why = self.slices.progress().damaged or next((own + more for own in lost.values()), None)
        return why or self.reading.ended()

    def _is_read(self, tick: int, progress: Progress) -> bool:
        """Whether all commits up to a tick are in the slices, and are still in the journal."""
        number, digest = progress.number, progress.hash
        with self.journal() as journal:
            if number > journal.head or journal.hash_of(number) not in (digest, None):
                return False
            return number >= (journal.head if tick >= journal.tick else journal.commit_of(tick))

    def last_tick(self) -> int:
        """The last tick so far."""
        if self._held is not None:
            return self._held[1]
        with self.journal() as journal:
            return journal.tick

    def first_tick(self) -> int:
        """The tick before which nothing is known."""
        if self._held is not None:
            return self._held[0]
        with self.journal() as journal:
            return journal.base_tick

    def about(self) -> dict[str, Any]:
        """What the page shows of it first."""
        if not self.is_run:
            with suppress(CantTell):  # it is told below
                self.need_whole()  # its agents are known when it is read
        damaged, last, head, begins, has_decisions = self.damaged, 0, 0, 0, False
        metrics: Sequence[str] = ()
        try:
            with self.journal() as journal:
                last, head, begins = journal.tick, journal.head, journal.base_tick
                has_decisions = self.is_run and (
                    bool(self.slices.progress().has_decisions) or _has_decisions(journal)
                )
                kept = KeptTicks(journal).last_tick()
                if self._is_outside and self.settings is not None:
                    self._own = agents_of(journal, self.settings)
                metrics = [] if kept is None else [*orjson.loads(kept.record)["metrics"]]
        except TierMemError as error:
            damaged = error.why
        if self._held is not None and last > self._held[1]:
            last = self._held[1]
        names = [*self._world_names, "memories", MATTER]
        if self.is_run:
            names += COUNTED if has_decisions else COUNTED[:1]
        return {
            "name": self.name,
            "agents": self.agents,
            "boards": self.boards,
            "first_tick": begins,
            "last_tick": last,
            "head": head,
            "is_finished": self.is_finished(last),
            "metrics": metrics,
            "per_agent": names,
            "has_decisions": has_decisions,
            "has_calls": self.is_run and next(self._recordings(), None) is not None,
            "damaged": damaged,
        }

    def is_finished(self, last: int) -> bool:
        """Whether a run has all the ticks that it was to have; a bank may always go on."""
        return self.settings is not None and last >= self.settings.simulation.ticks

    def follow(self) -> dict[str, Any]:
        """How far it is."""
        with self.journal() as journal:
            last, head = journal.tick, journal.head
        return {
            "last_tick": last,
            "head": head,
            "is_finished": self.is_finished(last),
            "read_tick": self.slices.progress().tick,
        }

    # The records of ticks

    def records(self) -> list[dict[str, Any]]:
        """The record of each tick of a run so far; it must not be changed."""
        with self.journal() as journal:
            known, ticks = self._records, KeptTicks(journal)
            if known:
                last = ticks.tick(known[-1]["tick"])
                if last is None or orjson.loads(last.record) != known[-1]:
                    self._records = known = []  # the run went back to an earlier tick
            new = ticks.ticks(known[-1]["tick"] if known else -1)
            with suppress(*([BankDamaged] if self.damaged else [])):  # the rest is whole
                known += (orjson.loads(kept.record) for kept in new)
        if self._held is None:
            return known[:]
        return [record for record in known if record["tick"] <= self._held[1]]

    def series(self) -> dict[str, Any]:
        """Metrics, tiers and temperatures, tick by tick."""
        if not self.is_run:
            self.need_whole()
        records = self.records() if self.is_run else self._counted()
        names = dict.fromkeys(name for each in records for name in each["metrics"])
        return {
            "ticks": [each["tick"] for each in records],
            "metrics": {n: [each["metrics"].get(n) for each in records] for n in names},
            "tiers": {n: [each.get(n) for each in records] for n in TIER_NAMES.values()},
            "temperatures": {n: [e.get(n) for e in records] for n in TEMPERATURE_NAMES.values()},
        }

    def _counted(self) -> list[dict[str, Any]]:
        """The records of a bank without a run: how many memories each tier and temperature has."""
        rows = self.slices.ask("SELECT data FROM records ORDER BY tick")
        return [_counts(orjson.loads(data)) for (data,) in rows]

    def errors(self, agent: str, tick: int) -> tuple[str, ...]:
        """What an agent was told of its actions in a tick of a run."""
        found = self._errors.get(tick)
        if found is None:
            with self.journal() as journal:
                kept = KeptTicks(journal).tick(tick)
                if kept is None or not kept.has_state:
                    return ()
                found = kept.state()["errors"]
            if self._held is not None:
                self._errors[tick] = found
        return tuple(found.get(agent, ()))

    def exchanges(self, agent: str, tick: int) -> tuple[Exchange, ...]:
        """What a language model was asked for an agent in a tick, from the run's cassette."""
        path = self.folder / CASSETTE
        if not path.is_file():
            return ()
        changed = path.stat().st_mtime
        if self._cassette is None or self._cassette[0] != changed:
            self._cassette = changed, Cassette(path, replay=True)
        return tuple(self._cassette[1].of(tick, agent))

    def calls(self) -> list[Call]:
        """The calls of a language model, in the run and in its interviews, up to the last tick."""
        if self.settings is None:
            return []
        last, found = self.last_tick(), []
        for path in self._recordings():
            recorded = self._calls.setdefault(path, Recorded(path, self.settings.llm))
            found += [call for call in recorded.calls() if call.tick <= last]
        return found

    def _recordings(self) -> Iterator[Path]:
        """The cassettes of the run and of its interviews."""
        own = self.folder / CASSETTE
        if own.is_file():
            yield own
        yield from interview_cassettes(self.folder)


def _has_decisions(journal: Journal) -> bool:
    """Whether decisions were kept, be they damaged."""
    try:
        return first(KeptTicks(journal).logs()) is not None
    except BankDamaged:
        return True


def _counts(record: dict[str, Any]) -> dict[str, Any]:
    """A record of a bank without a run: how many memories each tier and temperature has."""
    result: dict[str, Any] = {"tick": record["tick"], "metrics": {}}
    result |= dict.fromkeys([*TIER_NAMES.values(), *TEMPERATURE_NAMES.values()], 0)
    for tier, temperature, count in record["states"]:
        result[TIER_NAMES[Tier(tier)]] += count
        result[TEMPERATURE_NAMES[Temperature(temperature)]] += count
    return result
