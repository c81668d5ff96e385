"""Processes of this machine: a link to each worker of a run, and processes that do jobs.

All of them end when the process ends that started them.
"""

import contextlib
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Protocol, TypeVar


class WorkerLost(Exception):
    """A worker gave no answer, because it ended; the text goes after "it"."""


class Link(Protocol):
    """The way to one worker. Messages are sent and answered one by one."""

    def send(self, message: bytes) -> None:
        """Send a message, and don't wait for its answer."""

    def receive(self) -> bytes:
        """The answer to the last message; :class:`WorkerLost` if there will be none."""

    def end(self) -> None:
        """End the worker at once."""


_LAST_SECONDS = 10


class ProcessLink:
    """A worker in a process of its own; ``module`` is run there, and calls :func:`serve`."""

    def __init__(self, module: str) -> None:
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as undo:
            undo.enter_context(ours)
            self._complaints = undo.enter_context(tempfile.TemporaryFile())
            # A worker finds no module in the current folder unless this process does.
            option = "-m" if {"", os.getcwd()} & set(sys.path) else "-Pm"
            self.process = subprocess.Popen(
                [sys.executable, option, module],
                stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=self._complaints,
            )  # fmt: skip
            undo.pop_all()
        self._link = Connection(ours.detach())

    def send(self, message: bytes) -> None:
        """Send a message."""
        try:
            self._link.send_bytes(message)
        except OSError as error:
            raise self._lost() from error

    def receive(self) -> bytes:
        """Wait for the answer."""
        try:
            return self._link.recv_bytes()
        except (EOFError, OSError) as error:
            raise self._lost() from error

    def end(self) -> None:
        """End the process; nothing that it acknowledged is lost."""
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a disk that never answers
            self.process.wait(_LAST_SECONDS)
        self._link.close()
        self._complaints.close()

    def _lost(self) -> WorkerLost:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_LAST_SECONDS)
        code = self.process.poll()
        if code is not None and code < 0:
            return WorkerLost(f"was killed (signal {-code})")
        self._complaints.seek(0)
        said = self._complaints.read().decode(errors="replace").strip().splitlines()
        return WorkerLost(f"ended: {said[-1] if said else f'exit code {code}'}")


class Answering(Protocol):
    """What answers messages in a process of its own."""

    tell: Callable[[bytes], None]
    """Takes a message that is no answer, while an answer is made."""

    def answer(self, message: bytes, /) -> bytes:
        """The answer to a message."""


def serve(worker: Answering) -> None:
    """Answer messages from the socket that is standard input, until the driver's end is closed."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # the driver decides when its workers end
    link = Connection(sys.stdin.fileno())
    messages: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_receive, args=(link, messages), daemon=True).start()
    worker.tell = link.send_bytes
    while True:
        link.send_bytes(worker.answer(messages.get()))


def _receive(link: Connection, messages: "SimpleQueue[bytes]") -> None:
    """Take in messages; when the driver has ended, end at once."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            messages.put(link.recv_bytes())
    os._exit(0)


_Result = TypeVar("_Result")
_SECONDS = 20


def wait_for(
    attempt: Callable[[], _Result], error: type[Exception], seconds: float = _SECONDS
) -> _Result:
    """Try again while ``error`` is raised: its reason is a process that ends with its driver."""
    until = time.monotonic() + seconds
    while True:
        try:
            return attempt()
        except error:
            if time.monotonic() > until:
                raise
        time.sleep(0.05)


# Processes for many jobs at once, which end with their parent however it ends

KILLED = "its process was killed, twice; it may need more memory than there is"


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
    job: Callable[..., _Result],
    calls: Sequence[tuple[object, ...]],
    workers: int | None = None,
    *,
    here: bool = False,
) -> Iterator[tuple[int, _Result | None]]:
    """The result of each call of ``job`` with its place, as they end.

    A call whose process is killed is made once more; then its result is None. ``workers`` is the
    number of processes; without it, as many as there are cores. With ``here``, the calls are made
    in this process, one after the other: it has what others can't import.
    """
    if here:
        yield from ((place, job(*call)) for place, call in enumerate(calls))
        return
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
