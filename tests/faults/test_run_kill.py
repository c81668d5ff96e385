"""A run that was killed at any instant, any number of times, becomes the run it would have been."""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from runner import Life

import warm_children
from agents import MemoryBank
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.runs.replay import Replay, verify_files
from agents.simulation.runs.run import checkpoints
from openai_server import OpenAIServer
from spread_runs import timeless
from waiting import exit_code

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("TIERMEM_RUN_KILLS", "12"))
OUTPUTS = (
    "metrics.parquet", "ticks.parquet", "decisions.parquet", "summary.json", "report.html",
    "config.yaml",
)  # fmt: skip
TICKS = 60
MARKET: dict[str, Any] = {
    "seed": 11,
    "simulation": {"world": "market", "agents": 6, "ticks": TICKS},
    "checkpoint": {"every": 7, "keep": 3},
    "storage": {"sync": "manual"},
}
PROGRAM: dict[str, Any] = {
    **MARKET,
    "simulation": {"model": "programs:Street", "world_options": {"robbers": 0.05}, "ticks": TICKS},
}
ASKING: dict[str, Any] = {
    **MARKET,
    "simulation": {
        "world": "market",
        "world_options": {"scammers": 1},
        "agents": 4,
        "ticks": 12,
        "policy": "llm",
        "policy_options": {"pause": 0.0},
    },
    "checkpoint": {"every": 5, "keep": 3},
}


