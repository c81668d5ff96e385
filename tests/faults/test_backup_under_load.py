"""A backup of a bank that is written to is the bank after one of its commits, and lacks nothing."""

import itertools
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from backup_writer import opened

from agents import MemoryBank
from tiermem.testing import SmallEmbedder
from waiting import until

pytestmark = pytest.mark.slow

BACKUPS = 20
SCRIPT = Path(__file__).with_name("backup_writer.py")


class Writer:
    """The process in backup_writer.py, and what it acknowledged: a state hash by commit."""

    def __init__(self, folder: Path, seed: int, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(folder), str(seed), *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.hashes: dict[int, str] = {}
        self.last = self._asked = 0
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.endswith("\n"):
                return  # the kill cut it short
            number, digest = line.split()
            self.hashes[int(number)] = digest
            self.last = int(number)

    def more(self, commits: int = 3) -> bool:
        """Whether there were commits since it was last asked this with success."""
        assert self.process.poll() is None, "the writer died"
        found = self.last >= self._asked + commits
        self._asked = self.last if found else self._asked
        return found

    def kill(self) -> None:
        self.process.kill()
        self._reader.join()
        assert self.process.wait() == -signal.SIGKILL
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def writing(folder: Path, seed: int, *options: str) -> Iterator[Writer]:
    writer = Writer(folder, seed, *options)
    try:
        yield writer
    finally:
        if writer.process.poll() is None:
            writer.kill()


def head_and_hash(folder: Path) -> tuple[int, str]:
    with MemoryBank.at(folder, embedder=SmallEmbedder()) as bank:
        return bank.engine.journal.head, bank.state_hash()


def assert_is_of(writer: Writer, backup: Path, acknowledged: int) -> None:
    """The backup opens to a state of the history, which is not older than what was acknowledged."""
    head, state = head_and_hash(backup)
    assert head >= acknowledged
    until(f"commit {head} to be acknowledged", lambda: head in writer.hashes)
    assert state == writer.hashes[head]


@pytest.mark.parametrize("options", [(), ("closes",)], ids=["open", "opened and closed"])
def test_backups_of_a_bank_that_is_written_to_are_prefixes_of_its_history(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    folder = tmp_path / "bank"
    with writing(folder, 7, *options) as writer:
        heads = []
        for number in range(BACKUPS):
            writer.more(0)
            until("a commit", writer.more)
            acknowledged = writer.last
            made = MemoryBank.backup(folder, tmp_path / f"backup-{number}")
            assert_is_of(writer, Path(made.folder), acknowledged)
            heads.append(made.commits)
        assert len(set(heads)) == BACKUPS
    with opened(tmp_path / "backup-9") as bank:  # it is a bank, which goes on
        assert bank.engine.journal.head >= heads[9]
        bank.agent("alice").add("more")
    assert not list(tmp_path.glob(".*"))


def test_a_backup_of_a_bank_whose_writer_was_killed_has_all_that_was_acknowledged(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "bank"
    for number in range(BACKUPS // 2):
        with writing(folder, number) as writer:
            until("a commit", writer.more)
            time.sleep(0.01 * number)
            writer.kill()
        made = MemoryBank.backup(folder, tmp_path / f"backup-{number}")
        assert head_and_hash(Path(made.folder)) == head_and_hash(folder)
        assert made.commits >= writer.last > 0


def test_a_backup_that_is_killed_leaves_the_bank_as_it_was_and_no_backup(tmp_path: Path) -> None:
    folder, to = tmp_path / "bank", tmp_path / "backup"
    with opened(folder) as bank:
        bank.add_many([("alice", f"{number} " + "x" * 5000) for number in range(3000)])
    before = head_and_hash(folder)
    code = "import sys; from tiermem import MemoryBank; print(1, flush=True); "
    code += "MemoryBank.backup(sys.argv[1], sys.argv[2])"
    seen = set()
    for number in itertools.count():
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(folder), str(to)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.01 * number)
        process.kill()
        process.stdout.close()
        code_of = process.wait()
        left = {path.name.split(".")[-1] for path in tmp_path.iterdir()}
        seen |= left
        if to.exists():
            assert head_and_hash(to) == before
            break
        assert code_of == -signal.SIGKILL
        assert number < 500
    assert "tmp" in seen  # one was killed while it copied
    assert head_and_hash(folder) == before
    MemoryBank.backup(folder, tmp_path / "another")
    with pytest.raises(Exception, match="exists already"):
        MemoryBank.backup(folder, to)
