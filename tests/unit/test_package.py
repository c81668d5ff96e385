"""The package as a user gets it: quiet to import, few names, whole when built."""

import ast
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import tiermem
from banks import ROOT
from waiting import LONG

SOURCE = ROOT / "src" / "agents"


# The guard


@pytest.mark.parametrize("host", ["192.0.2.1", "10.0.0.1", "2001:db8::1"])
def test_the_suite_cannot_connect_beyond_this_machine(network_guard: Any, host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as client:
        client.settimeout(0.2)
        for connect in (client.connect, client.connect_ex):
            with pytest.raises(AssertionError, match="network"):
                connect((host, 80))
    assert len(network_guard.attempts) == 2
    network_guard.attempts.clear()


def test_the_suite_cannot_send_a_datagram_beyond_this_machine(network_guard: Any) -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
        pytest.raises(AssertionError, match="network"),
    ):
        client.sendto(b"x", ("192.0.2.1", 53))
    network_guard.attempts.clear()


@pytest.mark.parametrize("lookup", [socket.getaddrinfo, socket.gethostbyname], ids=["addr", "name"])
def test_the_suite_cannot_look_up_a_name(network_guard: Any, lookup: Any) -> None:
    arguments = ("pypi.org", 443) if lookup is socket.getaddrinfo else ("pypi.org",)
    with pytest.raises(AssertionError, match=r"pypi\.org"):
        lookup(*arguments)
    assert len(network_guard.attempts) == 1
    network_guard.attempts.clear()


def test_an_attempt_that_is_swallowed_is_still_remembered(network_guard: Any) -> None:
    with contextlib.suppress(AssertionError):
        socket.create_connection(("192.0.2.1", 80), timeout=0.1)
    assert network_guard.attempts
    network_guard.attempts.clear()


def test_the_suite_may_talk_to_itself(network_guard: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(("localhost", port), timeout=LONG).close()
    one, other = socket.socketpair()
    one.close()
    other.close()
    assert network_guard.attempts == []


# Importing

IMPORT = """
import json, sys, threading
events = []
def hook(event, arguments):
    if event.startswith("socket.") or event in ("subprocess.Popen", "os.fork", "os.mkdir"):
        events.append(event)
    if event == "open" and isinstance(arguments[1], str) and arguments[1].strip("rbtU"):
        if "__pycache__" not in str(arguments[0]):
            events.append(f"open {arguments[0]} {arguments[1]}")
sys.addaudithook(hook)
before = set(sys.modules)
import tiermem
print(json.dumps({
    "modules": sorted({name.partition(".")[0] for name in set(sys.modules) - before}),
    "threads": threading.active_count(),
    "events": events,
}))
"""


def imported(tmp_path: Path) -> dict[str, Any]:
    """What importing the package did, in a fresh process with an empty home."""
    home, here = tmp_path / "home", tmp_path / "cwd"
    home.mkdir(exist_ok=True)
    here.mkdir(exist_ok=True)
    result = subprocess.run(
        [sys.executable, "-c", IMPORT],
        capture_output=True,
        text=True,
        timeout=LONG,
        cwd=here,
        env={"HOME": str(home), "PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)},
    )
    assert result.returncode == 0, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    report["written"] = sorted(
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path not in (home, here)
    )
    return report


def test_importing_brings_in_nothing_heavy(tmp_path: Path) -> None:
    heavy = {
        "numpy",
        "scipy",
        "mem0",
        "chromadb",
        "yaml",
        "jsonschema",
        "sqlite3",
        "tokenizers",
        "safetensors",
    }
    assert heavy.isdisjoint(imported(tmp_path)["modules"])


def test_importing_starts_no_thread_and_no_process_and_opens_no_socket(tmp_path: Path) -> None:
    report = imported(tmp_path)
    assert report["threads"] == 1
    assert report["events"] == []


def test_importing_writes_no_file(tmp_path: Path) -> None:
    assert imported(tmp_path)["written"] == []


def test_opening_a_bank_imports_neither_mem0_nor_chroma_until_it_is_needed(tmp_path: Path) -> None:
    code = """
import sys, threading
from tiermem import MemoryBank
with MemoryBank.open(sys.argv[1], storage={"sync": "manual"}) as bank:
    bank.agent("alice").add("hello", "pinned")
    bank.agent("alice").get_relevant_memories("hello")
assert not {"mem0", "chromadb", "openai", "posthog", "scipy"} & set(sys.modules)
"""
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "bank")],
        capture_output=True,
        text=True,
        timeout=LONG,
    )
    assert result.returncode == 0, result.stderr


