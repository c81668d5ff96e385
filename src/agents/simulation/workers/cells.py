"""The cells of a run: which agents and which worker a cell has, how cells are made and gathered."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from ...bank.memory_bank import MemoryBank
from ...config.settings import Settings
from ...errors import RunError
from ...memory.records import Hits
from ...memory.sources import Telling
from ...storage.files import make_folder, replace_file
from ...storage.journal.journal import Journal
from ...storage.sqlite import sync_folder
from ...storage.state import snapshots
from ...storage.trust import with_new_id
from ...storage.whole_folder import whole_folder
from ...telling.groups import is_board
from ..kept_ticks import attachment, ticks_of
from ..policies.cassette import Cassette
from ..protocols import Ask, Flushing, Observation, Policy, Reflecting
from ..tick.act import Boards, Deed
from ..tick.branch_rules import BranchRules
from ..tick.minds import Minds
from ..tick.user_code import check_state
from . import wire
from .log import Entry, TickLog

MOST_CELLS = 64
_AGENTS_OF_A_CELL = 150
_LEAST_CELLS = 8


def cells_for(agents: int) -> int:
    """How many cells a population is cut into: a cell of few agents costs more than it shares."""
    cells = _LEAST_CELLS
    while cells < MOST_CELLS and agents > cells * _AGENTS_OF_A_CELL:
        cells *= 2
    return cells


def members(agents: Sequence[str], cells: int) -> list[list[str]]:
    """The agents of each cell, in the order of ``agents``. It depends on nothing but the ids."""
    result: list[list[str]] = [[] for _ in range(cells)]
    for agent in agents:
        digest = hashlib.sha256(f"cell\0{agent}".encode()).digest()
        result[int.from_bytes(digest[:8], "big") % cells].append(agent)
    return result


def placed(sizes: Sequence[int], workers: int) -> list[list[int]]:
    """The cells of each worker: large cells first, each to the worker with the fewest agents."""
    result: list[list[int]] = [[] for _ in range(workers)]
    loads = [0] * workers
    for cell in sorted(range(len(sizes)), key=lambda each: (-sizes[each], each)):
        least = loads.index(min(loads))
        result[least].append(cell)
        loads[least] += sizes[cell]
    return [sorted(own) for own in result]


SHARDS, LOG, CASSETTE = "shards", "ticks.log", "cassette.jsonl"
_ABOUT = "shards.json"


def cell_folder(shards: Path, cell: int) -> Path:
    """The folder of a cell's bank."""
    return shards / f"cell-{cell:02}"


class Base(NamedTuple):
    """Where the cells of a run begin."""

    cells: int
    tick: int
    dims: int
    """The dimensions of the bank's vectors."""
    metrics: dict[str, float]
    state: str
    """The world's state after the tick: JSON."""


