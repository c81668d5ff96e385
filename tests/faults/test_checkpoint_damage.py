"""A checkpoint that is damaged, foreign or can't be written is told from a whole one."""

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

import warm_children
from agents import (
    BankError,
    CheckpointDamaged,
    CheckpointError,
    ConfigError,
    MemoryBank,
    TierMemError,
)
from agents.config.load import load_settings
from agents.config.settings import Settings
from agents.errors import RunError
from agents.simulation.kept_ticks import keep_tick, ticks_of
from agents.simulation.runs.run import Run
from agents.storage import checkpoint
from banks import MANUAL, TESTS, busy, child, everything
from embedders import Directions
from plain_mem0 import assert_store_is_exact

pytestmark = pytest.mark.slow_after(1)

FLIPS = 300


SCENARIO: dict[str, Any] = {
    "simulation": {"world": "market", "agents": 5, "ticks": 20},
    "checkpoint": {"every": 4, "keep": 3},
    "storage": MANUAL,
}


def open_bank(folder: Path) -> MemoryBank:
    return MemoryBank.open(folder, embedder=Directions(), storage=MANUAL)


def restore(path: Path, folder: Path, **options: Any) -> MemoryBank:
    return MemoryBank.restore(path, folder, embedder=Directions(), storage=MANUAL, **options)


def state(bank: MemoryBank) -> tuple[object, ...]:
    ticks = ticks_of(bank)
    return (*everything(bank), list(ticks.records()), ticks.state(), ticks.hash())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[object, ...]]:
    """A checkpoint with a bit of everything, and the state that it holds."""
    folder = tmp_path_factory.mktemp("made")
    with open_bank(folder / "bank") as bank:
        busy(bank)
        for tick in (9, 10):
            with bank.transaction():
                bank.advance(tick)
                bank.agent("a1").add(f"tick {tick} <{tick} 1>", metadata={"tick": tick})
                keep_tick(bank, {"tick": tick}, {"world": [tick, "ñ"]}, b"\1\2\3")
        bank.checkpoint(folder / "whole.tmck", {"mine": True})
        return folder / "whole.tmck", state(bank)


@pytest.fixture
def path(made: tuple[Path, object], tmp_path: Path) -> Path:
    """A copy of it, to break."""
    return Path(shutil.copy(made[0], tmp_path / "copy.tmck"))


def assert_refused(path: Path, message: str = "") -> None:
    """It is refused by name, and neither it nor a bank's folder is changed."""
    before = path.read_bytes() if path.is_file() else None
    folder = path.parent / "new"
    with pytest.raises(CheckpointError) as refused:
        restore(path, folder)
    assert isinstance(refused.value, CheckpointDamaged) == path.is_file()
    assert str(path) in str(refused.value)
    assert message in str(refused.value)
    assert not (folder / "journal.db").exists()
    assert before == (path.read_bytes() if path.is_file() else None)
    assert {each.name for each in path.parent.iterdir()} <= {path.name, "new"}


# Damage


def test_a_whole_checkpoint_gives_its_state_and_is_not_changed(
    made: tuple[Path, object], path: Path
) -> None:
    before = path.read_bytes()
    with restore(path, path.parent / "new") as bank:
        assert state(bank) == made[1]
    assert path.read_bytes() == before


def refused_or_same(path: Path, expected: object) -> bool:
    """Whether it is refused; if it is not, it must hold the state it was made with."""
    before = path.read_bytes()
    try:
        checkpoint.read(path)
    except CheckpointDamaged as error:
        assert "not a whole checkpoint" in str(error)  # noqa: PT017 - one of two good ends
        return True
    finally:
        assert path.read_bytes() == before
    folder = path.parent / "accepted"
    with restore(path, folder) as bank:
        assert state(bank) == expected
    shutil.rmtree(folder)
    return False


