"""``make chaos``: it notices what is lost, and finds nothing lost in a bank."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from banks import child
from waiting import ended

CHAOS = Path(__file__).with_name("chaos.py")


def chaos(folder: Path, *options: object) -> tuple[int, str]:
    with subprocess.Popen(
        [sys.executable, str(CHAOS), "--folder", str(folder), *map(str, options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={name: own for name, own in os.environ.items() if name != "LD_PRELOAD"},
    ) as process:
        said, _ = ended(process)
    return process.returncode, said


@pytest.mark.slow
def test_a_round_of_kills_holds(tmp_path: Path) -> None:
    code, said = chaos(tmp_path, "--replay", "1:0", "--only", "kill")
    assert code == 0, said
    assert re.search(r"\| kill \| (\d+) \| \1 \| 0 \| 0 \| 0 \| 0 \| 0 \|", said)
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_a_minute_of_faults_breaks_no_law(tmp_path: Path) -> None:
    code, said = chaos(tmp_path, "--minutes", 1, "--seed", 1)
    assert code == 0, said


@pytest.mark.slow
def test_an_unknown_fault_is_one_clear_error(tmp_path: Path) -> None:
    code, said = chaos(tmp_path, "--only", "kil")
    assert code == 1
    assert "unknown: kil; known: kill, " in said


# A worker runs to its end; then its last commits are taken away, or nothing is.
TAMPERS = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:4]
from chaos_round import Broken, Round
from agents.storage.journal.journal import Journal
play = Round(1, 0, Path(sys.argv[4]))
play.sync = "manual"
job = play.job(30)
play.wait(play.start(job))
journal = Journal(play.folder / "journal.db")
journal.rewind(journal.head - int(sys.argv[5]))
journal.close()
try:
    play.settle(job)
    print("held")
except Broken as broken:
    print(broken.verdict)
"""


@pytest.mark.parametrize(("commits", "verdict"), [(0, "held"), (6, "lost")])
def test_acknowledged_steps_that_are_gone_are_noticed(
    tmp_path: Path, commits: int, verdict: str
) -> None:
    tests = CHAOS.parent.parent
    paths = CHAOS.parent, tests / "faults", tests / "property"
    assert child(TAMPERS, *paths, tmp_path, commits) == verdict
