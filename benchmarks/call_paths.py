"""How many files of the package one call goes through.

    python benchmarks/call_paths.py [--files]

A bank on disk with default settings, after 40 memories. A call is traced twice: the first time with
words that the bank never met, and the second time with words that it knows.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import tiermem
from tiermem import AgentMemory, MemoryBank
from tiermem.errors import __file__ as _a_file

ROOT = Path(_a_file).parent
GOALS = {"add": 15, "search": 14}
"""The most files that a call with known words should go through."""


class CallPath(NamedTuple):
    """The functions of the package that a call went through."""

    calls: Counter[tuple[str, str]]
    """How often the call came into a function, by file and name."""

    def files(self) -> dict[str, list[str]]:
        """The functions of each file, in the order in which the call reached them."""
        found: dict[str, list[str]] = {}
        for file, function in self.calls:
            found.setdefault(file, []).append(function)
        return found


def trace(call: Callable[[], object]) -> CallPath:
    """Run a call, and note each function of the package that it enters."""
    calls: Counter[tuple[str, str]] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(ROOT):
            calls[str(file.relative_to(ROOT)), frame.f_code.co_qualname] += 1

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return CallPath(calls)


def paths(alice: AgentMemory) -> dict[str, list[CallPath]]:
    """The path of each call, with new words and with known ones."""
    ids = [alice.add(f"memory number {n} about coins and bob").id for n in range(40)]
    calls: dict[str, Callable[[int], object]] = {
        "add": lambda n: alice.add(f"NEVER transfer to agent_{n:02d}, he is a scammer"),
        "search": lambda _: alice.search("who is a scammer?"),
        "get_relevant_memories": lambda _: alice.get_relevant_memories("what does bob want?"),
        "pin": lambda n: alice.pin(ids[n]),
    }
    return {
        name: [trace(lambda call=call, n=n: call(n)) for n in (1, 2)]  # type: ignore[misc]
        for name, call in calls.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", action="store_true", help="list the files and functions, too")
    show_files = parser.parse_args().files
    print(f"tiermem {tiermem.__version__}: files, functions and calls of one call\n")
    with tempfile.TemporaryDirectory() as folder, MemoryBank.open(Path(folder) / "bank") as bank:
        for name, traced in paths(bank.agent("alice")).items():
            for words, path in zip(("new words", "known words"), traced, strict=True):
                files = path.files()
                met = ""
                if name in GOALS and words == "known words":
                    is_met = len(files) <= GOALS[name]
                    met = f"  goal {GOALS[name]} files: {'met' if is_met else 'missed'}"
                print(
                    f"{name:22} {words:12} {len(files):3} files {len(path.calls):4} functions "
                    f"{path.calls.total():4} calls{met}"
                )
                if show_files:
                    for file, functions in files.items():
                        print(f"    {file}: {', '.join(functions)}")


if __name__ == "__main__":
    main()
