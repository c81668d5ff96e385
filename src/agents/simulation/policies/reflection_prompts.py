"""What a language model is asked when an agent reflects, and how its replies are read.

The questions are those of Park et al. (2023). Texts of memories are data: each is one line.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from ...memory.context import one_line
from ...memory.records import Memory
from ...memory.sources import MOST_EVIDENCE, check_importance
from ..protocols import Insight
from . import check_keepable

Value = dict[str, Any]


def questions_prompt(agent_id: str, memories: Sequence[Memory], most: int) -> str:
    """Asks what can be asked about an agent's latest memories."""
    return (
        f"You are {agent_id}. Your latest memories:\n{_statements(memories)}\n\n"
        f"Given only the information above, what are the {most} most salient high-level questions "
        "we can answer about the subjects in the statements?\n"
        'Reply with JSON and nothing else, in this form: {"questions": ["...", "..."]}'
    )


def insights_prompt(agent_id: str, query: str, memories: Sequence[Memory], most: int) -> str:
    """Asks what follows from the memories that a question found."""
    return (
        f"You are {agent_id}. You asked yourself: {one_line(query)}\n"
        f"Statements from your memory:\n{_statements(memories)}\n\n"
        f"What {most} high-level insights can you infer from the above statements? Name the "
        "numbers of the statements that each insight is drawn from, and its importance from 1 "
        "(mundane) to 10 (poignant).\n"
        "Reply with JSON and nothing else, in this form: "
        '{"insights": [{"insight": "...", "because_of": [1, 3], "importance": 5}]}'
    )


def ratings_prompt(agent_id: str, texts: Sequence[str]) -> str:
    """Asks how important texts are."""
    listed = "\n".join(f"{place}. {one_line(text)}" for place, text in enumerate(texts, 1))
    return (
        f"You are {agent_id}. What you just lived through:\n{listed}\n\n"
        "On the scale of 1 to 10, where 1 is purely mundane (such as brushing teeth, making bed) "
        "and 10 is extremely poignant (such as a break up, college acceptance), rate the likely "
        "poignancy of each of them.\n"
        f"Reply with JSON and nothing else, {len(texts)} whole numbers in this form: "
        '{"importance": [2, 7]}'
    )


def questions_in(most: int) -> Callable[[str], list[object]]:
    """Reads the questions of a reply; ValueError if it has none."""

    def read(reply: str) -> list[object]:
        found = _list_in(reply, "questions")
        if not found or not all(isinstance(each, str) and each.strip() for each in found):
            raise ValueError(f'"questions" is not a list of texts: {found!r:.60}')
        return found[:most]

    return read


def insights_in(memories: Sequence[Memory], most: int) -> Callable[[str], list[object]]:
    """Reads the insights of a reply; ValueError if one of them names no statement."""

    def read(reply: str) -> list[object]:
        return [_insight(each, memories) for each in _list_in(reply, "insights")[:most]]

    return read


def ratings_in(count: int) -> Callable[[str], list[object]]:
    """Reads the ratings of a reply; ValueError unless there are as many as texts."""

    def read(reply: str) -> list[object]:
        found = _list_in(reply, "importance")
        if len(found) != count:
            raise ValueError(f'"importance" has {len(found)} numbers, not {count}')
        return [check_importance(each) for each in found]

    return read


def _insight(value: object, memories: Sequence[Memory]) -> Insight:
    own: Value = value if isinstance(value, dict) else {}
    text, numbers = own.get("insight"), own.get("because_of")
    if not isinstance(text, str) or not text.strip() or not isinstance(numbers, list):
        raise ValueError(f"an insight has a text and statements: {value!r:.60}")
    places = {each for each in numbers if type(each) is int}
    if not places or len(places) < len(numbers) or not places <= set(range(1, len(memories) + 1)):
        raise ValueError(f"statements have the numbers 1 to {len(memories)}: {numbers!r:.60}")
    evidence = [memories[place - 1].id for place in sorted(places)][:MOST_EVIDENCE]
    given = own.get("importance")
    return Insight(text, evidence, None if given is None else check_importance(given))


def _list_in(reply: str, name: str) -> list[Any]:
    text = reply.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json")
    value = json.loads(text)
    if not isinstance(value, dict) or not isinstance(value.get(name), list):
        raise ValueError(f'it is not an object with a list of "{name}": {value!r:.60}')
    check_keepable(value[name])
    return list(value[name])


def _statements(memories: Sequence[Memory]) -> str:
    return "\n".join(f"{place}. {one_line(each.content)}" for place, each in enumerate(memories, 1))
