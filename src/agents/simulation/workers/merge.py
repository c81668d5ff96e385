"""A run's own bank is brought up to its log: it does the logged ticks again, without the world.

The bank then has the journal that the local engine would have written, byte for byte.
"""

import json
from operator import itemgetter
from pathlib import Path
from typing import Any

from ...bank.memory_bank import MemoryBank
from ...errors import RunError
from ...memory.sources import Telling
from ..policies.cassette import Cassette
from ..protocols import Observation, Policy
from ..tick.act import Deed
from ..tick.branch_rules import Standing
from ..tick.minds import Minds
from ..tick.social import Boards
from ..tick.user_code import check_state
from . import wire
from .cells import CASSETTE, cell_folder, members
from .log import Entry
from .worker import policy_again


class Merging:
    """Does logged ticks in a bank that has all agents; ``policy`` flushes, if it can."""

    def __init__(self, bank: MemoryBank, cells: int, policy: Policy, rules: Standing) -> None:
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
        with minds.at_work(entry.tick):
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
        for own, frames in zip(self._members, entry.cells, strict=True):
            saw.update(zip(own, wire.seen_of(wire.decode(frames.seen)), strict=True))
            actions, questions, *_ = wire.decode(frames.decided)
            done, heard = wire.decode(frames.deeds)
            did.update(zip(own, wire.deeds_of(actions, done), strict=True))
            told += wire.told_of(heard)
            asked.update(questions)
        told.sort(key=itemgetter(0, 1, 2))
        return {agent: saw[agent] for agent in self._agents}, did, told, asked


def gather_cassettes(shards: Path, cells: int, into: Cassette) -> None:
    """Add what the cells' cassettes have to the cassette of the run, by tick and agent."""
    found = [
        exchange
        for cell in range(cells)
        for exchange in Cassette(cell_folder(shards, cell) / CASSETTE, replay=True)
    ]
    found.sort(key=lambda each: (each.tick, each.agent))
    for exchange in found:
        into.record(exchange)
