"""What agents are asked in an interview: typed questions, how they are put, how answers are read.

An answer is a choice among options, a place on a scale, a number or a text.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ...config.yaml_files import read_file
from ...errors import ConfigError, InvalidInput
from ...memory.context import render
from ...memory.records import Hits
from . import check_keepable
from .model import Question
from .replies import object_of, object_schema

Answer = str | float
KINDS = ("text", "choice", "scale", "number")
_LONGEST_QUESTION = 4_000
_LONGEST_ANSWER = 2_000
_MOST_OPTIONS = 50
_MOST_QUESTIONS = 200
_HINT = "a question is {ask: '…'} with choice: [A, B], scale: [1, 7], number: true, or none of them"


class Asked(NamedTuple):
    """A question of an interview; :func:`asked` makes and checks one."""

    name: str
    text: str
    kind: str = "text"
    options: tuple[str, ...] = ()
    """Of a choice."""
    low: int = 0
    high: int = 0
    """The ends of a scale, both included."""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of a good reply."""
        answer: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": _LONGEST_ANSWER}
        if self.kind == "choice":
            answer = {"type": "string", "enum": list(self.options)}
        elif self.kind == "scale":
            answer = {"type": "integer", "minimum": self.low, "maximum": self.high}
        elif self.kind == "number":
            answer = {"type": "number"}
        return object_schema({"answer": answer})

    def put(self, agent: str, tick: int, persona: str, hits: Hits) -> Question:
        """The question to an agent with its memories; ``persona`` says who it is, if anything."""
        words = {
            "choice": f'{{"answer": "..."}}, with one of: {", ".join(self.options)}',
            "scale": f'{{"answer": N}}, with a whole number from {self.low} to {self.high}',
            "number": '{"answer": N}, with a number',
            "text": '{"answer": "..."}, in a few sentences',
        }
        system = (
            "You are interviewed. Answer as yourself, by what you remember; nobody else learns "
            "what you say."
        )
        user = (
            f"You are {agent}. Your memories:\n{render(hits)}\n\nIt is after tick {tick}. The "
            f"question:\n{self.text}\n\nReply with JSON and nothing else: {words[self.kind]}"
        )
        messages = [
            {"role": "system", "content": "\n\n".join(filter(None, (persona, system)))},
            {"role": "user", "content": user},
        ]
        return Question(messages, self.schema, "interview")

    def read(self, reply: str) -> list[Any]:
        """The answer in a reply, in a list; ValueError if it has none of this kind."""
        value = object_of(reply)
        if "answer" not in value:
            raise ValueError(f'it is not an object with an "answer": {value!r:.60}')
        return [self._checked(value["answer"])]

    def _checked(self, answer: object) -> Answer:
        if self.kind in ("scale", "number"):
            return self._number(answer)
        if not isinstance(answer, str) or not answer.strip():
            raise ValueError(f"the answer is no text: {answer!r:.60}")
        check_keepable(answer)
        text = answer.strip()
        if self.kind == "text":
            return text[:_LONGEST_ANSWER]
        same = [each for each in self.options if each.casefold() == text.casefold()]
        if text not in self.options and len(same) != 1:
            raise ValueError(f"{text!r:.60} is none of {', '.join(self.options):.200}")
        return text if text in self.options else same[0]

    def _number(self, answer: object) -> float:
        number = math.nan
        if isinstance(answer, int | float | str) and not isinstance(answer, bool):
            with suppress(ValueError, OverflowError):
                number = float(answer)
        if not math.isfinite(number):
            raise ValueError(f"the answer is no number: {answer!r:.60}")
        if self.kind == "number":
            return number
        if number != int(number) or not self.low <= number <= self.high:
            raise ValueError(f"{number:g} is not on the scale from {self.low} to {self.high}")
        return int(number)


def asked(
    text: object,
    *,
    name: object = "answer",
    choice: object = None,
    scale: object = None,
    number: object = False,
) -> Asked:
    """A question, checked; without a choice, a scale or a number the answer is a text."""
    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST_QUESTION:
        raise InvalidInput(
            f"a question is a text of at most {_LONGEST_QUESTION} letters, not {text!r:.60}",
            hint=_HINT,
        )
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > 60:
        raise InvalidInput(f"a question's name is a short text, not {name!r:.80}", hint=_HINT)
    try:
        check_keepable([text, name])
    except ValueError as error:
        raise InvalidInput(f"a question can't be asked: {error}", hint=_HINT) from None
    given = [each for each in (choice, scale, number) if each is not None and each is not False]
    if len(given) > 1:
        raise InvalidInput(
            f"the answer to {text!r:.60} is of one kind", hint="give choice, scale or number"
        )
    if choice is not None:
        return Asked(name, text, "choice", _options(choice))
    if scale is not None:
        return Asked(name, text, "scale", (), *_ends(scale))
    if number not in (False, True, None):
        raise InvalidInput(f"number is true or false, not {number!r:.40}", hint=_HINT)
    return Asked(name, text, "number" if number else "text")


def _options(choice: object) -> tuple[str, ...]:
    if isinstance(choice, str) or not isinstance(choice, Sequence):
        raise InvalidInput(f"choice is a list of texts, not {choice!r:.60}", hint=_HINT)
    options = tuple(choice)
    texts = [each for each in options if isinstance(each, str) and each.strip() == each != ""]
    if len(texts) < len(options) or not 2 <= len(set(texts)) == len(texts) <= _MOST_OPTIONS:
        raise InvalidInput(
            f"choice is a list of 2 to {_MOST_OPTIONS} different texts, not {choice!r:.80}",
            hint='YAML reads yes and no as true and false: write "yes" and "no"',
        )
    return options


def _ends(scale: object) -> tuple[int, int]:
    ends = tuple(scale) if isinstance(scale, Sequence) and not isinstance(scale, str) else ()
    low, high = ends if len(ends) == 2 else (None, None)
    if type(low) is not int or type(high) is not int or not -1000 <= low < high <= 1000:
        raise InvalidInput(
            f"scale is two whole numbers from -1000 to 1000, the lower first: not {scale!r:.60}",
            hint=_HINT,
        )
    return low, high


def read_questions(path: Path) -> list[Asked]:
    """The questions in a YAML file; ConfigError if one of them can't be asked."""
    document = read_file(path)
    value = document.value
    listed = value.get("questions") if isinstance(value, dict) and len(value) == 1 else value
    if not isinstance(listed, list) or not 1 <= len(listed) <= _MOST_QUESTIONS:
        raise ConfigError(
            f"{document.source}: a list of 1 to {_MOST_QUESTIONS} questions is needed",
            hint=_HINT,
        )
    questions: list[Asked] = []
    for place, each in enumerate(listed):
        where = document.place((*(("questions",) if listed is not value else ()), place))
        own: Mapping[str, Any] = {"ask": each} if isinstance(each, str) else each
        known = ("ask", "name", "choice", "scale", "number")
        unknown = [key for key in own if key not in known] if isinstance(own, dict) else [each]
        if unknown:
            raise ConfigError(f"{where}: {unknown[0]!r:.60} is no part of a question", hint=_HINT)
        more = {key: own[key] for key in known[2:] if key in own}
        try:
            name = own.get("name", f"question {place + 1}")
            questions.append(asked(own.get("ask"), name=name, **more))
        except InvalidInput as error:
            raise ConfigError(f"{where}: {error.why}", hint=error.hint) from None
    names = [each.name for each in questions]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(
            f"{document.source}: two questions have the name {twice!r:.60}",
            hint="give each question another name",
        )
    return questions
