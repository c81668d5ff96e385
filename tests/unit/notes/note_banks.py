"""What tests of notes share: how to look at them, and runs whose agents write them."""

from pathlib import Path
from typing import Any

from agents import AgentMemory
from agents.config.load import load_settings
from agents.config.settings import Settings
from agents.simulation.runs.replay import Replay
from agents.simulation.runs.run import Run
from banks import MANUAL


def market(**more: Any) -> Settings:
    return load_settings(
        {
            "seed": 3,
            "storage": MANUAL,
            "retention": {"grace": 3},
            "simulation": {
                "world": "market",
                "agents": 5,
                "ticks": 12,
                "policy": "scripted",
                "policy_options": {
                    "script": [
                        {
                            "tick": tick,
                            "actions": [
                                {
                                    "name": "append_note",
                                    "arguments": {"text": f"fish: {tick}", "path": "MEMORY.md"},
                                }
                            ],
                        }
                        for tick in range(1, 13)
                    ]
                },
            },
            **more,
        }
    )


def finish(run: Run) -> None:
    with run:
        for _ in run.advance(run.settings.simulation.ticks):
            pass
        run.finish(report=False)


def divergences(folder: Path, start: int | None = None) -> list[str]:
    replay = Replay(folder, start)
    try:
        return [str(each) for each in replay.ticks() if each]
    finally:
        replay.close()


def note_texts(alice: AgentMemory) -> list[str]:
    return [memory.content for memory in alice.all() if memory.kind == "note"]


def found(alice: AgentMemory, query: str) -> list[str | None]:
    """Where a search found notes."""
    return [each.citation for each in alice.memory_search(query)]
