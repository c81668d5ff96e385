"""Metrics through OpenTelemetry, for those who ask for it."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from agents import MemoryBank
from agents.engine import telemetry
from agents.errors import ConfigError
from banks import child

MakeBank = Callable[..., MemoryBank]


class Program:
    """Stands for a program that has set up the SDK."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider([self.reader], shutdown_on_exit=False)

    def points(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        return {
            metric.name: list(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.data.data_points
        }


@pytest.fixture
def program() -> Iterator[Program]:
    program = Program()
    yield program
    program.provider.shutdown()


def test_every_metric_is_an_instrument(program: Program, bank: MemoryBank) -> None:
    telemetry.observe(bank.engine, program.provider)
    alice = bank.agent("alice")
    alice.add("fish <1 0>")
    alice.recall("<1 0>")
    alice.recall("<0 1>")
    points = program.points()
    assert set(points) == set(bank.metrics())
    (latency,) = points.pop("memory_recall_latency_ms")
    assert latency.count == 2
    assert latency.sum > 0
    counted = bank.metrics()
    assert {name: point.value for name, (point,) in points.items()} == {
        name: counted[name] for name in points
    }
    assert points["memory_promotion_count"][0].value == 1


def test_banks_are_told_apart(program: Program, make_bank: MakeBank) -> None:
    for number in (1, 2):
        bank = make_bank()
        telemetry.observe(bank.engine, program.provider)
        for each in range(number):
            bank.agent("alice").update(bank.agent("alice").add(f"{each}").id, temperature="hot")
    points = program.points()["memory_promotion_count"]
    assert sorted(point.value for point in points) == [1, 2]
    assert len({point.attributes["bank"] for point in points}) == 2


def test_a_closed_bank_gives_nothing_and_is_not_kept(program: Program) -> None:
    bank = MemoryBank.ephemeral()
    telemetry.observe(bank.engine, program.provider)
    assert program.points()
    bank.close()
    assert program.points() == {}
    kept = weakref.ref(bank.engine)
    del bank
    gc.collect()
    assert kept() is None


def test_a_forgotten_bank_is_not_kept(program: Program) -> None:
    bank = MemoryBank.ephemeral()
    telemetry.observe(bank.engine, program.provider)
    kept = weakref.ref(bank.engine)
    del bank
    gc.collect()
    assert kept() is None
    assert program.points() == {}


def test_no_text_of_a_memory_goes_out(program: Program, bank: MemoryBank) -> None:
    telemetry.observe(bank.engine, program.provider)
    bank.agent("alice").add("the vault's password", "pinned")
    bank.agent("alice").recall("password")
    data = program.reader.get_metrics_data()
    assert data is not None
    assert "password" not in data.to_json()
    assert "alice" not in data.to_json()


def test_the_setting_observes_with_the_provider_that_the_program_sets() -> None:
    code = """
from agents import MemoryBank
with MemoryBank.ephemeral({"telemetry": {"enabled": True}}) as bank:
    from opentelemetry import metrics
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader]))
    with MemoryBank.ephemeral({"telemetry": {"enabled": True}}):
        (resource,) = reader.get_metrics_data().resource_metrics
        (scope,) = resource.scope_metrics
        print(scope.scope.name, *{len(each.data.data_points) for each in scope.metrics})
"""
    assert child(code) == "tiermem 2"


def test_by_default_nothing_of_it_is_imported() -> None:
    code = """
import sys
from agents import MemoryBank
with MemoryBank.ephemeral() as bank:
    bank.agent("alice").add("one")
    bank.metrics()
names = [name for name in sys.modules if name == "tiermem.engine.telemetry"]
print(names + [name for name in sys.modules if "opentelemetry" in name])
"""
    assert child(code, start=subprocess.Popen) == "[]"


def test_where_it_is_not_installed_the_error_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    import tiermem.engine

    monkeypatch.delitem(sys.modules, "tiermem.engine.telemetry")
    monkeypatch.delattr(tiermem.engine, "telemetry")
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigError, match=r"pip install 'tiermem\[telemetry\]'"):
        MemoryBank.ephemeral(telemetry={"enabled": True})
