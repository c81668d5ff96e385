"""A worker: the cells that one process has, and what the driver may ask of them.

A cell is some agents of a run, with a bank of their own, which has a copy of all boards.
"""

import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...bank.memory_bank import MemoryBank
from ...config.load import load_settings
from ...config.settings import Settings
from ...engine.engine import Engine
from ...errors import BankLocked, TierMemError
from ...storage.embedding import Embedder
from ..kept_ticks import keep_tick, ticks_of
from ..policies.cassette import Cassette
from ..protocols import Policy, Waiting
from ..tick.act import Boards, Speech, Wish, read_action, used_in
from ..tick.branch_rules import BranchRules
from ..tick.minds import Minds
from . import wire
from .carriers import wait_for
from .cells import CASSETTE, cell_folder, policy_again
from .log import Frames


def of_cells(settings: Settings) -> Settings:
    """The settings of a cell's bank: only the run's own bank has a store, and is compacted."""
    return replace(
        settings,
        storage=replace(settings.storage, sync="manual"),
        temperature=replace(settings.temperature, compact_on_close=False),
    )


class Cell:
    """The bank of some agents, and the three parts of their tick.

    ``decide`` begins a tick's transaction, ``record`` ends the tick, and ``commit`` commits it.
    What happens between is the driver's. A process that ends before the commit leaves the bank at
    the tick before.
    """

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        policy: Policy,
        cassette: Cassette,
        rules: BranchRules,
        embedder: Embedder | None,
    ) -> None:
        self.bank = MemoryBank.open(
            folder, of_cells(settings), create=False, apply_caps=False, embedder=embedder
        )
        # A power cut may take a cell's last commits: the log, which is synced, has them.
        self.bank.engine.journal.file.db.execute("PRAGMA synchronous = NORMAL")
        self._policy, self._cassette = policy, cassette
        self.agents: list[str] = ticks_of(self.bank).state()["agents"]
        self._minds = Minds(self.bank, policy, self.agents, rules, has_log=False)
        self._minds.go_on()
        self._actions: list[Any] = []
        self._open = ExitStack()
        self._has_begun = False
        self._known: dict[str, tuple[int, bytes]] = {}
        """What the driver knows of the states of the agents."""

    def _begin(self, tick: int) -> None:
        if not self._has_begun:
            self._open.enter_context(self._minds.at_work())
            self._minds.begin(tick)
            self._has_begun = True

    def say(self, tick: int, asked: bytes) -> bytes:
        """Begin a tick, if it has not begun; the frame of what agents say in conversations."""
        self._begin(tick)
        plain = wire.decode(asked)
        seen = wire.seen_of(own for *_, own in plain)
        said = self._minds.say(
            {
                agent: (own, wire.talk_of(talk))
                for (agent, talk, _), own in zip(plain, seen, strict=True)
            }
        )
        saying = {agent: list(own) for agent, own in said.items()}
        return wire.encode(saying, f"{type(self._policy).__name__}.say()")

    def decide(self, tick: int, seen: bytes, policy: Policy | None = None) -> bytes:
        """Begin a tick; the frame of what the agents ask and want to do."""
        self._begin(tick)
        observations = wire.seen_of(wire.decode(seen))
        wanted = self._minds.decide(dict(zip(self.agents, observations, strict=True)), policy)
        self._actions = wire.plain_actions(
            [
                [each if isinstance(each, Speech | Wish) else read_action(each) for each in actions]
                for actions in wanted.values()
            ]
        )
        decided = self._minds.decided
        uses = Boards(used_in(decided.asked), ()).plain()
        return wire.encode(
            [self._actions, wire.plain_asks(decided, self.agents), *uses[:1]],
            f"{type(self._policy).__name__}.decide()",
        )

    def record(self, plain: Sequence[Any], deeds: bytes) -> dict[str, Any]:
        """Remember what the agents saw and did, and end the tick; what it counted.

        ``plain`` has what all agents of the run did with boards, as JSON values.
        """
        done, told = wire.decode(deeds)
        by_agent = dict(zip(self.agents, wire.deeds_of(self._actions, done), strict=True))
        boards = Boards.of(plain)
        counts = self._minds.remember(by_agent, wire.told_of(told), boards.changes, boards.uses)
        state = {"agents": self.agents, **self._minds.state()}
        keep_tick(self.bank, {"tick": self.bank.tick}, state)
        return counts

    def again(self, tick: int, boards: Sequence[Any], frames: Frames) -> dict[str, list[Any]]:
        """Do a tick again from the log; the states that changed. Nobody is asked."""
        actions, asked, *_ = wire.decode(frames.decided)
        with self._cassette.replaying():
            self.decide(tick, frames.seen, policy_again(self._policy, self.bank.settings, asked))
            self._actions = actions
            self.record(boards, frames.deeds)
        return self.commit()

    def commit(self) -> dict[str, list[Any]]:
        """Commit the tick; the states that changed."""
        self._open.close()
        self._has_begun = False
        return self.states()

    def states(self) -> dict[str, list[Any]]:
        """The hashed states of the agents that changed since the last call."""
        changed: dict[str, list[Any]] = {}
        with self.bank.engine.using():
            for agent, block in self.bank.engine.state.blocks.items():
                now = block.next_sequence, block.fingerprint()
                if self._known.get(agent) != now:
                    self._known[agent] = now
                    changed[agent] = [now[0], now[1].hex()]
        return changed

    def close(self) -> None:
        """Close the bank, at its last whole tick."""
        self.bank.engine.release()


