"""A sweep whose language model goes away, or costs too much, or whose workers are killed: what was
answered is asked of nobody again, and the results are those of a sweep that nothing disturbed."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from openai_server import Fault, OpenAIServer

pytestmark = pytest.mark.slow

Command = Callable[..., Any]
Write = Callable[..., Path]

STEP = json.dumps({"actions": [{"name": "step"}]})
TICKS, AGENTS, SEEDS = 4, 2, 2
CALLS = TICKS * AGENTS * SEEDS


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(lambda _: STEP) as running:
        yield running


@pytest.fixture
def sweep(scenario: Write, server: OpenAIServer) -> Callable[..., Path]:
    def write(**common: Any) -> Path:
        path = scenario(ticks=TICKS, policy="llm", policy_options={"pause": 0})
        file = path.with_name("sweep.yaml")
        llm = {"llm.base_url": server.url, "llm.model": "m", "llm.patience": 0}
        values = {"scenario": path.name, "set": {**llm, **common}, "seeds": SEEDS}
        file.write_text(yaml.safe_dump(values))
        return file

    return write


def prompts(server: OpenAIServer) -> Counter[str]:
    return Counter(json.dumps(body["messages"]) for _, body in server.requests)


def state_hashes(tiermem: Command, folder: str) -> list[str]:
    done = [json.loads(each.read_text()) for each in Path(folder, "cells").glob("*/summary.json")]
    assert all(each["finished"] for each in done)
    return sorted(each["state_hash"] for each in done)


@pytest.fixture
def expected(tiermem: Command, sweep: Callable[..., Path], server: OpenAIServer) -> list[str]:
    assert tiermem("sweep", sweep(), "--out", "calm", "-q", "-w", 1).code == 0
    assert len(server.requests) == CALLS
    server.requests.clear()
    return state_hashes(tiermem, "calm")


@pytest.mark.parametrize("more", [(), ("--keep-runs",)])
def test_a_sweep_whose_model_goes_away_asks_nothing_again(
    tiermem: Command, sweep: Callable[..., Path], server: OpenAIServer, expected: list[str],
    more: tuple[str, ...],
) -> None:  # fmt: skip
    answered = 0

    def away(_: object) -> str:
        nonlocal answered
        if answered == 5:
            raise Fault(503)
        answered += 1
        return STEP

    server.reply = away
    done = tiermem("sweep", sweep(), "--out", "s", "-q", "-w", 1)
    assert done.code == 3, done.err
    assert "2 of 2 runs are paused" in done.err
    assert "HTTP 503" in done.err
    server.requests.clear()
    server.reply = lambda _: STEP
    assert tiermem("sweep", sweep(), "--out", "s", "-q", "-w", 1, *more).code == 0
    assert len(server.requests) == CALLS - 5
    assert state_hashes(tiermem, "s") == expected
    cell = next(Path("s/cells").iterdir())
    assert tiermem("replay", cell, "--verify", "-q").code == 0
    assert (cell / "report.html").exists() == bool(more)


def test_a_cell_whose_worker_is_killed_goes_on_with_the_answers_it_has(
    tiermem: Command, sweep: Callable[..., Path], server: OpenAIServer, expected: list[str],
    tmp_path: Path,
) -> None:  # fmt: skip
    where = {"simulation.world_options": {"kill_at": 3, "kill_once": str(tmp_path / "killed")}}
    assert tiermem("sweep", sweep(**where), "--out", "s", "-q", "-w", 1).code == 0
    assert (tmp_path / "killed").exists()
    assert len(server.requests) == CALLS
    assert state_hashes(tiermem, "s") == expected


def test_a_sweep_goes_on_with_a_larger_budget(
    tiermem: Command, sweep: Callable[..., Path], server: OpenAIServer, expected: list[str]
) -> None:
    small = sweep(**{"llm.budget.tokens": 1_000})
    done = tiermem("sweep", small, "--out", "s", "-q", "-w", 1)
    assert (done.code, "llm.budget.tokens" in done.err) == (3, True)
    paused = len(server.requests)
    assert 0 < paused < CALLS
    large = sweep(**{"llm.budget.tokens": 1_000_000})
    assert tiermem("sweep", large, "--out", "s", "-q", "-w", 1).code == 0
    assert len(server.requests) == CALLS
    assert state_hashes(tiermem, "s") == expected
    assert tiermem("sweep", large, "--out", "s", "-q", "-w", 1).code == 0  # it is whole
    assert len(server.requests) == CALLS


def test_answers_of_a_paused_cell_are_not_thrown_away_for_other_code(
    tiermem: Command, sweep: Callable[..., Path], server: OpenAIServer
) -> None:
    small = sweep(**{"llm.budget.tokens": 1_000})
    assert tiermem("sweep", small, "--out", "s", "-q", "-w", 1).code == 3
    cells = sorted(Path("s/cells").iterdir())
    kept = [(each / "cassette.jsonl").read_bytes() for each in cells]
    (cells[0] / "config.yaml").write_text("seed: 77\n")
    done = tiermem("sweep", small, "--out", "s", "-q", "-w", 1)
    assert (done.code, "other settings" in done.err) == (1, True)
    assert [(each / "cassette.jsonl").read_bytes() for each in cells] == kept
