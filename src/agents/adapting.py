"""What adapters are made with: one agent's memories as another framework's memory.

An adapter needs this module, ``tiermem`` and ``tiermem.errors``, and no other. It is given
``bank.agent("alice")``, and translates between a framework's calls and the agent's.

Frameworks have free texts for users, threads and namespaces. :func:`agent_id_of` makes agent ids
of them. A text that is an agent id stays as it is, but for an ``@`` that would be read as an
escape. In any other text, each byte of UTF-8 outside the alphabet becomes ``@`` and two hexadecimal
digits: ``Ann Lee`` is ``Ann@20Lee``. Ids that begin with ``@@`` are the empty text, and texts that
are longer than an id may be: of those the id has the SHA-256, and the bank keeps the text, until
its ``vacuum`` finds nothing that has the id any more. The ids of agents in a project or an
environment begin so as well: no text stands for them, and they stand for themselves.
"""

import hashlib
import re
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from typing import Concatenate, ParamSpec, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from .bank.agent_memory import AgentMemory
from .bank.async_bank import AsyncAgentMemory
from .bank.memory_bank import MemoryBank
from .engine.upkeep import DIRECTORY, LONG_NAME
from .errors import InvalidInput, InvalidMetadata, MemoryNotFound
from .memory.context import line, render
from .memory.records import KEY, VALUE, Hits, Memory, Scalar, shown
from .memory.requests import check_metadata, check_text, check_whole
from .memory.scopes import NOWHERE, scope_of
from .memory.sources import EVIDENCE, SOURCE
from .memory.tiers import TierLike, parse_tier
from .packages import needed
from .simulation.policies.cassette import Cassette, Exchange, hash_prompt
from .storage.embedding import Embedder, unit

__all__ = [
    "DIRECTORY",
    "Cassette",
    "EitherMemory",
    "Exchange",
    "Names",
    "Scalar",
    "TierLike",
    "agent_id_of",
    "bank_of",
    "check_whole",
    "clear",
    "count_tokens",
    "embedder_of",
    "fitted",
    "flat",
    "given_metadata",
    "glance",
    "hash_prompt",
    "in_mind",
    "in_turn",
    "line",
    "needed",
    "parse_tier",
    "remove",
    "render",
    "shown",
    "text_of",
    "with_vectors",
]

# Names of agents

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
    if scope_of(agent_id) != NOWHERE:
        return agent_id
    return _ESCAPE.sub(_unescape, agent_id)


@final
class Names:
    """Maps free texts to agent ids and back; the bank keeps the texts that no id can hold."""

    def __init__(self, bank: MemoryBank) -> None:
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
        texts = [self.known(name) for name in self._bank.agents() if name != DIRECTORY]
        return [text for text in texts if text is not None]


def _escape(match: re.Match[str]) -> str:
    return "".join(f"@{byte:02X}" for byte in match.group().encode())


def _unescape(match: re.Match[str]) -> str:
    """The characters of escaped bytes; bytes that are not UTF-8 stay as they are in the id."""
    try:
        return bytes.fromhex(match.group().replace("@", "")).decode()
    except UnicodeDecodeError:
        return match.group()


# One agent's memories

P = ParamSpec("P")
T = TypeVar("T")
EitherMemory = AgentMemory | AsyncAgentMemory
"""``bank.agent("alice")``, of a ``MemoryBank`` or of an ``AsyncMemoryBank``."""
_OWN = frozenset({EVIDENCE, KEY, SOURCE, VALUE})
"""What the bank itself keeps among a memory's metadata."""


async def in_turn(
    memories: EitherMemory,
    function: Callable[Concatenate[AgentMemory, P], T],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Call ``function`` with the memories: here, or in the thread of an ``AsyncMemoryBank``."""
    if isinstance(memories, AsyncAgentMemory):
        return await memories.run(function, *args, **kwargs)
    return function(memories, *args, **kwargs)


def bank_of(memories: AgentMemory) -> MemoryBank:
    """The bank that an agent's memories are in: its folder, settings and transactions."""
    return MemoryBank(memories.engine)


def in_mind(memories: AgentMemory, query: str, limit: int) -> Hits:
    """What the agent should have in mind: the memories of ``get_relevant_memories``."""
    return bank_of(memories).context_many([(memories.agent_id, query)], limit)[0]


def remove(memories: AgentMemory, memory: Memory) -> None:
    """Delete a memory, pinned or not: other libraries know no pinned memories.

    One that was pinned past its end expires with its pin.
    """
    memories.unpin(memory.id)
    with suppress(MemoryNotFound):
        memories.delete(memory.id)


def clear(memories: AgentMemory) -> None:
    """Delete all memories of the agent, pinned ones too, but for its notes, in one commit."""
    with bank_of(memories).transaction():
        for memory in memories.all():
            if memory.kind != "note":
                remove(memories, memory)


def fitted(memories: AgentMemory, text: str) -> str:
    """The beginning of a text that a memory can have as its content."""
    most = bank_of(memories).settings.memory.max_content_bytes
    return text.encode()[:most].decode(errors="ignore")


def flat(metadata: Mapping[str, object]) -> dict[str, Scalar]:
    """The entries that can be metadata of a memory, for filters."""
    kept: dict[str, Scalar] = {}
    for name, value in metadata.items():
        if name not in _OWN:
            with suppress(InvalidMetadata):
                kept.update(check_metadata({name: value}) or {})
    return kept


def given_metadata(memory: Memory) -> dict[str, Scalar]:
    """The metadata that a caller gave a memory."""
    return {name: value for name, value in memory.metadata.items() if name not in _OWN}


def count_tokens(memories: AgentMemory, text: str) -> int:
    """How many tokens a text has, as the bank counts them."""
    return memories.engine.count_tokens(text)


def embedder_of(memories: AgentMemory) -> Embedder:
    """The embedder that the bank was opened with."""
    return memories.engine.embedder.embedder


def with_vectors(memories: AgentMemory) -> tuple[list[Memory], NDArray[np.float32]]:
    """The agent's memories, oldest first, and for each a vector of length 1, as a row."""
    engine = memories.engine
    with engine.using():
        kept, state = memories.all(), engine.state
        block = state.block(memories.agent_id)
        resident = block.vectors()
        rows = [(memory.sequence, block.row_of(memory.sequence)) for memory in kept]
        vectors = [
            state.vector(memories.agent_id, sequence) if row is None else resident[row]
            for sequence, row in rows
        ]
    if not vectors:
        return [], np.empty((0, engine.embedder.dims), np.float32)
    return kept, unit(np.stack(vectors))


def glance(memories: AgentMemory) -> Hashable:
    """What is never the same again when a memory of the agent came, or came back.

    It is the agent's columns, which are others after changes were undone, the number of its next
    memory, and the sum of the hashes over its memories that are cold, archived or deleted.
    """
    block = memories.engine.state.block(memories.agent_id)
    return block, block.next_sequence, block.shelf_sum