MakePolicy = Callable[[Path, Settings, Cassette], Policy]
"""Makes the policy of a run, whose folder and settings these are."""


class Worker:
    """Answers messages; a message is a call, its arguments, and a part for each cell."""

    def __init__(self, make_policy: MakePolicy) -> None:
        self.tell: Callable[[bytes], None] = lambda _: None
        """Takes a message to the driver that is no answer."""
        self._make_policy = make_policy
        self._cells: dict[int, Cell] = {}

    def answer(self, message: bytes) -> bytes:
        """The answer to a message. An error is an answer, too."""
        (call, *arguments), parts = wire.unpacked(message)
        try:
            value, back = getattr(self, f"_{call}")(*arguments, *parts)
            return wire.packed({"value": value}, back)
        except TierMemError as error:
            return _error(type(error).__name__, error.why, vars(error).get("hint", ""))
        except Exception as error:  # noqa: BLE001 - told to the driver, which raises it
            why = f"a worker failed: {error!r}\n{traceback.format_exc()}"
            return _error("SimulationError", why, "")

    def _open(
        self, run: str, plain: dict[str, Any], rules: list[Any], offline: bool, cells: list[int]
    ) -> tuple[Any, list[bytes]]:
        """Open the cells; the tick of each, and the states of its agents."""
        settings, folder = load_settings(plain), Path(run)
        shards = folder / "shards"
        first: Engine | None = None
        for cell in cells:
            place = cell_folder(shards, cell)
            cassette = Cassette(place / CASSETTE, offline)
            policy = self._make_policy(folder, settings, cassette)
            if isinstance(policy, Waiting):
                policy.on_wait(self._say)
            # A worker of a driver that was killed may be about to end.
            opened = wait_for(
                partial(
                    Cell,
                    place,
                    settings,
                    policy,
                    cassette,
                    BranchRules(rules),
                    first and first.embedder.embedder,
                ),
                BankLocked,
            )
            parts = opened.bank.engine
            first = first or parts  # what one cell has learned of words, all know
            parts.embedder, parts.search.reader = first.embedder, first.search.reader
            self._cells[cell] = opened
        return [[each.bank.tick, each.states()] for each in self._cells.values()], []

    def _say(self, line: str) -> None:
        self.tell(wire.packed({"said": line}, []))

    def _again(
        self, cell: int, tick: int, boards: list[Any], *frames: bytes
    ) -> tuple[Any, list[bytes]]:
        """Do a tick again in a cell that is behind; the states that changed."""
        return self._cells[cell].again(tick, boards, Frames(*frames)), []

    def _talk(self, tick: int, *asked: bytes) -> tuple[Any, list[bytes]]:
        cells = self._cells.values()
        return None, [each.say(tick, own) for each, own in zip(cells, asked, strict=True)]

    def _decide(self, tick: int, *seen: bytes) -> tuple[Any, list[bytes]]:
        cells = self._cells.values()
        return None, [each.decide(tick, own) for each, own in zip(cells, seen, strict=True)]

    def _record(self, boards: list[Any], *deeds: bytes) -> tuple[Any, list[bytes]]:
        cells = self._cells.values()
        return [each.record(boards, own) for each, own in zip(cells, deeds, strict=True)], []

    def _commit(self) -> tuple[Any, list[bytes]]:
        return [each.commit() for each in self._cells.values()], []

    def _checkpoint(self, folder: str) -> tuple[Any, list[bytes]]:
        """Write a checkpoint of each cell."""
        for cell, own in self._cells.items():
            own.bank.checkpoint(Path(folder) / f"cell-{cell:02}.tmck", {"cell": cell})
        return None, []

    def _close(self) -> tuple[Any, list[bytes]]:
        """Close the cells, between two ticks."""
        while self._cells:
            self._cells.popitem()[1].close()
        return None, []


def _error(error: str, why: str, hint: str) -> bytes:
    return wire.packed({"error": error, "why": why, "hint": hint}, [])
