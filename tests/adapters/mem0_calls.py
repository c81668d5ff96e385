"""Short ways to call ``tiermem.mem0`` in tests."""

from typing import Any

from tiermem.mem0 import Memory

ANN = {"user_id": "ann"}


def add(memory: Memory, text: str, **options: Any) -> str:
    """Store a text, of ann unless it is told; the id."""
    ids = {} if {"agent_id", "run_id"} & options.keys() else ANN
    (row,) = memory.add(text, infer=False, **{**ids, **options})["results"]
    return str(row["id"])


def texts(found: dict[str, Any]) -> list[str]:
    """The texts of results."""
    return [row["memory"] for row in found["results"]]
