"""The faults: each takes a round, lets a worker run into it, and holds the bank to the laws."""

import math
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from chaos_laws import check_repaired, look, look_at_copy, prefixes, restore
from chaos_mutations import mutate
from chaos_round import HELD, LOST, NAMED, WRONG, Broken, Job, Outcome, Round, Said
from chaos_shim import ERRORS, FAIL, KILL_AFTER, KILL_BEFORE, KILL_HALFWAY
from chaos_steps import CHECKPOINT

Fault = Callable[[Round], Iterator[Outcome]]
LONG = 100_000
"""More steps than any worker does before it is killed."""
MUTATIONS = 6
"""Mutations of copies of one bank."""


def kill(play: Round) -> Iterator[Outcome]:
    """SIGKILL at a random time, while the bank is opened as well."""
    _killed(play)
    yield Outcome("kill", HELD)


def _killed(play: Round) -> Job:
    job = play.job(2000)
    child = play.start(job)
    if play.rng.random() < 0.85:
        play.until_said(job, child, "a ", play.rng.randint(1, 60))
        time.sleep(play.rng.uniform(0, 0.006))
    else:
        time.sleep(play.rng.uniform(0, 0.1))
    os.kill(child, signal.SIGKILL)
    play.wait(child)
    play.settle(job)
    return job


def kill_at_call(play: Round) -> Iterator[Outcome]:
    """SIGKILL before, after or in the middle of a system call."""
    kind = play.rng.choice([KILL_BEFORE, KILL_AFTER, KILL_HALFWAY])
    job = play.job(150, shim=(kind, _call(play), 1, 0))
    play.wait(play.start(job))
    play.settle(job)
    yield Outcome("kill-at-call", HELD)


def enospc(play: Round) -> Iterator[Outcome]:
    """The disk is full for one call, for some, or from then on."""
    yield from _failing_calls(play, "enospc")


def eio(play: Round) -> Iterator[Outcome]:
    """The disk fails for one call, for some, or from then on."""
    yield from _failing_calls(play, "eio")


def _failing_calls(play: Round, name: str) -> Iterator[Outcome]:
    length = play.rng.choice([1, 1, 3, 10**9])
    job = play.job(80, shim=(FAIL, _call(play), length, ERRORS[name]))
    play.wait(play.start(job))
    play.settle(job, may_fail=True)
    yield Outcome(name, NAMED if Said.of(job.log).errors else HELD)


def _call(play: Round) -> int:
    """The number of a system call: early ones, which open the bank, are as likely as late ones."""
    return int(math.exp(play.rng.uniform(0, math.log(1500))))


def stop(play: Round) -> Iterator[Outcome]:
    """SIGSTOP: nobody else gets the bank; SIGCONT: it goes on."""
    job = play.job(60)
    child = play.start(job)
    if play.until_said(job, child, "a ", play.rng.randint(1, 40)):
        os.kill(child, signal.SIGSTOP)
        try:
            _refused(play, job, child)
        finally:
            os.kill(child, signal.SIGCONT)
    play.wait(child)
    play.settle(job)
    yield Outcome("stop", HELD)


def second_opener(play: Round) -> Iterator[Outcome]:
    """Another process opens the bank: it is refused, and the first one does not notice."""
    job = play.job(2000)
    child = play.start(job)
    for _ in range(play.rng.randint(1, 3)):
        if play.until_said(job, child, "a ", play.rng.randint(1, 40)):
            _refused(play, job, child)
    os.kill(child, signal.SIGKILL)
    play.wait(child)
    play.settle(job)
    yield Outcome("second-opener", HELD)


def _refused(play: Round, job: Job, child: int) -> None:
    found = play.ask(lambda: look(job.folder))
    if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        return
    if found.get("typed") != "BankLocked" and not Said.of(job.log).is_closed:
        raise Broken(WRONG, f"a second opener got {found}")


