"""Files of each released format are read, by all later versions; and how a format is raised.

Who raises a number in ``storage/formats.py`` learns here what is missing: golden files of the new
format (``tests/golden/release.py``), a migration from the one before, and a test of it in this
file, which has the name of the migration's function after ``test_``.
"""

import gzip
import hashlib
import io
import json
import logging
import os
import resource
import shutil
import signal
import sqlite3
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from banks import MANUAL, TESTS

sys.path.insert(0, str(TESTS / "golden"))

import release as golden

from agents import (
    BankDamaged,
    BankError,
    BankTooNew,
    BankTooOld,
    CheckpointDamaged,
    MemoryBank,
    RunError,
)
from agents.simulation.policies.cassette import Cassette, _canonical, read_from
from agents.simulation.runs.folder import read_folder
from agents.simulation.runs.replay import Replay, verify_files
from agents.storage import formats, upgrading
from agents.storage.formats import Migration

FIRST = {"journal": 6, "checkpoint": 3, "run": 1, "cassette": 1}
"""The formats of the first release. Earlier ones were never released."""
EXPECTED = json.loads(golden.EXPECTED.read_text(encoding="utf-8"))


def files(named: str) -> list[Path]:
    return sorted(golden.FOLDER.glob(f"{named}*.gz"))


def unpacked(path: Path, folder: Path) -> Path:
    """The golden file as it was, or the folder that it has."""
    data, to = gzip.decompress(path.read_bytes()), folder / path.name.removesuffix(".gz")
    if path.name.endswith(".tar.gz"):
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            tar.extractall(to, filter="data")
    else:
        to.write_bytes(data)
    return to


def bank_of(path: Path, folder: Path) -> Path:
    """The bank of a golden journal, with the files of its notes."""
    folder.mkdir()
    unpacked(path, folder).rename(folder / "journal.db")
    for agent, notes in EXPECTED["bank"]["notes"].items():
        for name, text in notes.items():
            (folder / "notes" / agent).mkdir(parents=True)
            (folder / "notes" / agent / name).write_text(text)
    return folder


def missing() -> list[str]:
    """What has to be written before a format can be raised."""
    found = []
    for kind, first in FIRST.items():
        for number in range(first, formats.present(kind) + 1):
            if not list(golden.FOLDER.glob(f"{kind}-{number}-*.gz")):
                found.append(f"a golden {kind} of format {number}: tests/golden/release.py")
        for number in range(first, formats.present(kind)):
            if not formats.steps(kind, number):
                found.append(f"a migration of a {kind} from format {number}")
    for each in formats.MIGRATIONS:
        if f"test_{each.change.__name__}" not in globals():
            found.append(f"test_{each.change.__name__} in this file")
    return found


def test_each_format_has_golden_files_and_each_earlier_one_a_tested_migration() -> None:
    assert missing() == []


@pytest.mark.parametrize("kind", FIRST)
def test_a_number_that_is_raised_alone_is_told(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, kind.upper(), FIRST[kind] + 1)
    wanted = [f"a golden {kind} of format {FIRST[kind] + 1}", f"a migration of a {kind} from"]
    assert [each[: len(want)] for each, want in zip(missing(), wanted, strict=True)] == wanted
    move = Migration(kind, FIRST[kind], lambda _: None)
    monkeypatch.setattr(formats, "MIGRATIONS", (move,))
    assert missing()[1:] == ["test_<lambda> in this file"]


# What the first release wrote


@pytest.mark.parametrize("path", files("journal-*-full"), ids=lambda path: path.name)
def test_a_released_journal_opens_to_the_same_memories_and_answers(
    path: Path, folder: Path
) -> None:
    bank_of(path, folder)
    with MemoryBank.at(folder) as bank:
        assert golden.held(bank) == EXPECTED["bank"]
    with MemoryBank.open(folder, storage=MANUAL) as bank:
        bank.agent("alice").add("it goes on")
    with MemoryBank.open(folder, storage=MANUAL) as bank:
        assert "it goes on" in [each.content for each in bank.agent("alice").all()]


@pytest.mark.parametrize("path", files("checkpoint-*-full"), ids=lambda path: path.name)
def test_a_released_checkpoint_gives_the_same_memories_and_answers(
    path: Path, folder: Path, tmp_path: Path
) -> None:
    with MemoryBank.restore(unpacked(path, tmp_path), folder, storage=MANUAL) as bank:
        assert golden.held(bank) == EXPECTED["bank"]


