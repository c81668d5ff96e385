"""The temporary files and folders of a process that was killed go away; those in use stay."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents.exchange import row_files
from agents.storage.files import TemporaryFolder, replace_file
from banks import ROOT

pytestmark = pytest.mark.slow_after(1)

# A process that makes what it is told to, says where, and waits to be killed.
FOLDERS = """
import json, sys, time
from tiermem.storage.files import TemporaryFolder
made = [TemporaryFolder(*each) for each in json.loads(sys.argv[1])]
print(json.dumps([each.name for each in made]), flush=True)
time.sleep(600)
"""
FILES = """
import json, os, sys, time
from pathlib import Path
target = Path(sys.argv[1])
def wait(*_):
    print(json.dumps(sorted(each.name for each in target.parent.iterdir())), flush=True)
    time.sleep(600)
if sys.argv[2] == "export":
    from tiermem.exchange import row_files
    row_files.write(target, row_files.Format.JSONL, iter(wait, None), force=True)
os.fsync = wait
from tiermem.storage.files import replace_file
replace_file(target, b"half")
"""
PURPOSES = [
    ["doctor"], ["salvage"], ["adopt"], ["effect"], ["inspector"], ["mem0"], ["store"],
    ["laws"], ["run"], ["branch"], ["ray", "tm-"],
]  # fmt: skip


@contextmanager
def running(program: str, *arguments: str, place: Path) -> Iterator[tuple[int, list[str]]]:
    """A process that waits in the middle of its work, and what it said; killed at the end."""
    child = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(place)},
    )
    assert child.stdout is not None
    with child:
        try:
            yield child.pid, json.loads(child.stdout.readline())
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system's temporary folder of our own."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def there(folder: Path) -> set[str]:
    return {str(path) for path in folder.iterdir()}


def test_folders_of_a_killed_process_go_with_the_next_one_that_is_made(place: Path) -> None:
    mine = place / f"tiermem-effect-{_dead()}-by_hand_"
    (mine / "inside").mkdir(parents=True)
    with running(FOLDERS, json.dumps(PURPOSES), place=place) as (_, made):
        assert len(made) == len(PURPOSES)
        (Path(made[0]) / "inside").mkdir()
        with TemporaryFolder("doctor") as folder:
            assert there(place) == {*made, folder, str(mine)}  # the process is alive
    assert there(place) == {*made, str(mine)}
    with TemporaryFolder("salvage") as folder:
        assert there(place) == {folder, str(mine)}
    assert there(place) == {str(mine)}


def test_every_temporary_folder_of_the_package_is_swept() -> None:
    """The package makes temporary folders in no other way, and for no purpose but those above."""
    used: set[str] = set()
    for path in (ROOT / "src" / "agents").rglob("*.py"):
        if path.name != "files.py":
            text = path.read_text()
            assert not re.search(r"mkdtemp|mkstemp|TemporaryDirectory|NamedTemporary", text), path
            used.update(re.findall(r'TemporaryFolder\("(\w+)"', text))
    assert used == {purpose for purpose, *_ in PURPOSES}


def test_a_folder_in_use_stays_though_its_process_has_an_unknown_number(place: Path) -> None:
    """As it is with the processes of another container."""
    with running(FOLDERS, '[["effect"]]', place=place) as (pid, made):
        moved = made[0].replace(f"-{pid}-", f"-{_dead()}-")
        Path(made[0]).rename(moved)
        with TemporaryFolder("salvage"):
            assert Path(moved).is_dir()
    with TemporaryFolder("salvage"):
        assert not Path(moved).exists()


def test_a_link_with_the_name_of_a_folder_is_not_followed(place: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("kept")
    link = place / f"tiermem-doctor-{_dead()}-abcdefgh"
    link.symlink_to(tmp_path / "mine")
    with TemporaryFolder("doctor"):
        assert (tmp_path / "mine" / "file").read_text() == "kept"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to somebody else")
def test_a_folder_of_another_user_stays(place: Path) -> None:
    other = place / f"tiermem-doctor-{_dead()}-abcdefgh"
    other.mkdir()
    empty = place / f"tiermem-doctor-{_dead()}-empty___"
    empty.mkdir()
    (other / ".in-use").write_text("")
    for folder in (other, empty):
        os.chown(folder, 12345, 12345)
    with TemporaryFolder("doctor"):
        assert other.is_dir()
        assert empty.is_dir()


@pytest.mark.parametrize("how", ["export", "replace"])
def test_a_half_written_file_goes_when_the_file_is_written_again(tmp_path: Path, how: str) -> None:
    target = tmp_path / "files" / "all.jsonl"
    target.parent.mkdir()
    other = target.parent / f".other.jsonl.{_dead()}.tmp"
    other.write_text("of another file")

    def write() -> None:
        if how == "export":
            row_files.write(target, row_files.Format.JSONL, [{"content": "whole"}], force=True)
        else:
            replace_file(target, "whole")

    with running(FILES, str(target), how, place=tmp_path) as (pid, names):
        assert [name for name in names if name.startswith(f".{target.name}.{pid}.")]
        write()
        assert len(list(target.parent.iterdir())) == 3  # the process is alive
    write()
    assert sorted(path.name for path in target.parent.iterdir()) == [other.name, target.name]


def _dead() -> int:
    """The number of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


STORES = """
import sys
from tiermem import MemoryBank
with MemoryBank.open(sys.argv[1]) as bank:
    bank.agent("alice").add("the bridge is closed")
"""


@pytest.mark.slow
def test_a_process_that_ends_leaves_nothing_nor_does_that_of_its_store(tmp_path: Path) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    command = [sys.executable, "-c", STORES, str(tmp_path / "bank")]
    subprocess.run(command, env={**os.environ, "TMPDIR": str(place)}, check=True)
    assert (tmp_path / "bank" / "chroma").is_dir()  # it was synced
    assert [each.name for each in place.iterdir()] == []
