"""Chat messages, as mem0 takes them."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from ...storage.mem0.package import invalid_request

logger = logging.getLogger(__name__)

PROCEDURAL: Final = "procedural_memory"


def check_memory_type(memory_type: object) -> None:
    """Raise mem0's error for a type of memory that there is not."""
    if memory_type not in (None, PROCEDURAL):
        raise invalid_request(
            f"Invalid 'memory_type'. Please pass {PROCEDURAL} to create procedural memories.",
            "VALIDATION_002",
            {"provided_type": memory_type, "valid_type": PROCEDURAL},
            f"Use '{PROCEDURAL}' to create procedural memories.",
        )


def chat_of(messages: Any) -> list[dict[str, Any]]:
    """A list of messages with role and content, from a text, a message or a list of messages.

    A message without either is left out, and of a content in parts only the texts count.
    """
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    if isinstance(messages, Mapping):
        messages = [messages]
    _check_list(messages)
    found = []
    for message in messages:
        text = _text(message.get("content"))
        if text is None or message.get("role") is None:
            logger.warning("a message without role or text is left out")
        else:
            in_parts = not isinstance(message["content"], str)
            name = {} if in_parts else {"name": message.get("name")}
            found.append({"role": message["role"], "content": text, **name})
    return found


def _check_list(messages: Any) -> None:
    """Raise mem0's error for what is not a list of messages, before anything of it is stored."""
    given = type(messages).__name__
    if isinstance(messages, list):
        odd = [each for each in messages if not isinstance(each, Mapping)]
        given = f"list[{type(odd[0]).__name__}]" if odd else ""
    if given:
        raise invalid_request(
            "messages must be str, dict, or list[dict]",
            "VALIDATION_003",
            {"provided_type": given, "valid_types": ["str", "dict", "list[dict]"]},
            "Convert your input to a string, dictionary, or list of dictionaries.",
        )


def said(chat: list[dict[str, Any]]) -> list[tuple[Any, dict[str, Any]]]:
    """The texts of a chat, each with its role and its speaker; system messages are left out."""
    return [
        (
            message["content"],
            {"role": message["role"]}
            | ({"actor_id": message["name"]} if message.get("name") else {}),
        )
        for message in chat
        if message["role"] != "system"
    ]


def _text(content: Any) -> Any:
    """The text of a message; None if it has none. Pictures are left out."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, Mapping)]
        texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
        return " ".join(texts) if texts else None
    if isinstance(content, Mapping) and content.get("type") == "image_url":
        return None
    return content