@pytest.mark.slow
def test_a_checkpoint_that_was_cut_short_is_refused_or_has_lost_nothing(
    made: tuple[Path, object], path: Path
) -> None:
    whole, rng = path.read_bytes(), random.Random(1)
    page = 65536
    near_pages = [size + off for size in range(page, len(whole), page) for off in (-1, 0, 1)]
    lengths = [1, 15, 16, 17, 99, 100, 101, 511, 512, 4096, *near_pages, len(whole) - 1]
    lengths += rng.sample(range(1, len(whole)), 60)
    for length in lengths:
        path.write_bytes(whole[:length])
        # The last page is that of an empty table, where there is nothing to lose.
        assert refused_or_same(path, made[1]) or length > len(whole) - page


@pytest.mark.slow
def test_a_flipped_bit_is_refused_or_changes_nothing(made: tuple[Path, object], path: Path) -> None:
    whole, rng = path.read_bytes(), random.Random(2)
    used = [i for i in range(len(whole)) if any(whole[max(0, i - 4) : i + 4])]
    refused = 0
    for place in rng.choices(used, k=FLIPS):
        broken = bytearray(whole)
        broken[place] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
        refused += refused_or_same(path, made[1])
    assert refused > FLIPS / 2


@pytest.mark.parametrize(
    ("table", "column", "kind"),
    [
        pytest.param("agents", "columns", "TEXT"),
        pytest.param("agents", "contents", "TEXT"),
        ("agents", "extras", "BLOB"),
        ("agents", "digest", "TEXT"),
        pytest.param("ticks", "record", "BLOB"),
        ("ticks", "retrieved", "TEXT"),
        ("meta", "value", "BLOB"),
        ("shelf", "content", "BLOB"),
        ("shelf", "traits", "BLOB"),
        ("shelf", "vector", "TEXT"),
        ("shelf", "digest", "TEXT"),
        ("shelf", "seal", "TEXT"),
    ],
)
def test_a_flip_that_turns_text_into_bytes_is_refused_or_changes_nothing(
    made: tuple[Path, object], path: Path, table: str, column: str, kind: str
) -> None:
    # One bit of a row's header says which of the two a value is.
    change(path, f"UPDATE {table} SET {column} = CAST({column} AS {kind})")
    folder = path.parent / "bank"
    shutil.copytree(made[0].parent / "bank", folder)
    with contextlib.suppress(CheckpointDamaged):
        restore(path, folder).close()
    with open_bank(folder) as bank:
        assert state(bank) == made[1]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM agents WHERE agent = 'a1'",
        "DELETE FROM ticks WHERE tick = 9",
        "DELETE FROM meta WHERE key = 'extra'",
        "DELETE FROM meta WHERE key = 'sha256'",
        "DELETE FROM meta",
        "UPDATE agents SET agent = 'a9' WHERE agent = 'a1'",
        "UPDATE agents SET next_sequence = next_sequence + 1",
        "UPDATE ticks SET commit_id = commit_id + 1",
        "UPDATE ticks SET tick = 8 WHERE tick = 9",
        "UPDATE ticks SET state = NULL",
        "UPDATE ticks SET record = replace(record, '10', '11')",
        "UPDATE ticks SET retrieved = x'00'",
        "UPDATE meta SET value = replace(value, '10', '11') WHERE key = 'head'",
        "UPDATE meta SET value = '[]' WHERE key = 'bank'",
        "UPDATE meta SET value = 'x' WHERE key = 'head'",
        "DELETE FROM shelf",
        "DELETE FROM shelf WHERE rowid = (SELECT min(rowid) FROM shelf)",
        "UPDATE shelf SET agent = 'a9'",
        "UPDATE shelf SET temperature = 1",
        "UPDATE shelf SET retention = 1 - retention WHERE retention < 2",
        "UPDATE shelf SET expires_tick = expires_tick + 1",
        "UPDATE shelf SET access_count = access_count + 1",
        "UPDATE shelf SET relevance = relevance + 0.125",
        "UPDATE shelf SET content = content || '.'",
        "UPDATE shelf SET until = since + 1",
        "INSERT INTO embeddings VALUES (x'00', x'00')",
        "INSERT INTO meta VALUES ('more', '1')",
        "DROP TABLE embeddings",
        "ALTER TABLE agents ADD COLUMN more",
    ],
)
def test_a_checkpoint_whose_rows_were_changed_is_refused(path: Path, statement: str) -> None:
    change(path, statement)
    assert_refused(path, "not a whole checkpoint")


