"""A vacuum that is killed, a reader that is in its way, a store that was set aside."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from agents import MemoryBank
from agents.storage.beside_journal import STORE_RECORD, HeadRecord
from banks import contents
from embedders import Directions
from plain_mem0 import assert_store_is_exact

pytestmark = [
    pytest.mark.slow_after(1),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

KILLED = """
import os, signal, sys
from agents import MemoryBank
from agents.storage import store_sync
from agents.storage.journal.journal import Journal
from agents.storage.store_sync import StoreSync
from embedders import Directions

def dies(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def dies_after(owner, name):
    does = getattr(owner, name)
    setattr(owner, name, lambda *given, **named: (does(*given, **named), dies()))

def half_gone(path):
    for file in sorted(path.rglob("*.bin")):
        file.unlink()
    dies()

bank = MemoryBank.open(sys.argv[1], embedder=Directions(), preset="vector")
bank.agent("alice").forget(sys.argv[2])
step = sys.argv[3]
if step == "noted":
    Journal.vacuum = dies
elif step == "journal written":
    StoreSync._remove = dies
elif step == "store half deleted":
    store_sync.shutil.rmtree = half_gone
elif step == "store deleted":
    StoreSync._fill = dies
elif step == "store opened":
    StoreSync._everything = dies
elif step == "store written":
    StoreSync._done = dies
elif step == "done":
    dies_after(StoreSync, "_done")
bank.vacuum(dies if step == "store half written" else None)
"""
STEPS = (
    "store deleted", "noted", "journal written", "store half deleted", "store opened",
    "store half written", "store written", "done",
)  # fmt: skip


def opened(folder: Path, **options: object) -> MemoryBank:
    return MemoryBank.open(folder, embedder=Directions(), preset="vector", **options)  # type: ignore[arg-type]


def files_with_the_secret(folder: Path) -> list[str]:
    return sorted(
        path.name
        for path in folder.rglob("*")
        if path.is_file() and b"swordfish" in path.read_bytes()
    )


def with_a_secret(folder: Path) -> str:
    """Make a bank whose files hold a secret; the id of the memory that has it."""
    with opened(folder) as bank:
        alice = bank.agent("alice")
        alice.add("first <1 0>")
        secret = alice.add("the password is swordfish " * 20)
        alice.add("last <0 1>", temperature="cold")
    assert {"journal.db", "chroma.sqlite3"} <= set(files_with_the_secret(folder))
    return secret.id


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.long_after(2)
@pytest.mark.parametrize("step", STEPS)
def test_a_vacuum_that_was_killed_is_begun_again_by_itself(folder: Path, step: str) -> None:
    secret = with_a_secret(folder)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder), secret, step],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with opened(folder) as bank:
        assert contents(bank) == ["first <1 0>", "last <0 1>"]
        assert bank.agent("alice").search("<0 1>", 1, include_cold=True)
        bank.sync()
        assert files_with_the_secret(folder) == []
        bank.engine.store.close()
        assert_store_is_exact(bank)
    assert files_with_the_secret(folder) == []
    assert [path.name for path in folder.iterdir() if path.is_dir()] == ["chroma"]


@pytest.mark.slow
def test_a_vacuum_deletes_what_a_repair_set_aside(folder: Path) -> None:
    secret = with_a_secret(folder)
    damaged = folder / "chroma" / "chroma.sqlite3"
    damaged.write_bytes(b"no database" + damaged.read_bytes())
    with opened(folder, storage={"sync": "manual"}) as bank:
        assert "set-aside-1" in bank.repair_store()[-1]
        bank.agent("alice").forget(secret)
        assert bank.vacuum() == []
        assert files_with_the_secret(folder) == []
        bank.engine.store.close()
        assert_store_is_exact(bank)
    assert files_with_the_secret(folder) == []


@pytest.mark.slow
def test_a_vacuum_names_the_journal_that_another_program_reads(folder: Path) -> None:
    secret = with_a_secret(folder)
    reader = sqlite3.connect(folder / "journal.db", isolation_level=None)
    with opened(folder, storage={"sync": "manual"}) as bank:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM commits").fetchone()
        bank.agent("alice").forget(secret)
        (left,) = bank.vacuum()
        assert left.startswith(f"{folder}/journal.db: another program reads it")
        assert files_with_the_secret(folder)
        reader.close()
        assert bank.vacuum() == []
        assert files_with_the_secret(folder) == []


def test_a_vacuum_names_a_store_that_the_settings_no_longer_use(folder: Path) -> None:
    secret = with_a_secret(folder)
    elsewhere = {"config": {"path": "other"}}
    with opened(folder, store=elsewhere, storage={"sync": "manual"}) as bank:
        bank.agent("alice").forget(secret)
        (left,) = bank.vacuum()
        assert left.startswith(f"{folder}/chroma: a store that this bank no longer uses")
    assert files_with_the_secret(folder) == ["chroma.sqlite3"]


def test_checkpoints_from_before_a_purge_are_named(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        alice = bank.agent("alice")
        secret = alice.add("swordfish")
        earlier = [tmp_path / "bank" / "checkpoints" / "before.tmck", tmp_path / "beside.tmck"]
        for path in earlier:
            bank.checkpoint(path)
        assert bank.vacuum() == []
        alice.forget(secret.id)
        bank.checkpoint(tmp_path / "bank" / "after.tmck")
        named = [each.partition(": ")[0] for each in bank.vacuum()]
    assert sorted(named) == sorted(map(str, earlier))


def named(bank: MemoryBank) -> list[str]:
    """The files that a vacuum names."""
    return sorted(Path(each.partition(": ")[0]).name for each in bank.vacuum())


def test_a_checkpoint_is_named_whatever_its_name_is(folder: Path) -> None:
    with opened(folder, store=None) as bank:
        secret = bank.agent("alice").add("swordfish")
        bank.checkpoint(folder / "before.backup")
        bank.agent("alice").forget(secret.id)
        bank.checkpoint(folder / "after")
        (folder / "no checkpoint").write_bytes(b"")
        assert named(bank) == ["before.backup"]


def test_a_checkpoint_with_the_number_of_a_commit_of_another_past_is_named(folder: Path) -> None:
    with opened(folder, store=None) as bank:
        secret = bank.agent("alice").add("swordfish")
        bank.checkpoint(folder / "first.tmck")
        bank.agent("alice").add("salt is dear")
        bank.agent("alice").add("so is pepper")
        bank.checkpoint(folder / "third.tmck")
    with MemoryBank.restore(folder / "first.tmck", folder, embedder=Directions()) as bank:
        bank.agent("alice").forget(secret.id)
        bank.agent("alice").add("salt is cheap")
        bank.agent("alice").add("so is pepper")
        bank.checkpoint(folder / "after.tmck")
        assert named(bank) == ["first.tmck", "third.tmck"]


@pytest.mark.parametrize("is_of_before", [False, True])
def test_a_restored_bank_names_checkpoints_from_before_its_past(
    folder: Path, is_of_before: bool
) -> None:
    with opened(folder, store=None) as bank:
        secret = bank.agent("alice").add("swordfish")
        bank.agent("alice").add("salt is dear")
        bank.checkpoint(folder / "before.tmck")
        bank.agent("alice").forget(secret.id)
        if is_of_before:  # a version that did not keep the last purge
            bank.engine.journal.set(last_purge=None)
        bank.checkpoint(folder / "after.tmck")
        bank.agent("alice").add("so is pepper")
        bank.checkpoint(folder / "last.tmck")
    with MemoryBank.restore(folder / "last.tmck", folder, embedder=Directions()) as bank:
        bank.agent("alice").add("and sugar")
        bank.checkpoint(folder / "new.tmck")
        # What an earlier version wrote does not say whether it is from after the purge.
        unsure = ["after.tmck"] if is_of_before else []
        assert named(bank) == [*unsure, "before.tmck"]


def test_a_bank_of_before_names_its_earlier_checkpoints(folder: Path) -> None:
    with opened(folder, store=None) as bank:
        secret = bank.agent("alice").add("swordfish")
        bank.checkpoint(folder / "before.tmck")
        bank.agent("alice").forget(secret.id)
        bank.agent("alice").add("salt is dear")
        bank.checkpoint(folder / "after.tmck")
        bank.engine.journal.set(last_purge=None)
        assert named(bank) == ["before.tmck"]


def test_a_damaged_journal_that_was_moved_aside_is_named_after_a_purge(folder: Path) -> None:
    with opened(folder, store=None) as bank:
        secret = bank.agent("alice").add("swordfish")
        bank.checkpoint(folder.parent / "elsewhere" / "one.tmck")
    journal = folder / "journal.db"
    journal.write_bytes(b"no database" + journal.read_bytes())
    checkpoint = folder.parent / "elsewhere" / "one.tmck"
    with MemoryBank.restore(checkpoint, folder, embedder=Directions()) as bank:
        assert named(bank) == []
        bank.agent("alice").forget(secret.id)
        assert named(bank) == ["journal.db.damaged-1"]
        assert files_with_the_secret(folder) == ["journal.db.damaged-1"]


def test_a_vacuum_names_an_unused_store_at_a_path_of_ones_own(folder: Path) -> None:
    elsewhere = {"config": {"path": "other"}}
    with opened(folder, store=elsewhere) as bank:
        secret = bank.agent("alice").add("the password is swordfish")
        bank.sync()
        assert named(bank) == []
    own = {"config": {"path": "none/../another"}}
    with opened(folder, store=own, storage={"sync": "manual"}) as bank:
        bank.agent("alice").forget(secret.id)
        bank.sync()
        (folder / "of another bank").mkdir()
        HeadRecord(folder / "of another bank" / STORE_RECORD, "another").write(1, bytes(32))
        assert named(bank) == ["other"]
    assert files_with_the_secret(folder) == ["chroma.sqlite3"]


def test_a_vacuum_after_a_purge_deletes_the_vectors_of_an_unfinished_change_of_embedder(
    folder: Path,
) -> None:
    class Stopping(Directions):
        name = "stopping"

        def embed(self, texts: Sequence[str], /) -> list[list[float]]:
            if len(texts) < 256:
                raise KeyboardInterrupt
            return super().embed(texts)

    with opened(folder, store=None) as bank:
        secret = bank.agent("alice").add("the password is swordfish <1 0>")
        bank.agent("alice").add_many([f"another {n} <0 1>" for n in range(300)])
    with pytest.raises(KeyboardInterrupt):
        MemoryBank.reembed(folder, Stopping())
    with opened(folder) as bank:
        bank.vacuum()
        assert (folder / "reembed.db").exists()
        bank.agent("alice").forget(secret.id)
        assert bank.vacuum() == []
    assert not list(folder.glob("reembed.db*"))
