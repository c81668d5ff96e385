"""The process that reads a journal, in the order of its commits, and sorts it into slices.

It takes as long as it takes, beside the requests. What it has read is written in one transaction
about twice a second, with how far it is. It ends when the process ends that started it.
"""

import contextlib
import logging
import shutil
import signal
import sqlite3
import sys
import time
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from importlib import import_module
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self, overload

import numpy as np
import orjson
from numpy.typing import NDArray

from ...config.settings import Settings
from ...errors import BankDamaged, TierMemError
from ...memory.tiers import Retention, Temperature, Tier
from ...simulation.analysis.columns import Collection, Columns, Earlier
from ...simulation.kept_ticks import KeptTick, KeptTicks
from ...simulation.protocols import World
from ...simulation.runs.folder import places_of_code, read_folder
from ...simulation.runs.outputs import by_agent_of
from ...simulation.runs.scenario import make_world, set_up
from ...simulation.runs.study import earlier_memories
from ...simulation.runs.trust import is_trusted_run
from ...simulation.tick.decision_log import REFUSAL, LoggedDecision, unpack
from ...simulation.worlds import WORLDS
from ...simulation.worlds.outside import agents_in, is_outside
from ...storage.journal.journal import Journal
from ...storage.journal.tables import Commit
from ...telling.groups import is_board
from .population import population
from .slices import MATTER, WHATS, Progress, Slices, deeds_of

logger = logging.getLogger(__name__)

_PAUSE = 0.5
"""Seconds between two looks for new commits, and between two transactions."""
_BATCH = 100
"""Commits that are read at one time: a long look would keep the run from folding its log."""
_MOST_WAITING = 16 << 20
"""Bytes that wait in memory before they are written."""
_MOST_KNOWN = 10_000
_MOST_LETTERS = 200
"""Texts of deeds, and letters of such a text, whose numbers stay in memory."""
_PLACES = {what: place for place, what in enumerate(WHATS)}
_TABLES = ("blocks", "memories", "numbers", "records", "lost", "deed_texts", "deeds", "on_boards")
_INDEXES = ("words", "deed_words")


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
            places = places_of_code(folder, read_folder(folder)[1])
            world = make_world(settings, *places)
            if callable(getattr(world, "by_agent", None)):
                set_up(world, settings, *places)
                return cls(world, settings.simulation.agent_ids())
        return None

    def names(self) -> list[str]:
        """The names of the numbers, as the world has them at the start."""
        with contextlib.suppress(Exception):  # a user's own world may raise anything
            return list(by_agent_of(self._world))
        return []

    def of(self, kept: KeptTick) -> dict[str, NDArray[np.float64]]:
        """The numbers after a tick, in the order of the agents; nothing if they can't be had."""
        if not kept.has_state:
            return {}
        with contextlib.suppress(Exception):  # a user's own world may raise anything
            self._world.set_state(kept.state()["world"])
            numbers = by_agent_of(self._world)
            return {
                name: np.array([own.get(agent, np.nan) for agent in self._agents], np.float64)
                for name, own in numbers.items()
            }
        return {}


