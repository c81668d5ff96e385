"""Random faults over a real workload in child processes; after each, the laws of a bank must hold.

A round is one bank and the lives of a few workers, each with its fault. The seed and the number of
a round decide all of it but the moments of signals. Ends with exit code 1 if a law was broken.
"""

import argparse
import json
import logging
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).parent
sys.path[:0] = [
    str(HERE),
    str(HERE.parent),
    str(HERE.parent / "faults"),
    str(HERE.parent / "property"),
]
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from chaos_shim import is_loaded, scratch_of_shim, start_with_shim  # noqa: E402

_SAY_EVERY = 15.0


def main() -> int:
    given = _arguments()
    scratch = scratch_of_shim() or Path(tempfile.mkdtemp(prefix="tiermem-chaos-", dir=given.folder))
    start_with_shim(scratch)  # comes back here, with the shim loaded
    try:
        return Chaos(given, scratch).run()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, help="end after so many rounds")
    parser.add_argument("--seed", type=int, help="a random one, unless given")
    parser.add_argument("--only", default="", help="names of faults, with commas between")
    parser.add_argument("--replay", metavar="SEED:ROUND", help="play one round alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="rounds at once")
    parser.add_argument("--folder", help="where banks are made; a real disk, to be exact")
    given = parser.parse_args()
    if given.replay:
        given.seed, given.first = map(int, given.replay.split(":"))
        given.rounds = 1
    else:
        given.first = 0
        given.seed = random.randrange(10**6) if given.seed is None else given.seed
    return given


class Chaos:
    """Rounds in a few processes, and what came of them."""

    def __init__(self, given: argparse.Namespace, scratch: Path) -> None:
        from chaos_faults import FAULTS

        self._given, self._scratch = given, scratch
        names = [name for name in given.only.split(",") if name] or list(FAULTS)
        if unknown := set(names) - set(FAULTS):
            sys.exit(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(FAULTS)}")
        self._left_out = [name for name in names if FAULTS[name][2] and not is_loaded()]
        self._faults = {name: FAULTS[name] for name in names if name not in self._left_out}
        self._began = time.monotonic()
        _warm_up()

    def run(self) -> int:
        """Play rounds until the time is over, and print what came of them."""
        _say(f"chaos with seed {self._given.seed}")
        parts = range(1 if self._given.replay else self._given.jobs)
        running = {os.fork() or self._play(part, len(parts)) for part in parts}
        said, failed = self._began, False
        while running:
            time.sleep(0.1)
            ended = [os.waitpid(each, os.WNOHANG) for each in running]
            running -= {each for each, _ in ended}
            failed = failed or any(status for _, status in ended)
            if time.monotonic() - said > _SAY_EVERY:
                said = time.monotonic()
                found, minutes = self._found(), (said - self._began) / 60
                tried, broken = sum(found.counts.values()), len(found.broken)
                _say(f"{minutes:.1f} min: {tried} faults, {broken} broken laws")
        found = self._found()
        self._print(found)
        return 1 if found.broken or failed else 0

    def _play(self, part: int, parts: int) -> NoReturn:
        """Play every round of this part, in a process of its own."""
        found = Found()
        number = self._given.first + part
        code = 1
        try:
            while self._goes_on(number):
                self._round(number, found)
                number += parts
                found.rounds += 1
                found.write(self._scratch / f"part-{part}.json")
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _goes_on(self, number: int) -> bool:
        if self._given.rounds is not None:
            return bool(number < self._given.first + self._given.rounds)
        return time.monotonic() - self._began < self._given.minutes * 60

    def _found(self) -> "Found":
        result = Found()
        for path in sorted(self._scratch.glob("part-*.json")):
            result.add(json.loads(path.read_text()))
        return result

    def _round(self, number: int, found: "Found") -> None:
        from chaos_round import Broken, Outcome, Round

        play = Round(self._given.seed, number, self._scratch)
        try:
            for _ in range(play.rng.randint(1, 4)):
                weights = [weight for _, weight, _ in self._faults.values()]
                (name,) = play.rng.choices(list(self._faults), weights)
                try:
                    outcomes = list(self._faults[name][0](play))
                except Broken as broken:
                    outcomes = [Outcome(name, broken.verdict, broken.detail)]
                for each in outcomes:
                    found.counts[f"{each.fault} {each.verdict}"] += 1
                broken_laws = [each for each in outcomes if not each.holds]
                found.broken += [self._told(number, *each) for each in broken_laws]
                if broken_laws:
                    break
        finally:
            found.acknowledged += play.acknowledged
            play.end()

    def _told(self, number: int, fault: str, verdict: str, detail: str) -> str:
        only = f" --only {self._given.only}" if self._given.only else ""
        detail = " ".join(detail.split())
        line = f"{verdict}: {fault}: {detail} [--replay {self._given.seed}:{number}{only}]"
        _say(line)
        return line

    def _print(self, found: "Found") -> None:
        from chaos_round import VERDICTS

        names = sorted({key.split()[0] for key in found.counts})
        print("| fault | tried | " + " | ".join(VERDICTS) + " |")
        print("|---|" + "--:|" * (len(VERDICTS) + 1))
        for name in [*names, "all"]:
            rows = [name] if name != "all" else names
            counts = [sum(found.counts[f"{row} {verdict}"] for row in rows) for verdict in VERDICTS]
            print(f"| {name} | {sum(counts)} | " + " | ".join(map(str, counts)) + " |")
        minutes = (time.monotonic() - self._began) / 60
        print(
            f"\nseed {self._given.seed}, {minutes:.1f} minutes, {found.rounds} banks, "
            f"{found.acknowledged} acknowledged steps"
        )
        if self._left_out:
            print(f"not tried, because there is no C compiler: {', '.join(self._left_out)}")
        for line in found.broken:
            print(line)


@dataclass
class Found:
    """What came of rounds."""

    counts: Counter[str] = field(default_factory=Counter)
    """By fault and verdict."""
    broken: list[str] = field(default_factory=list)
    rounds: int = 0
    acknowledged: int = 0

    def write(self, path: Path) -> None:
        whole = path.with_suffix(".tmp")
        whole.write_text(json.dumps(vars(self)))
        whole.replace(path)

    def add(self, other: dict[str, Any]) -> None:
        self.counts.update(other["counts"])
        self.broken += other["broken"]
        self.rounds += other["rounds"]
        self.acknowledged += other["acknowledged"]


def _warm_up() -> None:
    """Import and read what every child needs: children are forked from this process."""
    from chaos_steps import SmallEmbedder, do, steps

    from agents import MemoryBank
    from agents.storage.mem0.package import import_mem0
    from warm_children import STORE

    for name in ("mem0", *STORE):
        import_mem0(name)
    logging.getLogger("mem0").setLevel(logging.ERROR)  # it has advice on Chroma for each child
    with MemoryBank.ephemeral(embedder=SmallEmbedder()) as bank:
        for step, _ in zip(steps(0), range(20), strict=False):
            if step[0] not in ("note", "checkpoint", "vacuum"):
                do(bank, step, Path(), has_store=False)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
