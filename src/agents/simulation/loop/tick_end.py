"""The end of a tick: the upkeep that is due, and the record of the tick."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...bank.memory_bank import MemoryBank
from ...memory.records import Hits
from ...memory.tiers import TIER_NAMES

_AFTER_METRICS = ("flushes", "flush_failures", "reflections", "insights")


def do_what_is_due(bank: MemoryBank) -> None:
    """Sweep, and compact if this tick is one of ``temperature.compact_every``."""
    settings = bank.settings
    bank.sweep(every=max(1, settings.clock.ticks(settings.decay.every)))
    every = settings.temperature.compact_every
    compact_every = every and settings.clock.ticks(every)
    if compact_every and bank.tick % compact_every == 0:
        bank.compact()


def tick_counts(
    bank: MemoryBank, found: Sequence[Hits], *, errors: int = 0, no_ops: int = 0
) -> dict[str, Any]:
    """What a tick's record counts in a bank; ``found`` is what the agents were given."""
    sizes = list(map(len, found))
    return {
        **{TIER_NAMES[tier]: count for tier, count in bank.ticks.tier_counts().items()},
        **bank.ticks.pending()._asdict(),
        "retrieved": sum(sizes),
        "retrieved_most": max(sizes, default=0),
        **bank.ticks.temperatures(found),
        "errors": errors,
        "no_ops": no_ops,
    }


def tick_record(
    tick: int, state_hash: str, counts: Mapping[str, Any], metrics: Mapping[str, float]
) -> dict[str, Any]:
    """The record of a tick. What came to be counted later stands behind the metrics."""
    first = {name: own for name, own in counts.items() if name not in _AFTER_METRICS}
    after = {name: counts[name] for name in _AFTER_METRICS if name in counts}
    return {"tick": tick, "state_hash": state_hash, **first, "metrics": metrics, **after}
