"""A run that is spread over workers is the run of one process, byte for byte."""

import gc
import json
import os
import resource
import shutil
import signal
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

from agents import BankLocked, ConfigError, MemoryBank, RunError, SimulationError
from agents.config.load import load_settings
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.runs.branch import merge
from agents.simulation.runs.placement import Placement, engine_of
from agents.simulation.runs.record import last_tick
from agents.simulation.runs.replay import Replay, verify_files
from agents.simulation.runs.run import Run, go_back
from agents.simulation.tick.streams import Stream
from agents.simulation.workers import driver as driving
from agents.simulation.workers.carriers import ProcessLink
from agents.simulation.workers.cells import MOST_CELLS, cells_for, members, placed
from agents.simulation.workers.driver import Driver
from agents.simulation.workers.log import Entry, Frames, TickLog, read_log
from spread_runs import engine, results, run_to_the_end, scenario

pytestmark = pytest.mark.slow_after(1)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run in one process."""
    folder = tmp_path_factory.mktemp("local") / "run"
    run_to_the_end(folder, scenario(), workers=0)
    return folder


def started(folder: Path, workers: int = 2) -> Run:
    here = Path(__file__).parents[2]
    return Run.create(folder, scenario(), scenario=here, engine=engine(workers))


def driver_of(run: Run) -> Driver:
    driver = run._driver
    assert driver is not None
    return driver


def links_of(run: Run) -> list[Any]:
    return list(driver_of(run)._links)


def finish(folder: Path, workers: int) -> dict[str, bytes]:
    with Run.open(folder, engine=engine(workers)) as run:
        list(run.advance(run.settings.simulation.ticks))
        run.finish(report=False)
    return results(folder)


@pytest.mark.slow
def test_the_driver_holds_no_memories_and_no_generators_of_agents(tmp_path: Path) -> None:
    def generators() -> int:
        gc.collect()
        return sum(type(each) is Stream for each in gc.get_objects())

    before = generators()
    run = started(tmp_path / "run")
    try:
        bank = weakref.ref(run.bank.engine)
        next(run.advance(1))
        assert generators() - before == 1  # that of the order
        assert bank() is None
    finally:
        run.close()


@pytest.mark.slow
@pytest.mark.long_after(3)
@pytest.mark.parametrize("workers", [2, 1, 3, 5])
def test_a_run_has_the_same_records_and_results_on_any_number_of_workers(
    tmp_path: Path, local: Path, workers: int
) -> None:
    records = run_to_the_end(tmp_path / "run", scenario(), workers)
    with MemoryBank.at(local / "bank") as bank:
        recorded = [record for record, _ in ticks_of(bank).records(after=0)]
    assert [[*each.items()] for each in records] == [[*each.items()] for each in recorded]
    assert results(tmp_path / "run") == results(local)
    assert not (tmp_path / "run" / "shards").exists()


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.long_after(3)
@pytest.mark.parametrize(
    ("world", "workers"),
    [
        ("household", 2),
        ("market", 5),
        ("rumor", 3),
        ("site", 2),
        ("town", 3),
        ("rumor", 1),
        ("minority", 2),
        ("helping", 3),
    ],
)
def test_the_shipped_worlds_are_the_same_too(tmp_path: Path, world: str, workers: int) -> None:
    settings = scenario(world, agents=14, ticks=40 if world == "town" else 9)
    local, spread = (
        run_to_the_end(tmp_path / str(number), settings, number) for number in (0, workers)
    )
    assert [each["state_hash"] for each in spread] == [each["state_hash"] for each in local]
    assert results(tmp_path / str(workers)) == results(tmp_path / "0")


@pytest.mark.slow
def test_a_run_goes_on_with_another_number_of_workers_and_in_one_process(
    tmp_path: Path, local: Path
) -> None:
    folder = tmp_path / "run"
    with started(folder, workers=2) as run:
        list(run.advance(2))
    with Run.open(folder, engine=engine(1)) as run:
        assert run.tick == 2
        list(run.advance(4))
    assert finish(folder, workers=0) == results(local)


@pytest.mark.slow
def test_a_worker_that_is_killed_before_it_decides_costs_only_the_tick(
    tmp_path: Path, local: Path
) -> None:
    folder = tmp_path / "run"
    with started(folder) as run:
        list(run.advance(3))
        os.kill(links_of(run)[1].process.pid, signal.SIGKILL)
        with pytest.raises(RunError, match="worker 2 of 2 was killed"):
            list(run.advance(4))
        with pytest.raises(SimulationError, match="failed"):
            list(run.advance(4))
        assert run.tick == 3
    assert finish(folder, workers=3) == results(local)


@pytest.mark.slow
def test_a_cell_that_is_behind_is_brought_up_from_the_log(
    tmp_path: Path, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, append = tmp_path / "run", TickLog.append
    with started(folder) as run:
        list(run.advance(3))
        first = links_of(run)[0]

        def append_and_kill(log: TickLog, entry: Entry) -> None:
            append(log, entry)
            os.kill(first.process.pid, signal.SIGKILL)

        monkeypatch.setattr(TickLog, "append", append_and_kill)
        with pytest.raises(RunError, match="worker 1 of 2 was killed"):
            list(run.advance(4))
    monkeypatch.undo()
    with Run.open(folder, engine=engine(1)) as run:
        assert run.tick == 4
    assert finish(folder, workers=2) == results(local)


@pytest.mark.slow
def test_a_disk_that_is_full_under_the_log_fails_the_tick_whole(
    tmp_path: Path, local: Path
) -> None:
    folder = tmp_path / "run"
    with started(folder) as run:
        list(run.advance(2))
        full = (folder / "shards" / "ticks.log").stat().st_size + 100
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        was = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (full, hard))
        try:
            with pytest.raises(RunError, match=r"tick 3 can't be written"):
                list(run.advance(3))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, was)
        assert run.tick == 2
    assert [entry.tick for entry in read_log(folder / "shards" / "ticks.log")] == [1, 2]
    assert finish(folder, workers=2) == results(local)


@pytest.mark.slow
def test_readers_see_all_ticks_of_a_run_that_was_not_finished(tmp_path: Path, local: Path) -> None:
    folder = tmp_path / "run"
    with started(folder) as run:
        list(run.advance(3))
        assert last_tick(folder) == 3  # while the run goes on
        list(run.advance(5))
    assert last_tick(folder) == 5
    again = Replay(folder)
    assert [*again.ticks()] == [None] * 6
    again.close()
    with MemoryBank.at(folder / "bank", 4) as one, MemoryBank.at(local / "bank", 4) as other:
        assert ticks_of(one).hash() == ticks_of(other).hash()
    go_back(folder, 2)
    assert finish(folder, workers=2) == results(local)
    assert [*verify_files(folder)] == []


@pytest.mark.slow
def test_a_merge_is_a_copy_with_one_bank(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with started(folder) as run:
        list(run.advance(3))
        record = next(run.advance(4))
        summary = merge(folder, tmp_path / "copy")
    assert (summary["ticks"], summary["state_hash"]) == (4, record["state_hash"])
    assert not (tmp_path / "copy" / "shards").exists()
    assert "engine" not in json.loads((tmp_path / "copy" / "run.json").read_text())


def test_a_run_that_goes_on_is_not_opened_a_second_time(tmp_path: Path) -> None:
    with started(tmp_path / "run", workers=1) as run:
        list(run.advance(1))
        with pytest.raises(BankLocked):
            Run.open(tmp_path / "run", engine=engine(0))


def test_what_json_can_not_hold_is_refused_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plain_seen(seen: Any) -> list[list[Any]]:
        return [[each.text, {"facts": {"far": {1, 2}}}] for each in seen]

    with started(tmp_path / "run", workers=1) as run:
        list(run.advance(1))
        monkeypatch.setattr(driving.wire, "plain_seen", plain_seen)
        with pytest.raises(SimulationError, match=r"Town.observe\(\) gave what no other process"):
            list(run.advance(2))


@pytest.mark.slow
def test_no_process_is_left(tmp_path: Path) -> None:
    with started(tmp_path / "run") as run:
        list(run.advance(1))
        processes = [link.process for link in links_of(run)]
        assert [each.poll() for each in processes] == [None, None]
    assert all(each.poll() is not None for each in processes)


@pytest.mark.slow
def test_a_cell_that_is_lost_is_made_anew_from_the_bank_and_the_log(
    tmp_path: Path, local: Path
) -> None:
    folder, said = tmp_path / "run", list[str]()
    with started(folder) as run:
        list(run.advance(4))
        assert (folder / "checkpoints" / "tick-000004" / "manifest.json").is_file()
    shutil.rmtree(folder / "shards" / "cell-03")
    with Run.open(folder, engine=engine(2), say=said.append) as run:
        assert run.tick == 4
    assert any("made anew" in each for each in said)
    assert finish(folder, workers=2) == results(local)


def test_without_ray_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with started(tmp_path / "run", workers=0) as run:
        run._engine = Placement("ray", 2)
        with pytest.raises(ConfigError, match=r"needs the package ray") as caught:
            next(run.advance(1))
    assert "tiermem[ray]" in caught.value.hint
    assert not [name for name in os.environ if name.startswith("RAY_")]


# The parts


@pytest.fixture
def entries() -> list[Entry]:
    frames = [Frames(b"[]", b"[[],{}]", b"[[],[]]")] * 2
    return [Entry(tick, {"gold": 1.5}, '{"a":1}', frames) for tick in (1, 2, 3)]


def test_an_embedder_of_others_is_refused() -> None:
    settings = load_settings(overrides={"embedder.provider": "openai"})
    assert engine_of(settings, "local").kind == "local"
    with pytest.raises(ConfigError, match="offline embedder"):
        engine_of(settings, "processes")


def test_a_torn_tail_of_the_log_is_cut_off(tmp_path: Path, entries: list[Entry]) -> None:
    path = tmp_path / "ticks.log"
    TickLog.create(path)
    log = TickLog(path)
    for entry in entries:
        log.append(entry)
    log.close()
    whole = path.read_bytes()
    before = len(whole) - len(entries[-1].packed()) - 12
    for size in (before + 1, before + 12, before + 40, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert [each.tick for each in read_log(path)] == [1, 2]
        torn = TickLog(path)
        assert torn.last == entries[1]
        torn.append(entries[2])
        torn.close()
        assert path.read_bytes() == whole


def test_a_changed_byte_ends_the_log(tmp_path: Path, entries: list[Entry]) -> None:
    path = tmp_path / "ticks.log"
    TickLog.create(path)
    log = TickLog(path)
    for entry in entries:
        log.append(entry)
    log.close()
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(bytes(data))
    assert list(read_log(path)) == entries[:2]


def test_another_file_is_not_a_log(tmp_path: Path) -> None:
    (tmp_path / "ticks.log").write_bytes(b"something else")
    with pytest.raises(RunError, match="not a log of ticks"):
        TickLog(tmp_path / "ticks.log")


def test_the_cell_of_an_agent_depends_on_its_id_alone() -> None:
    agents = [f"agent_{number:04}" for number in range(1000)]
    cells = members(agents, 64)
    assert [*map(set, cells)] == [*map(set, members(agents[::-1], 64))]
    assert sorted(agent for own in cells for agent in own) == agents
    assert cells[3][:2] == ["agent_0022", "agent_0087"]


def test_every_cell_has_one_worker_and_workers_have_alike_many_agents() -> None:
    sizes = [len(own) for own in members([f"a{number}" for number in range(5000)], 64)]
    for workers in (1, 2, 3, 5, 64):
        found = placed(sizes, workers)
        assert sorted(cell for own in found for cell in own) == list(range(64))
        loads = [sum(sizes[cell] for cell in own) for own in found]
        assert max(loads) - min(loads) <= max(sizes)


def test_a_population_has_as_many_cells_as_it_is_worth() -> None:
    assert [cells_for(agents) for agents in (1, 1000, 10_000, 10**6)] == [8, 8, 64, MOST_CELLS]


def test_a_worker_that_can_not_start_says_why(tmp_path: Path) -> None:
    link = ProcessLink("tiermem.simulation.no_such_module")
    try:
        link.send(b"x")
        with pytest.raises(driving.WorkerLost, match="ended"):
            link.receive()
    finally:
        link.end()
