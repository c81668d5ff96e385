"""What a language model is to those who ask it: a question goes in, a reply comes out."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

Messages: TypeAlias = Sequence[Mapping[str, str]]
"""Chat messages, each with a role and a content."""

Kind: TypeAlias = Literal[
    "decision", "flush", "questions", "insights", "importance", "talk", "interview"
]
"""What a question is for."""


class Question(NamedTuple):
    """What a model is asked once."""

    messages: Messages
    schema: Mapping[str, Any] | None = None
    """The JSON schema of a good reply; None if any JSON, or any text, will do."""
    kind: Kind = "decision"
    agent: str = ""
    """On whose behalf it is asked; a turn sets it."""


class Reply(NamedTuple):
    """What a model answered. A model that does not count gives None for what it does not know."""

    text: str
    read: int | None = None
    """The tokens of the prompt, cached ones included."""
    cached: int | None = None
    """The tokens of the prompt that the model had read before."""
    written: int | None = None
    """The tokens of the answer."""
    seconds: float | None = None
    """How long it took. It belongs to the record of a call, and never decides anything."""
    model: str | None = None
    """The name of the model, by which ``llm.prices`` knows what a token costs."""


class Model(Protocol):
    """A language model; the classes of ``clients.py`` are some."""

    def prepare(self) -> None:
        """Called before the first question. An error ends the run."""

    def reply(self, question: Question) -> Reply:
        """The reply, or ChatFailed. Many threads call it at once; a call may never return."""


@runtime_checkable
class Paced(Protocol):
    """A model that may be asked so often, and not more."""

    def wait(self, question: Question) -> float:
        """Keep a place for a question, which is then asked after so many seconds."""