class Sorter:
    """Reads the journal of a bank into slices, and goes on while the journal grows.

    ``agents`` are the agents of the bank's run, if it has one: they keep their places. More may
    come with any tick of a run whose ticks a program makes. ``run`` is the folder of the run, and
    None for a bank without one.
    """

    def __init__(
        self, file: str, journal: str, run: str | None, seed: int, dims: int, agents: Sequence[str]
    ) -> None:
        self._path = Path(journal)
        self._seed = seed
        self._dims = dims
        self._agents = list(agents)
        """The agents of the run, in the order of its decisions."""
        self._is_outside = False
        self._world: WorldNumbers | None = None
        if run is not None:
            settings, _ = read_folder(Path(run))
            self._is_outside = is_outside(settings)
            self._world = WorldNumbers.of_run(Path(run), settings)
        self._db = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute("PRAGMA cache_size = -32000")
        self._slices = Slices(Path(file), dims)
        """For the texts of a study."""
        self._places: dict[str, int] = {}
        self._names: list[str] = []
        self._boards: list[int] = []
        """The places of boards: they have no numbers of agents."""
        self._generation = 0
        self._begin()

    def _begin(self) -> None:
        """Nothing is read yet."""
        self._progress = Progress(self._generation)
        self._tick, self._is_whole = 0, True
        self._waiting: dict[int, list[tuple[int, int, bytes, bytes]]] = {}
        self._size = 0
        self._current: dict[int, float] = {}
        """How many memories each agent has now."""
        self._matter: dict[int, float] = {}
        """How many of these are pinned or critical."""
        self._known_deeds: dict[str, int] = {}
        self._beliefs = Beliefs(self._seed, self._agents)

    def study(self, tick: int, agents: Sequence[str]) -> dict[str, Any]:
        """What there is of the population up to a tick, as far as it is read."""
        return population(self._beliefs.up_to(tick, self._slices), agents)

    def read(self, is_asked: Callable[[], bool]) -> bool:
        """Read for a while, or until a study ``is_asked`` for, and write; whether there is more."""
        self._db.execute("BEGIN")
        more, damaged = False, None
        try:
            more = self._read_some(is_asked)
        except TierMemError as error:
            damaged = error.why
        self._write_blocks()
        self._progress = self._progress._replace(damaged=damaged)
        self._tell(self._progress)
        self._db.execute("COMMIT")
        return more

    def give_up(self, fault: Exception) -> None:
        """Say that no more will be read: what is sorted stays."""
        self._db.execute("ROLLBACK")
        why = f"it can't be sorted: {fault!r:.200}"
        self._tell(self._slices.progress()._replace(damaged=why))

    def _tell(self, progress: Progress) -> None:
        self._db.execute("DELETE FROM progress")
        self._db.execute("INSERT INTO progress VALUES (?, ?, ?, ?, ?, ?, ?)", progress)

    def _read_some(self, is_asked: Callable[[], bool]) -> bool:
        """Read the next commits; whether there are more."""
        until = time.monotonic() + _PAUSE
        journal = Journal(None, seen=self._path)
        try:
            with journal.reading():
                number, digest = self._progress.number, self._progress.hash
                if number > journal.base and journal.hash_of(number) != digest:
                    self._forget()  # the run went back to an earlier tick
                if self._progress.number < journal.base:
                    earlier = earlier_memories(self._path.parent, journal)
                    self._beliefs.before(earlier, is_whole=False)
                    begin = journal.hash_of(journal.base) or bytes(32)
                    self._progress = self._progress._replace(number=journal.base, hash=begin)
                    self._tick, self._is_whole = journal.base_tick, False
                for agent in self._agents:
                    self._place(agent)
                for commit in islice(journal.commits(self._progress.number), _BATCH):
                    self._take(journal, commit)
                    if self._size > _MOST_WAITING or time.monotonic() > until or is_asked():
                        break
                return self._progress.number < journal.head
        finally:
            journal.leave()

    def _forget(self) -> None:
        """Forget all that was sorted, but for the places of agents."""
        for table in _TABLES:
            self._db.execute(f"DELETE FROM {table}")  # noqa: S608
        for index in _INDEXES:
            self._db.execute(f"INSERT INTO {index} ({index}) VALUES ('delete-all')")  # noqa: S608
        self._generation += 1
        self._begin()

    def _take(self, journal: Journal, commit: Commit) -> None:
        tick = KeptTicks(journal).tick(commit.tick) if commit.note else None
        if tick is not None and self._is_outside:
            self._agents = max(self._agents, agents_in(tick), key=len)
        decisions = self._kept(journal, tick)
        events: dict[int, list[list[Any]]] = {}
        vectors: dict[int, list[bytes]] = {}
        at = 0
        known: dict[int, int] = {}
        everything = orjson.loads(commit.events)
        for event in everything:
            if event[0] == "tick":
                self._tick = event[1]
                continue
            agent = self._place(event[1])
            of_agent = events.setdefault(agent, [])
            if known.get(agent) != self._tick:
                known[agent] = self._tick
                of_agent.append(["tick", self._tick])
            of_agent.append(event)
            if event[0] == "add":
                vectors.setdefault(agent, []).append(commit.vectors[at : at + self._dims])
                at += self._dims
                self._add(agent, event)
            elif event[0] in ("tier", "move", "retain", "purge"):
                self._change(agent, event)
        self._beliefs.take(everything, commit.tick)
        logs = dict(zip(map(self._place, self._agents), decisions or (), strict=False))
        for agent in events.keys() | logs.keys():
            log = logs.get(agent)
            fields = commit.id, commit.tick, events.get(agent, []), log and list(log)
            data, packed = orjson.dumps(fields), b"".join(vectors.get(agent, ()))
            self._waiting.setdefault(agent, []).append((commit.id, commit.tick, data, packed))
            self._size += len(data) + len(packed)
        self._note_deeds(commit.tick, logs)
        self._count(commit.tick, tick, decisions)
        self._progress = self._progress._replace(
            number=commit.id, hash=commit.hash, tick=commit.tick
        )

    def _place(self, agent: str) -> int:
        """The place of an agent; a new agent gets the next one."""
        place = self._places.get(agent)
        if place is None:
            place = self._places[agent] = len(self._names)
            self._names.append(agent)
            if is_board(agent):
                self._boards.append(place)
            self._db.execute("INSERT INTO agents VALUES (?, ?)", (place, agent))
        return place

    def _kept(self, journal: Journal, recorded: KeptTick | None) -> list[LoggedDecision] | None:
        """What the decision log has of each agent of the run in a tick.

        Without the run nobody knows whose decisions they are: they are left alone.
        """
        if recorded is None or not (self._agents or self._is_outside):
            return None
        try:
            log = KeptTicks(journal).log(recorded.tick)
            if log is None:
                return None
            self._progress = self._progress._replace(has_decisions=1)
            return unpack(log, recorded.retrieved, self._agents)
        except (BankDamaged, ValueError, LookupError, TypeError, RecursionError) as error:
            why = f"the decisions of tick {recorded.tick} can't be read: {error}"
            if isinstance(error, BankDamaged):
                why = error.why
            self._db.execute("REPLACE INTO lost VALUES (?, ?)", (recorded.tick, why))
            return None

    def _write_blocks(self) -> None:
        self._db.executemany(
            "INSERT INTO blocks VALUES (?, ?, ?, ?, ?)",
            [
                (agent, *items[0][:2], _packed(data for *_, data, _ in items), _joined(items))
                for agent, items in self._waiting.items()
            ],
        )
        self._waiting.clear()
        self._size = 0

    # Memories

    def _add(self, agent: int, event: list[Any]) -> None:
        _, _, sequence, tier, text, _, start = event
        temperature, kind, _, expires = start or (int(Temperature.WARM), "fact", (), None)
        if tier == Tier.PINNED:
            temperature = int(Temperature.HOT)
        added = self._db.execute(
            "INSERT INTO memories VALUES (NULL, ?, ?, ?, ?, ?, ?, NULL, ?, ?)",
            (agent, sequence, self._tick, tier, temperature, expires, kind, text),
        )
        if text is not None:
            self._db.execute(
                "INSERT INTO words (rowid, text) VALUES (?, ?)", (added.lastrowid, text)
            )
        self._note_held(agent, tier, 1)

    def _change(self, agent: int, event: list[Any]) -> None:
        kind, _, which, *rest = event
        numbers = [which] if kind == "tier" else which
        if kind == "tier":
            for tier in self._tiers(agent, numbers, "IS NULL"):
                self._note_held(agent, tier, -1)
                self._note_held(agent, rest[0], 1)
            pinned = int(Tier.PINNED)
            hot, warm = int(Temperature.HOT), int(Temperature.WARM)
            self._db.execute(
                "UPDATE memories SET temperature = CASE WHEN ? = ? THEN ? WHEN tier = ? THEN ? "
                "ELSE temperature END, tier = ? WHERE agent = ? AND sequence = ?",
                (rest[0], pinned, hot, pinned, warm, rest[0], agent, which),
            )
            if rest[0] == pinned:
                self._mark(agent, numbers, None)
        elif kind == "move":
            self._db.executemany(
                "UPDATE memories SET temperature = ? WHERE agent = ? AND sequence = ?",
                [(rest[0], agent, number) for number in numbers],
            )
        elif kind == "retain" and rest[0] == Retention.ACTIVE:
            self._mark(agent, numbers, None)
        else:
            self._mark(agent, numbers, self._tick)
        if kind == "purge":
            self._purge(agent, numbers)

    def _mark(self, agent: int, numbers: Sequence[int], tick: int | None) -> None:
        """Mark memories as gone since a tick, or as back, and count those that changed."""
        was, sign = ("NOT NULL", 1) if tick is None else ("IS NULL", -1)
        for tier in self._tiers(agent, numbers, was):
            self._note_held(agent, tier, sign)
        self._db.executemany(
            f"UPDATE memories SET gone = ? WHERE agent = ? AND sequence = ? AND gone {was}",  # noqa: S608
            [(tick, agent, number) for number in numbers],
        )

    def _tiers(self, agent: int, numbers: Sequence[int], gone: str) -> list[int]:
        """The tiers of those memories that are gone, or of those that are not."""
        found = self._db.execute(
            f"SELECT tier FROM memories WHERE agent = ? AND gone {gone} "  # noqa: S608
            "AND sequence IN (SELECT value FROM json_each(?))",
            (agent, orjson.dumps(numbers).decode()),
        )
        return [tier for (tier,) in found]

    def _note_held(self, agent: int, tier: int, sign: int) -> None:
        """Count a memory that an agent has from now on, or has no longer."""
        self._current[agent] = self._current.get(agent, 0) + sign
        if tier <= Tier.CRITICAL:
            self._matter[agent] = self._matter.get(agent, 0) + sign

    def _purge(self, agent: int, numbers: Sequence[int]) -> None:
        """Forget the texts of memories that were read before they were purged."""
        purged = set[int]()
        for number in numbers:
            (row,) = self._db.execute(
                "SELECT id, text FROM memories WHERE agent = ? AND sequence = ?", (agent, number)
            ).fetchall() or [(0, None)]
            if row[1] is not None:
                self._db.execute(
                    "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", row
                )
                self._db.execute("UPDATE memories SET text = NULL WHERE id = ?", row[:1])
                purged.add(number)
        if not purged:
            return
        self._progress = self._progress._replace(purges=self._progress.purges + len(purged))
        self._write_blocks()
        for number, data in self._db.execute(
            "SELECT first, items FROM blocks WHERE agent = ?", (agent,)
        ).fetchall():
            items = orjson.loads(zlib.decompress(data))
            adds = [each for item in items for each in item[2] if each[0] == "add"]
            texts = [event for event in adds if event[2] in purged]
            for event in texts:
                event[4:] = [None, None, None]
            if texts:
                self._db.execute(
                    "UPDATE blocks SET items = ? WHERE agent = ? AND first = ?",
                    (_packed(map(orjson.dumps, items)), agent, number),
                )

    # What agents asked and did, and who found which memory of a board

    def _note_deeds(self, tick: int, logs: Mapping[int, LoggedDecision]) -> None:
        """Keep what the agents, by their places, asked and did in a tick."""
        who: dict[str, array[int]] = {}
        for agent, kept in sorted(logs.items()):
            for place, (what, text) in enumerate(deeds_of(kept)):
                who.setdefault(text, array("I")).extend((agent, place * len(WHATS) + _PLACES[what]))
        rows = [(self._deed(text), tick, own.tobytes()) for text, own in who.items()]
        self._db.executemany("INSERT INTO deeds VALUES (?, ?, ?)", rows)
        on_boards = [
            (self._place(board), number, tick, agent)
            for agent, kept in sorted(logs.items())
            for own in kept.boards
            for _, board, number, _ in own or ()
        ]
        self._db.executemany("INSERT OR IGNORE INTO on_boards VALUES (?, ?, ?, ?)", on_boards)

    def _deed(self, text: str) -> int:
        """The number of a text; a new text gets the next one."""
        number = self._known_deeds.get(text)
        if number is not None:
            return number
        row = self._db.execute("SELECT id FROM deed_texts WHERE text = ?", (text,)).fetchone()
        if row is None:
            row = (self._db.execute("INSERT INTO deed_texts VALUES (NULL, ?)", (text,)).lastrowid,)
            self._db.execute("INSERT INTO deed_words (rowid, text) VALUES (?, ?)", (*row, text))
        if len(text) <= _MOST_LETTERS:
            if len(self._known_deeds) >= _MOST_KNOWN:
                self._known_deeds.clear()
            self._known_deeds[text] = row[0]
        return int(row[0])

    # Numbers of each agent

    def _count(self, number: int, tick: KeptTick | None, kept: list[LoggedDecision] | None) -> None:
        """Keep the numbers of a tick that has a record; of a bank without a run, of any tick."""
        numbers: dict[str, NDArray[np.float64]] = {}
        if self._is_whole:
            places = range(len(self._names))
            current = np.array([self._current.get(place, 0) for place in places], np.float64)
            matter = np.array([self._matter.get(place, 0) for place in places], np.float64)
            current[self._boards] = np.nan
            numbers["memories"] = current
            numbers[MATTER] = np.divide(
                matter, current, out=np.full(len(current), np.nan), where=current > 0
            )
        if self._agents:
            if tick is None:
                return
            logged = len(self._agents) if kept is None else len(kept)
            sizes = np.frombuffer(tick.retrieved, "<u4")[:logged]
            if len(sizes) == logged:
                numbers["retrievals"] = self._by_place(sizes.tolist())
            if kept is not None:
                refused = [sum(each[2] == REFUSAL for each in own.did) for own in kept]
                numbers["actions"] = self._by_place([len(own.did) for own in kept])
                numbers["refusals"] = self._by_place(refused)
            if self._world is not None:
                numbers |= self._world.of(tick)
        else:
            self._count_bank(number)
        self._db.executemany(
            "REPLACE INTO numbers VALUES (?, ?, ?, ?, ?)",
            [(name, number, *_ends(own), own.tobytes()) for name, own in numbers.items()],
        )

    def _by_place(self, values: Sequence[int]) -> NDArray[np.float64]:
        """The numbers of the first agents of the run; agents who came later have none."""
        column = np.full(len(self._names), np.nan)
        column[[self._place(agent) for agent in self._agents[: len(values)]]] = values
        return column

    def _count_bank(self, tick: int) -> None:
        """A record of a tick of a bank that no run made: how many memories agents have where."""
        states = self._db.execute(
            "SELECT tier, temperature, count(*) FROM memories WHERE gone IS NULL AND "
            "(expires IS NULL OR expires > ? OR tier = 0) AND "
            "agent NOT IN (SELECT value FROM json_each(?)) GROUP BY tier, temperature",
            (tick, orjson.dumps(self._boards).decode()),
        ).fetchall()
        data = orjson.dumps({"tick": tick, "states": states, "metrics": {}})
        self._db.execute("REPLACE INTO records VALUES (?, ?)", (tick, data))


