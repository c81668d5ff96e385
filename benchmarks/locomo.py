"""LoCoMo's dialogues as memories and questions, and what a ranking of memories is worth.

Every turn is one memory, and every question with evidence is one query, whose relevant memories
are the turns that the evidence names.
"""

import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
DEPTH = 50
"""How far down a ranking is looked at."""

_SESSION = re.compile(r"session_([0-9]+)")
_EVIDENCE = re.compile(r"D:?([0-9]+):0*([0-9]+)")


class BadData(ValueError):
    """The file can't be read, or is not in LoCoMo's format."""


class Turn(NamedTuple):
    """What somebody said, as a memory."""

    text: str
    """With the day in front: ``[8 May, 2023] Ann: I won! [image: a photo of a cup]``."""
    session: str
    speaker: str


class Question(NamedTuple):
    """A question, and the places of the turns that answer it."""

    text: str
    evidence: frozenset[int]
    category: str
    sessions: frozenset[str] = frozenset()
    """The sessions that answer it, where the data names them."""


class Conversation(NamedTuple):
    """Turns in the order of time, and questions about them."""

    name: str
    turns: list[Turn]
    questions: list[Question]


class Scores(NamedTuple):
    """What a ranking is worth, from 0 to 1 each."""

    recall_5: float
    recall_10: float
    recall_20: float
    mrr: float
    """One divided by the rank of the first relevant memory; 0 beyond :data:`DEPTH`."""
    ndcg_10: float


# Reading


def load(path: Path) -> Any:
    """The JSON of a file, or :class:`BadData`."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise BadData(f"can't read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadData(f"{path} is not JSON: {error}") from error


def read(data: Any, path: Path) -> list[Conversation]:
    """The conversations of JSON in the format of ``locomo10.json``, or :class:`BadData`."""
    if not isinstance(data, list) or not data:
        raise BadData(f"{path} is not in LoCoMo's format: it is not a list of conversations")
    try:
        conversations = [_conversation(each, f"conversation {n}") for n, each in enumerate(data, 1)]
    except BadData as error:
        raise BadData(f"{path} is not in LoCoMo's format: {error}") from error
    names = [conversation.name for conversation in conversations]
    if len(set(names)) < len(names):
        raise BadData(f"{path} has two conversations of one sample_id")
    if not any(conversation.questions for conversation in conversations):
        raise BadData(f"{path} has no question whose evidence is among its turns")
    return conversations


def merged(conversations: Sequence[Conversation]) -> Conversation:
    """All of them as one; a session's name begins with its conversation's, so none are mixed up."""
    turns: list[Turn] = []
    questions: list[Question] = []
    for name, own_turns, own_questions in conversations:
        questions += [
            question._replace(
                evidence=frozenset(len(turns) + n for n in question.evidence),
                sessions=frozenset(f"{name}/{session}" for session in question.sessions),
            )
            for question in own_questions
        ]
        turns += [turn._replace(session=f"{name}/{turn.session}") for turn in own_turns]
    return Conversation("merged", turns, questions)


def _conversation(data: Any, where: str) -> Conversation:
    said = field(data, "conversation", dict, where)
    turns: list[Turn] = []
    places: dict[str, int] = {}
    for key in sorted(filter(_SESSION.fullmatch, said), key=_number):
        day = field(said, f"{key}_date_time", str, where).rpartition(" on ")[2]
        for n, turn in enumerate(field(said, key, list, where), 1):
            at = f"{where}, {key}, turn {n}"
            places[field(turn, "dia_id", str, at)] = len(turns)
            turns.append(_turn(turn, key, day, at))
    if not turns:
        raise BadData(f"{where} has no turns")
    questions = []
    for n, entry in enumerate(field(data, "qa", list, where), 1):
        question = _question(entry, places, f"{where}, question {n}")
        if question.evidence:
            questions.append(question)
    return Conversation(field(data, "sample_id", str, where), turns, questions)


def _turn(data: Any, session: str, day: str, where: str) -> Turn:
    speaker = field(data, "speaker", str, where)
    text = f"[{day}] {speaker}: {data.get('text') or ''}"
    if data.get("blip_caption"):
        text += f" [image: {data['blip_caption']}]"
    return Turn(text, session, speaker)


def _question(data: Any, places: dict[str, int], where: str) -> Question:
    text = field(data, "question", str, where)
    category = CATEGORIES.get(field(data, "category", int, where))
    if category is None:
        raise BadData(f"{where} has an unknown category, {data['category']}")
    named = field(data, "evidence", list, where)
    evidence = set()
    # Some of the published annotations are "D8:6; D9:17", "D:11:26" or "D30:05".
    for part in re.split(r"[;,\s]+", " ".join(map(str, named))):
        match = _EVIDENCE.fullmatch(part)
        if match and (place := places.get(f"D{match[1]}:{match[2]}")) is not None:
            evidence.add(place)
    return Question(text, frozenset(evidence), category)


def field(data: Any, key: str, kind: type, where: str) -> Any:
    """What a mapping of the file has under a key, or :class:`BadData`."""
    if not isinstance(data, dict) or not isinstance(data.get(key), kind):
        raise BadData(f'{where} has no "{key}" of type {kind.__name__}')
    return data[key]


def _number(session: str) -> int:
    return int(session.removeprefix("session_"))


# Measuring


def scores(ranking: Iterable[int], evidence: frozenset[int]) -> Scores:
    """What a ranking, best first, is worth to a question with this evidence."""
    best = list(dict.fromkeys(ranking))[:DEPTH]
    relevant = [place in evidence for place in best]
    ideal = sum(_gain(rank) for rank in range(min(10, len(evidence))))
    return Scores(
        *(sum(relevant[:depth]) / len(evidence) for depth in (5, 10, 20)),
        mrr=1 / (relevant.index(True) + 1) if True in relevant else 0.0,
        ndcg_10=sum(_gain(rank) for rank, hit in enumerate(relevant[:10]) if hit) / ideal,
    )


def session_recall(
    ranking: Iterable[int], turns: Sequence[Turn], wanted: frozenset[str], depth: int = 5
) -> float:
    """The share of these sessions among the first ``depth`` that a ranking of turns names."""
    named = dict.fromkeys(turns[place].session for place in list(ranking)[:DEPTH])
    return len(wanted.intersection(list(named)[:depth])) / len(wanted)


def mean(many: Sequence[Scores]) -> Scores:
    """The average of each; every question counts the same."""
    return Scores(*(sum(column) / len(many) for column in zip(*many, strict=True)))


def _gain(rank: int) -> float:
    return 1 / math.log2(rank + 2)
