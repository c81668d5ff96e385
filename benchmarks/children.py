"""One process per contestant, so that none pays for another's threads, garbage or caches.

The processes live at the same time and are asked in turns, so that a noisy moment of the machine
hits all of them.
"""

import contextlib
import multiprocessing
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Generator
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_SPAWN = multiprocessing.get_context("spawn")

Serve = Callable[..., Generator[Any, Any, None]]
"""A generator function: called with a folder and arguments, it takes questions by ``send``."""


class Child:
    """A generator that runs in a process of its own, in a folder that goes when it goes."""

    def __init__(self, serve: Serve, *arguments: object, folder: Path | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tiermem-bench-", dir=folder))
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_run, args=(theirs, serve, self.folder, arguments))
        self._process.start()
        theirs.close()

    def wait(self) -> Any:
        """What the generator yields first, when it is ready for questions."""
        return self._receive()

    def ask(self, question: object) -> Any:
        """What the generator yields for ``question``."""
        self._pipe.send(question)
        return self._receive()

    def close(self) -> None:
        """Kill the process as it stands; nothing is saved, and nothing of it stays."""
        self._process.kill()
        self._process.join()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _receive(self) -> Any:
        try:
            worked, answer = self._pipe.recv()
        except EOFError:
            self._process.join()
            raise SystemExit(f"a child process died ({self._process.exitcode})") from None
        if not worked:
            raise SystemExit(answer)
        return answer


def _run(pipe: Connection, serve: Serve, folder: Path, arguments: tuple[object, ...]) -> None:
    tempfile.tempdir = str(folder)  # so that what a killed child leaves there goes too
    # Peers print notices; they are not part of the result.
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        try:
            service = serve(folder, *arguments)
            pipe.send((True, next(service)))
            while True:
                pipe.send((True, service.send(pipe.recv())))
        except EOFError:  # whoever asked is gone
            pass
        except Exception:  # noqa: BLE001  # shown by the parent
            pipe.send((False, traceback.format_exc()))
    os._exit(0)  # no store is closed: its last writes are not what is measured
