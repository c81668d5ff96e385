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
from ..loop.acting import Deed
from ..loop.deciding import decide
from ..loop.decisions import DecisionLog
from ..loop.flushing import Contexts
from ..loop.grouping import Boards
from ..loop.remembering import remember
from ..loop.standing import Standing
from ..loop.streams import Streams
from ..loop.tick_end import do_what_is_due, record_tick
from ..policies.cassette import Cassette
from ..protocols import Observation, Policy
from . import wire
from .cell import policy_again
from .cells import members
from .log import Entry
from .splitting import CASSETTE, cell_folder


class Merging:
    """Does logged ticks in a bank that has all agents; ``policy`` flushes, if it can."""

    def __init__(self, bank: MemoryBank, cells: int, policy: Policy, rules: Standing) -> None:
        self._bank, self._policy = bank, policy
        self._agents = bank.settings.simulation.agent_ids()
        self._streams = Streams(
            bank.settings.seed, self._agents, bank.settings.simulation.streams, rules
        )
        self._rules = rules
        self._members = members(self._agents, cells)
        kept = bank.ticks.state()
        self._errors = kept["errors"]
        self._contexts: Contexts | None = None
        if bank.settings.flush.enabled:
            self._contexts = Contexts(bank, self._agents)
            if "contexts" in kept:
                self._contexts.set_state(kept["contexts"])

    def tick(self, entry: Entry) -> dict[str, Any]:
        """Do a tick again; its record."""
        bank, streams = self._bank, self._streams
        if entry.tick != bank.tick + 1:
            raise RunError(
                f"the log has tick {entry.tick}, and the bank is at tick {bank.tick}",
                hint="restore the run from a copy",
            )
        seen, deeds, told, asked = self._read(entry)
        policy = policy_again(self._policy, bank.settings, asked)
        with bank.transaction():
            bank.advance(entry.tick)
            streams.begin(entry.tick)
            decided = decide(bank, policy, streams.agents, seen, self._errors, self._rules)
            log = DecisionLog(
                list(map(self._rules.remembered, decided.observations)), decided.given
            )
            recording = remember(
                bank, self._policy, streams.agents, self._contexts, self._rules,
                decided, {agent: deeds[agent] for agent in streams.order()}, told,
                Boards.of(entry.boards), log,
            )  # fmt: skip
            self._errors = recording.errors
            do_what_is_due(bank)
            return record_tick(
                bank, self._contexts, log, decided.given.hits, entry.metrics,
                json.loads(entry.state), self._errors, recording,
            )  # fmt: skip

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
