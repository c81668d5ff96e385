"""The language models that a policy can ask."""

from typing import final

from ...storage.mem0.models import ChatModel
from .model import Question, Reply


@final
class Mem0Model:
    """Any LLM that mem0 has. It is asked for JSON, and counts no tokens."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat

    def prepare(self) -> None:
        """Make the client, unless it is there."""
        self._chat.prepare()

    def reply(self, question: Question) -> Reply:
        """The text of the answer; ChatFailed if there is none."""
        # Copies, since a provider may change the messages.
        text = self._chat.reply([dict(message) for message in question.messages])
        return Reply(text, model=self._chat.name)
