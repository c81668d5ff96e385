"""What carries messages to workers: a link to each, and workers that are processes of this machine.

The processes end when the driver's process ends.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
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


def serve(answer: Callable[[bytes], bytes]) -> None:
    """Answer messages from the socket that is standard input, until the driver's end is closed."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # the driver decides when its workers end
    link = Connection(sys.stdin.fileno())
    messages: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_receive, args=(link, messages), daemon=True).start()
    while True:
        link.send_bytes(answer(messages.get()))


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
