"""The sweep of a tick: expired memories are deleted, old deleted ones purged, faded ones moved."""

import zlib
from collections.abc import Sequence
from itertools import compress
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..config.settings import TIERS, Settings
from ..memory.records import NEVER, Memory
from ..memory.tiers import Retention, Temperature
from ..rules import decay as decays
from ..rules.compaction import Rule, resting_places
from ..rules.transitions import cooler
from ..storage.columns.agent_columns import AgentColumns
from ..storage.note import is_of_note, note_of
from ..storage.state.ledger import Ledger
from .facts import facts_of
from .lifetime import expire


@final
class Sweeper:
    """Applies the passing of time to a bank's memories. The caller holds the transaction."""

    def __init__(self, ledger: Ledger, settings: Settings, rules: Sequence[Rule]) -> None:
        ticks, own = settings.clock.ticks, settings.decay
        self._ledger = ledger
        self._rules = rules
        self._grace = ticks(settings.retention.grace)
        half_lives = tuple(ticks(own.half_life.get(tier, 0)) for tier in TIERS)
        fading = decays.Decay(half_lives, own.hot_below, own.warm_below)
        self._idle_limits = decays.limits(fading) if own.enabled else None

    def sweep(self, every: int = 1, since: int | None = None) -> None:
        """Delete expired memories, purge long deleted ones, and cool faded ones.

        The memories of one agent fade in one of ``every`` ticks: now, if the agent's turn is in
        this tick, or in a tick after ``since``, the tick of the last sweep.
        """
        resident = self._ledger.state
        tick = resident.tick
        since = tick - 1 if since is None else since
        # Sorted, because events must not depend on the order in which agents came.
        blocks = resident.blocks
        agents = blocks if self._idle_limits is not None else blocks.with_expiry(tick)
        for agent_id in sorted(agents):
            block = blocks[agent_id]
            expire(self._ledger, agent_id)
            if self._idle_limits is None or block.next_decay > tick:
                continue
            shift = zlib.crc32(agent_id.encode())
            if (tick + shift) // every > (since + shift) // every:  # it had its turn
                self._fade(block, tick, self._idle_limits)
        for agent_id, (expired, _) in resident.shelf.due(tick, -1).items():
            self._ledger.retain(agent_id, expired, Retention.DELETED, "expire")
        self._purge(tick - self._grace)

    def _purge(self, deleted_before: int) -> None:
        """Purge the memories that were deleted before a tick."""
        resident, gone = self._ledger.state, dict[str, list[Memory]]()
        for agent_id, (_, over) in resident.shelf.due(resident.tick, deleted_before).items():
            found = [resident.memory(agent_id, sequence) for sequence in over]
            # A chunk that is still in its note stays deleted: after a purge, it would be indexed
            # again.
            notes = resident.block(agent_id).notes
            gone[agent_id] = [each for each in found if each and not note_of(each, notes)]
        # The journal keeps the texts of notes, and earlier states need their memories.
        chunks = [each for own in gone.values() for each in own if is_of_note(each)]
        kept = self._ledger.kept_chunks(chunks)
        for agent_id, own in gone.items():
            is_kept = [is_of_note(each) and (agent_id, each.sequence) in kept for each in own]
            self._ledger.purge([each for each, it in zip(own, is_kept, strict=True) if not it])
            self._ledger.purge(list(compress(own, is_kept)), redacted=False)

    def _fade(self, block: AgentColumns, tick: int, idle_limits: NDArray[np.int64]) -> None:
        last = np.maximum(block.column("last"), block.column("created"))
        # The place of each memory's limit in the flattened table.
        groups = block.tiers.astype(np.int64) * len(Temperature) + block.temperatures
        slowness = decays.slownesses(block.column("accesses"))
        places = groups * (decays.SLOWEST + 1) + slowness
        due = last + np.minimum(idle_limits.ravel().take(places), NEVER - last)
        rows = (due <= tick).nonzero()[0]
        any_due = len(rows) > 0
        if any_due and block.hot:  # a memory that a rule keeps hot does not fade
            facts, _ = facts_of(block, (), tick)
            faded = np.full_like(facts.temperatures, Temperature.WARM)
            back = resting_places(facts._replace(temperatures=faded), self._rules)
            stays = (block.temperatures == Temperature.HOT) & (back == Temperature.HOT)
            rows = rows[~stays[rows]]
        fading = {
            cooler(now): [
                block.sequence(row) for row in rows[block.temperatures[rows] == now].tolist()
            ]
            for now in (Temperature.HOT, Temperature.WARM)
        }
        # A memory that is added later fades after the shortest limit, or later.
        later = due[due > tick].min(initial=tick + int(idle_limits.min()))
        for to, sequences in fading.items():
            self._ledger.move(block.agent_id, sequences, to, "decay")
        block.next_decay = tick if any_due else int(later)  # a faded memory may fade again
