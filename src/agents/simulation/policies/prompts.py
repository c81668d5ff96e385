"""What a language model is told, in its own words: one text for each kind of question.

Texts of memories and remarks are data: each is one line, and can't look like a part of the prompt.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from ...memory.context import one_line, render
from ...memory.records import Hit, Hits, Memory, short_id
from ...memory.tiers import Temperature, Tier
from ..protocols import Answer, Conversation, Observation, Persona
from .model import Messages

_FORM = """\
Reply with JSON and nothing else, the actions in order; with none you do nothing:
{"reason": "...", "actions": [{"name": "...", "arguments": {"...": "..."}}]}"""
"""A weak model takes a sentence about the reason for its reason: nothing is said of it."""
_MOST_OF_A_REPLY = 500
"""The characters of a wrong reply that are shown to the model again."""


# What a model is asked when an agent decides, as the parts of its template.


def actions_text(world_actions: Mapping[str, str], own_actions: Mapping[str, str]) -> str:
    """The actions by name with their descriptions, and the form of a reply.

    It is the same for all agents in all ticks.
    """
    parts = []
    if world_actions:
        parts.append("What you can do:\n" + _listed(world_actions))
    if own_actions:
        parts.append("What you can do with your memories:\n" + _listed(own_actions))
    return "\n\n".join([*parts, _FORM])


def persona_text(persona: Persona) -> str:
    """Who the agent is; empty if nobody says so."""
    return f"Who you are:\n{persona.shown()}" if persona.shown() else ""


def _listed(actions: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {description}" for name, description in actions.items())


def own_parts(seen: Observation, hits: Hits) -> dict[str, str]:
    """Who an agent is, its memories with their short ids, and what it perceives in this tick.

    Pinned memories come first, then hot ones, then the rest, the oldest first.
    """
    who = [f"You are {seen.agent_id}.", persona_text(seen.persona)]
    parts = _perceived(seen)
    if seen.errors:  # what the simulation says, not what the agent lived through
        parts.append("What was wrong with your last actions:\n" + _lines(_counted(seen.errors)))
    if seen.answers:
        shown = shown_ids(seen, hits)
        parts += [_answer_text(answer, shown) for answer in seen.answers]
        parts.append(f"You may ask your memory {seen.asks_left} more times in this tick.")
    return {
        "persona": "\n\n".join(filter(None, who)),
        "memories": f"Your memories, each with its memory_id:\n{_remembered(hits)}",
        "situation": "\n\n".join(parts),
    }


def _perceived(seen: Observation) -> list[str]:
    parts = [f"Tick {seen.tick}."]
    if seen.text.strip():
        parts[-1] += f" What you see:\n{seen.text}"
    if seen.heard:
        parts.append("What you hear:\n" + _lines([remark.text for remark in seen.heard]))
    return parts


def shown_ids(seen: Observation, hits: Hits) -> dict[str, str]:
    """The ids that a prompt shows, and what they stand for.

    They are the last digits of ids. An id stands whole where another memory has the same digits:
    posts on a board are of other agents.
    """
    shown: dict[str, str] = {}
    for hit in (*_in_order(hits), *(hit for answer in seen.answers for hit in answer.hits)):
        identifier = hit.memory.id
        if shown.setdefault(short_id(identifier), identifier) != identifier:
            shown[identifier] = identifier
    return shown


def _in_order(hits: Hits) -> list[Hit]:
    """Pinned memories, hot ones, and the rest, each of them in the order in which they were made.

    What was there in the last tick then stands where it stood, in front of what is new.
    """

    def place(hit: Hit) -> tuple[bool, bool, str]:
        memory = hit.memory
        return memory.tier is not Tier.PINNED, memory.temperature is not Temperature.HOT, memory.id

    return sorted(hits, key=place)


def _remembered(hits: Hits) -> str:
    ordered = Hits(_in_order(hits))
    ordered.pinned_left_out = hits.pinned_left_out
    return _with_ids(ordered, shown_ids(Observation(""), hits))


def _with_ids(hits: Hits, shown: Mapping[str, str]) -> str:
    """The memories as an agent reads them, each line with its id in front."""
    lines = render(hits).split("\n")
    for place, hit in enumerate(hits):
        identifier = hit.memory.id
        short = short_id(identifier)
        name = short if shown[short] == identifier else identifier
        lines[place] = f"- {name} {lines[place].removeprefix('- ')}"
    return "\n".join(lines)


def _answer_text(answer: Answer, shown: Mapping[str, str]) -> str:
    asked = f"You asked your memory: {one_line(answer.ask.query)}\n"
    if answer.note:
        return f"{asked}It was refused: {one_line(answer.note)}"
    return f"{asked}It found:\n{_with_ids(answer.hits, shown)}"


def _lines(texts: Sequence[str]) -> str:
    """A list, each text on one line: a text may hold line ends."""
    return "\n".join(f"- {text if text.isprintable() else json.dumps(text)}" for text in texts)


def _counted(texts: Sequence[str]) -> list[str]:
    """Each text once, with how often it is there: a model repeats what it reads again and again."""
    counts = Counter(texts)
    return [text if count == 1 else f"{text} ({count} times)" for text, count in counts.items()]


def ask_again(messages: Messages, reply: str, problem: str) -> list[Mapping[str, str]]:
    """The same question, with the beginning of the last reply and what was wrong with it."""
    begun = one_line(reply.strip()[:_MOST_OF_A_REPLY]) or "(nothing)"
    wrong = (
        f"Your last reply was no use: {one_line(problem)}\nIt was: {begun}\n"
        "Reply again, in the form that was asked for."
    )
    *first, last = messages
    return [*first, {**last, "content": f"{last['content']}\n\n{wrong}"}]


# What a model is asked when it is an agent's turn in a conversation.


def talk_prompt(seen: Observation, hits: Hits, talk: Conversation) -> str:
    """Asks what an agent says in its turn, and whether it tells a memory."""
    others = ", ".join(each for each in talk.agents if each != seen.agent_id)
    about = f" about {one_line(talk.topic)}" if talk.topic.strip() else ""
    parts = [f"You are {seen.agent_id}. You talk with {others}{about}."]
    parts.append(f"Your memories, each with its memory_id:\n{_remembered(hits)}")
    parts += _perceived(seen)
    if talk.said:
        said = [f"{speaker}: {text}" for speaker, text in talk.said]
        parts.append("What was said so far:\n" + _lines(said))
    left = "the last turn" if talk.turns == 1 else f"your turn, of {talk.turns} that are left"
    parts.append(
        f"It is {left}. Say one or two sentences of your own, or nothing. If you want the others "
        "to remember a memory of yours as you do, give its memory_id; otherwise null.\n"
        'Reply with JSON and nothing else, in this form: {"say": "...", "memory_id": null}'
    )
    return "\n\n".join(parts)


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