def _ends(values: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """The least and the largest of the numbers that are known."""
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if len(known) else (None, None)


def _packed(items: Iterable[bytes]) -> bytes:
    return zlib.compress(b"[" + b",".join(items) + b"]", 1)


def _joined(items: Sequence[tuple[int, int, bytes, bytes]]) -> bytes:
    return b"".join([vectors for *_, vectors in items])


# What agents hold, and who told it to whom


class Beliefs(Collection):
    """The events of a journal, without the texts of memories: the slices have them."""

    def __init__(self, seed: int, agents: Sequence[str]) -> None:
        self._words = array("q")
        self._earlier: list[str | None] = []
        """The texts of memories that are older than the journal: the slices lack them."""
        super().__init__(seed, agents)

    def before(self, earlier: Iterable[Earlier], *, is_whole: bool) -> None:
        """Take the memories that are older than the first commit, with their texts."""
        memories = list(earlier)
        self._earlier = [each.text for each in memories]
        super().before(memories, is_whole=is_whole)

    def keep_texts(self, texts: Sequence[str | None]) -> None:
        """Keep a number for each text."""
        self._words.extend(map(_number_of, texts))

    def up_to(self, tick: int, slices: Slices) -> Columns:
        """The columns up to a tick; the slices give the texts that are asked for."""
        columns = self.columns(tick)
        columns.words = np.array(self._words[: len(columns)], np.int64)
        columns.text = _Texts(columns, slices, self._earlier)
        return columns


def _number_of(text: str | None) -> int:
    """A number for a text: equal texts have equal numbers."""
    data = b"" if text is None else text.encode()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)


