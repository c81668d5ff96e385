"""``tiermem doctor``: what is wrong, and what to do about it."""

import hashlib
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import warm_children
from agents import EmbedderError, MemoryBank
from agents.storage.embedding import OfflineEmbedder
from agents.storage.state.ledger import Ledger
from banks import change

pytestmark = [
    # Third-party code, on Python 3.11 and what it depends on.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

Command = Callable[..., Any]


@pytest.fixture(scope="session")
def _healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("healthy") / "crew"
    with MemoryBank.open(folder) as bank:
        bank.agent("alice").add("The well is in the north", "pinned")
        bank.advance(3)
        bank.agent("alice").notes.append("Never trade fish with Bob.", "MEMORY.md")
    return folder


@pytest.fixture
def folder(_healthy: Path, tiermem: Command) -> Path:
    """A bank with a memory, a note and a mem0 store, in good health."""
    shutil.copytree(_healthy, "crew", copy_function=shutil.copy2)
    return Path("crew")


def states(done: Any) -> dict[str, str]:
    return {row["about"]: row["state"] for row in done.json}


def only(done: Any, about: str, state: str) -> dict[str, str]:
    """The one finding of a state, which is about this."""
    (row,) = [row for row in done.json if row["state"] == state]
    assert row["about"] == about
    return row


def test_a_sound_installation_has_no_problem(tiermem: Command) -> None:
    done = tiermem("doctor", "--json")
    assert done.code == 0
    assert "problem" not in states(done).values()
    assert {"python", "tiermem", "packages", "sqlite", "disk", "embedder"} <= states(done).keys()


@pytest.mark.slow
def test_a_sound_bank_has_no_problem(tiermem: Command, folder: Path) -> None:
    done = tiermem("doctor", folder, "--json")
    assert done.code == 0
    assert set(states(done).values()) == {"ok"}
    assert {"lock", "journal", "mem0", "notes"} <= states(done).keys()


def test_off_a_terminal_it_is_lines_with_tabs(tiermem: Command, folder: Path) -> None:
    lines = tiermem("doctor", folder).out.splitlines()
    assert all(line.split("\t")[0] in ("ok", "warning") for line in lines)
    assert "ok\tmem0\tchroma, 2 memories, in step" in lines


def test_it_changes_nothing(tiermem: Command, folder: Path) -> None:
    def look() -> dict[str, tuple[str, int]]:
        return {
            str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
            for path in folder.rglob("*")
            if path.is_file()
        }

    before = look()
    tiermem("doctor", folder)
    assert look() == before


@pytest.mark.slow
def test_it_says_who_has_the_bank_open(tiermem: Command, folder: Path) -> None:
    with MemoryBank.open(folder):
        done = tiermem("doctor", folder, "--json")
    assert done.code == 0
    (lock,) = [row for row in done.json if row["about"] == "lock"]
    assert f"process {os.getpid()}" in lock["said"]


@pytest.mark.slow
def test_a_process_that_was_killed_holds_no_lock(tiermem: Command, folder: Path) -> None:
    code = "import os; from agents import MemoryBank; MemoryBank.open('crew'); os._exit(9)"
    warm_children.run([sys.executable, "-c", code], check=False)
    assert (folder / "bank.lock").read_text().strip()
    (lock,) = [row for row in tiermem("doctor", folder, "--json").json if row["about"] == "lock"]
    assert lock["said"] == "nobody has the bank open"


def test_a_changed_commit_is_a_problem(tiermem: Command, folder: Path) -> None:
    database = sqlite3.connect(folder / "journal.db")
    with database:
        database.execute("UPDATE commits SET events = replace(events, 'north', 'south')")
    database.close()
    done = tiermem("doctor", folder, "--json")
    assert done.code == 1
    row = only(done, "journal", "problem")
    assert "commit 1 is not what was written" in row["said"]
    assert "backup" in row["todo"]


def test_a_damaged_page_is_a_problem(tiermem: Command, folder: Path) -> None:
    path = folder / "journal.db"
    data = bytearray(path.read_bytes())
    data[4096:8192] = os.urandom(4096)
    path.write_bytes(data)
    done = tiermem("doctor", folder, "--json")
    assert done.code == 1
    only(done, "journal", "problem")


@pytest.mark.slow
def test_a_journal_made_from_a_checkpoint_is_sound(tiermem: Command, folder: Path) -> None:
    with MemoryBank.open(folder) as bank:
        bank.checkpoint("a.tmck")
    with MemoryBank.restore("a.tmck", "again", storage={"sync": "manual"}) as bank:
        for number in range(3):
            bank.agent("alice").add(f"memory {number}")
    done = tiermem("doctor", "again", "--json")
    assert done.code == 0
    assert states(done)["journal"] == "ok"


@pytest.mark.slow
def test_a_missing_store_names_the_repair(tiermem: Command, folder: Path) -> None:
    shutil.rmtree(folder / "chroma")
    done = tiermem("doctor", folder, "--json")
    assert done.code == 1
    assert only(done, "mem0", "problem")["todo"] == "tiermem store rebuild crew"


@pytest.mark.slow
def test_a_damaged_store_names_the_repair(tiermem: Command, folder: Path) -> None:
    (folder / "chroma" / "chroma.sqlite3").write_bytes(b"junk" * 1000)
    done = tiermem("doctor", folder, "--json")
    assert done.code == 1
    assert only(done, "mem0", "problem")["todo"] == "tiermem store rebuild crew"


@pytest.mark.slow
def test_a_store_of_another_bank_is_a_problem(tiermem: Command, folder: Path) -> None:
    with MemoryBank.open("theirs") as bank:
        bank.agent("bob").add("theirs")
        bank.agent("bob").add("theirs, too")
        bank.agent("bob").add("and this")
    shutil.rmtree(folder / "chroma")
    shutil.copytree("theirs/chroma", folder / "chroma")
    done = tiermem("doctor", folder, "--json")
    assert "belongs to another bank" in only(done, "mem0", "problem")["said"]


def test_a_store_that_is_behind_is_a_warning(tiermem: Command, folder: Path) -> None:
    with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
        bank.agent("alice").add("later")
    done = tiermem("doctor", folder, "--json")
    assert done.code == 0
    assert "1 commits behind" in only(done, "mem0", "warning")["said"]


def test_a_store_with_vectors_of_the_former_embedder_is_a_warning(
    tiermem: Command, folder: Path
) -> None:
    assert tiermem("store", "reembed", folder, "--embedder", "none").code == 0
    done = tiermem("doctor", folder, "--json")
    assert done.code == 0
    found = only(done, "mem0", "warning")
    assert "of another time" in found["said"]
    assert "tiermem store sync" in found["todo"]


@pytest.mark.slow
def test_tokens_that_others_may_read_are_a_problem(tiermem: Command, folder: Path) -> None:
    path = folder / "tokens.json"
    path.write_text('{"version": 1, "tokens": []}')
    path.chmod(0o644)
    done = tiermem("doctor", folder, "--json")
    assert done.code == 1
    assert only(done, "tokens", "problem")["todo"].endswith("chmod 600 crew/tokens.json")
    path.chmod(0o600)
    assert states(tiermem("doctor", folder, "--json"))["tokens"] == "ok"


def test_a_note_that_can_not_be_read_is_a_warning(tiermem: Command, folder: Path) -> None:
    (folder / "notes" / "alice" / "MEMORY.md").write_bytes(b"\xff\xfe")
    done = tiermem("doctor", folder, "--json")
    assert done.code == 0
    assert "MEMORY.md" in only(done, "notes", "warning")["said"]


@pytest.mark.slow
def test_a_note_that_can_not_be_indexed_is_a_warning(tiermem: Command, folder: Path) -> None:
    (folder / "notes" / "alice" / "MEMORY.md").write_text("---\ntier: vital\n---\nx\n")
    assert "vital" in only(tiermem("doctor", folder, "--json"), "notes", "warning")["said"]


@pytest.mark.slow
def test_an_embedder_that_fails_is_a_problem(
    tiermem: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object, texts: object) -> None:
        raise EmbedderError("the weights can't be read; reinstall them")

    monkeypatch.setattr(OfflineEmbedder, "embed", fail)
    done = tiermem("doctor", "--json")
    assert done.code == 1
    assert "reinstall" in only(done, "embedder", "problem")["said"]


def test_packages_that_do_not_fit_are_problems(
    tiermem: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {"mem0ai": "1.9.1"}
    real = metadata.version

    def version(name: str) -> str:
        if name == "chromadb":
            raise metadata.PackageNotFoundError(name)
        return versions.get(name) or real(name)

    monkeypatch.setattr(metadata, "version", version)
    done = tiermem("doctor", "--json")
    problems = {row["about"]: row for row in done.json if row["state"] == "problem"}
    assert problems.keys() == {"mem0ai", "chromadb"}
    assert problems["chromadb"]["todo"].startswith("pip install 'chromadb")
    assert problems["mem0ai"]["said"].startswith("1.9.1, and ")


def test_a_full_disk_is_a_problem(
    tiermem: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from collections import namedtuple

    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage(100, 100, 1 << 20))
    done = tiermem("doctor", folder, "--json")
    assert done.code == 1
    assert states(done)["disk"] == "problem"


def test_what_is_no_bank_is_one_clear_error(tiermem: Command) -> None:
    assert tiermem("doctor", "nowhere").is_one_error(1, "no bank in nowhere", "tiermem init")


@pytest.mark.slow
def test_a_text_that_was_changed_in_the_store_is_a_problem(tiermem: Command, folder: Path) -> None:
    database = sqlite3.connect(folder / "chroma" / "chroma.sqlite3")
    with database:
        changed = database.execute(
            "UPDATE embedding_metadata SET string_value = replace(string_value, 'north', 'south') "
            "WHERE key = 'data' AND string_value LIKE '%north%'"
        )
    database.close()
    assert changed.rowcount == 1
    done = tiermem("doctor", folder, "--json")
    assert done.code == 1
    row = only(done, "mem0", "problem")
    assert "another text for 1 memory of alice" in row["said"]
    assert row["todo"] == "tiermem store rebuild crew"


@pytest.mark.slow
def test_a_memory_that_was_taken_out_of_the_store_is_a_problem(
    tiermem: Command, folder: Path
) -> None:
    database = sqlite3.connect(folder / "chroma" / "chroma.sqlite3")
    with database:
        database.execute(
            "UPDATE embeddings SET embedding_id = 'other' WHERE id = (SELECT id FROM "
            "embedding_metadata WHERE key = 'data' AND string_value LIKE '%north%')"
        )
    database.close()
    done = tiermem("doctor", folder, "--json")
    assert only(done, "mem0", "problem")["todo"] == "tiermem store rebuild crew"


def test_damage_names_the_agents_that_it_touches(tiermem: Command) -> None:
    with MemoryBank.open("crew", storage={"sync": "manual"}) as bank:
        bank.agent("alice").add("The well is in the north", temperature="cold")
        bank.agent("bob").add("The mill is in the east", temperature="cold")
    database = sqlite3.connect("crew/journal.db")
    with database:
        database.execute("UPDATE shelf SET content = 'The mill burnt' WHERE agent = 'bob'")
    database.close()
    done = tiermem("doctor", "crew", "--json")
    assert done.code == 1
    row = only(done, "journal", "problem")
    assert "agents touched: bob;" in row["said"]
    assert "2 memories of 2 agents can be saved, which is all" in row["said"]
    assert "tiermem store export crew --salvage" in row["todo"]


def test_a_lost_cold_memory_is_found_behind_a_snapshot(
    tiermem: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening reads the snapshot, and no cold memory."""
    monkeypatch.setattr(Ledger, "SNAPSHOT_ON_CLOSE", 1)
    with MemoryBank.open("crew", storage={"sync": "manual"}) as bank:
        bank.agent("alice").add("The well is in the north", temperature="cold")
        bank.agent("bob").add("The mill is in the east", temperature="cold")
    change(Path("crew"), "DELETE FROM shelf WHERE agent = 'bob'")
    row = only(tiermem("doctor", "crew", "--json"), "journal", "problem")
    assert "has lost memories of bob" in row["said"]
    assert "agents touched: bob;" in row["said"]
    assert "2 memories of 2 agents can be saved, which is all" in row["said"]