def base_of(shards: Path) -> Base:
    """Where the cells in a folder begin."""
    try:
        return Base(**json.loads((shards / _ABOUT).read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise RunError(
            f"{shards / _ABOUT} can't be read: {error!r:.200}",
            hint="restore it from a copy of the run",
        ) from None


def split(bank: MemoryBank, shards: Path, agents: Sequence[str], cassette: Cassette) -> None:
    """Make the cells of a run from its bank, after the bank's last tick, and an empty log.

    The folder ``shards`` appears whole. The bank stays as it is.
    """
    try:
        if shards.exists() and any(shards.iterdir()):
            raise FileExistsError(f"{shards} is there already, and may have ticks")
        with whole_folder(shards) as new:
            cells = cells_for(len(agents))
            _CellMaker(bank, new, agents, cells).make()
            _share_cassette(cassette, new, agents, cells, bank.tick)
            TickLog.create(new / LOG)
            base = _base(bank, cells)
            replace_file(new / _ABOUT, json.dumps(base._asdict()) + "\n")
            sync_folder(new)
        sync_folder(shards.parent)
    except OSError as error:
        raise RunError(
            f"the cells of {shards.parent} can't be made: {error}", hint="make room on the disk"
        ) from error


def _base(bank: MemoryBank, cells: int) -> Base:
    ticks = ticks_of(bank)
    kept = ticks.tick(bank.tick)
    metrics = json.loads(kept.record)["metrics"] if kept else {}
    state = json.dumps(ticks.state()["world"], ensure_ascii=False, separators=(",", ":"))
    return Base(cells, bank.tick, bank.engine.state.dims, metrics, state)


class _CellMaker:
    """The parts of a bank, by cell."""

    def __init__(self, bank: MemoryBank, shards: Path, agents: Sequence[str], cells: int) -> None:
        ledger = bank.engine.ledger
        self._bank, self._shards = bank, shards
        self._journal, self._state = ledger.journal, ledger.state
        self._of_run = members(agents, cells)
        # A bank may have agents that are not the scenario's; the state hash covers them too.
        owners = sorted(self._state.blocks)
        boards = list(filter(is_board, owners))
        apart = members([each for each in owners if not is_board(each)], cells)
        # Members in any cell read a board: each cell has all boards.
        self._of_bank = [own + boards for own in apart]
        self._shelf = self._shelved()

    def _shelved(self) -> dict[str, list[tuple[Any, ...]]]:
        rows: dict[str, list[tuple[Any, ...]]] = {}
        with self._journal.reading():
            for row in self._journal.shelf.all_now():
                rows.setdefault(row[0], []).append(row)
        return rows

    def make(self) -> None:
        kept = ticks_of(self._bank).state()
        vectors = self._journal.embeddings()
        for cell, (agents, all_) in enumerate(zip(self._of_run, self._of_bank, strict=True)):
            folder = cell_folder(self._shards, cell)
            make_folder(folder)
            self._make(folder, _part(kept, agents), all_, vectors)

    def _make(
        self,
        folder: Path,
        state: dict[str, Any],
        agents: Sequence[str],
        vectors: dict[bytes, bytes],
    ) -> None:
        journal = self._journal
        identity = with_new_id(journal.get("bank"))
        kept = attachment({"tick": journal.tick}, state)
        with closing(Journal(folder / "journal.db")) as new:
            new.adopt(
                (journal.head, journal.tick, journal.hash.hex()),
                [snapshots.pack(self._state.blocks.peek(agent)) for agent in agents],
                [kept.row(journal.tick, journal.head)],
                vectors,
                [row for agent in agents for row in self._shelf.get(agent, ())],
                bank=identity,
                purged=bool(journal.get("purged")),
                notes_unwritten=True,
            )
            new.rest()


def _part(kept: dict[str, Any], agents: Sequence[str]) -> dict[str, Any]:
    """What a cell needs of a run's state to go on."""
    errors = {agent: kept["errors"][agent] for agent in agents if agent in kept["errors"]}
    state: dict[str, Any] = {"agents": list(agents), "errors": errors}
    if "contexts" in kept:
        state["contexts"] = {agent: kept["contexts"][agent] for agent in agents}
    return state


def _share_cassette(
    cassette: Cassette, shards: Path, agents: Sequence[str], cells: int, tick: int
) -> None:
    """Give each cell the recorded answers of the ticks to come, which a branch may have."""
    exchanges = [each for each in cassette if each.tick > tick]
    if not exchanges:
        return
    cell_of = {agent: at for at, own in enumerate(members(agents, cells)) for agent in own}
    for each in exchanges:
        if each.agent in cell_of:
            Cassette(cell_folder(shards, cell_of[each.agent]) / CASSETTE).record(each)


# A run's own bank is brought up to its log: it does the logged ticks again, without the world.
# The bank then has the journal that one process would have written, byte for byte.


class Logged:
    """The policy of a tick that is done again: it asks what was asked, and decides nothing."""

    def __init__(self, asked: Mapping[str, Sequence[Sequence[Ask]]]) -> None:
        self._asked = asked
        self._rounds: dict[str, int] = {}

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> Sequence[Any]:
        """The questions of the agent's next round; none after the last."""
        agent = observation.agent_id
        number = self._rounds.get(agent, 0)
        self._rounds[agent] = number + 1
        asked = self._asked.get(agent, ())
        return asked[number] if number < len(asked) else []


def policy_again(policy: Policy, settings: Settings, asked: Mapping[str, Any]) -> Policy:
    """Who decides when a tick is done again.

    A policy that flushes or reflects draws from its agents' generators after it has decided, so it
    decides again: from its cassette, if it is a language model.
    """
    flushes = settings.flush.enabled and isinstance(policy, Flushing)
    reflects = settings.reflection.enabled and isinstance(policy, Reflecting)
    return policy if flushes or reflects else Logged(wire.asks_of(asked))


class LoggedLoop:
    """Does logged ticks in a bank that has all agents; ``policy`` flushes, if it can."""

    def __init__(self, bank: MemoryBank, cells: int, policy: Policy, rules: BranchRules) -> None:
        self._bank, self._policy = bank, policy
        self._agents = bank.settings.simulation.agent_ids()
        self._members = members(self._agents, cells)
        self._minds = Minds(bank, policy, self._agents, rules)
        self._minds.go_on()

    def tick(self, entry: Entry) -> dict[str, Any]:
        """Do a tick again; its record."""
        bank, minds = self._bank, self._minds
        if entry.tick != bank.tick + 1:
            raise RunError(
                f"the log has tick {entry.tick}, and the bank is at tick {bank.tick}",
                hint="restore the run from a copy",
            )
        seen, deeds, told, asked = self._read(entry)
        policy = policy_again(self._policy, bank.settings, asked)
        with minds.at_work():
            minds.begin(entry.tick)
            minds.decide(seen, policy)
            in_order = {agent: deeds[agent] for agent in minds.streams.order()}
            boards = Boards.of(entry.boards)
            counts = minds.remember(in_order, told, boards.changes, boards.uses)
            world = json.loads(entry.state)
            check_state(world)
            return minds.record(counts, entry.metrics, world)

    def _read(
        self, entry: Entry
    ) -> tuple[dict[str, Observation], dict[str, list[Deed]], list[Telling], dict[str, Any]]:
        """What all agents saw, did, were told and asked."""
        saw: dict[str, Observation] = {}
        did: dict[str, list[Deed]] = {}
        told: list[Telling] = []
        asked: dict[str, Any] = {}
        for agents, frames in zip(self._members, entry.cells, strict=True):
            saw.update(zip(agents, wire.seen_of(wire.decode(frames.seen)), strict=True))
            actions, questions, *_ = wire.decode(frames.decided)
            done, heard = wire.decode(frames.deeds)
            did.update(zip(agents, wire.deeds_of(actions, done), strict=True))
            told += wire.told_of(heard)
            asked.update(questions)
        told.sort(key=itemgetter(0, 1, 2))
        return {agent: saw[agent] for agent in self._agents}, did, told, asked


def gather_cassettes(shards: Path, cells: int, into: Cassette) -> None:
    """Add what the cells' cassettes have to the cassette of the run, by tick and agent."""
    exchanges = [
        exchange
        for cell in range(cells)
        for exchange in Cassette(cell_folder(shards, cell) / CASSETTE, replay=True)
    ]
    exchanges.sort(key=lambda each: (each.tick, each.agent))
    for exchange in exchanges:
        into.record(exchange)
