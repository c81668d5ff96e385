"""The record of a tick: what it counts, in one bank or in the cells of a run, and one hash."""

import hashlib
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


_LARGEST = ("retrieved_most", "hot_utilization")


def combined(counts: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> dict[str, Any]:
    """The counts of all cells, as one bank counts; ``sizes`` are the numbers of their agents."""
    result: dict[str, Any] = {}
    for name in counts[0]:
        values = [each[name] for each in counts]
        if name == "hit_rate":  # a cell's rate is rounded, and its searches are few
            hits = sum(round(own * size) for own, size in zip(values, sizes, strict=True))
            result[name] = round(hits / sum(sizes), 6) if sum(sizes) else 0.0
        else:
            result[name] = max(values) if name in _LARGEST else sum(values)
    return result


def state_hash(seed: int, dims: int, tick: int, states: Mapping[str, tuple[int, bytes]]) -> str:
    """:meth:`MemoryBank.state_hash`, from the state of each agent: next number, fingerprint."""
    result = hashlib.sha256(f"{seed} {dims} {tick}".encode())
    for agent, (number, mark) in sorted(states.items()):
        result.update(b"\0%s\0%d\0" % (agent.encode(), number))
        result.update(mark)
    return result.hexdigest()