@pytest.mark.parametrize("path", files("run"), ids=lambda path: path.name)
def test_a_released_run_has_the_same_states_and_is_made_again_by_a_replay(
    path: Path, tmp_path: Path
) -> None:
    """If a change means to change results, replay no longer gives the old run; its states stay."""
    run, name = unpacked(path, tmp_path), path.name.split("-")[2].split(".")[0]
    assert golden.state_hashes(run) == EXPECTED[name]
    assert not list(filter(None, Replay(run).ticks()))
    assert list(verify_files(run)) == []


@pytest.mark.parametrize("path", files("cassette"), ids=lambda path: path.name)
def test_a_released_cassette_has_the_same_answers(path: Path, tmp_path: Path) -> None:
    cassette = Cassette(unpacked(path, tmp_path), replay=True)
    assert cassette.position == len(EXPECTED["asked"]) > 10
    for *key, reply in EXPECTED["asked"]:
        found = cassette.find(*key)
        assert found is not None
        assert found.reply == reply


# A migration, made up


def journal_gets_a_colour(database: sqlite3.Connection) -> None:
    database.execute("CREATE TABLE colours (name TEXT)")
    database.execute("INSERT INTO colours VALUES ('green')")


def journal_loses_a_commit(database: sqlite3.Connection) -> None:
    database.execute("DELETE FROM commits WHERE id = 3")


@pytest.fixture
def old(folder: Path) -> Path:
    """A bank of the format of the first release."""
    (made,) = files("journal-6-full")
    return bank_of(made, folder)


def raised(patch: pytest.MonkeyPatch, change: Any = journal_gets_a_colour) -> None:
    """From now on journals have format 7."""
    patch.setattr(formats, "JOURNAL", 7)
    patch.setattr(formats, "MIGRATIONS", (Migration("journal", 6, change),))


def format_of(path: Path) -> int:
    database = sqlite3.connect(path)
    try:
        return int(database.execute("PRAGMA user_version").fetchone()[0])
    finally:
        database.close()