class _Texts(Sequence[str | None]):
    """The texts of memories, read when they are asked for."""

    def __init__(self, columns: Columns, slices: Slices, earlier: Sequence[str | None]) -> None:
        self._columns = columns
        self._slices = slices
        self._earlier = earlier

    def __len__(self) -> int:
        return len(self._columns)

    @overload
    def __getitem__(self, row: int) -> str | None: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[str | None]: ...
    def __getitem__(self, row: int | slice) -> str | Sequence[str | None] | None:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        if row < len(self._earlier):
            return self._earlier[row]
        columns = self._columns
        place = self._slices.place(columns.agents[int(columns.agent[row])])
        return self._slices.text(place, int(columns.sequence[row]))

    def __iter__(self) -> Iterator[str | None]:
        return (self[row] for row in range(len(self)))


def main() -> None:
    """Sort a journal, and answer studies, until the process ends that started this one."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # that process decides when this one ends
    link = Connection(sys.stdin.fileno())
    given = orjson.loads(link.recv_bytes())
    with contextlib.suppress(EOFError, OSError):
        sorter, more = Sorter(**given), True
        while True:
            try:
                more = sorter.read(partial(link.poll, 0))
            except Exception as error:  # requests are answered from what is sorted
                logger.exception("the journal %s can't be sorted", given["journal"])
                sorter.give_up(error)
                break
            _load_libraries()
            while link.poll(0 if more else _PAUSE):
                _answer(sorter, link)
        while True:
            _answer(sorter, link)
    shutil.rmtree(Path(given["file"]).parent, ignore_errors=True)


def _load_libraries() -> None:
    """Import what the first study would wait for. The first ticks are read by then."""
    with contextlib.suppress(ModuleNotFoundError):
        import_module("scipy.sparse")
        import_module("pyarrow").array([0])  # the first array loads pandas, where pandas is there


def _answer(sorter: Sorter, link: Connection) -> None:
    tick, agents = orjson.loads(link.recv_bytes())
    link.send_bytes(orjson.dumps(sorter.study(tick, agents)))


if __name__ == "__main__":
    main()
