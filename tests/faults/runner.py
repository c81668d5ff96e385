"""A process that lets children of its own run a simulation, and kills them as it is told.

Run as ``python runner.py``. It imports everything once; each line on standard input is a
:class:`Life` as JSON, and each is answered by one line: ``done``, ``killed`` or what went wrong.
"""

import contextlib
import fnmatch
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Life(NamedTuple):
    """One process that goes on with a run, or begins it, and when it is to die.

    Without any of the reasons to die it lives to the end of the run.
    """

    folder: str
    scenario: dict[str, Any]
    after: str | None = None
    """Once it has said this: ``begin``, ``open``, ``tick 12``, ``finish``."""
    file: str | None = None
    """Once another file of such a name is in the run's folder."""
    delay: float = 0.0
    """So many seconds after either."""
    operation: int | None = None
    """In the so many-th file operation after it said ``after``."""
    report: bool = True
    """Whether to write the report, which takes longer than all the rest."""
    force: bool = False
    """Begin anew, in the place of a run that is there."""


def live(life: Life, say: int) -> None:
    """Run to the end, and say on a pipe what comes next."""
    from agents.config.load import load_settings
    from agents.simulation.runs.run import Run

    operations = Operations(life)

    def tell(line: str) -> None:
        os.write(say, f"{line}\n".encode())
        operations.said(line)

    folder, settings = Path(life.folder), load_settings(life.scenario)
    tell("begin")
    go_on = folder.exists() and not life.force
    with Run.open(folder) if go_on else Run.create(folder, settings, force=life.force) as run:
        tell("open")
        for _ in run.advance(run.settings.simulation.ticks):
            tell(f"tick {run.tick}")
        tell("finish")
        run.finish(report=life.report)


class Operations:
    """Counts what the process does to files of the run, and ends it in the middle of one."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._left = 0
        if life.operation is not None:
            sys.addaudithook(self._hook)

    def said(self, line: str) -> None:
        if line == (self._life.after or "begin") and self._life.operation is not None:
            self._left = self._life.operation

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        # Opening, renaming and deleting files, and SQLite's databases by their own names.
        if self._left and (event == "open" or event.startswith(("os.", "sqlite3.", "shutil."))):
            parent = os.path.dirname(self._life.folder)
            if arguments and parent in str(arguments[0]):
                self._left -= 1
                if not self._left:
                    os.kill(os.getpid(), signal.SIGKILL)


def lead(life: Life) -> str:
    """A life from its beginning to its end."""
    hears, says = os.pipe()
    before = _files(life)
    child = os.fork()
    if child == 0:
        os.close(hears)
        status = 1
        try:
            live(life, says)
            status = 0
        except BaseException:
            os.write(says, traceback.format_exc().encode())
        os._exit(status)
    os.close(says)
    ended = threading.Event()
    watcher = threading.Thread(target=_kill_in_time, args=(life, child, hears, before, ended))
    watcher.start()
    # Waited for but not yet buried, so that no other process can get its number.
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    ended.set()
    watcher.join()
    _, status = os.waitpid(child, 0)
    heard = b"".join(iter(lambda: os.read(hears, 65536), b"")).decode()
    os.close(hears)
    if os.WIFSIGNALED(status):
        return "killed"
    return "done" if status == 0 else heard


def _kill_in_time(
    life: Life, child: int, hears: int, before: set[str], ended: threading.Event
) -> None:
    if life.operation is not None or (life.after is None and life.file is None):
        return
    if life.after is not None:
        for line in _lines(hears):
            if line == life.after:
                break
    if life.file is not None:
        while not ended.is_set() and _files(life) <= before:
            time.sleep(0.0002)
    if not ended.wait(life.delay):
        os.kill(child, signal.SIGKILL)


def _lines(pipe: int) -> Iterator[str]:
    """What the child says, byte by byte: what comes later is still in the pipe."""
    line = b""
    while byte := os.read(pipe, 1):
        line += byte
        if byte == b"\n":
            yield line.decode().strip()
            line = b""


def _files(life: Life) -> set[str]:
    folder, _, name = f"{life.folder}/{life.file}".rpartition("/")
    with contextlib.suppress(OSError):
        return set(fnmatch.filter(os.listdir(folder), name))
    return set()


def main() -> None:
    import pyarrow.parquet  # noqa: F401 - so that no child has to

    import agents.simulation.runs.run  # noqa: F401
    from agents.simulation.worlds import market  # noqa: F401
    from agents.storage.embedding import OfflineEmbedder
    from agents.storage.mem0.package import import_mem0

    OfflineEmbedder().embed(["the weights are read once"])
    for line in sys.stdin:
        life = Life(**json.loads(line))
        if "llm" in life.scenario:
            import_mem0("mem0.llms.openai")
        print(json.dumps(lead(life)), flush=True)


if __name__ == "__main__":
    main()