def test_an_earlier_journal_is_brought_up_and_the_former_one_is_kept(
    old: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = (old / "journal.db").read_bytes()
    raised(monkeypatch)
    with MemoryBank.at(old) as copy:  # who only looks changes nothing
        assert golden.held(copy) == EXPECTED["bank"]
    assert (old / "journal.db").read_bytes() == before
    with caplog.at_level(logging.WARNING), MemoryBank.open(old, storage=MANUAL) as bank:
        assert golden.held(bank) == EXPECTED["bank"]
        bank.agent("alice").add("it goes on")
    assert f"the former journal is {old / 'journal.db.before-7'}" in caplog.text
    assert format_of(old / "journal.db") == 7
    assert (old / "journal.db.before-7").read_bytes() == before
    with MemoryBank.open(old, storage=MANUAL) as bank:
        assert "it goes on" in [each.content for each in bank.agent("alice").all()]
        assert any("journal.db.before-7" in each for each in bank.vacuum())
    assert sorted(each.name for each in old.glob("journal.db*")) == [
        "journal.db", "journal.db-head", "journal.db.before-7"
    ]  # fmt: skip


def test_where_a_file_has_one_name_the_former_journal_is_copied(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object) -> None:
        raise PermissionError("no second name here")

    before = (old / "journal.db").read_bytes()
    raised(monkeypatch)
    monkeypatch.setattr(upgrading.os, "link", refuses)
    MemoryBank.open(old, storage=MANUAL).close()
    assert (old / "journal.db.before-7").read_bytes() == before
    assert format_of(old / "journal.db") == 7


def test_a_backup_of_an_earlier_bank_has_the_present_format(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised(monkeypatch)
    MemoryBank.backup(old, tmp_path / "backup")
    assert (format_of(old / "journal.db"), format_of(tmp_path / "backup/journal.db")) == (6, 7)


def test_commits_that_a_killed_process_left_in_the_log_are_brought_up_too(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = os.fork()
    if not child:
        MemoryBank.open(old, storage=MANUAL).agent("alice").add("the last one")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert (old / "journal.db-wal").stat().st_size
    raised(monkeypatch)
    with MemoryBank.open(old, storage=MANUAL) as bank:
        assert "the last one" in [each.content for each in bank.agent("alice").all()]
    former = old.parent / "former"
    former.mkdir()
    shutil.copy(old / "journal.db.before-7", former / "journal.db")
    monkeypatch.undo()
    with MemoryBank.at(former) as bank:  # it has all by itself
        assert "the last one" in [each.content for each in bank.agent("alice").all()]


def test_a_journal_that_another_process_reads_is_not_brought_up_yet(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = os.fork()
    if not child:
        MemoryBank.open(old, storage=MANUAL).agent("alice").add("the last one")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    raised(monkeypatch)
    with closing(sqlite3.connect(old / "journal.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM commits").fetchone()
        with pytest.raises(BankError, match="another process reads"):
            MemoryBank.open(old, storage=MANUAL)
        assert not list(old.glob("*.before-*"))
        assert format_of(old / "journal.db") == 6
    with MemoryBank.open(old, storage=MANUAL) as bank:
        assert "the last one" in [each.content for each in bank.agent("alice").all()]


def test_a_migration_that_loses_something_changes_nothing(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (old / "journal.db").read_bytes()
    raised(monkeypatch, journal_loses_a_commit)
    with pytest.raises(BankDamaged) as caught:
        MemoryBank.open(old, storage=MANUAL)
    assert "upgrading" not in str(caught.value)  # that file is gone
    assert str(old / "journal.db") in str(caught.value)
    assert (old / "journal.db").read_bytes() == before
    assert {each.name for each in old.iterdir()} == {"bank.lock", "journal.db", "notes"}


def test_a_full_disk_at_an_upgrade_is_one_clear_error_and_changes_nothing(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (old / "journal.db").read_bytes()
    raised(monkeypatch)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for most in (4096, len(before) // 2):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
        try:
            with pytest.raises(BankError) as caught:
                MemoryBank.open(old, storage=MANUAL)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert caught.value.hint
        assert "upgrading" not in str(caught.value)
        assert {each.name for each in old.iterdir()} == {"bank.lock", "journal.db", "notes"}
    assert (old / "journal.db").read_bytes() == before


def test_a_log_that_can_not_be_folded_at_an_upgrade_is_one_clear_error(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    before = (old / "journal.db").read_bytes()
    raised(monkeypatch)
    monkeypatch.setattr(upgrading, "_fold_log", full)
    with pytest.raises(BankError, match=r"can't be brought to format 7.*disk is full"):
        MemoryBank.open(old, storage=MANUAL)
    assert (old / "journal.db").read_bytes() == before
    assert {each.name for each in old.iterdir()} == {"bank.lock", "journal.db", "notes"}


STEPS = ("sync_file", "check_all", "_fold_log", "_keep", "discard", "sync_folder", "rename")


def killed_before(step: str, old: Path) -> None:
    """Open the bank in a process that is killed when it comes to a step of the upgrade."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    with pytest.MonkeyPatch.context() as patch:
        raised(patch)

        def dies(*_: Any, **__: Any) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        if step == "rename":
            patch.setattr(Path, "replace", dies)
        elif step == "discard":
            first = upgrading.discard
            calls: Iterator[int] = iter(range(9))

            def later(*paths: Path) -> None:
                if next(calls):
                    dies()
                first(*paths)

            patch.setattr(upgrading, step, later)
        else:
            patch.setattr(upgrading, step, dies)
        try:
            MemoryBank.open(old, storage=MANUAL)
        finally:
            os._exit(1)


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_any_step_harms_nothing(
    step: str, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_before(step, old)
    with MemoryBank.at(old) as bank:
        assert bank.state_hash() == EXPECTED["bank"]["state_hash"]
    raised(monkeypatch)
    with MemoryBank.open(old, storage=MANUAL) as bank:
        assert golden.held(bank) == EXPECTED["bank"]
    assert format_of(old / "journal.db") == 7
    assert len(list(old.glob("journal.db.before-7*"))) == 1
    assert not list(old.glob("*.upgrading*"))


def checkpoint_gets_a_colour(database: sqlite3.Connection) -> None:
    database.execute("CREATE TABLE colours (name TEXT)")


def test_an_earlier_checkpoint_is_read_and_stays_as_it_is(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (made,) = files("checkpoint-3-full")
    path = unpacked(made, tmp_path)
    before = path.read_bytes()
    monkeypatch.setattr(formats, "CHECKPOINT", 4)
    with pytest.raises(CheckpointDamaged, match="has format 3"):
        MemoryBank.restore(path, folder)
    move = Migration("checkpoint", 3, checkpoint_gets_a_colour)
    monkeypatch.setattr(formats, "MIGRATIONS", (move,))
    with MemoryBank.restore(path, folder, storage=MANUAL) as bank:
        assert golden.held(bank) == EXPECTED["bank"]
    assert path.read_bytes() == before


def run_gets_a_colour(about: dict[str, Any]) -> None:
    about["colour"] = "green"


def test_an_earlier_run_is_read_and_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (made,) = files("run-1-market")
    run = unpacked(made, tmp_path)
    before = (run / "run.json").read_bytes()
    monkeypatch.setattr(formats, "RUN", 2)
    with pytest.raises(RunError, match="has format 1"):
        read_folder(run)
    monkeypatch.setattr(formats, "MIGRATIONS", (Migration("run", 1, run_gets_a_colour),))
    _, about = read_folder(run)
    assert (about["format"], about["colour"]) == (2, "green")
    assert (run / "run.json").read_bytes() == before


def cassette_calls_it_reply(entry: dict[str, Any]) -> None:
    entry["reply"] = entry["reply"].upper()


def test_a_line_of_an_earlier_cassette_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (made,) = files("cassette-1")
    path = unpacked(made, tmp_path)
    monkeypatch.setattr(formats, "CASSETTE", 2)
    monkeypatch.setattr(formats, "MIGRATIONS", (Migration("cassette", 1, cassette_calls_it_reply),))
    *key, reply = EXPECTED["asked"][0]
    found = Cassette(path, replay=True).find(*key)
    assert found is not None
    assert found.reply == reply.upper()


# Files of later versions


def later(patch: pytest.MonkeyPatch, kind: str) -> None:
    """Write files of a later format, as a later version does."""
    patch.setattr(formats, kind.upper(), FIRST[kind] + 3)
    for module in ("journal.journal", "checkpoint"):
        patch.setattr(f"agents.storage.{module}.__version__", "9.4.2")
    patch.setattr("agents.simulation.runs.run.__version__", "9.4.2")


def test_a_later_journal_says_which_version_wrote_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        later(patch, "journal")
        MemoryBank.open(folder, storage=MANUAL).close()
    before = (folder / "journal.db").read_bytes()
    for opening in (MemoryBank.open, MemoryBank.at):
        with pytest.raises(BankTooNew, match=r"a later version \(9\.4\.2\) wrote it") as caught:
            opening(folder)
        assert "pip install -U tiermem" in caught.value.hint
    assert (folder / "journal.db").read_bytes() == before


def test_a_journal_of_before_the_first_release_has_no_way_up(old: Path) -> None:
    database = sqlite3.connect(old / "journal.db")
    database.execute("PRAGMA user_version = 5")
    database.close()
    with pytest.raises(BankTooOld, match="format 5"):
        MemoryBank.open(old)


def test_a_later_checkpoint_says_which_version_wrote_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "later.tmck"
    with monkeypatch.context() as patch, MemoryBank.ephemeral() as bank:
        later(patch, "checkpoint")
        patch.setattr("agents.bank.memory_bank.__version__", "9.4.2")
        bank.checkpoint(path)
    with pytest.raises(CheckpointDamaged, match=r"a later version \(9\.4\.2\) wrote") as caught:
        MemoryBank.restore(path, folder)
    assert "pip install -U tiermem" in caught.value.hint


def test_a_later_run_says_which_version_made_it(tmp_path: Path) -> None:
    (made,) = files("run-1-market")
    run = unpacked(made, tmp_path)
    about = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**about, "format": 4, "tiermem": "9.4.2"}))
    with pytest.raises(RunError, match=r"format 4.*TierMem '9\.4\.2' made it") as caught:
        read_folder(run)
    assert "pip install -U tiermem" in caught.value.hint


def test_a_later_line_of_a_cassette_is_not_called_damaged(tmp_path: Path) -> None:
    (made,) = files("cassette-1")
    path = unpacked(made, tmp_path)
    entry = json.loads(path.read_bytes().splitlines()[0])
    with path.open("ab") as file:
        file.write(line_of({**entry, "format": 2, "colour": "green"}))
    for reading in (lambda: Cassette(path, replay=True).position, lambda: read_from(path, 0)):
        with pytest.raises(RunError, match="a later version of TierMem wrote it") as caught:
            reading()
        assert "damaged" not in str(caught.value)
        assert "pip install -U tiermem" in caught.value.hint


@pytest.mark.parametrize("number", ["2", None, 1.5, [1], {}, True, 0, -1])
def test_a_line_of_a_format_that_is_no_number_of_one_is_damaged(
    tmp_path: Path, number: object
) -> None:
    (made,) = files("cassette-1")
    path = unpacked(made, tmp_path)
    entry = json.loads(path.read_bytes().splitlines()[0])
    path.write_bytes(line_of({**entry, "format": number}))
    with pytest.raises(RunError, match="line 1 is damaged: there is no format"):
        Cassette(path, replay=True).position  # noqa: B018
    with pytest.raises(RunError, match="there is no format"):
        read_from(path, 0)


def line_of(entry: dict[str, Any]) -> bytes:
    """The line of a cassette, with its digest."""
    plain = {key: value for key, value in entry.items() if key != "digest"}
    digest = hashlib.sha256(_canonical(plain)).hexdigest()
    return _canonical({**plain, "digest": digest}) + b"\n"