def change(path: Path, statement: str) -> None:
    database = sqlite3.connect(path)
    with database:
        database.execute(statement)
    database.close()


def test_a_checkpoint_nested_too_deep_is_refused(path: Path) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    change(path, f"UPDATE meta SET value = '{deep}' WHERE key = 'extra'")
    assert_refused(path)


# Other files


def test_an_empty_file_is_refused(path: Path) -> None:
    path.write_bytes(b"")
    assert_refused(path, "is empty")


def test_a_missing_file_is_refused(path: Path) -> None:
    path.unlink()
    assert_refused(path, "there is no checkpoint")


def test_a_directory_is_refused(path: Path) -> None:
    path.unlink()
    path.mkdir()
    assert_refused(path)


@pytest.mark.parametrize("version", [0, 1, 2, 4, 99, -1])
def test_a_checkpoint_of_another_format_is_refused_with_both_numbers(
    path: Path, version: int
) -> None:
    change(path, f"PRAGMA user_version = {version}")
    assert_refused(path, f"has format {version}, and this version of TierMem reads format 3")


def test_another_programs_database_is_refused(path: Path) -> None:
    path.unlink()
    change(path, "CREATE TABLE meta (key TEXT, value TEXT)")
    assert_refused(path, "another program's file")


@pytest.mark.parametrize("content", [b"tick: 10\n", b"\0" * 70_000, b"SQLite format 3\0" * 5000])
def test_a_file_that_is_no_database_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert_refused(path, "not a whole checkpoint")


def test_a_banks_journal_is_refused(made: tuple[Path, object], path: Path) -> None:
    shutil.copy(made[0].parent / "bank" / "journal.db", path)
    assert_refused(path, "another program's file")


# Where it is restored


