"""The counters of an open bank."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..memory.events import Changes


class Metrics:
    """Counters since the bank was opened. Only the latency differs from machine to machine."""

    def __init__(self) -> None:
        self.searches = 0
        """Searches with a query that is not blank."""
        self.answered = 0
        """Searches that returned a memory with a score of at least ``temperature.min_score``."""
        self.recalls = 0
        self.recall_latency_ms = 0.0
        """How long the last recall took."""
        self.on_recall: Callable[[float], None] | None = None
        """Called with the latency of each recall."""

    @contextmanager
    def timed_recall(self) -> Iterator[None]:
        """Count a recall and measure its time."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.recalls += 1
            self.recall_latency_ms = (time.perf_counter() - begun) * 1000
            if self.on_recall is not None:
                self.on_recall(self.recall_latency_ms)

    def values(self, committed: Changes, hot_utilization: float) -> dict[str, float]:
        """Every metric by its name; ``committed`` are all changes since the bank was opened."""
        return {
            "memory_hot_utilization": hot_utilization,
            "memory_spill_count": committed.spilled,
            "memory_recall_count": self.recalls,
            "memory_promotion_count": committed.promoted,
            "memory_recall_latency_ms": self.recall_latency_ms,
            "memory_hit_rate": self.answered / self.searches if self.searches else 0.0,
            "memory_demotion_count": committed.demoted,
            "memory_expiration_count": committed.expired,
            "memory_purge_count": committed.purged,
        }
