"""The process that reads the journal: it may die, and it does not outlive the page."""

import os
import re
import signal
import stat
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from http_service import COMMAND
from inspected_sites import ask, looked_at

from agents import MemoryBank
from agents.errors import RunError
from agents.interfaces.inspector.inspection import Inspection
from agents.interfaces.inspector.parameters import CantTell
from waiting import ended, until
from warm_children import Popen


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system's temporary folder of our own."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def _reading(folder: Path) -> int | None:
    """The process that has the only file in a temporary folder open, if one is seen to."""
    (file,) = folder.glob("tiermem-inspector-*/slices.db")
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        with suppress(OSError):  # it ended, or is another user's
            if b"inspect\0" in (process / "cmdline").read_bytes():
                continue
            for each in (process / "fd").iterdir():
                with suppress(FileNotFoundError):  # closed meanwhile, as SQLite does with journals
                    if each.readlink() == file:
                        return int(process.name)
    return None


def _reader(folder: Path) -> int:
    """That process. Never 0, which for ``os.kill`` is whoever runs these tests."""
    return int(until("a process has the file open", lambda: _reading(folder)))


def _read(site: Inspection, tick: int) -> None:
    until(f"tick {tick} is read", lambda: ask(site, "follow")["read_tick"] >= tick)


def test_what_was_read_is_told_on_where_the_process_was_killed(place: Path, tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        bank.agent("ann").add("the mill burns")
        bank.advance(1)
        with looked_at(tmp_path / "bank") as site:
            _read(site, 1)
            os.kill(_reader(place), signal.SIGKILL)
            until("it is noticed", lambda: site.runs[0].damaged is not None)
            bank.agent("ann").add("the mill is lost")
            bank.advance(2)
            found = ask(site, "memories", agent="ann", tick=0)
            assert [row["text"] for row in found["rows"]] == ["the mill burns"]
            assert "was killed (signal 9)" in ask(site, "about")["runs"][0]["damaged"]
            with pytest.raises(CantTell, match=r"read up to tick 1: the process .* was killed"):
                ask(site, "memories", agent="ann", tick=2)
            with pytest.raises(RunError, match="was killed") as refused:
                ask(site, "population", tick=0)
            assert "start tiermem inspect again" in str(refused.value.hint)
    assert list(place.iterdir()) == []


def test_the_file_is_its_owners_alone_and_goes_with_the_page(place: Path, market: Path) -> None:
    with looked_at(market) as site:
        _read(site, 40)
        (folder,) = place.iterdir()
        assert folder.name.startswith(f"tiermem-inspector-{os.getpid()}-")
        files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {mode for name, mode in files.items() if name.startswith("slices.db")} == {0o600}
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_neither_process_nor_file_outlives_the_command(
    place: Path, market: Path, end: signal.Signals
) -> None:
    with Popen(
        [*COMMAND, "inspect", str(market)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert re.match("http", process.stdout.readline())
        _reader(place)
        process.send_signal(end)
        ended(process)
        until("nothing is left", lambda: list(place.glob("tiermem-inspector-*")) == [])


def test_a_text_that_is_forgotten_for_good_leaves_the_file(place: Path, tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        secret = bank.agent("ann").add("the password is swordfish")
        kept = bank.agent("ann").add("the mill burns")
        bank.advance(1)
        with looked_at(tmp_path / "bank") as site:
            texts = [row["text"] for row in ask(site, "memories", agent="ann", tick=1)["rows"]]
            assert texts == [secret.content, kept.content]
            bank.agent("ann").forget(secret.id)
            bank.advance(2)
            _read(site, 2)
            for tick in (0, 1):
                rows = ask(site, "memories", agent="ann", tick=tick)["rows"]
                assert secret.content not in {row["text"] for row in rows}
                assert kept.content in {row["text"] for row in rows}
            assert ask(site, "search", q="swordfish")["total"] == 0
            slices = site.runs[0].slices
            assert all("swordfish" not in str(item) for item in slices.items(slices.place("ann")))
