"""Are effects with a language model told apart from its own chance, and only then?

The walkers of ``wells.py``, decided by a model behind a small server on loopback. One walker
forgets where the water is. Three models:

- a coin goes to any well and reads nothing: the true effect is 0;
- a model that obeys goes to the well that its memory names, else to the well of the tick: its true
  effect follows from the run's well, or is a mean over wells;
- a model that obeys and else tosses: its true effect is that of a guess.

Each trial is a run and one whole ``effect()``, with branches, cassettes and placebos. Tosses depend
on the trial and on the number of the call, and one agent is asked at a time, so figures repeat.

    python benchmarks/model_effects.py                 # small: a minute
    python benchmarks/model_effects.py --trials 100    # whole
"""

import argparse
import json
import multiprocessing
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from wells import WELLS

from tiermem.config.load import load_settings
from tiermem.simulation import Run
from tiermem.simulation.effects import Effect, effect
from tiermem.simulation.effects.chance import TOLD_APART

TICKS, AT, LIFT = 8, 2, 0.5
FORGETS = "w0:The water is in"
METRICS = ("drinks", "with_lifted")
OVER = ("one run", "futures", "seeds")
Reply = Callable[[str, Random], str]
"""Where to go, by the prompt and the call's own generator."""


def known_in(prompt: str) -> str | None:
    """The well that a memory in the prompt names."""
    named = re.search(r"The water is in the (\w+)", prompt)
    return named and named[1]


def of_tick(prompt: str) -> str:
    """The well of the tick that the prompt names."""
    named = re.search(r"Tick (\d+)", prompt)
    return WELLS[int(named[1] if named else 0) % len(WELLS)]


MODELS: dict[str, Reply] = {
    "coin": lambda _, luck: luck.choice(WELLS),
    "obeys": lambda prompt, _: known_in(prompt) or of_tick(prompt),
    "obeys, else tosses": lambda prompt, luck: known_in(prompt) or luck.choice(WELLS),
}


class Row(NamedTuple):
    """One figure of one experiment."""

    model: str
    over: str
    metric: str
    covers: bool
    """Whether the interval holds the true effect; without an interval it does."""
    has_interval: bool
    is_told_apart: bool
    any_told_apart: bool
    """Whether any metric of the experiment is."""


def truth(model: str, over: str, metric: str, well: str) -> float:
    """The mean of what w0 loses in the ticks after ``AT``."""
    if model == "coin":
        return 0.0
    after = range(AT + 1, TICKS + 1)
    right = len(after) / len(WELLS)
    if model == "obeys" and over != "seeds":
        right = sum(WELLS[tick % len(WELLS)] == well for tick in after)
    return -(len(after) - right) * (1 + LIFT * (metric == "with_lifted"))


class Server:
    """Answers chat completions on loopback; a call's generator is seeded by its number."""

    def __init__(self, reply: Reply, seed: str) -> None:
        self.calls = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet: two would wait for each other

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.calls += 1
                prompt = " ".join(message["content"] for message in body["messages"])
                well = reply(prompt, Random(f"{seed}:{server.calls}"))
                text = json.dumps({"actions": [{"name": "go", "arguments": {"well": well}}]})
                choice = {
                    "index": 0, "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text},
                }  # fmt: skip
                data = json.dumps({"id": "1", "object": "chat.completion", "created": 0,
                                   "model": "m", "choices": [choice]}).encode()  # fmt: skip
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                self.wfile.flush()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def experiment(model: str, over: str, pairs: int, seed: int) -> tuple[Effect, str]:
    """One run decided by the model, what ``effect()`` says of it, and the run's well."""
    with (
        Server(MODELS[model], f"{model}:{seed}") as server,
        tempfile.TemporaryDirectory() as scratch,
    ):
        settings = load_settings(
            {
                "seed": seed,
                "storage": {"sync": "manual"},
                "llm": {
                    "base_url": server.url, "model": "m", "temperature": 1.0, "concurrency": 1,
                },
                "simulation": {
                    "world": "wells:Wells", "world_options": {"lift": LIFT}, "policy": "llm",
                    "agents": ["w0", "w1", "w2"], "ticks": TICKS,
                },
            }
        )  # fmt: skip
        folder = Path(scratch) / "run"
        with Run.create(folder, settings, scenario=Path(__file__).parent) as run:
            list(run.advance(TICKS))
            (known,) = [m for m in run.bank.agent("w0").all() if m.content.startswith("The water")]
        many: dict[str, Any] = {} if over == "one run" else {over: pairs}
        out = Path(scratch) / "effect"
        found = effect(folder, at=AT, forget=FORGETS, out=out, workers=1, **many)
        return found, known.content.split()[-1]


def trial(model: str, over: str, pairs: int, seed: int) -> list[Row]:
    """The figures of one experiment."""
    found, well = experiment(model, over, pairs, seed)
    rows = []
    any_told = any(row["verdict"] == TOLD_APART for row in found.statistics)
    for metric in METRICS:
        row = found.difference(metric)
        true, has_interval = truth(model, over, metric, well), row["low"] is not None
        covers = not has_interval or row["low"] <= true <= row["high"]
        is_told = row["verdict"] == TOLD_APART
        rows.append(Row(model, over, metric, covers, has_interval, is_told, any_told))
    return rows


def experiments(given: argparse.Namespace) -> Iterator[Row]:
    """The rows of all experiments, as they end; each experiment has a seed of its own."""
    calls = [
        (model, over, given.pairs, 1000 * number)
        for number in range(1, given.trials + 1)
        for model in given.models
        for over in given.over
    ]
    if Path("/dev/shm").is_dir():
        os.environ["TMPDIR"] = "/dev/shm"
    pool = ProcessPoolExecutor(given.workers, multiprocessing.get_context("spawn"))
    try:
        for number, rows in enumerate(pool.map(trial, *zip(*calls, strict=True)), start=1):
            print(f"\r{number} of {len(calls)} experiments", end="", file=sys.stderr, flush=True)
            yield from rows
    except KeyboardInterrupt:
        print(" before it was interrupted", end="", file=sys.stderr)
    finally:
        pool.shutdown(cancel_futures=True)


def main() -> None:
    """Print a table: how often the interval holds the truth, and how often it is told apart."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=5, help="experiments for each row")
    parser.add_argument("--pairs", type=int, default=6, help="seeds or futures of an experiment")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--over", nargs="+", choices=OVER, default=list(OVER))
    given = parser.parse_args()
    began = time.monotonic()
    rows: dict[tuple[str, str, str], list[Row]] = {}
    for row in experiments(given):
        rows.setdefault(row[:3], []).append(row)
    print(f" in {time.monotonic() - began:.0f} s\n", file=sys.stderr)
    print(
        "| model | over | metric | experiments | with an interval | of these, hold the true effect "
        "| told apart | any metric told apart |"
    )
    print("|---|---|---|--:|--:|--:|--:|--:|")
    for (model, over, metric), each in rows.items():
        with_one = [row.covers for row in each if row.has_interval]
        covers = f"{sum(with_one) / len(with_one):.1%}" if with_one else "–"
        told = sum(row.is_told_apart for row in each) / len(each)
        any_told = sum(row.any_told_apart for row in each) / len(each)
        many = over if over == "one run" else f"{given.pairs} {over}"
        print(
            f"| {model} | {many} | {metric} | {len(each)} | {len(with_one)} | {covers} "
            f"| {told:.1%} | {any_told:.1%} |"
        )
    print("\nGoals: a coin is told apart in at most 5 of 100; 93 % of intervals hold the truth.")


if __name__ == "__main__":
    main()