def copy_while_open(play: Round) -> Iterator[Outcome]:
    """A copy in memory is a state between two commits; a copy of the files is that, or refused."""
    job = play.job(300)
    child = play.start(job)
    if not play.until_said(job, child, "a ", play.rng.randint(2, 60)):
        raise Broken(WRONG, f"the worker ended: {Said.of(job.log).errors}")
    least = len(Said.of(job.log).attempted) - 1
    seen = play.ask(lambda: look_at_copy(job.folder))
    most = len(Said.of(job.log).attempted)
    files = play.scratch / "copied"
    shutil.copytree(job.folder, files, ignore=lambda *_: ["chroma"], copy_function=_copy_if_there)
    before = play.models[0]
    os.kill(child, signal.SIGKILL)
    play.wait(child)
    all_states = prefixes(before, job.seed, max(Said.of(job.log).attempted))
    play.settle(job)
    yield play.judge("copy-in-memory", seen, set(all_states[least : most + 1]), "another state")
    found = play.ask(lambda: look(files))
    yield play.judge("copy-of-files", found, set(all_states), "no state that ever was")


def _copy_if_there(source: str, target: str) -> None:
    try:
        shutil.copy2(source, target)
    except FileNotFoundError:
        return


def clock(play: Round) -> Iterator[Outcome]:
    """The wall clock jumps: the state is the same, to the bit."""
    has_bank = play.folder.exists()
    other = play.copy("steady") if has_bank else play.scratch / "steady" / "bank"
    other.parent.mkdir(exist_ok=True)
    jumps = {play.rng.randint(1, 40): play.rng.randrange(-(10**9), 10**9) for _ in range(4)}
    job = play.job(40, clock=jumps)
    steady = Job(other, job.seed, job.steps, job.sync)
    for each in (job, steady):
        play.wait(play.start(each))
    found = play.settle(job)
    if Said.of(steady.log).hash != Said.of(job.log).hash or not found["hash"]:
        raise Broken(WRONG, "a jump of the clock changed the state")
    yield Outcome("clock", HELD)


def memory(play: Round) -> Iterator[Outcome]:
    """A limit on memory, from the opening on."""
    job = play.job(120, mebibytes=play.rng.randint(1, 30))
    play.wait(play.start(job))
    play.settle(job, may_fail=True)
    yield Outcome("memory-limit", NAMED if Said.of(job.log).errors else HELD)


def ctrl_c(play: Round) -> Iterator[Outcome]:
    """Ctrl-C once, twice, thrice; the worker closes the bank, at once or after a few steps more,
    or goes on as in a notebook."""
    job = play.job(120, more=play.rng.choice([0, 3, None, None]))
    child = play.start(job)
    play.until_said(job, child, "a ", play.rng.randint(1, 60))
    for _ in range(play.rng.randint(1, 3)):
        time.sleep(play.rng.uniform(0, 0.004))
        os.kill(child, signal.SIGINT)
    play.wait(child)
    play.settle(job, may_fail=True)
    yield Outcome("ctrl-c", NAMED if Said.of(job.log).errors else HELD)


def torn_log(play: Round) -> Iterator[Outcome]:
    """The end of the write-ahead log of a killed bank is cut or garbled."""
    yield from _torn(play, "torn-log")


def two_files(play: Round) -> Iterator[Outcome]:
    """The same, and a record of the last commit is damaged or deleted as well."""
    yield from _torn(play, "two-files", "journal.db-head", "bank.head")


def _torn(play: Round, fault: str, *others: str) -> Iterator[Outcome]:
    job = play.job(2000)
    child = play.start(job)
    play.until_said(job, child, "k ", play.rng.randint(2, 60))
    os.kill(child, signal.SIGKILL)
    play.wait(child)
    said, before = Said.of(job.log), play.models[0]
    copies = [play.copy(f"torn-{each}") for each in range(MUTATIONS)]
    allowed = {each.digest() for each in play.possible(job, said)}
    play.settle(job)
    states = prefixes(before, job.seed, max(said.attempted))
    for each in copies:
        log = each / "journal.db-wal"
        if log.exists():
            done = mutate(log, play.rng, tail=True)
            if others:
                done += f"; {_damaged(play, each / play.rng.choice(others))}"
            yield _noticed(play, fault, each, allowed, states, done)


def _damaged(play: Round, path: Path) -> str:
    if play.rng.random() < 0.25 or not path.exists():
        path.unlink(missing_ok=True)
        return f"{path.name}: deleted"
    return mutate(path, play.rng)


