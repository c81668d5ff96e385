"""The processes of a sweep start with imports that are made once, by a server of forks."""

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from agents.simulation.runs import outputs
from agents.simulation.sweeps import processes, run_sweep


def use() -> None:
    """From now on, a process of a sweep is a fork."""
    forked = multiprocessing.get_context("forkserver")
    forked.set_forkserver_preload([run_sweep.__name__, outputs.__name__, "pyarrow.parquet"])
    processes.multiprocessing = SimpleNamespace(get_context=lambda kind: forked)


@contextmanager
def from_scratch() -> Iterator[None]:
    """Inside, they are processes from scratch, as users have them."""
    processes.multiprocessing = multiprocessing
    try:
        yield
    finally:
        use()
