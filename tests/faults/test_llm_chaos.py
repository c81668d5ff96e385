"""A language model behind a server that fails in all ways, asked by a run that is killed again and
again: nothing is lost, and the run is the one that nobody disturbed."""

import hashlib
import json
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_run_kill import Runner, cassette, history, question

from agents.simulation.policies.cassette import Cassette
from agents.simulation.runs.replay import Replay
from openai_server import Fault, OpenAIServer

CALLS = int(os.environ.get("TIERMEM_LLM_CALLS", "2000"))
AGENTS = 20


def answer(request: dict[str, Any]) -> str:
    """The same to the same question: actions, nonsense, keys that come twice, or a megabyte."""
    luck = hashlib.sha256(question(request).encode()).digest()
    if luck[0] % 16 == 0:
        return "I'd rather not answer in the form asked for."
    if luck[0] % 16 == 1:
        return '{"actions": [{"name": "accept"}], "actions": [{"name": "decline"}]}'
    if luck[1] == 0:
        return json.dumps(
            {"actions": [{"name": "store_memory", "arguments": {"content": "x" * 1_000_000}}]}
        )
    actions: list[dict[str, Any]] = [{"name": ["accept", "decline"][luck[2] % 2]}]
    if luck[3] % 4 == 0:
        arguments = {"content": f"note {luck[4]}", "tier": ["pinned", "low"][luck[5] % 2]}
        actions.append({"name": "store_memory", "arguments": arguments})
    return json.dumps({"actions": actions})


class Failing:
    """Gives no answer to one call of five."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._lock = threading.Lock()
        self.failed = 0

    def __call__(self, request: dict[str, Any]) -> str:
        with self._lock:
            fails = self._rng.random() < 0.2
            luck = self._rng.random()
            self.failed += fails
        if not fails:
            return answer(request)
        if luck < 0.01:
            time.sleep(3.0)  # longer than anybody waits
        if luck < 0.2:
            raise Fault(429, {"Retry-After": "0.02"})
        if luck < 0.4:
            raise Fault(500)
        whole = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n"
        if luck < 0.6:
            raise Fault(raw=whole + b'{"id": "1", "choices": [{"ind')
        if luck < 0.8:
            raise Fault(raw=b"")
        raise Fault(raw=whole.replace(b"500", b"12") + b"\x00\xffgarbage\r\n\r\n")


CLIENTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "ours": lambda url: {"base_url": url, "model": "m"},
    "mem0": lambda url: {"provider": "openai", "config": {"model": "m", "openai_base_url": url}},
}


def scenario(server: OpenAIServer, client: str, ticks: int, timeout: float) -> dict[str, Any]:
    return {
        "seed": 5,
        "storage": {"sync": "manual"},
        "checkpoint": {"every": 9, "keep": 2},
        "llm": {**CLIENTS[client](server.url), "timeout": timeout, "concurrency": 8},
        "simulation": {
            "world": "market",
            "agents": AGENTS,
            "ticks": ticks,
            "policy": "llm",
            "policy_options": {"pause": 0.01},
        },
    }


@pytest.mark.long
@pytest.mark.parametrize(("client", "calls"), [("ours", CALLS), ("mem0", CALLS // 5)])
def test_nothing_is_lost_whatever_the_server_and_the_killer_do(
    tmp_path: Path, client: str, calls: int
) -> None:
    runner, rng = Runner(), random.Random(3)
    calm, folder = tmp_path / "calm" / "run", tmp_path / "chaos" / "run"
    ticks = calls // AGENTS
    try:
        with OpenAIServer(answer) as server:
            assert not runner(calm, scenario(server, client, ticks, 60.0), report=False)
        failing = Failing(1)
        with OpenAIServer(failing) as server:
            disturbed, kills = scenario(server, client, ticks, 2.0), 0
            for tick in [*range(3, ticks, 4), None]:
                before = cassette(folder)
                death = {} if tick is None else {"after": f"tick {tick}"}
                kills += runner(folder, disturbed, **death, delay=rng.uniform(0, 0.2), report=False)
                assert not before - cassette(folder), "an answer is lost"
    finally:
        runner.close()
    assert kills >= ticks // 5
    assert failing.failed > calls // 8
    assert history(folder) == history(calm)
    assert {each.reply is None for each in Cassette(folder / "cassette.jsonl", replay=True)} == {
        False
    }
    assert cassette(folder) == cassette(calm)
    again = Replay(folder)
    try:
        assert set(again.ticks()) == {None}
    finally:
        again.close()
