"""Policies that ask a language model, flush, reflect or move memories, on runs that are spread."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import warm_children
from agents.config.load import load_settings, preset_settings
from agents.config.settings import Settings
from agents.simulation.policies.cassette import Cassette
from agents.simulation.runs.branch import branch, merge
from agents.simulation.runs.record import last_tick
from agents.simulation.runs.replay import Replay, verify_files
from agents.simulation.runs.run import Run
from openai_server import OpenAIServer
from spread_runs import engine, results, run_to_the_end, scenario

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

FLUSH = {
    "enabled": True, "context_window": 400, "reserve_tokens": 50, "soft_threshold": 80,
    "summary_tokens": 40,
}  # fmt: skip
REFLECTION = {"enabled": True, "threshold": 30, "ratings": "policy"}


def replied(request: dict[str, Any]) -> str:
    """An answer that depends on the question alone: actions, silence, or nonsense."""
    text = json.dumps(request["messages"])
    luck = hashlib.sha256(text.encode()).digest()[0]
    saves = {"name": "append_note", "arguments": {"text": f"luck {luck}"}}
    said = {"name": "no_op", "arguments": {"reason": f"luck {luck}"}}
    return json.dumps({"actions": [said] if luck % 3 else [saves]}) if luck % 7 else "well"


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    warm_children.import_first("mem0.utils.factory", "mem0.llms.openai")
    with OpenAIServer(replied) as running:
        yield running


def asking(server: OpenAIServer, **more: Any) -> Settings:
    config = {"openai_base_url": server.url, "api_key": "hush-hush", "model": "m"}
    return load_settings(
        {
            "seed": 3,
            "storage": {"sync": "manual"},
            "checkpoint": {"every": 3, "keep": 2},
            "llm": {"provider": "openai", "config": config},
            "simulation": {
                "world": "market", "agents": 6, "ticks": 6, "policy": "llm",
                "policy_options": {"pause": 0},
            },
            **more,
        }
    )  # fmt: skip


def exchanges(folder: Path) -> list[Any]:
    """All that was asked and answered, in an order of their own."""
    return sorted((each.key, each.reply) for each in Cassette(folder / "cassette.jsonl", True))


def divergences(folder: Path) -> list[Any]:
    again = Replay(folder)
    try:
        return [each for each in again.ticks() if each is not None]
    finally:
        again.close()


@pytest.mark.long_after(1)
@pytest.mark.parametrize("kind", ["flushes", "decides", "reflects"])
def test_a_model_is_asked_once_and_its_answers_are_kept(
    server: OpenAIServer, tmp_path: Path, kind: str
) -> None:
    own: dict[str, Any] = {"decides": {}, "flushes": {"flush": FLUSH}}.get(
        kind, {"reflection": REFLECTION}
    )
    settings = asking(server, **own)
    run_to_the_end(tmp_path / "local", settings, 0)
    folder, before = tmp_path / "run", len(server.requests)
    with Run.create(folder, settings, engine=engine(2)) as run:
        list(run.advance(4))
        assert last_tick(folder) == 4  # readers while it goes on
        assert divergences(folder) == []
    assert run.settings.llm.config["api_key"] == "hush-hush"
    key = ["llm.config.api_key=hush-hush"]
    with Run.open(folder, key, engine=engine(3)) as run:
        list(run.advance(5))
    with Run.open(folder, key, engine=engine(0)) as run:
        list(run.advance(6))
        run.finish(report=False)
    asked = len(server.requests) - before
    assert results(folder) == results(tmp_path / "local")
    assert exchanges(folder) == exchanges(tmp_path / "local")
    assert asked == len(exchanges(folder))
    assert divergences(folder) == []
    assert [*verify_files(folder)] == []


def test_what_a_model_said_goes_with_a_merge_and_a_branch(
    server: OpenAIServer, tmp_path: Path
) -> None:
    folder, settings = tmp_path / "run", asking(server, flush=FLUSH)
    with Run.create(folder, settings, engine=engine(2)) as run:
        list(run.advance(5))
        before = len(server.requests)
        merge(folder, tmp_path / "copy")
    branch(folder, 3, tmp_path / "branch")
    with Run.open(tmp_path / "branch", engine=engine(2), offline=True) as run:
        list(run.advance(5))
        run.finish(report=False)
    assert len(server.requests) == before
    assert divergences(tmp_path / "copy") == divergences(tmp_path / "branch") == []
    assert exchanges(tmp_path / "copy") == exchanges(tmp_path / "branch") == exchanges(folder)


@pytest.mark.long_after(1)
@pytest.mark.long_after(2)
@pytest.mark.parametrize(
    "preset",
    ["hot-warm-cold", "lifetime", "hot-cold-session", "generative-agents", "memorybank", "recency"],
)
def test_presets_that_move_memories_give_the_same_run(tmp_path: Path, preset: str) -> None:
    settings = load_settings(scenario(ticks=14), overrides=dict(preset_settings(preset)))
    for workers in (0, 3):
        run_to_the_end(tmp_path / str(workers), settings, workers)
    assert results(tmp_path / "3") == results(tmp_path / "0")


@pytest.mark.long
def test_notes_that_flushes_write_are_the_same(tmp_path: Path) -> None:
    for workers in (0, 2):
        run_to_the_end(
            tmp_path / str(workers), load_settings(scenario(ticks=14), overrides={"flush": FLUSH}),
            workers,
        )  # fmt: skip
    written = [
        {each.relative_to(place): each.read_bytes() for each in sorted(place.rglob("*.md"))}
        for place in (tmp_path / str(workers) / "bank" / "notes" for workers in (0, 2))
    ]
    assert written[0] == written[1]
    assert written[0]
    assert results(tmp_path / "2") == results(tmp_path / "0")