# Names


def test_the_public_names_are_these() -> None:
    assert sorted(tiermem.__all__) == [
        "AgentMemory", "AsyncMemoryBank", "BankBroken", "BankClosed", "BankDamaged", "BankError",
        "BankLocked", "BankNotFound", "BankTooNew", "BankTooOld",
        "CheckpointDamaged", "CheckpointError", "CommitFailed", "CommitUnknown", "ConfigError",
        "Diverged", "EmbedderError", "Explanation", "ExtractionError", "Hit", "Hits",
        "InvalidAction", "InvalidAgentId", "InvalidContent", "InvalidInput", "InvalidMetadata",
        "InvalidTemperature", "InvalidTier", "Memory", "MemoryBank", "MemoryNotFound",
        "MemoryPinned", "NoteRefused", "Retention", "RunError", "SimulationError", "Source",
        "StoreDamaged", "StoreError", "StoreMismatch", "TIER_NAMES", "TIER_VALUES", "Temperature",
        "TickNotKept", "Tier", "TierFull", "TierMemError", "TrustError", "Untrusted", "__version__",
        "experiment", "simulate", "trust", "world",
    ]  # fmt: skip


def test_every_public_name_can_be_imported() -> None:
    for name in tiermem.__all__:
        assert getattr(tiermem, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Banana"):
        _ = tiermem.Banana


def test_every_error_is_a_tiermem_error() -> None:
    errors = [getattr(tiermem, name) for name in tiermem.__all__]
    errors = [each for each in errors if isinstance(each, type) and issubclass(each, Exception)]
    assert len(errors) >= 18
    assert all(issubclass(each, tiermem.TierMemError) for each in errors)


def test_the_version_is_the_distributions() -> None:
    from importlib.metadata import version

    assert version("tiermem") == tiermem.__version__


# Sources


def name_of(called: ast.expr) -> str:
    parts = ast.walk(called)
    return ".".join(getattr(each, "attr", "") or getattr(each, "id", "") for each in parts)


def imports_of(path: Path) -> set[str]:
    """Top-level names that a file imports, by statement or by a call with a text."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
        elif isinstance(node, ast.Call) and "import" in name_of(node.func):
            names |= {str(each.value) for each in node.args if isinstance(each, ast.Constant)}
    return {name.partition(".")[0] for name in names}


LOADERS, RUNNERS = {"pickle", "marshal", "shelve", "dill"}, {"eval", "exec"}
ANY_OF_THEM = re.compile("|".join(sorted(LOADERS | RUNNERS)))


@pytest.mark.slow
def test_no_source_runs_code_that_it_loads() -> None:
    for path in SOURCE.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if not ANY_OF_THEM.search(source):  # to parse all files takes seconds
            continue
        found = imports_of(path) & LOADERS
        if re.findall(r"import marshal|marshal import .*", source) == ["marshal import dumps"]:
            found -= {"marshal"}  # it writes, and reads nothing
        assert not found, path
        calls = {
            node.func.id
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not calls & RUNNERS, path


# The wheel


def test_a_built_wheel_has_the_defaults_and_the_type_marker(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=LONG,
        cwd=ROOT,
    )
    assert result.returncode == 0, result.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith("tiermem-")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        files = [path for path in (ROOT / "config").rglob("*") if path.is_file()]
        assert len(files) >= 6
        for path in files:
            packed = archive.read(f"tiermem/defaults/{path.relative_to(ROOT / 'config')}")
            assert packed == path.read_bytes()
    assert {"tiermem/py.typed", "tiermem/__init__.py", "tiermem/bank/memory_bank.py"} <= names
    tops = {name.partition("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {"tiermem"}


@pytest.mark.slow
def test_a_bank_works_from_the_wheel_alone(tmp_path: Path) -> None:
    """Without the checkout beside it: the packaged defaults are found."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        capture_output=True,
        check=True,
        timeout=LONG,
        cwd=ROOT,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = """
import tiermem
from tiermem import MemoryBank
from tiermem.config import load_settings
with MemoryBank.ephemeral() as bank:
    bank.agent("alice").add("hello")
    print(tiermem.__file__, bank.settings.memory.max_pinned)
print(load_settings(preset="lifetime").temperature.initial)
"""
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=LONG,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [str(tmp_path / "site" / "tiermem" / "__init__.py"), "5", "hot"]
