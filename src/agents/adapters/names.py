"""Free text as agent ids: what other frameworks call a user, a thread or a namespace.

A text that is an agent id stays as it is, but for an ``@`` that would be read as an escape. In any
other text, each byte of UTF-8 outside the alphabet becomes ``@`` and two hexadecimal digits:
``Ann Lee`` is ``Ann@20Lee``. Ids that begin with ``@@`` are the empty text, and texts that are
longer than an id may be: of those the id has the SHA-256, and the bank keeps the text, until its
``vacuum`` finds nothing that has the id any more.
"""

import hashlib
import re
from typing import TYPE_CHECKING, final

from ..engine.upkeep import DIRECTORY, LONG_NAME
from ..errors import InvalidInput
from ..memory.requests import check_text

if TYPE_CHECKING:
    from ..bank.memory_bank import MemoryBank

__all__ = ["DIRECTORY", "Names", "agent_id_of", "text_of"]

_EMPTY = "@@"
_LONGEST = 128
_ESCAPED = re.compile(r"[^A-Za-z0-9._@-]|\A\.|\A@(?=[^A-Za-z0-9._-])|@(?=[0-9A-F]{2})")
_ESCAPE = re.compile(r"(?:@[0-9A-F]{2})+")


def agent_id_of(text: str) -> str:
    """The agent id that stands for a text. Different texts have different ids."""
    check_text(text, "name")
    if not text:
        return _EMPTY
    escaped = _ESCAPED.sub(_escape, text)
    if len(escaped) <= _LONGEST:
        return escaped
    return f"{_EMPTY}{hashlib.sha256(text.encode()).hexdigest()}"


def text_of(agent_id: str) -> str | None:
    """The text that an agent id stands for; None if the id has only the text's hash."""
    if agent_id == _EMPTY:
        return ""
    if LONG_NAME.fullmatch(agent_id):
        return None
    return _ESCAPE.sub(_unescape, agent_id)


@final
class Names:
    """Maps free texts to agent ids and back; the bank keeps the texts that no id can hold."""

    def __init__(self, bank: "MemoryBank") -> None:
        self._bank = bank

    def agent_id(self, text: str) -> str:
        """The id that stands for a text. It changes nothing in the bank."""
        return agent_id_of(text)

    def keep(self, *texts: str) -> None:
        """Keep those of the texts that are longer than an id. Call it where the texts are used."""
        for text in texts:
            name = agent_id_of(text)
            if text_of(name) is None:
                directory = self._bank.agent(DIRECTORY)
                if not directory.history(name):  # an earlier one may have been undone
                    directory.add(name, key=name, temperature="cold", value=text)

    def text(self, agent_id: str) -> str:
        """The text that an agent id stands for."""
        text = self.known(agent_id)
        if text is None:
            raise InvalidInput(f"the bank does not know the text of the agent id {agent_id}")
        return text

    def known(self, agent_id: str) -> str | None:
        """The text that an agent id stands for; None if the bank does not know it."""
        text = text_of(agent_id)
        if text is None:
            for version in self._bank.agent(DIRECTORY).history(agent_id):
                return str(version.value)
        return text

    def texts(self) -> list[str]:
        """The texts of all agents of the bank that it knows, in the order of their ids."""
        found = [self.known(name) for name in self._bank.agents() if name != DIRECTORY]
        return [text for text in found if text is not None]


def _escape(found: re.Match[str]) -> str:
    return "".join(f"@{byte:02X}" for byte in found.group().encode())


def _unescape(found: re.Match[str]) -> str:
    """The characters of escaped bytes; bytes that are not UTF-8 stay as they are in the id."""
    try:
        return bytes.fromhex(found.group().replace("@", "")).decode()
    except UnicodeDecodeError:
        return found.group()