def journal_pages(play: Round) -> Iterator[Outcome]:
    """Bits and pages of the journal of a closed bank, or of its log if it was killed."""
    if play.rng.random() < 0.5:
        job = _killed(play)
    else:
        job = play.job(play.rng.randint(5, 60))
        play.wait(play.start(job))
        play.settle(job)
    allowed = {play.models[0].digest()}
    for each in range(MUTATIONS):
        folder = play.copy(f"mutated-{each}")
        paths = sorted(folder.glob("journal.db*"))
        path = paths[int(play.rng.random() * len(paths))]
        yield _noticed(play, "journal-pages", folder, allowed, [], mutate(path, play.rng))


def _noticed(
    play: Round, fault: str, folder: Path, allowed: set[str], states: list[str], done: str
) -> Outcome:
    try:
        found = play.ask(lambda: look(folder))
    except Broken as broken:
        return Outcome(fault, broken.verdict, f"{broken.detail} ({done})")
    outcome = play.judge(fault, found, allowed, done)
    if outcome.verdict == WRONG and (found["digest"] in states or not states):
        return Outcome(fault, LOST, f"another state, and no error ({done})")
    return outcome


def note_files(play: Round) -> Iterator[Outcome]:
    """Bytes of a note's file change: memories stay, and errors are typed."""
    found = _worked(play)
    for each in range(3):
        folder = play.copy(f"notes-{each}")
        files = [path for path in sorted((folder / "notes").rglob("*")) if path.is_file()]
        if files:
            done = mutate(play.rng.choice(files), play.rng)
            seen = play.ask(lambda folder=folder: look(folder))  # type: ignore[misc]
            is_same = seen.get("without notes") == found["without notes"]
            named = Outcome("note-files", NAMED, str(seen.get("typed")))
            same = Outcome("note-files", HELD) if is_same else Outcome("note-files", WRONG, done)
            yield named if "typed" in seen else same


def checkpoints(play: Round) -> Iterator[Outcome]:
    """Bytes of a checkpoint change: it is refused, or restores the same state."""
    _worked(play)
    if not (play.scratch / CHECKPOINT).exists():
        return
    shutil.rmtree(play.scratch / "whole", ignore_errors=True)
    whole = play.ask(lambda: restore(play.scratch, play.scratch / "whole"))
    if "typed" in whole:
        raise Broken(LOST, f"a whole checkpoint is refused: {whole}")
    for each in range(MUTATIONS):
        folder = play.copy(f"checkpoint-{each}")
        done = mutate(folder.parent / CHECKPOINT, play.rng)
        into = folder.parent / "restored"
        found = play.ask(lambda at=folder.parent, into=into: restore(at, into))  # type: ignore[misc]
        yield play.judge("checkpoint-bytes", found, {whole["digest"]}, done)


def store_files(play: Round) -> Iterator[Outcome]:
    """Bytes of mem0's store change: memories stay, and the store can be rebuilt."""
    play.sync = "commit"
    found = _worked(play, steps=15)
    for each in range(2):
        folder = play.copy(f"store-{each}")
        files = [
            path
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.parent != folder and "notes" not in path.parts
        ]
        if files:
            done = mutate(play.rng.choice(files), play.rng)
            seen = play.ask(lambda folder=folder: check_repaired(folder))  # type: ignore[misc]
            yield play.judge("store-files", seen, {found["digest"]}, done)


def _worked(play: Round, steps: int = 60) -> dict[str, str]:
    job = play.job(steps)
    play.wait(play.start(job))
    return play.settle(job)


FAULTS: dict[str, tuple[Fault, int, bool]] = {
    "kill": (kill, 8, False),
    "kill-at-call": (kill_at_call, 8, True),
    "stop": (stop, 2, False),
    "enospc": (enospc, 4, True),
    "eio": (eio, 4, True),
    "torn-log": (torn_log, 3, False),
    "two-files": (two_files, 3, False),
    "journal-pages": (journal_pages, 4, False),
    "note-files": (note_files, 2, False),
    "checkpoint-bytes": (checkpoints, 2, False),
    "store-files": (store_files, 1, False),
    "clock": (clock, 2, True),
    "memory-limit": (memory, 3, False),
    "ctrl-c": (ctrl_c, 6, False),
    "second-opener": (second_opener, 2, False),
    "copy": (copy_while_open, 2, False),
}
"""By name: the fault, how frequent it is, and whether it needs the shim."""
