"""The end of a tick: the upkeep that is due, and the record of the tick."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...bank.memory_bank import MemoryBank
from ...memory.records import Hits
from ...memory.tiers import TIER_NAMES
from .decisions import DecisionLog
from .flushing import Contexts
from .keeping import check_state
from .recording import Recording


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
    counts = tick_counts(bank, found, errors=errors, no_ops=no_ops)
    return {"tick": bank.tick, "state_hash": bank.state_hash(), **counts, "metrics": metrics}


def tick_counts(
    bank: MemoryBank, found: Sequence[Hits], *, errors: int, no_ops: int
) -> dict[str, Any]:
    """What a tick's record counts in a bank."""
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


def later_counts(
    bank: MemoryBank, contexts: Contexts | None, recording: Recording | None
) -> dict[str, int]:
    """What a record counts where flushes or reflections are on; it comes after the metrics."""
    counts: dict[str, int] = {}
    if contexts is not None:
        counts |= {"flushes": contexts.flushes, "flush_failures": contexts.failures}
    if bank.settings.reflection.enabled:
        counts["reflections"] = recording.reflected if recording else 0
        counts["insights"] = recording.insights if recording else 0
    return counts


def record_tick(
    bank: MemoryBank,
    contexts: Contexts | None,
    log: DecisionLog | None,
    found: Sequence[Hits],
    metrics: Mapping[str, float],
    world: object,
    errors: Mapping[str, Sequence[str]],
    recording: Recording | None = None,
) -> dict[str, Any]:
    """Record a tick in the bank, with the state of the world after it; the tick's record.

    ValueError or InvalidInput for a state that can't be kept.
    """
    check_state(world)
    told = sum(map(len, errors.values()))
    no_ops = recording.no_ops if recording else 0
    record = tick_record(bank, found, metrics, errors=told, no_ops=no_ops)
    record |= later_counts(bank, contexts, recording)
    state = {"world": world, "errors": errors}
    if contexts is not None:
        state["contexts"] = contexts.get_state()
    kept = (log.retrieved, log.packed()) if log else (b"", b"")
    bank.ticks.record(record, state, *kept)
    return record
