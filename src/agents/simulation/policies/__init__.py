"""The built-in policies: a script, or a language model."""

from collections.abc import Iterable
from typing import Any

from ...errors import InvalidAction
from ..tick.actions import as_action

__all__ = ["as_actions", "check_keepable"]

_DEEPEST = 50


def as_actions(values: Iterable[object]) -> list[Any]:
    """An :class:`Action` for each valid value; invalid values stay as they are.

    The loop refuses an invalid value and tells the agent.
    """
    result: list[Any] = []
    for value in values:
        try:
            result.append(as_action(value))
        except InvalidAction:
            result.append(value)
    return result


def check_keepable(value: object, depth: int = 0) -> None:
    """Raise ValueError for JSON that a memory can't hold.

    Memories repeat actions and their arguments, and a memory that can't be kept ends the run.
    """
    if depth > _DEEPEST:
        raise ValueError(f"it is nested more than {_DEEPEST} deep")
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for each in value:
            check_keepable(each, depth + 1)
    elif isinstance(value, str) and ("\0" in value or not _is_unicode(value)):
        raise ValueError(f"{value!r:.60} holds a NUL or half a character")


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)
