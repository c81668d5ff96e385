"""A round: one bank, through the lives of a few workers, each with its fault."""

import os
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from chaos_child import LONGEST, Hung, Job, Said, Worker, answer, end_group, fork, wait
from chaos_laws import Answer, check, possible, prefixes
from chaos_steps import CHECKPOINT, Imagined, steps

HELD, NAMED = "held", "named"
LOST, WRONG, UNTYPED, HUNG = "lost", "wrong", "untyped", "hung"
VERDICTS = (HELD, NAMED, LOST, WRONG, UNTYPED, HUNG)


class Outcome(NamedTuple):
    """What came of a fault."""

    fault: str
    verdict: str
    detail: str = ""

    @property
    def holds(self) -> bool:
        return self.verdict in (HELD, NAMED)


class Broken(Exception):
    """A law is broken: how, and what was seen."""

    def __init__(self, verdict: str, detail: str) -> None:
        super().__init__(f"{verdict}: {detail}")
        self.verdict, self.detail = verdict, detail


class Round:
    """The bank of a round, what it should hold, and the workers that change it."""

    def __init__(self, seed: int, number: int, scratch: Path) -> None:
        self.rng = random.Random(f"chaos {seed} {number}")
        self.scratch = scratch / f"round-{number}"
        self.scratch.mkdir(parents=True)
        self.folder = self.scratch / "bank"
        self.sync = self.rng.choices(["manual", "commit", "checkpoint"], [10, 1, 1])[0]
        self.models = [Imagined()]
        self.acknowledged = 0
        self._seed = seed * 1_000_000 + number * 10
        self._running: set[int] = set()

    # Workers

    def job(self, steps: int, **more: Any) -> Job:
        """The next worker's job."""
        self._seed += 1
        return Job(self.folder, self._seed, steps, self.sync, **more)

    def start(self, job: Job) -> int:
        self._last_job = job
        child = fork(lambda: Worker(job).run())
        self._running.add(child)
        return child

    def wait(self, child: int) -> int:
        self._running.discard(child)
        try:
            return wait(child)
        except Hung:
            raise Broken(HUNG, f"a worker did not end; {self._last_said()}") from None

    def _last_said(self) -> str:
        """What the last worker was about, as far as its log says."""
        log = self._last_job.log
        lines = log.read_text().splitlines() if log.exists() else []
        if not lines:
            return "it was opening its bank"
        kind, what, *_ = lines[-1].split()
        if kind != "a":
            return f"it had said {lines[-1]!r}"
        name, _ = next(islice(steps(self._last_job.seed), int(what) - 1, None))
        return f"it was at step {what}, {name}"

    def until_said(self, job: Job, child: int, what: str, count: int = 1) -> bool:
        """Wait until the worker's log has so many lines of a kind; False if it ended before."""
        end = time.monotonic() + LONGEST
        while time.monotonic() < end:
            if job.log.exists() and job.log.read_text().count(what) >= count:
                return True
            if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return False
            time.sleep(0.001)
        raise Broken(HUNG, f"a worker did not come to {what!r}")

    def end(self) -> None:
        """End what still runs, and delete all files."""
        for child in self._running:
            end_group(child)
        shutil.rmtree(self.scratch, ignore_errors=True)

    # Laws

    def ask(self, look: Callable[[], Answer]) -> Answer:
        """What a look in a process of its own came to."""
        try:
            found = answer(look, self.scratch)
        except Hung:
            raise Broken(HUNG, "a look at the bank did not end") from None
        if isinstance(found, str):
            raise Broken(UNTYPED, found)
        if "untyped" in found:
            raise Broken(UNTYPED, found["untyped"])
        if "law" in found:
            raise Broken(WRONG, found["law"])
        return dict(found)

    def settle(self, job: Job, *, may_fail: bool = False) -> Answer:
        """After a worker's end: the laws hold, and the model is what the bank is."""
        said = Said.of(job.log)
        if said.untyped:
            raise Broken(UNTYPED, f"{said.untyped[0]}: {_last_line(job.log.with_suffix('.err'))}")
        if said.errors and not may_fail:
            raise Broken(WRONG, f"refused without a cause: {said.errors}")
        self.acknowledged += len(said.acknowledged)
        found = self.ask(lambda: check(job.folder, self.sync))
        if "typed" in found:
            raise Broken(LOST, f"it does not open: {found['typed']}: {found['text']}")
        matching = [each for each in self.possible(job, said) if each.digest() == found["digest"]]
        if not matching:
            last = max(said.attempted, default=0)
            earlier = found["digest"] in prefixes(self.models[0], job.seed, last)
            saw = f"{len(said.acknowledged)} acknowledged, {said.errors}"
            raise Broken(LOST if earlier else WRONG, f"not what was acknowledged ({saw})")
        if said.is_closed and said.hash not in (None, found["hash"]):
            raise Broken(WRONG, f"the process had another hash than the disk ({said.errors})")
        # A step that purged what it added may be there or not: the next number tells later.
        self.models = matching
        return found

    def possible(self, job: Job, said: Said) -> list[Imagined]:
        return possible(self.models, job.seed, said)

    def judge(self, fault: str, found: Answer, allowed: set[str], done: str) -> Outcome:
        """What a look at a damaged copy means: a typed error, an allowed state, or a broken law."""
        if "typed" in found:
            return Outcome(fault, NAMED, found["typed"])
        if found["digest"] in allowed:
            return Outcome(fault, HELD)
        return Outcome(fault, WRONG, done)

    def copy(self, name: str) -> Path:
        """A copy of the bank's folder, with its checkpoint beside it."""
        place = self.scratch / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        shutil.copytree(self.folder, place / "bank")
        if (self.scratch / CHECKPOINT).exists():
            shutil.copy2(self.scratch / CHECKPOINT, place / CHECKPOINT)
        return place / "bank"

    def elsewhere(self, job: Job, folder: Path) -> Job:
        return replace(job, folder=folder)


def _last_line(path: Path) -> str:
    """The last error that a worker printed, and the line of ours that it came from."""
    lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
    ours = [line.split("/agents/")[-1] for line in lines if "/agents/" in line]
    return f"{lines[-1][:200]} ({''.join(ours[-1:])})" if lines else ""