def test_a_folder_with_another_bank_is_left_alone(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    with open_bank(folder) as other:
        other.agent("zoe").add("mine <1>", "pinned")
        before = state(other)
    files = {each.name: each.read_bytes() for each in folder.iterdir()}
    with pytest.raises(BankError, match="another bank"):
        restore(path, folder)
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == files
    with open_bank(folder) as other:
        assert state(other) == before


def test_a_bank_in_use_is_left_alone(path: Path, tmp_path: Path) -> None:
    with restore(path, tmp_path / "new") as bank:
        bank.agent("a1").add("later <1>")
        before = state(bank)
        with pytest.raises(BankError, match="is open in this process"):
            restore(path, tmp_path / "new")
        assert state(bank) == before


def test_a_damaged_checkpoint_leaves_the_bank_as_it_was(
    made: tuple[Path, object], path: Path
) -> None:
    folder = path.parent / "bank"
    shutil.copytree(made[0].parent / "bank", folder)
    path.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(CheckpointDamaged):
        restore(path, folder)
    with open_bank(folder) as bank:
        assert state(bank) == made[1]


def test_a_mistyped_option_leaves_the_bank_as_it_was(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with restore(path, folder) as bank:
        bank.checkpoint(path)
        bank.agent("a1").add("after the checkpoint <1>")
        before = state(bank)
    with pytest.raises(ConfigError):
        restore(path, folder, memory={"max_pinned": "many"})
    with open_bank(folder) as bank:
        assert state(bank) == before


KILLED = """
import os, sys
from embedders import Directions
from agents import MemoryBank
def use(path):
    return MemoryBank.open(path, embedder=Directions(), storage={"sync": "manual"})
with use(sys.argv[1]) as bank:
    bank.agent("a").add_many([f"{n} <{n} 1>" for n in range(300)])
    bank.checkpoint(sys.argv[2])
bank = use(sys.argv[1])
bank.agent("b").add_many([f"later {n}" for n in range(5)])
os.kill(os.getpid(), 9)
"""


def test_the_log_of_a_lost_journal_is_not_taken_for_that_of_a_restored_one(tmp_path: Path) -> None:
    folder, path = tmp_path / "bank", tmp_path / "kept.tmck"
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = warm_children.run(
        [sys.executable, "-c", KILLED, folder, path], env=environment, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert (folder / "journal.db-wal").stat().st_size > 0
    (folder / "journal.db").unlink()
    with restore(path, folder) as bank:
        assert bank.agents() == ["a"]
        assert bank.agent("a").count() == 300


# Runs


def settings(**changes: Any) -> Settings:
    return load_settings(SCENARIO, overrides=changes)


def run_to(folder: Path, tick: int, **changes: Any) -> tuple[str, list[str]]:
    """Run it so far; the journal's hash and the hash of every tick's state."""
    with Run.open(folder) if folder.exists() else Run.create(folder, settings(**changes)) as run:
        for _ in run.advance(tick):
            pass
        hashes = [record["state_hash"] for record, _ in ticks_of(run.bank).records()]
        return ticks_of(run.bank).hash(), hashes


def test_a_run_skips_damaged_checkpoints_and_becomes_the_same_run(tmp_path: Path) -> None:
    expected = run_to(tmp_path / "expected" / "run", 20)
    folder = tmp_path / "run"
    run_to(folder, 17)
    shutil.rmtree(folder / "bank")
    newest, middle, oldest = (folder / "checkpoints" / f"tick-{t:06}.tmck" for t in (16, 12, 8))
    newest.write_bytes(newest.read_bytes()[:-100])
    middle.write_bytes(b"")
    said: list[str] = []
    with Run.open(folder, say=said.append) as run:
        assert run.tick == 8
    assert any(str(newest) in line for line in said)
    assert any(str(middle) in line for line in said)
    assert any(oldest.name in line for line in said)
    assert run_to(folder, 20) == expected


def test_a_run_with_nothing_whole_left_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run_to(folder, 5)
    shutil.rmtree(folder / "bank")
    for each in (folder / "checkpoints").iterdir():
        each.write_bytes(b"")
    with pytest.raises(RunError, match="neither the journal nor any checkpoint"):
        Run.open(folder)


@pytest.mark.parametrize("lost", ["missing", "damaged"])
def test_a_checkpoint_of_another_run_is_not_taken_for_its_own(tmp_path: Path, lost: str) -> None:
    folder, other = tmp_path / "run", tmp_path / "other"
    run_to(folder, 5)
    run_to(other, 5, seed=99)
    shutil.copy(other / "checkpoints" / "tick-000004.tmck", folder / "checkpoints")
    if lost == "missing":
        (folder / "bank" / "journal.db").unlink()
    else:
        (folder / "bank" / "journal.db").write_bytes(b"no database" * 1000)
    with pytest.raises(TierMemError):
        Run.open(folder)


# A full disk

FULL_CHECKPOINT = """
import json, os, resource, sys
from banks import busy
from embedders import Directions
from agents import CheckpointError, MemoryBank
folder, path, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
bank = MemoryBank.open(folder, embedder=Directions(), storage={"sync": "manual"})
busy(bank)
bank.checkpoint(path)
older = bank.state_hash()
bank.agent("a1").add_many([f"{n} " + "long " * 200 for n in range(300)])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
try:
    bank.checkpoint(path)
    error = None
except CheckpointError as caught:
    error = str(caught)
left = os.listdir(os.path.dirname(path))
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
bank.checkpoint(path + "2")
print(json.dumps([error, left, older, bank.state_hash()]))
"""


@pytest.mark.parametrize("limit", [0, 1000, 65536, 100_000, 300_000, 450_000])
def test_a_full_disk_leaves_the_older_checkpoint_and_no_other_file(
    tmp_path: Path, limit: int
) -> None:
    path = tmp_path / "checkpoints" / "kept.tmck"
    printed = child(FULL_CHECKPOINT, tmp_path / "bank", path, limit)
    error, left, older, newer = json.loads(printed)
    assert str(path) in error
    assert "can't be written" in error
    assert left == ["kept.tmck"]
    for number, (each, expected) in enumerate([(path, older), (Path(f"{path}2"), newer)]):
        with restore(each, tmp_path / str(number)) as bank:
            assert bank.state_hash() == expected


FULL_RESTORE = """
import json, os, resource, sys
from banks import busy
from embedders import Directions
from agents import MemoryBank, TierMemError
folder, path, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = {"embedder": Directions(), "storage": {"sync": "manual"}}
with MemoryBank.open(folder, **options) as bank:
    busy(bank)
    bank.checkpoint(path)
    bank.agent("a1").add("later")
    later = bank.state_hash()
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
try:
    MemoryBank.restore(path, folder, **options)
    error = None
except TierMemError as caught:
    error = str(caught)
left = sorted(os.listdir(folder))
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
with MemoryBank.open(folder, **options) as bank:
    print(json.dumps([error, left, bank.state_hash() == later]))
"""


@pytest.mark.parametrize(
    "limit",
    [
        0,
        1000,
        10_000,
        40_000,
    ],
)
def test_a_full_disk_while_restoring_leaves_the_bank_as_it_was(tmp_path: Path, limit: int) -> None:
    printed = child(FULL_RESTORE, tmp_path / "bank", tmp_path / "kept.tmck", limit)
    error, left, same = json.loads(printed)
    assert error
    # SQLite may leave an empty log; what matters is that no journal is moved or half written.
    assert [name for name in left if not name.endswith(("-wal", "-shm"))] == [
        "bank.head",
        "bank.lock",
        "journal.db",
        "journal.db-head",
    ]
    assert same


FULL_RUN = """
import json, resource, sys
from pathlib import Path
from agents import TierMemError
from agents.simulation.runs.run import Run
folder, room = Path(sys.argv[1]), int(sys.argv[2])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
run = Run.open(folder)
for _ in run.advance(6):
    pass
used = (folder / "bank" / "journal.db-wal").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (used + room, hard))
try:
    for _ in run.advance(20):
        pass
    error = None
except TierMemError as caught:
    error = f"{type(caught).__name__}: {caught}"
tick = run.tick
try:
    run.close()
    closing = None
except TierMemError as caught:
    closing = str(caught)
print(json.dumps([error, closing, tick]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("room", [0, 5_000, 30_000, 90_000, 150_000])
def test_a_full_disk_in_a_tick_is_a_clear_error_and_the_run_goes_on_later(
    tmp_path: Path, room: int
) -> None:
    expected = run_to(tmp_path / "expected" / "run", 20)
    folder = tmp_path / "run"
    run_to(folder, 2)
    error, closing, tick = json.loads(child(FULL_RUN, folder, room))
    assert error.startswith(("CommitFailed: ", "CheckpointError: "))
    assert closing is None
    assert 6 <= tick < 20
    with Run.open(folder) as run:
        assert run.tick == tick
    assert not list(folder.glob("**/.*.tmp"))
    assert run_to(folder, 20) == expected


FULL_OPEN = """
import resource, sys
from pathlib import Path
from agents import TierMemError
from agents.simulation.runs.run import Run
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), hard))
try:
    Run.open(Path(sys.argv[1]))
    print("opened")
