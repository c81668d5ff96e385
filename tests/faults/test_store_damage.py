"""mem0's store broken in every way we could think of, with the real Chroma."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import warm_children
from agents import MemoryBank, StoreDamaged
from plain_mem0 import assert_store_is_exact

pytestmark = [
    pytest.mark.slow_after(1),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank with enough memories for Chroma to write its index to files."""
    folder = tmp_path_factory.mktemp("damage") / "sound"
    with MemoryBank.open(folder) as bank:
        bank.add_many((f"agent_{n % 5}", f"memory {n} about thing {n * 7}") for n in range(1200))
    return folder


@pytest.fixture
def copy(sound: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "bank"
    shutil.copytree(sound, folder)
    return folder


def garbage(file: Path) -> None:
    file.write_bytes(os.urandom(file.stat().st_size))


def zeros(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def half(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def index_file(folder: Path, name: str) -> Path:
    (file,) = (folder / "chroma").glob(f"*/{name}")
    return file


DAMAGE: dict[str, Callable[[Path], None]] = {
    "database is garbage": lambda f: garbage(f / "chroma" / "chroma.sqlite3"),
    "database is cut short": lambda f: half(f / "chroma" / "chroma.sqlite3"),
    "database is gone": lambda f: (f / "chroma" / "chroma.sqlite3").unlink(),
    "vectors are garbage": lambda f: garbage(index_file(f, "data_level0.bin")),
    "vectors are cut short": lambda f: half(index_file(f, "data_level0.bin")),
    "links are zero, which crashes Chroma": lambda f: zeros(index_file(f, "link_lists.bin")),
    "header is garbage": lambda f: garbage(index_file(f, "header.bin")),
    "folder is gone": lambda f: shutil.rmtree(f / "chroma"),
    "folder is a file": lambda f: (shutil.rmtree(f / "chroma"), (f / "chroma").write_text("?"))[0],
}


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.long_after(2)
@pytest.mark.parametrize("damage", DAMAGE)
def test_open_names_the_repair_and_the_repair_rebuilds_the_store(copy: Path, damage: str) -> None:
    DAMAGE[damage](copy)
    with pytest.raises(StoreDamaged, match=f"tiermem store rebuild {copy}"):
        MemoryBank.open(copy)

    with MemoryBank.open(copy, storage={"sync": "manual"}) as bank:
        report = bank.repair_store()

    assert report[0].startswith("found: ")
    assert report[1] == "wrote 1,200 memories of 5 agents from the journal"
    with MemoryBank.open(copy) as bank:
        assert_store_is_exact(bank)


@pytest.mark.long
def test_the_command_says_what_it_found_and_did(copy: Path) -> None:
    DAMAGE["links are zero, which crashes Chroma"](copy)
    done = warm_children.run(
        [sys.executable, "-m", "agents.interfaces.cli.app", "store", "rebuild", str(copy)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "found: the store is damaged: opening it crashes (signal 11)",
        "wrote 1,200 memories of 5 agents from the journal",
        f"the old store is now in {copy}/chroma.set-aside-1; delete it if you don't need it",
    ]
    with MemoryBank.open(copy) as bank:
        assert_store_is_exact(bank)


@pytest.mark.slow
def test_a_damaged_store_does_not_keep_the_memories_from_being_read(copy: Path) -> None:
    DAMAGE["database is garbage"](copy)
    with MemoryBank.open(copy, storage={"sync": "manual"}) as bank:
        assert bank.agent("agent_0").count() == 240


def test_a_failed_open_leaves_the_bank_unlocked_and_unchanged(copy: Path) -> None:
    before = (copy / "journal.db").read_bytes()
    DAMAGE["folder is gone"](copy)
    for _ in range(2):
        with pytest.raises(StoreDamaged):
            MemoryBank.open(copy)
    assert (copy / "journal.db").read_bytes() == before


@pytest.mark.slow
def test_repairing_a_sound_store_replaces_it(copy: Path) -> None:
    with MemoryBank.open(copy, storage={"sync": "manual"}) as bank:
        report = bank.repair_store()
        bank.engine.store.close()
        assert_store_is_exact(bank)
    assert "answers" in report[0]
    assert not list(copy.glob("*.set-aside-*"))
