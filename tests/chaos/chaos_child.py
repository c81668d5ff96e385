"""Child processes: a worker that says what it attempts and what returned, and looks at a bank."""

import gc
import itertools
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from chaos_shim import arm, set_clock
from chaos_steps import do, open_bank, steps

from agents import MemoryBank, TierMemError

HANGS = 60.0
"""Seconds in which a process that does not hang has used the processor, or has ended."""
LONGEST = 10 * HANGS
"""Seconds in which a process that does not hang has ended, on the busiest machine."""
_MEBIBYTE = 1 << 20


class Hung(Exception):
    """A process did not end."""


@dataclass(frozen=True)
class Job:
    """What a worker is to do, and what will happen to it."""

    folder: Path
    seed: int
    steps: int
    sync: str
    more: int | None = None
    """How many steps it does after an interrupt, before it closes the bank; None for all."""
    shim: tuple[int, int, int, int] | None = None
    """The kind, the call, the number of calls and the error of a fault at system calls."""
    clock: dict[int, int] = field(default_factory=dict)
    """Seconds that the wall clock is off, from a step on."""
    mebibytes: int | None = None
    """How much memory it may take beyond what it has."""

    @property
    def log(self) -> Path:
        return self.folder.with_suffix(f".{self.seed}.log")


def fork(work: Callable[[], object]) -> int:
    """Run it in a forked process; what it returns is lost."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def wait(child: int, limit: float = HANGS) -> int:
    """The wait status of a process that has to end now; :class:`Hung` if it does not."""
    began = time.monotonic()
    end, used = began + limit, 0
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        if (now := time.monotonic()) > end:
            before, used = used, _processor_time(child)
            if used == before or now - began > LONGEST:
                end_group(child)
                raise Hung
            end = now + limit
        time.sleep(0.002)


def _processor_time(group: int) -> int:
    """The ticks of the processor that the processes of a group have used; 0 if nobody knows."""
    total = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        if int(words[2]) == group:
            total += sum(map(int, words[11:15]))
    return total


def end_group(child: int) -> None:
    """Kill a child that still runs, with the processes that it started."""
    for send in (os.killpg, os.kill):
        try:
            send(child, signal.SIGKILL)
        except ProcessLookupError:
            continue
    os.waitpid(child, 0)


def answer(ask: Callable[[], Any], scratch: Path) -> Any:
    """What ``ask`` returns in a process of its own, through JSON; a text if the process failed."""
    file = scratch / "answer.json"
    file.unlink(missing_ok=True)
    status = wait(fork(lambda: file.write_text(json.dumps(ask()))))
    if not file.exists():
        return f"the process ended with status {status}"
    return json.loads(file.read_text())


class Worker:
    """Does the steps of a job, and writes to its log what it attempts and what came of it."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._log = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._number = 0
        self._last = job.steps
        self._failures = 0
        self._bank: MemoryBank | None = None
        self._steps = list(itertools.islice(steps(job.seed), job.steps))

    def run(self) -> NoReturn:
        error = os.open(self._job.log.with_suffix(".err"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(error, 2)
        gc.enable()
        if self._job.shim is not None:
            arm(self._job.folder, *self._job.shim)
        if self._job.mebibytes is not None:
            _limit_memory(self._job.mebibytes)
        while True:
            try:
                self._work()
                self._finish()
                os._exit(0)
            except KeyboardInterrupt:  # between two calls
                self._interrupted()

    def _work(self) -> None:
        if self._bank is None and self._number == 0:
            self._number = 1
            self._guarded("open", self._open)
        while self._bank is not None and self._number <= self._last and self._failures < 4:
            number = self._number
            step = self._steps[number - 1]
            self._number += 1
            if number in self._job.clock:
                set_clock(self._job.clock[number])
            self._say("a", number)
            self._guarded(str(number), lambda step=step: self._do(step))  # type: ignore[misc]

    def _open(self) -> None:
        self._bank = open_bank(self._job.folder, self._job.sync)

    def _do(self, step: tuple[str, Any]) -> None:
        assert self._bank is not None
        beside = self._job.folder.parent
        do(self._bank, step, beside, has_store=self._job.sync != "manual")

    def _finish(self) -> None:
        bank, self._bank = self._bank, None
        if bank is None:
            return
        bank_hash: list[str] = []

        def look() -> None:
            bank.search_many([(agent, "what is left") for agent in bank.agents()])
            bank.commit()
            bank_hash.append(bank.state_hash())

        if self._guarded("look", look):
            self._say("h", bank_hash[0])
        self._guarded("close", bank.close)

    def _guarded(self, what: str, call: Callable[[], object]) -> bool:
        try:
            try:
                call()
                self._say("k", what)
                return True
            except BaseException as error:
                self._report(what, error)
        except BaseException as error:  # another one while the first is reported
            self._report(what, error)
        return False

    def _report(self, what: str, error: BaseException) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
        self._failures += 1
        is_known = isinstance(error, TierMemError | KeyboardInterrupt | MemoryError)
        self._say("e" if is_known else "u", what, type(error).__name__)
        if not is_known:
            traceback.print_exception(error)
        if isinstance(error, KeyboardInterrupt):
            self._interrupted()

    def _interrupted(self) -> None:
        if self._job.more is not None:
            self._last = min(self._last, self._number - 1 + self._job.more)

    def _say(self, *words: object) -> None:
        os.write(self._log, (" ".join(map(str, words)) + "\n").encode())


def _limit_memory(mebibytes: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + mebibytes * _MEBIBYTE
    resource.setrlimit(resource.RLIMIT_AS, (most, -1))


@dataclass
class Said:
    """What a worker wrote to its log."""

    attempted: list[int] = field(default_factory=list)
    acknowledged: set[int] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    untyped: list[str] = field(default_factory=list)
    is_open: bool = False
    hash: str | None = None
    is_closed: bool = False

    @classmethod
    def of(cls, log: Path) -> "Said":
        said = cls()
        for line in log.read_text().splitlines() if log.exists() else ():
            kind, what, *more = line.split()
            if kind == "a":
                said.attempted.append(int(what))
            elif kind == "h":
                said.hash = what
            elif kind == "k" and what.isdecimal():
                said.acknowledged.add(int(what))
            elif kind == "k":
                said.is_open = said.is_open or what == "open"
                said.is_closed = said.is_closed or what == "close"
            else:
                where = "step" if what.isdecimal() else what
                (said.errors if kind == "e" else said.untyped).append(f"{more[0]} in {where}")
        return said
