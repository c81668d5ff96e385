"""LongMemEval's chats as memories and questions, in the shapes of :mod:`locomo`.

Each question has chats of its own. Every turn of them, of the user and of the assistant, is one
memory. The relevant memories are the turns with ``has_answer``, and the relevant sessions those
that ``answer_session_ids`` names. Questions of abstention are left out, as in the paper: nothing
answers them.
"""

from pathlib import Path
from typing import Any

from locomo import BadData, Conversation, Question, Turn, field


def is_format(data: Any) -> bool:
    """Whether parsed JSON is in the format of ``longmemeval_s.json``, or meant to be."""
    return bool(
        isinstance(data, list)
        and data
        and isinstance(data[0], dict)
        and data[0].keys() & {"haystack_sessions", "question_id"}
    )


def conversations(data: list[Any], path: Path) -> list[Conversation]:
    """The chats of each question, or :class:`BadData`."""
    try:
        read = [_conversation(each, f"question {n}") for n, each in enumerate(data, 1)]
    except BadData as error:
        raise BadData(f"{path} is not in LongMemEval's format: {error}") from error
    asked = [each for each in read if each.questions]
    if not any(question.evidence for each in asked for question in each.questions):
        raise BadData(f"{path} has no question whose answer is among its turns")
    if len({each.name for each in asked}) < len(asked):
        raise BadData(f"{path} has two questions of one question_id")
    return asked


def _conversation(data: Any, where: str) -> Conversation:
    name = field(data, "question_id", str, where)
    sessions = field(data, "haystack_sessions", list, where)
    ids = _texts(data, "haystack_session_ids", len(sessions), where)
    dates = _texts(data, "haystack_dates", len(sessions), where)
    turns: list[Turn] = []
    evidence = set()
    for session, date, said in zip(ids, dates, sessions, strict=True):
        if not isinstance(said, list):
            raise BadData(f"{where}, session {session} is not a list of turns")
        day = date.rpartition(" ")[0] or date
        for n, turn in enumerate(said, 1):
            at = f"{where}, session {session}, turn {n}"
            speaker, text = field(turn, "role", str, at), field(turn, "content", str, at)
            if turn.get("has_answer"):
                evidence.add(len(turns))
            turns.append(Turn(f"[{day}] {speaker}: {text}", session, speaker))
    question = Question(
        field(data, "question", str, where),
        frozenset(evidence),
        field(data, "question_type", str, where),
        frozenset(map(str, field(data, "answer_session_ids", list, where))) & set(ids),
    )
    is_asked = not name.endswith("_abs") and (question.evidence or question.sessions)
    return Conversation(name, turns, [question] if is_asked else [])


def _texts(data: Any, key: str, count: int, where: str) -> list[str]:
    texts: list[str] = field(data, key, list, where)
    if len(texts) != count or not all(isinstance(each, str) for each in texts):
        raise BadData(f'{where} has no "{key}" with a text for each of {count} sessions')
    return texts
