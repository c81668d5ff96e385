"""A thread that reads a journal, in the order of its commits, and sorts it into slices."""

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import orjson
from numpy.typing import NDArray

from ...config.settings import Settings
from ...errors import BankDamaged, TierMemError
from ...memory.tiers import Retention, Temperature, Tier
from ...simulation.protocols import World
from ...simulation.runs.folder import places_of_code, read_folder
from ...simulation.runs.outputs import by_agent_of
from ...simulation.runs.scenario import make_world, set_up
from ...simulation.runs.study import earlier_memories
from ...simulation.runs.trust import is_trusted_run
from ...simulation.tick.decision_log import REFUSAL, LoggedDecision, unpack
from ...simulation.worlds import WORLDS
from ...storage.interrupts import first
from ...storage.journal.file import Commit
from ...storage.journal.journal import Journal
from ...storage.journal.ticks import TickRow
from ...telling.groups import is_board
from .deeds import Deeds
from .slices import Beliefs, Item, NewRow, Slices, batched

logger = logging.getLogger(__name__)

_PAUSE = 0.5
"""Seconds between two looks for new commits."""
_BATCH = 100
"""Commits that are read at one time: a long look would keep the run from folding its log."""
_MOST_AT_ONCE = 200
"""Agents whose part of a commit is sorted without a pause."""


class WorldNumbers:
    """Gives a world its state after a tick, and asks it for its numbers."""

    def __init__(self, world: World, agents: list[str]) -> None:
        self._world = world
        self._agents = agents

    @classmethod
    def of_run(cls, folder: Path, settings: Settings) -> Self | None:
        """The numbers of a run's world.

        None if the world has none, or is somebody else's code that is not trusted.
        """
        name = settings.simulation.world or ""
        if name not in WORLDS and not is_trusted_run(folder):
            return None
        with contextlib.suppress(TierMemError):
            world = make_world(settings, *places_of_code(folder, read_folder(folder)[1]))
            if callable(getattr(world, "by_agent", None)):
                set_up(world, settings)
                return cls(world, settings.simulation.agent_ids())
        return None

    def names(self) -> list[str]:
        """The names of the numbers, as the world has them at the start."""
        with contextlib.suppress(Exception):  # a user's own world may raise anything
            return list(by_agent_of(self._world))
        return []

    def of(self, row: TickRow) -> dict[str, NDArray[np.float64]]:
        """The numbers after a tick, in the order of the agents; nothing if they can't be had."""
        if row.packed_state is None:
            return {}
        with contextlib.suppress(Exception):  # a user's own world may raise anything
            self._world.set_state(row.state()["world"])
            found = by_agent_of(self._world)
            return {
                name: np.array([own.get(agent, np.nan) for agent in self._agents], np.float64)
                for name, own in found.items()
            }
        return {}


