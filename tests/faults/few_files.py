"""Calls of a bank in a process that has few file descriptors left; prints each untyped error."""

import os
import resource
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agents import MemoryBank, TierMemError

SYNC = {"sync": "manual"}


def calls(bank: MemoryBank, folder: Path) -> dict[str, Callable[[], object]]:
    """What a program may do with a bank, by name."""
    alice = bank.agent("alice")
    return {
        "add": lambda: alice.add("another text"),
        "search": lambda: alice.search("text"),
        "recall": lambda: alice.recall("text"),
        "relevant": lambda: alice.get_relevant_memories("text"),
        "all": alice.all,
        "append": lambda: alice.notes.append("a line"),
        "write": lambda: alice.notes.write("MEMORY.md", "a text\n"),
        "read": alice.notes.read,
        "paths": alice.notes.paths,
        "sync notes": bank.sync_notes,
        "compact": bank.compact,
        "status": bank.status,
        "checkpoint": lambda: bank.checkpoint(folder / "one.tmck"),
        "vacuum": bank.vacuum,
        "watch": lambda: bank.watch_notes().stop(),
        "open another": lambda: MemoryBank.open(folder / "other", storage=SYNC).close(),
        "copy": lambda: MemoryBank.at(folder / "bank").close(),
        "restore": lambda: MemoryBank.restore(folder / "zero.tmck", folder / "back").close(),
    }


@contextmanager
def only(left: int) -> Iterator[None]:
    """Inside, so many file descriptors are left."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, limits[1]))
    taken = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        while left and taken:
            os.close(taken.pop())
            left -= 1
        yield
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def untyped(call: Callable[[], object]) -> str:
    """The error that a call ends with, unless it works or its error is one of ours."""
    try:
        call()
    except TierMemError:
        return ""
    except BaseException:
        return traceback.format_exc()
    return ""


def main(folder: Path) -> None:
    bank = MemoryBank.open(folder / "bank", storage=SYNC)
    bank.agent("alice").add("a text")
    bank.checkpoint(folder / "zero.tmck")
    for left in (0, 1, 2, 3, 5, 8):
        for name, call in calls(bank, folder).items():
            with only(left):
                wrong = untyped(call)
            if wrong:
                print(f"with {left} left, {name}: {wrong}")
    bank.close()
    with MemoryBank.open(folder / "bank", storage=SYNC) as again:
        again.agent("alice").add("all is well")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
