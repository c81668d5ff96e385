"""What the suite replaces to save time: nothing of it is there with ``TIERMEM_PLAIN=1``.

Temporary folders are in memory; ``httpx`` reads one certificate; the processes of a sweep, and
other children (warm_children.py), are forked from a server that has made the imports.
"""

import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import certifi

from agents.simulation.runs import outputs
from agents.simulation.sweeps import run_sweep
from agents.simulation.workers import carriers
from warm_children import PLAIN

_ROOM = 2 * 2**30


def use_memory_as_disk() -> None:
    """Tests wait for the disk most of all: a folder in memory, where it has room, waits for none.

    The variable TMPDIR names another folder.
    """
    folder = Path("/dev/shm")
    if PLAIN or "TMPDIR" in os.environ or not os.access(folder, os.W_OK):
        return
    if shutil.disk_usage(folder).free > _ROOM:
        os.environ["TMPDIR"] = str(folder)
        tempfile.tempdir = None  # is found anew


def trust_one_certificate(state: Path) -> None:
    """No test leaves the machine, and each client of httpx would read 150 certificates."""
    if PLAIN:
        return
    before, end, _ = Path(certifi.where()).read_text("utf-8").partition("-----END CERTIFICATE-----")
    file = state / "certificate.pem"
    file.write_text(before + end, "utf-8")
    os.environ["SSL_CERT_FILE"] = str(file)  # for children
    certifi.where = lambda: str(file)


def fork_the_processes_of_sweeps() -> None:
    """From now on, a process of a sweep is a fork of a server that has made the imports."""
    if PLAIN:
        return
    forked = multiprocessing.get_context("forkserver")
    forked.set_forkserver_preload([run_sweep.__name__, outputs.__name__, "pyarrow.parquet"])
    carriers.multiprocessing = SimpleNamespace(get_context=lambda kind: forked)


@contextmanager
def spawned_processes_of_sweeps() -> Iterator[None]:
    """Inside, they are spawned, as users have them."""
    carriers.multiprocessing = multiprocessing
    try:
        yield
    finally:
        fork_the_processes_of_sweeps()
