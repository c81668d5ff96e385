"""The operations as tools for language models."""

from collections.abc import Iterable
from typing import Any

from .operation import Operation, allows
from .operations import OPERATIONS


def openai_schemas(names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """For ``tools=`` of OpenAI's chat completions, and of services with the same API."""
    return [
        {
            "type": "function",
            "function": {
                "name": each.name,
                "description": each.description,
                "parameters": each.schema(),
            },
        }
        for each in _chosen(names)
    ]


def anthropic_schemas(names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """For ``tools=`` of Anthropic's messages."""
    return [
        {
            "name": each.name,
            "description": each.description,
            "input_schema": each.schema(),
        }
        for each in _chosen(names)
    ]


def _chosen(names: Iterable[str] | None) -> list[Operation]:
    from .calling import find

    if names is not None:
        return [find(name) for name in names]
    return [each for each in OPERATIONS.values() if allows("write", each.permission)]
