"""A bank's metrics through the OpenTelemetry API, for ``telemetry.enabled``.

The instruments are made once. Each open bank is one series, with its id as the attribute ``bank``.
The program sets up the export with the SDK. The series hold numbers, never the text of a memory.
The latency of recalls is a histogram.
"""

from collections.abc import Callable, Iterable, Iterator
from weakref import WeakKeyDictionary

from ..errors import BankClosed
from ..packages import needed
from . import upkeep
from .engine import Engine

with needed("telemetry.enabled", "opentelemetry"):
    from opentelemetry import metrics
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

_GAUGES = {
    "memory_hot_utilization": "Share of the tokens of hot in use, of the agent with most",
    "memory_hit_rate": "Share of the searches that gave a memory",
}
_COUNTERS = {
    "memory_spill_count": "Memories that left hot because it was full",
    "memory_recall_count": "Recalls",
    "memory_promotion_count": "Memories that became hot",
    "memory_demotion_count": "Memories that made room in their tier",
    "memory_expiration_count": "Memories whose lifetime ended",
    "memory_purge_count": "Memories that were purged",
}
_Callback = Callable[[CallbackOptions], Iterable[Observation]]


class _Instruments:
    """The instruments of one provider, and the banks that they observe."""

    def __init__(self, provider: MeterProvider | None) -> None:
        self._banks: WeakKeyDictionary[Engine, str] = WeakKeyDictionary()
        meter = metrics.get_meter("tiermem", meter_provider=provider)
        for name, text in _GAUGES.items():
            meter.create_observable_gauge(name, [self._callback(name)], "1", text)
        for name, text in _COUNTERS.items():
            meter.create_observable_counter(name, [self._callback(name)], "1", text)
        self._latency = meter.create_histogram(
            "memory_recall_latency_ms", "ms", "How long recalls take"
        )

    def add(self, bank: Engine, name: str) -> None:
        """Observe a bank until it is closed."""
        self._banks[bank] = name
        latency, attributes = self._latency, {"bank": name}
        bank.metrics.on_recall = lambda ms: latency.record(ms, attributes)

    def _callback(self, metric: str) -> _Callback:
        def observed(options: CallbackOptions) -> Iterator[Observation]:
            for bank, name in list(self._banks.items()):
                try:
                    value = upkeep.metrics(bank)[metric]
                except BankClosed:
                    self._banks.pop(bank, None)
                else:
                    yield Observation(value, {"bank": name})

        return observed


_of_the_program: list[_Instruments] = []
"""The instruments of the provider that the program sets, before or after; at most one."""
_of_providers: WeakKeyDictionary[MeterProvider, _Instruments] = WeakKeyDictionary()


def observe(bank: Engine, provider: MeterProvider | None = None) -> None:
    """Let OpenTelemetry read a bank's metrics until the bank is closed, over a weak reference.

    Without a ``provider``, OpenTelemetry's global provider is used.
    """
    if provider is None:
        if not _of_the_program:
            _of_the_program.append(_Instruments(None))
        instruments = _of_the_program[0]
    elif provider in _of_providers:
        instruments = _of_providers[provider]
    else:
        instruments = _of_providers[provider] = _Instruments(provider)
    instruments.add(bank, bank.id)
