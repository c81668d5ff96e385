"""What all tests share: a guard against the network, and small banks."""

import gc
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis.core
import pytest
from hypothesis import settings
from hypothesis.vendor.pretty import RepresentationPrinter

sys.path.insert(0, str(Path(__file__).parent / "property"))
sys.path.insert(0, str(Path(__file__).parent))

import shortcuts
import warm_children
from agents import AgentMemory, MemoryBank
from agents.storage.mem0 import child_process
from agents.storage.state.ledger import Ledger
from embedders import Directions
from examples import PROFILE, number_by_profile
from selection import is_left_out, mark

shortcuts.use_memory_as_disk()

# How long a test takes is the machine's affair. There are many laws, and the state machine has
# numbers of its own.
settings.register_profile(
    PROFILE, deadline=None, max_examples=number_by_profile(8, 20, 50, thorough=2000)
)
settings.load_profile(PROFILE)
# Schemathesis prints no example that fails, of any test.
hypothesis.core.RepresentationPrinter = RepresentationPrinter

# A shell starts what runs in the background deaf to Ctrl-C, and children would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What tests make is trusted by the tests alone; children inherit the folder of the key.
_STATE = tempfile.TemporaryDirectory(prefix="tiermem-state-")
os.environ["XDG_STATE_HOME"] = _STATE.name


shortcuts.trust_one_certificate(Path(_STATE.name))
shortcuts.fork_the_processes_of_sweeps()


# A library that reads these may start threads of its own, or ask the network for a newer version.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files whose tests are all left out are not even imported: to import all takes seconds."""
    return is_left_out(collection_path, config.getoption("markexpr")) or None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """What other packages leave open in a test that may, is collected there, not in a later one."""
    yield
    if any("ResourceWarning" in mark.args[0] for mark in item.iter_markers("filterwarnings")):
        gc.collect()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark(items)


def pytest_collection_finish() -> None:
    """Thousands of tests and all modules stay to the end: no search for garbage looks at them."""
    gc.freeze()


class NetworkUsed(AssertionError):
    """Something tried to reach beyond this machine."""


_SENDING = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_ASKING = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})


class NetworkGuard:
    """Refuses every connection and name lookup that leaves the machine, and remembers it.

    An audit hook sees the calls that C code makes too. What swallows the error is still found:
    the attempt stays in ``attempts``, and fails the test in which it was made.
    """

    def __init__(self) -> None:
        self.attempts: list[str] = []
        self.active = False

    def look(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Refuse what leaves the machine."""
        if not self.active:
            return
        if event in _SENDING:
            where, address = arguments[0], arguments[1]
            if where.family not in (socket.AF_INET, socket.AF_INET6) or address is None:
                return
            host = address[0] if isinstance(address, tuple) else address
        else:
            host = arguments[0]
        if not _is_loopback(host):
            self.attempts.append(f"{event} {host!r}")
            raise NetworkUsed(f"the test suite must not use the network: {event} {host!r}")


def _is_loopback(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host in (None, "", "localhost"):
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False


_GUARD = NetworkGuard()


def _hook(
    event: str, arguments: tuple[Any, ...], watched: frozenset[str] = _SENDING | _ASKING
) -> None:
    """Called millions of times, with each file that is opened and each frame that is looked at."""
    if event in watched:
        _GUARD.look(event, arguments)


sys.addaudithook(_hook)


@pytest.fixture(scope="session", autouse=True)
def network_guard() -> Iterator[NetworkGuard]:
    """Active over the whole session."""
    _GUARD.active = True
    yield _GUARD
    _GUARD.active = False


@pytest.fixture(autouse=True)
def _no_network_was_used(network_guard: NetworkGuard) -> Iterator[None]:
    yield
    attempts, network_guard.attempts = network_guard.attempts, []
    assert not attempts, f"the network was used: {attempts}"


@pytest.fixture(scope="session", autouse=True)
def _warm_children() -> Iterator[None]:
    """Children that use a store have mem0 and Chroma imported already."""
    if not shortcuts.PLAIN:
        warm_children.use_stores_warm(warm_children)
    yield
    child_process.end_idle()
    warm_children.use_stores_warm(subprocess)
    warm_children.close()


MakeBank = Callable[..., MemoryBank]


@pytest.fixture
def make_bank() -> Iterator[MakeBank]:
    """Makes banks in memory whose texts say where they point; closes them afterwards."""
    banks: list[MemoryBank] = []

    def make(**options: Any) -> MemoryBank:
        options.setdefault("embedder", Directions())
        options.setdefault("preset", "vector")  # only where a text points is meant
        banks.append(MemoryBank.ephemeral(**options))
        return banks[-1]

    yield make
    for bank in banks:
        bank.close()


@pytest.fixture
def open_bank(tmp_path: Path) -> Iterator[MakeBank]:
    """Opens the bank in ``tmp_path / "bank"``, closing it first if it is open; no mem0 involved."""
    banks: list[MemoryBank] = []

    def reopen(**options: Any) -> MemoryBank:
        for bank in banks:
            bank.close()
        options.setdefault("embedder", Directions())
        options.setdefault("preset", "vector")
        options.setdefault("storage", {"sync": "manual"})
        banks.append(MemoryBank.open(tmp_path / "bank", **options))
        return banks[-1]

    yield reopen
    for bank in banks:
        bank.close()


@pytest.fixture
def bank(make_bank: MakeBank) -> MemoryBank:
    return make_bank()


@pytest.fixture
def alice(bank: MemoryBank) -> AgentMemory:
    return bank.agent("alice")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "bank"


@pytest.fixture
def snapshots_on_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the threshold, so that the rare path runs."""
    monkeypatch.setattr(Ledger, "SNAPSHOT_ON_CLOSE", 1)
