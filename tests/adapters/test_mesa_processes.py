"""Mesa models in several processes: the same hash in each, runs side by side, and a kill."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mesa")

import mesa
from mesa_models import BatchTown, walked

from tiermem import MemoryBank

pytestmark = pytest.mark.slow_after(1)

CHILD = Path(__file__).with_name("mesa_child.py")


def child(folder: Path, steps: int, killed: int = 0, seed: str = "0") -> tuple[int, str]:
    """The exit code of a process that ran a town, and what it printed."""
    done = subprocess.run(
        [sys.executable, CHILD, folder, str(steps), str(killed)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout.strip() or done.stderr


@pytest.fixture
def start_method() -> Iterator[None]:
    """Mesa's batch runner sets the start method of the whole process."""
    before = multiprocessing.get_start_method(allow_none=True)
    yield
    multiprocessing.set_start_method(before, force=True)


@pytest.mark.long
def test_the_same_seed_gives_the_same_hash_in_every_process(tmp_path: Path) -> None:
    here = walked(3, n=4, seed=9).memories.record["state_hash"]
    for seed in ("1", "2"):
        assert child(tmp_path / seed, 3, seed=seed) == (0, here)


@pytest.mark.slow
def test_a_killed_model_has_all_its_whole_steps(tmp_path: Path) -> None:
    assert child(tmp_path / "run", 5, killed=4)[0] == -signal.SIGKILL
    whole = walked(3, n=4, seed=9)
    with MemoryBank.at(tmp_path / "run/bank") as bank:
        assert bank.tick == 3
        assert bank.state_hash() == whole.memories.record["state_hash"]


@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("start_method")
@pytest.mark.long_after(1)
@pytest.mark.parametrize("processes", [1, 2])
def test_runs_of_a_batch_have_folders_of_their_own(tmp_path: Path, processes: int) -> None:
    runner = pytest.importorskip("mesa.batchrunner")  # Mesa 4 has none
    base = str(tmp_path / "runs")
    Path(base).mkdir()
    rows = runner.batch_run(
        BatchTown,
        {"n": [2, 3], "first": [1, 2], "base": base},
        number_processes=processes,
        max_steps=1,
        display_progress=False,
    )
    made = {path.name: path for path in Path(base).iterdir() if not path.name.startswith(".")}
    assert sorted({name.partition("-")[0] for name in made}) == ["n2", "n3"]
    assert len(made) == 4
    # Mesa 3.3 and 3.4 make one step more than they were asked for; 3.4 tells of the one before.
    steps, told = {"3.3": (2, 2), "3.4": (2, 1)}.get(mesa.__version__[:3], (1, 1))
    ends = set()
    for path in made.values():
        with MemoryBank.at(path / "bank") as bank:
            assert bank.tick == steps
        with MemoryBank.at(path / "bank", tick=told) as bank:
            ends.add(bank.state_hash())
    assert ends == {row["state_hash"] for row in rows}
    alone = BatchTown(n=2, first=1)
    for _ in range(told):
        alone.step()
    assert alone.memories.record["state_hash"] in ends
