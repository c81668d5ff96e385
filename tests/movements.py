"""What tests of moving memories share."""

from pathlib import Path
from typing import Any

from agents import AgentMemory, Memory, Temperature
from agents.memory.records import Compaction
from banks import MakeBank, value

HOT, WARM, COLD = Temperature


def temperatures(agent: AgentMemory) -> dict[str, Temperature]:
    return {memory.content.split(" <")[0]: memory.temperature for memory in agent.all()}


def hot(agent: AgentMemory) -> list[str]:
    return [memory.content.split(" <")[0] for memory in agent.all(temperature="hot")]


def added_hot(agent: AgentMemory, *contents: str) -> list[Memory]:
    return [agent.add(content, temperature="hot") for content in contents]


def used(agent: AgentMemory, memory: Memory, query: str, times: int) -> None:
    for _ in range(times):
        (hit,) = agent.search(query, 1)
        assert hit.memory.id == memory.id


def commits(folder: Path) -> int:
    return int(value(folder, "SELECT count(*) FROM commits"))


def moved(result: Compaction) -> tuple[int, int, int]:
    return result.hot, result.warm, result.cold


def small(make_bank: MakeBank, **own: Any) -> AgentMemory:
    """Hot has room for 30 characters; a line has three more than its text."""
    own = {"hot_max_tokens": 30, **own}
    return make_bank(temperature=own, count_tokens=len).agent("alice")


FADING = {
    "enabled": True,
    "half_life": {"critical": 40, "important": 20, "normal": 10, "low": 5},
}
