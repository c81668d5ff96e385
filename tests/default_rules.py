"""The rules of compaction that a bank has unless its settings say otherwise."""

from typing import Any


def default_rules(idle: int | str = "inactive_preference") -> list[dict[str, Any]]:
    """The default rules; preferences become warm after another time if ``idle`` says so."""
    return [
        {
            "name": "completed",
            "when": {"any": [{"kind": "decision"}, {"tag": "task"}]},
            "unless": {"tag": ["blocker", "open"]},
            "to": "cold",
        },
        {
            "name": "idle preference",
            "when": {"temperature": "hot", "kind": "preference", "idle": idle},
            "unless": {"tag": "blocker"},
            "to": "warm",
        },
        {"name": "blocker", "when": {"tag": "blocker"}, "to": "hot"},
        {
            "name": "cool down",
            "when": {"temperature": "hot"},
            "unless": {"any": [{"tag": "blocker"}, {"kind": "preference"}]},
            "to": "warm",
        },
    ]