class Runner:
    """The process in runner.py."""

    def __init__(self) -> None:
        own = {"TOKENIZERS_PARALLELISM": "false", "OPENAI_API_KEY": "unused"}
        environment = {**os.environ, **own, "PYTHONPATH": str(Path(__file__).parents[1])}
        self._process = warm_children.Popen(
            [sys.executable, str(Path(__file__).with_name("runner.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __call__(self, folder: Path, scenario: dict[str, Any], **death: Any) -> bool:
        """Go on with the run; whether it was killed before its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        life = Life(str(folder), scenario, **death)
        self._process.stdin.write(json.dumps(life._asdict()) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert answer in ("done", "killed"), f"{life}: {answer}"
        return bool(answer == "killed")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        exit_code(self._process)


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    made = Runner()
    yield made
    made.close()


@pytest.fixture(scope="module")
def undisturbed(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nobody killed."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    assert not runner(folder, MARKET)
    return folder


def history(folder: Path) -> dict[str, Any]:
    """The journal's hash, and all that was recorded of every tick."""
    with MemoryBank.at(folder / "bank") as bank:
        ticks = list(ticks_of(bank).records())
        return {
            "journal": ticks_of(bank).hash(),
            "state": bank.state_hash(),
            "world": ticks_of(bank).state(),
            "state hashes": [record["state_hash"] for record, _ in ticks],
            "ticks": ticks,
        }


def assert_same_run(
    folder: Path, other: Path, *, report: bool = True, restored: bool = False
) -> None:
    """They came to the same; a checkpoint, which a run was restored from, has no decisions."""
    assert history(folder) == history(other)
    left_out = {"report.html": not report, "decisions.parquet": restored}
    for name in OUTPUTS:
        if not left_out.get(name):
            assert timeless(folder / name) == timeless(other / name), name
    names = [[path.name for path in checkpoints(each)] for each in (folder, other)]
    assert names[0] == names[1]
    assert list(verify_files(folder)) == []


def deaths(rng: random.Random) -> list[dict[str, Any]]:
    """When to kill one run: while it is made, in later and later ticks, and at its end."""

    def before_checkpoint(number: int) -> dict[str, Any]:
        tick = number * 7 + rng.randint(1, 6)
        return rng.choice(
            [
                {"after": f"tick {tick}", "delay": rng.uniform(0, 0.01)},
                {"after": f"tick {tick}", "delay": rng.uniform(0, 0.01)},
                {"after": f"tick {number * 7 + 6}", "delay": rng.uniform(0, 0.02)},
                {"after": f"tick {number * 7 + 6}", "operation": rng.randint(1, 5)},
                {"file": "checkpoints/.tick-*.tmp", "delay": rng.uniform(0, 0.008)},
            ]
        )

    made = rng.choice(
        [
            {"after": "begin", "delay": rng.uniform(0, 0.08)},
            {"after": "begin", "operation": rng.randint(1, 25)},
            {"after": "open", "delay": rng.uniform(0, 0.02)},
        ]
    )
    end = rng.choice(
        [
            {"after": "finish", "delay": rng.uniform(0, 1.0)},
            {"after": "finish", "operation": rng.randint(1, 20)},
            {"file": f".{rng.choice(OUTPUTS[:4])}.*", "delay": rng.uniform(0, 0.002)},
        ]
    )
    return [made, *map(before_checkpoint, sorted(rng.sample(range(TICKS // 7), 5))), end]


def test_a_run_killed_again_and_again_equals_one_that_was_not(
    runner: Runner, undisturbed: Path, tmp_path: Path
) -> None:
    kills = number = 0
    while kills < KILLS:
        folder, rng = tmp_path / str(number) / "run", random.Random(f"run {number}")
        folder.parent.mkdir()
        for death in deaths(rng):
            kills += runner(folder, MARKET, **death)
        assert not runner(folder, MARKET)
        assert_same_run(folder, undisturbed)
        shutil.rmtree(folder)
        number += 1
        assert number <= KILLS  # most lives must end by a kill


def test_a_program_killed_again_and_again_is_made_again_and_equals_one_that_was_not(
    runner: Runner, tmp_path: Path
) -> None:
    whole, folder = tmp_path / "whole" / "run", tmp_path / "killed" / "run"
    assert not runner(whole, PROGRAM)
    kills = sum(runner(folder, PROGRAM, **death) for death in deaths(random.Random("a program")))
    assert kills > 3
    assert not runner(folder, PROGRAM)
    assert_same_run(folder, whole)


def test_a_kill_in_any_file_operation_of_making_a_run_leaves_one_that_runs_or_none(
    runner: Runner, undisturbed: Path, tmp_path: Path
) -> None:
    expected = history(undisturbed)["ticks"][:3]
    operation = 0
    while operation < 200:
        operation += 1
        folder = tmp_path / str(operation) / "run"
        folder.parent.mkdir()
        assert runner(folder, MARKET, after="begin", operation=operation)
        assert not folder.exists() or (folder / "run.json").exists()
        made = (folder / "bank" / "journal.db").exists()
        assert runner(folder, MARKET, after="tick 2" if operation < 60 else "tick 12")
        assert history(folder)["ticks"][:3] == expected
        if made:
            break
    assert operation > 10


@pytest.mark.parametrize("tick", [6, 13, 59])
def test_a_kill_in_any_file_operation_of_a_checkpoint_leaves_whole_ones(
    runner: Runner, undisturbed: Path, tmp_path: Path, tick: int
) -> None:
    folder = tmp_path / "run"
    expected = history(undisturbed)
    for operation in range(1, 8):
        runner(folder, MARKET, after=f"tick {tick}" if operation == 1 else "begin",
               operation=operation)  # fmt: skip
        unwritten = ("parquet", "summary.json")  # what comes out is written at the end
        problems = [
            line for line in verify_files(folder) if not any(name in line for name in unwritten)
        ]
        assert problems == []
    found = history(folder)["ticks"]
    assert found == expected["ticks"][: len(found)]
    assert not runner(folder, MARKET, report=False)
    assert_same_run(folder, undisturbed, report=False)


def test_a_kill_in_any_file_operation_of_the_outputs_changes_none_of_them(
    runner: Runner, undisturbed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    operations = 1
    while runner(folder, MARKET, after="finish", operation=operations):  # until there are no more
        for name in OUTPUTS:
            if (folder / name).exists():
                assert (folder / name).read_bytes() == (undisturbed / name).read_bytes(), name
        operations += 3
    assert operations > 9
    assert_same_run(folder, undisturbed)


def test_a_kill_in_any_file_operation_of_going_on_from_a_checkpoint_changes_nothing(
    runner: Runner, undisturbed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    assert runner(folder, MARKET, after="tick 17")
    for operation in range(1, 11):
        for path in (folder / "bank").glob("journal.db*"):
            if operation % 2 or path.name != "journal.db":  # what a kill left, and what it did not
                path.unlink()
        assert runner(folder, MARKET, after="begin", operation=operation)
        assert list(checkpoints(folder))
    assert not runner(folder, MARKET, report=False)
    assert_same_run(folder, undisturbed, report=False, restored=True)


def test_a_run_killed_many_times_replays(runner: Runner, tmp_path: Path) -> None:
    folder, rng = tmp_path / "run", random.Random(5)
    for tick in (3, 20, 41):
        assert runner(folder, MARKET, after=f"tick {tick}", delay=rng.uniform(0, 0.01))
    assert not runner(folder, MARKET, report=False)
    again = Replay(folder)
    try:
        assert list(again.ticks()) == [None] * (TICKS + 1)
    finally:
        again.close()


def test_a_run_killed_while_it_made_way_for_another_can_still_be_replaced(
    runner: Runner, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    for operation in range(1, 15):
        if not folder.exists():
            assert runner(folder, MARKET, after="tick 8")
        assert runner(folder, MARKET, after="begin", operation=operation, force=True)
    assert runner(folder, MARKET, after="tick 1", force=True)


def test_files_that_a_killed_process_left_unfinished_are_cleared_away(
    runner: Runner, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    for operation in range(2, 16):
        runner(folder, MARKET, after="tick 6", operation=operation)
        if list(folder.glob("**/.*.tmp")):
            break
        shutil.rmtree(folder)
    else:
        raise RuntimeError("no kill left an unfinished file")
    runner(folder, MARKET, after="tick 20")
    assert list(folder.glob("**/.*.tmp")) == []


def question(request: dict[str, Any]) -> str:
    return json.dumps(request["messages"], sort_keys=True)


def answer(request: dict[str, Any]) -> str:
    """What the model says: always the same to the same question."""
    digest = hashlib.sha256(question(request).encode()).digest()
    if digest[0] % 8 == 0:
        return "I'd rather not answer in the form asked for."
    actions: list[dict[str, Any]] = [{"name": ["accept", "decline"][digest[1] % 2]}]
    if digest[2] % 2:
        tier = ["pinned", "critical", "low"][digest[3] % 3]
        arguments = {"content": f"note {digest[4]}", "tier": tier}
        actions.append({"name": "store_memory", "arguments": arguments})
    return json.dumps({"actions": actions})


def cassette(folder: Path) -> Counter[str]:
    """How often each question is in the cassette."""
    path = folder / "cassette.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    whole = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return Counter(question(line) for line in whole)


def test_a_killed_run_asks_its_language_model_nothing_that_is_recorded(
    runner: Runner, tmp_path: Path
) -> None:
    rng = random.Random(7)
    undisturbed, folder = tmp_path / "first" / "run", tmp_path / "second" / "run"
    with OpenAIServer(answer) as server:
        config = {"model": "m", "openai_base_url": server.url}
        scenario = {**ASKING, "llm": {"provider": "openai", "config": config}}
        assert not runner(undisturbed, scenario)
        questions = Counter(question(body) for _, body in server.requests)
        assert questions == cassette(undisturbed)
        assert sum(questions.values()) > 48  # some more than once
        for tick in (None, 2, 3, 6, 9, None):
            server.settle()
            server.requests.clear()
            recorded = cassette(folder)
            death = {} if tick is None else {"after": f"tick {tick}"}
            if tick is None and not folder.exists():
                death = {"after": "open"}
            killed = runner(folder, scenario, **death, delay=rng.uniform(0, 0.06))
            assert killed == bool(death)
            asked = Counter(question(body) for _, body in server.requests)
            again = asked + recorded - questions
            assert not again, "what was recorded is asked again"
        assert cassette(folder) == questions
    assert_same_run(folder, undisturbed, report=False)  # it says how long the answers took
