"""What can be compared of a run, and where two runs part."""

from itertools import takewhile
from typing import Any

from ..bank.memory_bank import MemoryBank

_LONGEST = 80

Story = dict[str, Any]
"""The records of a run's ticks, its memories, and its last world, as JSON values."""


def story_of(bank: MemoryBank) -> Story:
    """The story of the run in a bank."""
    fields = ("tick", "metrics", "state_hash")
    return {
        "ticks": [{key: row[key] for key in fields} for row, _ in bank.ticks.records()],
        "memories": {
            agent: [[each.created_tick, each.content] for each in bank.agent(agent).all()]
            for agent in bank.agents()
        },
        "world": bank.ticks.state()["world"],
    }


def difference(first: Story, other: Story) -> str | None:
    """Where two stories part: the first tick, with a metric or a memory; or the last world."""
    for one, two in zip(first["ticks"], other["ticks"], strict=True):
        if one != two:
            what = unlike("metric ", one["metrics"], two["metrics"])
            memory = _unlike_memory(first["memories"], other["memories"], one["tick"])
            return f"tick {one['tick']}: {memory or what or 'the memories have other places'}"
    where = unlike("", first["world"], other["world"])
    return f"after the last tick, the state of the world: {where}" if where else None


def _unlike_memory(one: dict[str, Any], two: dict[str, Any], tick: int) -> str | None:
    for agent in one:
        texts = [
            [text for made, text in memories.get(agent, ()) if made == tick]
            for memories in (one, two)
        ]
        if texts[0] != texts[1]:
            return unlike(f"memory of {agent} ", *texts)
    return None


def unlike(where: str, one: Any, two: Any) -> str | None:
    """The first place in which two JSON values differ, and what is there."""
    if type(one) is type(two) and isinstance(one, dict | list) and len(one) == len(two):
        keys = one if isinstance(one, dict) else range(len(one))
        for key in keys:
            if isinstance(one, dict) and key not in two:
                return f"{where}{key} is missing in one"
            found = unlike(
                f"{where}{key}" if not where or where[-1] == " " else f"{where}.{key}",
                one[key],
                two[key],
            )
            if found:
                return found
        return None
    return None if one == two else f"{where} is {', and '.join(_near(repr(one), repr(two)))}"


def _near(*texts: str) -> list[str]:
    """The texts; of long ones, the part in which they differ."""
    if max(map(len, texts)) <= _LONGEST:
        return list(texts)
    same = takewhile(lambda each: len(set(each)) == 1, zip(*texts, strict=False))
    start = max(0, sum(1 for _ in same) - _LONGEST // 2)
    return [
        ("…" if start else "")
        + each[start : start + _LONGEST]
        + ("…" if len(each) > start + _LONGEST else "")
        for each in texts
    ]
