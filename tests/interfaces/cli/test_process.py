"""What surrounds a command: closed streams, signals, and packages that are missing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents import MemoryBank
from waiting import ended

pytestmark = pytest.mark.slow_after(1)

TIERMEM = str(Path(sys.executable).with_name("tiermem"))

HIDE = """
import os, sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == os.environ["HIDDEN"]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("place")
    with MemoryBank.open(place / "crew", storage={"sync": "manual"}) as bank:
        bank.agent("alice").add("The well is in the north")
    (place / "hide").mkdir()
    (place / "hide" / "sitecustomize.py").write_text(HIDE)
    return place


def without(module: str, place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TIERMEM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "HIDDEN": module, "PYTHONPATH": str(place / "hide")},
    )


# Streams


@pytest.mark.parametrize("command", ["export crew", "status crew", "add crew -a zed x"])
def test_without_standard_output_nothing_is_done(place: Path, command: str) -> None:
    line = f"{TIERMEM} {command} >&-"
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, check=False, cwd=place
    )
    assert done.returncode == 1
    assert "standard output is closed" in done.stderr
    assert len(done.stderr.splitlines()) == 3
    with MemoryBank.at(place / "crew") as bank:
        assert bank.agents() == ["alice"]


def test_without_standard_input_nothing_is_imported(place: Path) -> None:
    line = f"{TIERMEM} import crew - <&-"
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, check=False, cwd=place
    )
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 3


def test_a_result_that_can_not_be_printed_is_an_error(place: Path) -> None:
    line = f"{TIERMEM} status crew >/dev/full"
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, check=False, cwd=place
    )
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert len(done.stderr.splitlines()) == 3


# Signals


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_an_import_that_is_stopped_says_that_nothing_was_stored(place: Path, number: int) -> None:
    with subprocess.Popen(
        [TIERMEM, "store", "import", "crew", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=place,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        process.stdin.write('{"agent_id": "bob", "content": "x"}\n')
        process.stdin.flush()
        while (place / "crew" / "bank.lock").read_text().strip() != str(process.pid):
            time.sleep(0.05)
        time.sleep(1)
        process.send_signal(number)
        _, err = ended(process)
    assert process.returncode == 128 + number
    assert err == "tiermem: stopped; nothing was stored\n"
    with MemoryBank.at(place / "crew") as bank:
        assert bank.agents() == ["alice"]


# Packages


@pytest.mark.long_after(3)
@pytest.mark.parametrize(
    ("module", "command", "todo"),
    [
        ("numpy", "status crew", "pip install 'numpy"),
        ("Stemmer", "status crew", "pip install 'pystemmer"),
        ("mem0", "add crew -a alice x", "pip install 'mem0ai"),
        ("pyarrow", "store export crew --out x.parquet", "pip install 'tiermem[simulation]'"),
        ("tokenizers", "add crew -a alice x", "pip install tokenizers"),
        ("safetensors", "add crew -a alice x", "pip install safetensors"),
        ("mcp", "mcp crew -a alice", "pip install 'tiermem[mcp]'"),
        ("uvicorn", "mcp crew -a alice --http", "pip install 'tiermem[http]'"),
        ("starlette", "serve crew -a alice", "pip install 'tiermem[http]'"),
    ],
)
def test_a_missing_package_is_named_with_the_way_to_get_it(
    place: Path, module: str, command: str, todo: str
) -> None:
    done = without(module, place, *command.split())
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    _, why, do = done.stderr.splitlines()
    assert module in why
    assert do.startswith(f"     do: {todo}")


@pytest.mark.long
def test_a_store_is_not_damaged_because_chromadb_is_missing(tmp_path: Path, place: Path) -> None:
    with MemoryBank.open(tmp_path / "crew") as bank:
        bank.agent("alice").add("The well is in the north")
    before = sorted(path.name for path in (tmp_path / "crew").iterdir())
    done = without("chromadb", place, "store", "rebuild", str(tmp_path / "crew"))
    assert done.returncode == 2
    assert "pip install 'chromadb" in done.stderr.splitlines()[2]
    assert sorted(path.name for path in (tmp_path / "crew").iterdir()) == before
    found = [
        line.split("\t")
        for line in without("chromadb", place, "doctor", str(tmp_path / "crew")).stdout.splitlines()
    ]
    assert [line[1] for line in found if line[0] == "problem"] == ["chromadb"]
    assert ["warning", "mem0", "not checked: it needs chromadb"] in [line[:3] for line in found]


@pytest.mark.slow
def test_the_doctor_goes_on_without_a_package(place: Path) -> None:
    done = without("numpy", place, "doctor", "crew")
    assert done.returncode == 1
    found = [line.split("\t")[:2] for line in done.stdout.splitlines()]
    assert ["problem", "numpy"] in found
    assert ["warning", "journal"] in found
    assert ["ok", "lock"] in found


def test_the_doctor_goes_on_without_what_reads_requirements(place: Path) -> None:
    done = without("packaging", place, "doctor", "crew")
    found = [line.split("\t")[:3] for line in done.stdout.splitlines()]
    assert ["warning", "packages", "not checked: it needs packaging"] in found
    assert ["ok", "lock"] in [line[:2] for line in found]
