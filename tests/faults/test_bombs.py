"""A small file that becomes huge is refused before it does, with an error that says so."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import bombs
import pytest

from agents import CheckpointDamaged, InvalidInput, MemoryBank
from agents.exchange import row_files
from agents.storage import checkpoint
from agents.storage.journal.attachments import Attachment
from waiting import LONG

pytestmark = pytest.mark.slow_after(1)

# Reads a file in a process that gets little more memory than it has when it begins.
CHILD = """
import resource, sys
from pathlib import Path

import pyarrow.compute, pyarrow.parquet
from agents import InvalidInput, TierMemError
from agents.exchange import row_files
from agents.storage import checkpoint

path = Path(sys.argv[1])
pages = int(Path("/proc/self/statm").read_text().split()[0])
most = pages * resource.getpagesize() + 200_000_000
resource.setrlimit(resource.RLIMIT_AS, (most, most))
try:
    if path.suffix == ".tmck":
        checkpoint.read(path)
    else:
        for row in row_files.read(path, row_files.format_of(path)):
            if row.problem:
                print(type(row.problem).__name__, row.problem.why)
except TierMemError as error:
    print(type(error).__name__, error)
"""


def told(path: Path) -> str:
    """What a process with little memory says of the file."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, path],
        capture_output=True,
        text=True,
        timeout=LONG,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("make", bombs.CHECKPOINTS, ids=lambda make: make.__name__)
def test_a_checkpoint_has_no_more_bytes_than_its_file(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "bomb.tmck"
    make(path)
    said = told(path)
    assert said.startswith("CheckpointDamaged")
    assert any(why in said for why in ("inflates to over", "plain tables", "more bytes than"))


@pytest.mark.long_after(2)
@pytest.mark.parametrize("make", bombs.PARQUETS, ids=lambda make: make.__name__)
def test_parquet_unpacks_to_a_bounded_size(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "bomb.parquet"
    make(path)
    assert path.stat().st_size < 20_000
    said = told(path)
    assert said.startswith("InvalidInput")
    assert "unpacks to more than 67,108,864 bytes" in said


@pytest.mark.slow
def test_lines_without_an_end_take_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl"
    bombs.json_lines(path)
    assert [line.split()[0] for line in told(path).splitlines()] == ["InvalidInput"] * 3


def test_a_file_that_somebody_trusts_may_unpack_to_more(tmp_path: Path) -> None:
    path = tmp_path / "many.parquet"
    bombs.of_one_text(path)
    rows = row_files.read(path, row_files.Format.PARQUET, max_unpacked=2_000_000_000)
    assert next(rows).values["content"] == "y" * 1_000_000
    with pytest.raises(InvalidInput, match="more than 5 bytes"):
        next(row_files.read(path, row_files.Format.PARQUET, max_unpacked=5))


def test_a_state_that_deflates_very_well_is_kept_and_read_again(tmp_path: Path) -> None:
    state = f'["{"a" * (17 << 20)}"]'
    row = Attachment("{}", b"", state, b"").row(1, 1)
    assert row.state() == state.encode()
    path = tmp_path / "one.tmck"
    with MemoryBank.ephemeral() as bank:
        bank.agent("alice").add("a text")
        bank.checkpoint(path, extra={"note": "x" * 100_000})
    assert checkpoint.read(path).extra == {"note": "x" * 100_000}


def test_a_checkpoint_with_a_trigger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.tmck"
    database = bombs.checkpoint(path)
    database.execute("CREATE TRIGGER t AFTER INSERT ON ticks BEGIN SELECT 1; END")
    database.close()
    with pytest.raises(CheckpointDamaged, match="plain tables"):
        checkpoint.read(path)