class Reader:
    """Reads the journal of a bank into slices, and goes on while the journal grows.

    ``agents`` are the agents of the bank's run, if it has one: they keep their places. More may
    come with any tick of a run whose ticks a program makes: it ``is_outside``.
    """

    def __init__(
        self,
        path: Path,
        seed: int,
        agents: Sequence[str],
        world: WorldNumbers | None,
        *,
        is_outside: bool = False,
    ) -> None:
        self.path = path
        self.slices = Slices()
        self.beliefs: Beliefs
        """What the agents hold, and who told it to whom."""
        self.deeds: Deeds
        """What the agents asked and did, by its words."""
        self._seed = seed
        self.records: list[dict[str, Any]] = []
        """For a bank without a run: how many memories are where, tick by tick."""
        self.read_tick = -1
        """How far the reading is."""
        self.damaged: str | None = None
        """What is wrong with the journal; None while nothing is."""
        self.lost: dict[int, str] = {}
        """By tick, why what was kept of its decisions can't be read: all else of it is whole."""
        self.has_decisions = False
        self.agents = list(agents)
        """The agents of the run, in the order of its decisions."""
        self._is_outside = is_outside
        self._world = world
        self._last = (0, bytes(32))
        self._current: dict[int, float] = {}
        self._ended = threading.Event()
        self._moved = threading.Condition()
        self._begin()
        self._thread = threading.Thread(target=self._follow, name="inspector", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread and delete the slices."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        self.slices.close()

    def wait_for(self, is_read: Callable[["Reader"], bool], seconds: float) -> bool:
        """Wait until enough is read, or no more can be; whether enough is."""
        with self.slices.turns.waiting(), self._moved:
            self._moved.wait_for(lambda: is_read(self) or self.damaged is not None, seconds)
        return is_read(self)

    @property
    def last(self) -> tuple[int, bytes]:
        """The last commit that is read, and its hash."""
        return self._last

    def _begin(self) -> None:
        for agent in self.agents:
            self.slices.place(agent)
        self._last = (0, bytes(32))
        self.read_tick = -1
        self._tick, self._is_whole = 0, True
        self._current = {}
        self.lost.clear()
        self.records.clear()
        self.beliefs = Beliefs(self._seed, self.agents)
        self.deeds = Deeds(self.slices)

    def _follow(self) -> None:
        while not self._ended.is_set():
            more = False
            try:
                more = self._read_some()
                self.damaged = None
            except TierMemError as error:
                self.damaged = error.why
            except Exception as error:  # a view must not hang for a fault of this thread
                logger.exception("the journal %s can't be sorted", self.path)
                self.damaged = f"it can't be sorted: {error!r:.200}"
            with self._moved:
                self._moved.notify_all()
            if not more:
                self._ended.wait(_PAUSE)

    def _read_some(self) -> bool:
        """Read the next commits; whether there are more."""
        journal = Journal(None, seen=self.path)
        try:
            with journal.reading():
                if self._last[0] > journal.base and journal.hash_of(self._last[0]) != self._last[1]:
                    self._last = (0, bytes(32))  # the run went back to an earlier tick
                    self.slices.clear()
                    self._begin()
                if not self.slices.dims:
                    self.slices.dims = journal.get("bank")["embedder"]["dims"]
                if self._last[0] < journal.base:
                    earlier = earlier_memories(self.path.parent, journal)
                    self.beliefs.before(earlier, is_whole=False)
                    self._last = (journal.base, journal.hash_of(journal.base) or bytes(32))
                    self._tick, self._is_whole = journal.base_tick, False
                for commit in islice(journal.commits(self._last[0]), _BATCH):
                    self._take(journal, commit)
                    if self._ended.is_set():
                        break
                return self._last[0] < journal.head
        finally:
            journal.leave()

    def _take(self, journal: Journal, commit: Commit) -> None:
        self.slices.turns.after_requests()
        row = first(journal.tick_rows(commit.tick - 1)) if commit.note else None
        if row is not None and self._is_outside:
            self._welcome(agents_in(row))
        kept = self._kept(journal, commit.tick, row)
        events: dict[int, list[list[Any]]] = {}
        vectors: dict[int, list[bytes]] = {}
        at, dims = 0, self.slices.dims
        known: dict[int, int] = {}
        new: list[NewRow] = []
        changes: list[tuple[int, int, list[Any]]] = []
        everything = orjson.loads(commit.events)
        for event in everything:
            if event[0] == "tick":
                self._tick = event[1]
                continue
            agent = self.slices.place(event[1])
            own = events.setdefault(agent, [])
            if known.get(agent) != self._tick:
                known[agent] = self._tick
                own.append(["tick", self._tick])
            own.append(event)
            if event[0] == "add":
                vectors.setdefault(agent, []).append(commit.vectors[at : at + dims])
                at += dims
                new.append(self._new(agent, event))
            elif event[0] in ("tier", "move", "retain", "purge"):
                changes.append((len(new), agent, event))
        self._change(new, changes)
        self.beliefs.take(everything, commit.tick)
        logs = dict(zip(map(self.slices.place, self.agents), kept or (), strict=False))
        for agents in batched(list(events.keys() | logs.keys()), _MOST_AT_ONCE):
            self.slices.turns.after_requests()
            for agent in agents:
                log = logs.get(agent)
                item = Item(commit.id, commit.tick, events.get(agent, []), log and list(log))
                self.slices.put(agent, item, b"".join(vectors.get(agent, ())))
        self.deeds.take(commit.tick, logs)
        self._count(commit.tick, row, kept)
        self.slices.end_commit()
        self._last = (commit.id, commit.hash)
        self.read_tick = commit.tick

    def _welcome(self, agents: Sequence[str]) -> None:
        """Agents that came to the run get places."""
        if len(agents) > len(self.agents):
            self.agents = list(agents)
            for agent in agents:
                self.slices.place(agent)

    def _kept(
        self, journal: Journal, tick: int, row: TickRow | None
    ) -> list[LoggedDecision] | None:
        """What the decision log has of each agent of the run in this tick.

        Without the run nobody knows whose decisions they are: they are left alone.
        """
        if row is None or not (self.agents or self._is_outside):
            return None
        try:
            found = first(journal.decisions(tick - 1))
            if found is None or found[0] != tick:
                return None
            self.has_decisions = True
            return unpack(found[1], row.retrieved, self.agents)
        except (BankDamaged, ValueError, LookupError, TypeError, RecursionError) as error:
            why = f"the decisions of tick {tick} can't be read: {error}"
            self.lost[tick] = error.why if isinstance(error, BankDamaged) else why
            return None

    # Memories

    def _new(self, agent: int, event: list[Any]) -> NewRow:
        _, _, sequence, tier, text, _, start = event
        temperature, kind, _, expires = start or (int(Temperature.WARM), "fact", (), None)
        if tier == Tier.PINNED:
            temperature = int(Temperature.HOT)
        return NewRow(agent, sequence, self._tick, tier, temperature, expires, kind, text)

    def _change(self, new: list[NewRow], changes: list[tuple[int, int, list[Any]]]) -> None:
        """Write new memories and what became of memories, in the order of the events."""
        done = 0
        for row in new:
            self._add(row.agent, 1)
        for place, agent, event in changes:
            if place > done:
                self.slices.add_rows(new[done:place])
                done = place
            with self.slices.writing() as db:
                self._changed(db, agent, event)
        if done < len(new):
            self.slices.add_rows(new[done:])

    def _changed(self, db: Any, agent: int, event: list[Any]) -> None:
        kind, _, which, *rest = event
        numbers = [which] if kind == "tier" else which
        if kind == "tier":
            pinned = int(Tier.PINNED)
            hot, warm = int(Temperature.HOT), int(Temperature.WARM)
            back = db.execute(
                "UPDATE memories SET temperature = CASE WHEN ? = ? THEN ? WHEN tier = ? THEN ? "
                "ELSE temperature END, tier = ? WHERE agent = ? AND sequence = ?",
                (rest[0], pinned, hot, pinned, warm, rest[0], agent, which),
            )
            if rest[0] == pinned:
                back = _marked(db, agent, numbers, None)
                self._add(agent, back)
        elif kind == "move":
            db.executemany(
                "UPDATE memories SET temperature = ? WHERE agent = ? AND sequence = ?",
                [(rest[0], agent, number) for number in numbers],
            )
        elif kind == "retain" and rest[0] == Retention.ACTIVE:
            self._add(agent, _marked(db, agent, numbers, None))
        else:
            self._add(agent, -_marked(db, agent, numbers, self._tick))
        if kind == "purge":
            self.slices.purged.setdefault(agent, set()).update(numbers)
            _forget_texts(db, agent, numbers)

    def _add(self, agent: int, number: int) -> None:
        self._current[agent] = self._current.get(agent, 0) + number

    # Numbers of each agent

    def _count(self, tick: int, row: TickRow | None, kept: list[LoggedDecision] | None) -> None:
        """Keep the numbers of a tick that has a record; of a bank without a run, of any tick."""
        count = len(self.slices.agents)
        numbers = {"memories": _column(self._current, count)} if self._is_whole else {}
        if self.agents:
            if row is None:
                return
            logged = len(self.agents) if kept is None else len(kept)
            sizes = np.frombuffer(row.retrieved, "<u4")[:logged]
            if len(sizes) == logged:
                numbers["retrievals"] = self._by_place(sizes.tolist())
            if kept is not None:
                refused = [sum(each[2] == REFUSAL for each in own.did) for own in kept]
                numbers["actions"] = self._by_place([len(own.did) for own in kept])
                numbers["refusals"] = self._by_place(refused)
            if self._world is not None:
                numbers |= self._world.of(row)
        else:
            self._count_bank(tick)
        self.slices.add_numbers(tick, numbers)

    def _by_place(self, values: Sequence[int]) -> NDArray[np.float64]:
        """The numbers of the first agents of the run; agents who came later have none."""
        column = np.full(len(self.slices.agents), np.nan)
        column[[self.slices.place(agent) for agent in self.agents[: len(values)]]] = values
        return column

    def _count_bank(self, tick: int) -> None:
        """A record of a tick of a bank that no run made: how many memories agents have where."""
        boards = [place for place, name in enumerate(self.slices.agents) if is_board(name)]
        found = self.slices.ask(
            "SELECT tier, temperature, count(*) FROM memories WHERE gone IS NULL AND "
            "(expires IS NULL OR expires > ? OR tier = 0) AND "
            "agent NOT IN (SELECT value FROM json_each(?)) GROUP BY tier, temperature",
            (tick, orjson.dumps(boards).decode()),
        )
        record = {"tick": tick, "states": found, "metrics": {}}
        if self.records and self.records[-1]["tick"] == tick:
            self.records[-1] = record
        else:
            self.records.append(record)


def _marked(db: Any, agent: int, numbers: Sequence[int], tick: int | None) -> int:
    """Mark memories as gone since a tick, or as back; how many changed."""
    if tick is None:
        sql = "UPDATE memories SET gone = NULL WHERE agent = ? AND sequence = ? AND gone NOT NULL"
        rows: list[tuple[int, ...]] = [(agent, number) for number in numbers]
    else:
        sql = "UPDATE memories SET gone = ? WHERE agent = ? AND sequence = ? AND gone IS NULL"
        rows = [(tick, agent, number) for number in numbers]
    return int(db.executemany(sql, rows).rowcount)


def _forget_texts(db: Any, agent: int, numbers: Sequence[int]) -> None:
    for number in numbers:
        row = db.execute(
            "SELECT id, text FROM memories WHERE agent = ? AND sequence = ?", (agent, number)
        ).fetchone()
        if row and row[1] is not None:
            db.execute("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", row)
            db.execute("UPDATE memories SET text = NULL WHERE id = ?", row[:1])


def _column(values: dict[int, float], count: int) -> NDArray[np.float64]:
    return np.array([values.get(place, 0) for place in range(count)], np.float64)


def agents_in(row: TickRow) -> list[str]:
    """The agents that a program's run had in a tick."""
    if row.packed_state is None:
        return []
    agents: list[str] = row.state()["world"]["agents"]
    return agents
