"""A cell: some agents of a run, with a bank of their own, which has a copy of all boards."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from ...bank.memory_bank import MemoryBank
from ...config.settings import Settings
from ...memory.records import Hits
from ...storage.embedding.embedders import Embedder
from ...storage.resident.fingerprint import fingerprint
from ..loop.acting import read_action
from ..loop.deciding import Decided
from ..loop.grouping import Boards, Wish, used_in
from ..loop.minds import Minds
from ..loop.speaking import Speech
from ..loop.standing import Standing
from ..protocols import Ask, Flushing, Observation, Policy, Reflecting
from . import wire
from .log import Frames


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
        rules: Standing,
        embedder: Embedder | None,
    ) -> None:
        own = of_cells(settings)
        self.bank = MemoryBank.open(folder, own, create=False, apply_caps=False, embedder=embedder)
        # A power cut may take a cell's last commits: the log, which is synced, has them.
        self.bank.engine.journal.file.db.execute("PRAGMA synchronous = NORMAL")
        self._policy = policy
        kept = self.bank.ticks.state()
        self.agents: list[str] = kept["agents"]
        self._minds = Minds(self.bank, policy, self.agents, rules)
        self._minds.go_on(kept)
        self._decided: Decided | None = None
        self._actions: list[Any] = []
        self._open = ExitStack()
        self._told: dict[str, tuple[int, bytes]] = {}
        """What the driver knows of the states of the agents."""

    def decide(self, tick: int, seen: bytes, policy: Policy | None = None) -> bytes:
        """Begin a tick; the frame of what the agents ask and want to do."""
        self._open.enter_context(self.bank.transaction())
        self._minds.begin(tick)
        observations = wire.seen_of(wire.decode(seen))
        decided = self._minds.decide(dict(zip(self.agents, observations, strict=True)), policy)
        self._decided = decided
        self._actions = wire.plain_actions(
            [
                [each if isinstance(each, Speech | Wish) else read_action(each) for each in own]
                for own in decided.actions
            ]
        )
        uses = Boards(used_in(decided.asked), ()).plain()
        return wire.encode(
            [self._actions, wire.plain_asks(decided, self.agents), *uses[:1]],
            f"{type(self._policy).__name__}.decide()",
        )

    def record(self, boards: Sequence[Any], deeds: bytes) -> dict[str, Any]:
        """Remember what the agents saw and did, and end the tick; what it counted.

        ``boards`` has what all agents of the run did with groups, as JSON values.
        """
        bank, decided = self.bank, self._decided
        if decided is None:
            raise RuntimeError("a tick is recorded after it was decided")
        done, told = wire.decode(deeds)
        own = dict(zip(self.agents, wire.deeds_of(self._actions, done), strict=True))
        counts = self._minds.remember(decided, own, wire.told_of(told), Boards.of(boards))
        bank.ticks.record({"tick": bank.tick}, {"agents": self.agents, **self._minds.state()})
        self._decided = None
        return counts

    def again(self, tick: int, boards: Sequence[Any], frames: Frames) -> dict[str, list[Any]]:
        """Do a tick again from the log; the states that changed."""
        actions, asked, *_ = wire.decode(frames.decided)
        self.decide(tick, frames.seen, policy_again(self._policy, self.bank.settings, asked))
        self._actions = actions
        self.record(boards, frames.deeds)
        return self.commit()

    def commit(self) -> dict[str, list[Any]]:
        """Commit the tick; the states that changed."""
        self._open.close()
        return self.states()

    def states(self) -> dict[str, list[Any]]:
        """The hashed states of the agents that changed since the last call."""
        changed: dict[str, list[Any]] = {}
        with self.bank.engine.using():
            for agent, block in self.bank.engine.state.blocks.items():
                now = block.next_sequence, fingerprint(block)
                if self._told.get(agent) != now:
                    self._told[agent] = now
                    changed[agent] = [now[0], now[1].hex()]
        return changed

    def close(self) -> None:
        """Close the bank, at its last whole tick."""
        self.bank.engine.release()
