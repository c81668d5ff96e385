"""The record of a run: who reads a run opens it once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank, RunError
from agents.bank import history
from agents.config.load import load_settings
from agents.simulation.effects.experiment import effect
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.runs.compare import compare_runs
from agents.simulation.runs.record import RunRecord, last_tick, past_bank
from agents.simulation.runs.replay import verify_files
from agents.simulation.runs.run import Run
from agents.simulation.runs.why import decision, life

TICKS = 5
Openings = Callable[[Callable[[], Any]], tuple[int, int]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs of a scenario with different seeds."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (1, 2):
        simulation = {"world": "town", "agents": 4, "ticks": TICKS}
        settings = load_settings(
            {"seed": seed, "simulation": simulation, "storage": {"sync": "manual"}}
        )
        with Run.create(folder / str(seed), settings) as run:
            list(run.advance(TICKS))
            run.finish(report=False)
    return folder / "1", folder / "2"


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> Openings:
    """Counts the banks that a call opens to look at, and the journals that it copies."""
    made = {"banks": 0, "journals": 0}
    at: Any = vars(MemoryBank)["at"]
    past = history.past

    def counted_at(cls: type[MemoryBank], *given: Any, **options: Any) -> MemoryBank:
        made["banks"] += 1
        bank: MemoryBank = at.__func__(cls, *given, **options)
        return bank

    def counted_past(*given: Any) -> Any:
        made["journals"] += 1
        return past(*given)

    monkeypatch.setattr(MemoryBank, "at", classmethod(counted_at))
    monkeypatch.setattr(history, "past", counted_past)

    def count(call: Callable[[], Any]) -> tuple[int, int]:
        made.update(banks=0, journals=0)
        call()
        return made["banks"], made["journals"]

    return count


def test_a_decision_opens_one_bank(runs: tuple[Path, Path], openings: Openings) -> None:
    assert openings(lambda: decision(runs[0], "agent_00", 3)) == (1, 2)


def test_a_comparison_opens_one_bank_of_each_run(
    runs: tuple[Path, Path], openings: Openings
) -> None:
    assert openings(lambda: compare_runs(*runs)) == (2, 4)


def test_a_life_opens_one_bank(runs: tuple[Path, Path], openings: Openings) -> None:
    with MemoryBank.at(runs[0] / "bank") as bank:
        memory = bank.agent("agent_00").all()[0]
    assert openings(lambda: life(runs[0], memory.id)) == (1, 2)


def test_the_files_of_a_run_are_verified_by_its_journal_alone(
    runs: tuple[Path, Path], openings: Openings
) -> None:
    assert openings(lambda: list(verify_files(runs[0]))) == (0, 1)


def test_the_effect_of_a_block_opens_no_bank_to_look_at(
    runs: tuple[Path, Path], openings: Openings
) -> None:
    banks, _ = openings(lambda: effect(runs[0], at=2, block="agent_01->agent_02"))
    assert banks == 0


def test_a_record_tells_what_the_bank_tells(runs: tuple[Path, Path]) -> None:
    with RunRecord.read(runs[0]) as record, MemoryBank.at(runs[0] / "bank") as bank:
        assert record.last == bank.tick == last_tick(runs[0]) == TICKS
        assert record.hash() == ticks_of(bank).hash()
        assert list(record.records()) == list(ticks_of(bank).records())
        assert list(record.events(2)) == list(ticks_of(bank).events(2))
        assert dict(record.logs(1)) == dict(ticks_of(bank).logs(1))
        assert record.agents == bank.settings.simulation.agent_ids()
        assert [tick for tick, _ in record.decisions()] == list(range(1, TICKS + 1))
        with record.bank(3) as then:
            assert then.tick == 3


def test_the_record_of_an_open_run_has_no_copy_of_its_bank() -> None:
    with MemoryBank.ephemeral() as bank, pytest.raises(RuntimeError, match="is open"):
        RunRecord.of(bank, bank.settings).bank(0)


def test_a_tick_that_a_run_does_not_have_is_refused(runs: tuple[Path, Path]) -> None:
    with pytest.raises(RunError, match=f"has {TICKS} ticks, so there is no tick 9"):
        past_bank(runs[0], 9)
