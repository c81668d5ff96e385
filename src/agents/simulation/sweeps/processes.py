"""Processes for many runs at once, which end with their parent however it ends."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import TypeVar

KILLED = "its process was killed, twice; it may need more memory than there is"

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


def in_processes(
    job: Callable[..., _Result], calls: Sequence[tuple[object, ...]], workers: int | None = None
) -> Iterator[tuple[int, _Result | None]]:
    """The result of each call of ``job`` with its place, as they end.

    A call whose process is killed is made once more; then its result is None. ``workers`` is the
    number of processes; without it, as many as there are cores.
    """
    workers = min(workers or os.cpu_count() or 1, max(1, len(calls)))
    with ExitStack() as ended, ThreadPoolExecutor(workers, initializer=_hold_ctrl_c) as threads:
        idle = SimpleQueue[Worker]()
        for _ in range(workers):
            idle.put(worker := Worker())
            ended.callback(worker.end)
        try:
            waiting = {
                threads.submit(_twice, idle, job, call): place for place, call in enumerate(calls)
            }
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            ended.close()
            raise


def _twice(
    idle: "SimpleQueue[Worker]", job: Callable[..., _Result], call: tuple[object, ...]
) -> _Result | None:
    """Make a call in an idle worker, and once more if the worker is killed."""
    for _ in range(2):
        worker = idle.get()
        try:
            result = worker.run(job, *call)
        finally:
            idle.put(worker)
        if result is not None:
            return result
    return None


def _hold_ctrl_c() -> None:
    """Processes that this thread starts get no Ctrl-C: it is their parent's to end them."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _end_with(parent: Connection) -> None:
    """End this process when the parent closes its end of the pipe, or ends."""

    def wait() -> None:
        parent.poll(None)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
