"""Random faults over a real workload in child processes; after each, the laws of a bank must hold.

A round is one bank and the lives of a few workers, each with its fault. The seed and the number of
a round decide all of it but the moments of signals. Ends with exit code 1 if a law was broken.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "faults")]
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from chaos_shim import is_loaded, scratch_of_shim, start_with_shim

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
    """Rounds, one after the other, and what came of them."""

    def __init__(self, given: argparse.Namespace, scratch: Path) -> None:
        from chaos_faults import FAULTS

        self._given, self._scratch = given, scratch
        names = [name for name in given.only.split(",") if name] or list(FAULTS)
        if unknown := set(names) - set(FAULTS):
            sys.exit(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(FAULTS)}")
        self._left_out = [name for name in names if FAULTS[name][2] and not is_loaded()]
        self._faults = {name: FAULTS[name] for name in names if name not in self._left_out}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._broken: list[str] = []
        self._acknowledged = 0

    def run(self) -> int:
        began = said = time.monotonic()
        number = self._given.first
        _say(f"chaos with seed {self._given.seed}")
        while self._goes_on(number, began):
            self._round(number)
            number += 1
            if time.monotonic() - said > _SAY_EVERY:
                said = time.monotonic()
                minutes = f"{(said - began) / 60:.1f} of {self._given.minutes:g} min"
                _say(f"{minutes}: {self._tried()} faults, {len(self._broken)} broken laws")
        self._print(number - self._given.first)
        return 1 if self._broken else 0

    def _goes_on(self, number: int, began: float) -> bool:
        if self._given.rounds is not None:
            return bool(number < self._given.first + self._given.rounds)
        return time.monotonic() - began < self._given.minutes * 60

    def _tried(self) -> int:
        return sum(self._counts.values())

    def _round(self, number: int) -> None:
        from chaos_round import HELD, NAMED, Broken, Outcome, Round

        play = Round(self._given.seed, number, self._scratch)
        try:
            for _ in range(play.rng.randint(1, 4)):
                weights = [weight for _, weight, _ in self._faults.values()]
                (name,) = play.rng.choices(list(self._faults), weights)
                try:
                    outcomes = list(self._faults[name][0](play))
                except Broken as broken:
                    outcomes = [Outcome(name, broken.verdict, broken.detail)]
                for fault, verdict, detail in outcomes:
                    self._counts[fault, verdict] += 1
                    if verdict not in (HELD, NAMED):
                        self._tell(number, fault, verdict, detail)
                if any(each.verdict not in (HELD, NAMED) for each in outcomes):
                    break
        finally:
            self._acknowledged += play.acknowledged
            play.end()

    def _tell(self, number: int, fault: str, verdict: str, detail: str) -> None:
        only = f" --only {self._given.only}" if self._given.only else ""
        line = f"{verdict}: {fault}: {detail} [--replay {self._given.seed}:{number}{only}]"
        self._broken.append(line)
        _say(line)

    def _print(self, rounds: int) -> None:
        from chaos_round import VERDICTS

        names = sorted({fault for fault, _ in self._counts})
        print("| fault | tried | " + " | ".join(VERDICTS) + " |")
        print("|---|" + "--:|" * (len(VERDICTS) + 1))
        for name in [*names, "all"]:
            rows = [name] if name != "all" else names
            counts = [sum(self._counts[row, verdict] for row in rows) for verdict in VERDICTS]
            print(f"| {name} | {sum(counts)} | " + " | ".join(map(str, counts)) + " |")
        print(f"\nseed {self._given.seed}, {rounds} banks, {self._acknowledged} acknowledged steps")
        if self._left_out:
            print(f"not tried, because there is no C compiler: {', '.join(self._left_out)}")
        for line in self._broken:
            print(line)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
