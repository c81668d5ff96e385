"""How many files of the package one call goes through.

    python benchmarks/call_paths.py [--files]

A bank on disk with default settings, after 40 memories. A call is traced twice: the first time with
words that the bank never met, and the second time with words that it knows. Opening this bank is
traced, too, and the third tick of a simulation with ten agents. Imports do not count.
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
from tiermem.config.load import load_settings
from tiermem.errors import __file__ as _a_file
from tiermem.simulation.runs.run import Run

ROOT = Path(_a_file).parent
GOALS = {"add": 10, "search": 10, "open": 40}
"""The most files that a call, with known words, should go through."""


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
        is_import = frame.f_code.co_name == "<module>"
        if event == "call" and file.is_relative_to(ROOT) and not is_import:
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


def opened(folder: Path) -> CallPath:
    """The path of opening a bank that exists."""
    banks: list[MemoryBank] = []
    path = trace(lambda: banks.append(MemoryBank.open(folder)))
    banks[0].close()
    return path


def tick(folder: Path) -> CallPath:
    """The path of a tick of a simulation, with all that a run writes of it."""
    options = {"world": "market", "agents": 10, "ticks": 3}
    with Run.create(folder, load_settings({"simulation": options})) as run:
        list(run.advance(2))
        return trace(lambda: list(run.advance(3)))


def show(name: str, words: str, path: CallPath, *, show_files: bool) -> None:
    """Print a line about a call, and the files that it went through if that is wanted."""
    files, met = path.files(), ""
    if name in GOALS and words != "new words":
        is_met = len(files) <= GOALS[name]
        met = f"  goal {GOALS[name]} files: {'met' if is_met else 'missed'}"
    print(
        f"{name:22} {words:12} {len(files):3} files {len(path.calls):4} functions "
        f"{path.calls.total():5} calls{met}"
    )
    if show_files:
        for file, functions in files.items():
            print(f"    {file}: {', '.join(functions)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", action="store_true", help="list the files and functions, too")
    show_files = parser.parse_args().files
    print(f"tiermem {tiermem.__version__}: files, functions and calls of one call\n")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "bank"
        with MemoryBank.open(place) as bank:
            for name, traced in paths(bank.agent("alice")).items():
                for words, path in zip(("new words", "known words"), traced, strict=True):
                    show(name, words, path, show_files=show_files)
        show("open", "", opened(place), show_files=show_files)
        show("tick", "", tick(Path(folder) / "run"), show_files=show_files)


if __name__ == "__main__":
    main()
