"""Tables of runs and sweeps as data frames, with what is installed."""

import sys
from pathlib import Path
from typing import Any

import pytest

from agents.config.load import load_settings
from agents.errors import NotInstalled, RunError
from agents.simulation.runs.frames import frame
from agents.simulation.runs.outputs import rows_of, table
from agents.simulation.runs.run import Run
from tiermem.simulation import SweepRecord

ROWS = [{"tick": 1, "loss": 0.5, "who": None}, {"tick": 2, "loss": None, "who": "alice"}]


def run_in(folder: Path) -> Run:
    options: dict[str, Any] = {"world": "market", "agents": 5, "ticks": 2}
    settings = load_settings({"simulation": options, "storage": {"sync": "manual"}})
    return Run.create(folder, settings)


def test_without_pandas_and_polars_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    data = table(ROWS)
    frame(data)  # pyarrow looks for pandas at its first table
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotInstalled, match="needs the package pandas") as caught:
        frame(data)
    assert "tiermem[analysis]" in caught.value.hint
    assert "polars" in caught.value.hint


def test_a_table_that_there_is_not_is_named(tmp_path: Path) -> None:
    with run_in(tmp_path / "run") as run, pytest.raises(RunError, match="no table 'loss'"):
        run.frame("loss")
    record = object.__new__(SweepRecord)
    object.__setattr__(record, "tables", {"results": ROWS})
    with pytest.raises(RunError, match="no table 'loss'"):
        record.frame("loss")


def test_the_frames_of_a_run_are_its_tables(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    with run_in(tmp_path / "run") as run:
        for _ in run.advance(2):
            pass
        frames = {name: run.frame(name) for name in ("metrics", "ticks", "decisions")}
        run.finish()
    for name, found in frames.items():
        kept = rows_of(tmp_path / "run" / f"{name}.parquet")
        assert kept is not None
        assert list(found.columns) == list(kept[0])
        assert len(found) == len(kept)
    assert frames["metrics"]["tick"].tolist() == [0, 1, 2]
    assert frame(table(ROWS))["loss"].tolist()[0] == 0.5