except TierMemError as caught:
    print(caught)
"""


@pytest.mark.parametrize("limit", [0, 1000])
def test_a_full_disk_while_a_run_is_opened_costs_it_nothing(tmp_path: Path, limit: int) -> None:
    folder = tmp_path / "run"
    before = run_to(folder, 6)
    assert child(FULL_OPEN, folder, limit) != "opened"
    said: list[str] = []
    with Run.open(folder, say=said.append) as run:
        assert run.tick == 6
    assert said == []
    assert run_to(folder, 6) == before
    names = sorted(each.name for each in (folder / "bank").iterdir())
    assert names == ["bank.head", "bank.lock", "journal.db", "journal.db-head"]


@pytest.mark.parametrize("place", ["bank/journal.db/x", "x\0", ".", ""])
def test_a_checkpoint_that_has_no_place_is_a_clear_error(tmp_path: Path, place: str) -> None:
    with open_bank(tmp_path / "bank") as bank:
        bank.agent("a").add("one <1>")
        with pytest.raises(TierMemError):
            bank.checkpoint(tmp_path / place if place else "")
        assert bank.agent("a").count() == 1
    assert [each.name for each in tmp_path.iterdir()] == ["bank"]


# mem0's store

THIRD_PARTY = ("ignore::DeprecationWarning", "ignore::ResourceWarning")
"""What Chroma and mem0 do."""


def with_store(folder: Path) -> MemoryBank:
    return MemoryBank.open(folder, embedder=Directions())


def assert_exact_after_closing(bank: MemoryBank, folder: Path) -> None:
    """Closed and opened again, so that no two clients hold the store."""
    bank.close()
    with with_store(folder) as bank:
        bank.engine.store.close()
        assert_store_is_exact(bank)


@pytest.mark.slow
@pytest.mark.parametrize("lost", [False, True], ids=["journal kept", "journal damaged"])
@pytest.mark.parametrize("synced", [False, True], ids=["behind", "synced"])
@pytest.mark.filterwarnings(*THIRD_PARTY)
def test_restoring_sets_mem0s_store_right(tmp_path: Path, synced: bool, lost: bool) -> None:
    folder, path = tmp_path / "bank", tmp_path / "kept.tmck"
    with with_store(folder) as bank:
        alice = bank.agent("alice")
        first, second, third = alice.add_many([("one <1>", "low"), ("two <2>", "pinned"), "three"])
        bank.agent("bob").add("bob's <1 1>", metadata={"k": 1})
        bank.checkpoint(path)
        before = everything(bank)
        bank.advance(3)
        alice.pin(first.id)
        alice.set_tier(second.id, "low")
        alice.delete(third.id)
        alice.add_many([f"after {n} <{n}>" for n in range(20)])
        bank.agent("carol").add("new here")
        if synced:
            bank.sync()
    if lost:
        (folder / "journal.db").write_bytes(b"no database" * 1000)
    with MemoryBank.restore(path, folder, embedder=Directions()) as bank:
        assert everything(bank) == before
        bank.sync()
        assert_exact_after_closing(bank, folder)


@pytest.mark.slow
@pytest.mark.filterwarnings(*THIRD_PARTY)
def test_a_restored_bank_that_goes_on_keeps_its_store_exact(tmp_path: Path) -> None:
    folder, path = tmp_path / "bank", tmp_path / "kept.tmck"
    with with_store(folder) as bank:
        kept = bank.agent("alice").add("one <1>")
        bank.checkpoint(path)
        bank.agent("alice").add("forgotten <2>")
    with MemoryBank.restore(path, folder, embedder=Directions()) as bank:
        # The same number as the one that is forgotten, and so the same id.
        bank.agent("alice").add("in its place <3>", "pinned", {"k": 1})
        bank.agent("alice").delete(kept.id)
        assert_exact_after_closing(bank, folder)
    with MemoryBank.restore(path, folder, embedder=Directions()) as bank:
        assert_exact_after_closing(bank, folder)


@pytest.mark.slow
@pytest.mark.filterwarnings(*THIRD_PARTY)
def test_a_checkpoint_restored_elsewhere_makes_a_store_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "kept.tmck"
    with with_store(tmp_path / "first") as bank:
        bank.agent("alice").add_many(["one <1>", "two <2>"])
        bank.checkpoint(path)
    with MemoryBank.restore(path, tmp_path / "second", embedder=Directions()) as copy:
        copy.agent("alice").add("only here")
        assert_exact_after_closing(copy, tmp_path / "second")
    with with_store(tmp_path / "first") as bank:
        assert bank.agent("alice").count() == 2
        assert_exact_after_closing(bank, tmp_path / "first")
