"""Notes that are indexed while a person edits them, with the real watcher."""

import importlib.util
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank
from agents.engine import engine
from agents.engine.read import nth
from agents.errors import BankClosed, ConfigError, InvalidInput, NoteRefused, StoreError
from agents.notes import watching
from agents.notes.index import Synced
from banks import child
from waiting import LONG, happens_within, until

Banks = Callable[..., MemoryBank]

SOON = 0.05
"""A shorter debounce than a person wants."""


@pytest.fixture
def bank(open_bank: Banks) -> MemoryBank:
    return open_bank()


@pytest.fixture
def note(folder: Path) -> Path:
    """The file of alice's lasting note, which is not there yet."""
    return folder / "notes" / "alice" / "MEMORY.md"


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One item for each time that the bank looked at its notes; the first when it is watching."""
    looks: list[None] = []
    real = watching.sync_notes

    def counted(bank: engine.Engine) -> dict[str, Synced]:
        done = real(bank)
        looks.append(None)
        return done

    monkeypatch.setattr(watching, "sync_notes", counted)
    return looks


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    until("the watcher stops", lambda: not watchers())


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "tiermem-notes"]


def finds(bank: MemoryBank, text: str) -> bool:
    """Whether a search finds it in what is indexed; it looks at no file."""
    return text in [hit.memory.content for hit in bank.agent("alice").search("<1 1>")]


def is_found(bank: MemoryBank, text: str) -> None:
    until(f"a search finds {text!r}", lambda: finds(bank, text))


def is_gone(bank: MemoryBank, text: str) -> None:
    until(f"no search finds {text!r}", lambda: not finds(bank, text))


def write(note: Path, text: str) -> None:
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(text)


def test_an_edited_note_is_found_by_a_search(bank: MemoryBank, note: Path) -> None:
    with bank.watch_notes(SOON):
        write(note, "tea <1 1>")
        is_found(bank, "tea <1 1>")
        write(note, "coffee <1 1>")
        is_found(bank, "coffee <1 1>")
        assert not finds(bank, "tea <1 1>")


def test_a_deleted_note_is_no_longer_found(bank: MemoryBank, note: Path) -> None:
    bank.agent("alice").notes.write("MEMORY.md", "tea <1 1>")
    with bank.watch_notes(SOON):
        note.unlink()
        is_gone(bank, "tea <1 1>")


def test_what_changes_after_the_block_is_not_seen(bank: MemoryBank, note: Path) -> None:
    with bank.watch_notes(SOON):
        write(note, "tea <1 1>")
        is_found(bank, "tea <1 1>")
    assert not watchers()
    write(note, "coffee <1 1>")
    assert not happens_within(0.5, lambda: finds(bank, "coffee <1 1>"))


def test_it_can_be_stopped_without_a_block_and_twice(bank: MemoryBank, note: Path) -> None:
    watch = bank.watch_notes(SOON)
    write(note, "tea <1 1>")
    is_found(bank, "tea <1 1>")
    watch.stop()
    watch.stop()
    assert not watchers()
    assert repr(watch) == f"<NoteWatch {note.parent.parent}: stopped>"


@pytest.mark.slow
def test_a_change_waits_for_what_follows_it(
    bank: MemoryBank, note: Path, syncs: list[None]
) -> None:
    with bank.watch_notes(2):
        until("the watcher looks at the notes", lambda: syncs)
        write(note, "tea <1 1>")
        assert not happens_within(0.3, lambda: finds(bank, "tea <1 1>"))
        write(note, "coffee <1 1>")
        is_found(bank, "coffee <1 1>")
    assert nth(bank.engine, "alice", 2) is None  # tea never was a memory


def test_the_settings_say_how_long_a_change_waits(
    open_bank: Banks, note: Path, syncs: list[None]
) -> None:
    bank = open_bank(notes={"watch_debounce": SOON})
    with bank.watch_notes():
        write(note, "tea <1 1>")
        is_found(bank, "tea <1 1>")
    bank.close()
    bank = open_bank(notes={"watch_debounce": 2 * LONG})
    syncs.clear()
    with bank.watch_notes():
        until("the watcher looks at the notes", lambda: syncs)
        write(note, "coffee <1 1>")
        assert not happens_within(0.5, lambda: finds(bank, "coffee <1 1>"))


def test_stopping_does_not_wait_for_the_debounce(
    bank: MemoryBank, note: Path, syncs: list[None]
) -> None:
    watch = bank.watch_notes(2 * LONG)
    until("the watcher looks at the notes", lambda: syncs)
    write(note, "tea <1 1>")
    time.sleep(0.3)
    stopping = threading.Thread(target=watch.stop)
    stopping.start()
    stopping.join(LONG)
    assert not stopping.is_alive(), "stopping waits for the debounce"
    assert not finds(bank, "tea <1 1>")


def test_the_folder_of_notes_is_made_if_there_is_none(bank: MemoryBank, folder: Path) -> None:
    assert not (folder / "notes").exists()
    with bank.watch_notes():
        assert (folder / "notes").is_dir()


def test_a_folder_that_is_replaced_is_followed(bank: MemoryBank, note: Path, folder: Path) -> None:
    with bank.watch_notes(SOON):
        write(note, "tea <1 1>")
        is_found(bank, "tea <1 1>")
        shutil.rmtree(folder / "notes")
        is_gone(bank, "tea <1 1>")
        write(note, "coffee <1 1>")
        is_found(bank, "coffee <1 1>")
        write(note, "water <1 1>")
        is_found(bank, "water <1 1>")


def test_a_folder_that_goes_right_after_a_look_is_noticed(
    bank: MemoryBank, note: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = watching.NoteWatch._sync

    def look_and_lose(self: watching.NoteWatch) -> None:
        look(self)
        if note.exists():
            shutil.rmtree(folder / "notes")

    write(note, "tea <1 1>")
    bank.sync_notes()
    assert finds(bank, "tea <1 1>")
    monkeypatch.setattr(watching.NoteWatch, "_sync", look_and_lose)
    with bank.watch_notes(SOON):
        is_gone(bank, "tea <1 1>")


def test_what_a_new_folder_gets_before_it_is_watched_is_found(
    bank: MemoryBank, note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watch(*_: object, stop_event: threading.Event, **__: object) -> Iterator[set[object]]:
        yield set()
        yield {"a new folder"}
        write(note, "tea <1 1>")
        while not stop_event.wait(SOON):
            yield set()

    monkeypatch.setattr("watchfiles.watch", watch)
    with bank.watch_notes(SOON):
        is_found(bank, "tea <1 1>")


def test_a_folder_that_is_replaced_while_others_write_is_followed(
    bank: MemoryBank, note: Path, folder: Path
) -> None:
    """The system may give the new folder the number that the old one had."""
    with bank.watch_notes(SOON):
        write(note, "tea <1 1>")
        is_found(bank, "tea <1 1>")
        with bank.transaction():  # the watcher waits for its end
            shutil.rmtree(folder / "notes")
            time.sleep(10 * SOON)
            write(note, "coffee <1 1>")
        is_found(bank, "coffee <1 1>")
        write(note, "water <1 1>")
        is_found(bank, "water <1 1>")


def test_closing_the_bank_ends_it_quietly(
    bank: MemoryBank, note: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watch = bank.watch_notes(SOON)
    write(note, "tea <1 1>")
    bank.close()
    until("the watcher stops", lambda: not watchers())
    watch.stop()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_transaction_is_not_disturbed(bank: MemoryBank, note: Path) -> None:
    with bank.watch_notes(SOON):
        with bank.transaction():
            write(note, "tea <1 1>")
            assert not happens_within(0.5, lambda: finds(bank, "tea <1 1>"))
        is_found(bank, "tea <1 1>")


def test_it_can_be_stopped_inside_a_transaction(bank: MemoryBank, note: Path) -> None:
    watch = bank.watch_notes(SOON)
    with bank.transaction():
        write(note, "tea <1 1>")
        time.sleep(0.4)  # it waits for its turn
        watch.stop()
    assert not finds(bank, "tea <1 1>")


def test_a_problem_is_logged_once(
    bank: MemoryBank, note: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with bank.watch_notes(SOON):
        write(note, "tea <1 1>")
        is_found(bank, "tea <1 1>")
        note.write_bytes(b"\xff")
        until("the watcher logs it", lambda: caplog.records)
        write(note.parent / "memory" / "more.md", "coffee <1 1>")
        is_found(bank, "coffee <1 1>")
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("a note of alice is not indexed: MEMORY.md: ")
    assert finds(bank, "tea <1 1>")


def test_an_error_of_the_bank_is_logged_and_watching_goes_on(
    bank: MemoryBank, note: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(bank: engine.Engine) -> Any:
        raise StoreError("the store is away")

    with bank.watch_notes(SOON):
        with monkeypatch.context() as broken:
            broken.setattr(watching, "sync_notes", fail)
            write(note, "tea <1 1>")
            until("the watcher logs it", lambda: "the store is away" in caplog.text)
        write(note, "coffee <1 1>")
        is_found(bank, "coffee <1 1>")


def test_an_error_that_nobody_thought_of_is_logged(
    bank: MemoryBank, note: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(bank: engine.Engine) -> Any:
        raise RuntimeError("oh")

    monkeypatch.setattr(watching, "sync_notes", fail)
    with bank.watch_notes(SOON):
        until("the watcher stops", lambda: not watchers())
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "are no longer watched" in record.getMessage()
    assert "RuntimeError: oh" in caplog.text


def test_a_program_that_forgets_to_stop_it_ends_nevertheless(folder: Path) -> None:
    code = (
        "import sys; from agents import MemoryBank\n"
        "bank = MemoryBank.open(sys.argv[1], storage={'sync': 'manual'})\n"
        "watch = bank.watch_notes()\n"
        "print('at the end')"
    )
    assert child(code, folder) == "at the end"


# Mistakes


def test_a_bank_without_a_folder_has_nothing_to_watch(make_bank: Banks) -> None:
    with pytest.raises(InvalidInput, match="a bank with a folder; this one is in memory"):
        make_bank().watch_notes()


@pytest.mark.parametrize("debounce", [-1, float("nan"), float("inf"), True, "1.5"])
def test_a_debounce_is_a_number_of_seconds(bank: MemoryBank, debounce: Any) -> None:
    with pytest.raises(InvalidInput, match="is not a number of seconds from 0 on"):
        bank.watch_notes(debounce)


def test_a_closed_bank_can_not_be_watched(bank: MemoryBank) -> None:
    bank.close()
    with pytest.raises(BankClosed):
        bank.watch_notes()


def test_without_the_library_it_says_what_to_install(
    bank: MemoryBank, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'tiermem\[notes\]'"):
        bank.watch_notes()
    assert not (folder / "notes").exists()


def test_what_is_in_the_way_of_the_folder_is_said(bank: MemoryBank, folder: Path) -> None:
    (folder / "notes").write_text("a file")
    with pytest.raises(NoteRefused, match="notes can't hold notes: "):
        bank.watch_notes()
    (folder / "notes").unlink()
    (folder / "elsewhere").mkdir()
    (folder / "notes").symlink_to(folder / "elsewhere")
    with pytest.raises(NoteRefused, match="it is a symbolic link"):
        bank.watch_notes()
