"""How agents decide: a script, or a language model."""

from collections.abc import Iterable
from typing import Any

from ...errors import InvalidAction
from ..loop.actions import as_action

__all__ = ["as_actions", "check_keepable"]

_DEEPEST = 50


def as_actions(values: Iterable[object]) -> list[Any]:
    """An :class:`Action` for each value that is one; the others as they are.

    The loop refuses those and tells the agent, which is more use than to stop here.
    """
    result: list[Any] = []
    for value in values:
        try:
            result.append(as_action(value))
        except InvalidAction:
            result.append(value)
    return result


def check_keepable(value: object, depth: int = 0) -> None:
    """Raise ValueError for JSON that can't become memories, which would end the run.

    Actions and their arguments turn up in what is recorded of them.
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
