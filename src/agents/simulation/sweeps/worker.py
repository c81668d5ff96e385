"""The processes of a sweep, which end with it however it ends."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import TypeVar

__all__ = ["Worker", "hold_ctrl_c"]

_Result = TypeVar("_Result")


class Worker:
    """A process that does one job at a time; a new one, after it was killed."""

    def __init__(self) -> None:
        self._is_ended = False
        self._changing = threading.Lock()
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._theirs, self._ours = context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(1, context, _end_with, (self._theirs,))

    def run(self, job: Callable[..., _Result], *arguments: object) -> _Result | None:
        """The job's result; None if its process was killed."""
        try:
            return self._pool.submit(job, *arguments).result()
        except BrokenProcessPool:
            with self._changing:
                if not self._is_ended:
                    self._stop()
                    self._start()
            return None

    def end(self) -> None:
        """End the process, and the job that it does."""
        with self._changing:
            self._is_ended = True
            self._stop()

    def _stop(self) -> None:
        self._ours.close()
        self._pool.shutdown()
        self._theirs.close()


def hold_ctrl_c() -> None:
    """Processes that this thread starts get no Ctrl-C: it is their parent's to end them."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _end_with(parent: Connection) -> None:
    """End this process when the parent closes its end of the pipe, or ends."""

    def wait() -> None:
        parent.poll(None)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
