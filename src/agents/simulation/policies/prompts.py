"""What a language model is told, in its own words: one text for each kind of question.

Texts of memories and remarks are data: each is one line, and can't look like a part of the prompt.
"""

import json
from collections.abc import Mapping, Sequence

from ...memory.context import one_line, render
from ...memory.records import Hits, Memory
from ..protocols import Answer, Observation

_FORMAT = """\
Reply with JSON and nothing else, in this form:
{"actions": [{"name": "...", "arguments": {"...": "..."}}]}
The actions are done in order. An empty list means that you do nothing."""


def system_text(
    system: str, world_actions: Mapping[str, str], own_actions: Mapping[str, str]
) -> str:
    """The scenario's own text, the actions by name with their descriptions, and the form."""
    parts = [system.strip()] if system.strip() else []
    if world_actions:
        parts.append("What you can do:\n" + _listed(world_actions))
    parts.append("What you can do with your memories:\n" + _listed(own_actions))
    return "\n\n".join([*parts, _FORMAT])


def _listed(actions: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {description}" for name, description in actions.items())


def user_text(seen: Observation, hits: Hits) -> str:
    """What an agent perceives, its memories with their ids, and what it asked in this tick."""
    parts = [f"Tick {seen.tick}. You are {seen.agent_id}."]
    if seen.text.strip():
        parts.append(f"What you see:\n{seen.text}")
    if seen.heard:
        parts.append("What you hear:\n" + lines([remark.text for remark in seen.heard]))
    parts.append(f"Your memories:\n{render(hits)}")
    if hits:
        ids = "\n".join(f"- {hit.memory.id}" for hit in hits)
        parts.append(f"Their memory_id, in the same order:\n{ids}")
    parts += map(_answer_text, seen.answers)
    if seen.answers:
        parts.append(f"You may ask your memory {seen.asks_left} more times in this tick.")
    return "\n\n".join(parts)


def _answer_text(answer: Answer) -> str:
    asked = f"You asked your memory: {one_line(answer.ask.query)}\n"
    if answer.note:
        return f"{asked}It was refused: {one_line(answer.note)}"
    ids = "\n".join(f"- {hit.memory.id}" for hit in answer.hits)
    found = f"{asked}It found:\n{render(answer.hits)}"
    return f"{found}\nTheir memory_id, in the same order:\n{ids}" if ids else found


def lines(texts: Sequence[str]) -> str:
    """A list, each text on one line: a text may hold line ends."""
    return "\n".join(f"- {text if text.isprintable() else json.dumps(text)}" for text in texts)


# What a model is asked when an agent reflects. The questions are those of Park et al. (2023).


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


def _statements(memories: Sequence[Memory]) -> str:
    return "\n".join(f"{place}. {one_line(each.content)}" for place, each in enumerate(memories, 1))
