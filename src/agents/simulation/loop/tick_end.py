"""The end of a tick: the upkeep that is due, and the record of the tick."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...bank.memory_bank import MemoryBank
from ...memory.records import Hits
from ...memory.tiers import TIER_NAMES

__all__ = ["do_what_is_due", "tick_record"]


def do_what_is_due(bank: MemoryBank) -> None:
    """Sweep, and compact if this tick is one of ``temperature.compact_every``."""
    settings = bank.settings
    bank.sweep(every=max(1, settings.clock.ticks(settings.decay.every)))
    every = settings.temperature.compact_every
    compact_every = every and settings.clock.ticks(every)
    if compact_every and bank.tick % compact_every == 0:
        bank.compact()


def tick_record(
    bank: MemoryBank,
    found: Sequence[Hits],
    metrics: Mapping[str, float],
    *,
    errors: int = 0,
    no_ops: int = 0,
) -> dict[str, Any]:
    """The record of a bank's tick; ``found`` is what the agents were given in it."""
    sizes = list(map(len, found))
    return {
        "tick": bank.tick,
        "state_hash": bank.state_hash(),
        **{TIER_NAMES[tier]: count for tier, count in bank.ticks.tier_counts().items()},
        **bank.ticks.pending()._asdict(),
        "retrieved": sum(sizes),
        "retrieved_most": max(sizes, default=0),
        **bank.ticks.temperatures(found),
        "errors": errors,
        "no_ops": no_ops,
        "metrics": metrics,
    }
