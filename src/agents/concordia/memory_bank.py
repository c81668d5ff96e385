"""Concordia's ``AssociativeMemoryBank``, with TierMem behind it. It imports no Concordia."""

import hashlib
import json
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from .. import TIER_NAMES, AgentMemory, Memory, MemoryBank, Tier
from ..adapting import TierLike, bank_of, embedder_of, glance, parse_tier, remove, with_vectors
from ..errors import EmbedderError, InvalidInput

if TYPE_CHECKING:
    import pandas as pd

FORMATIVE = "[formative]"
"""The tag of a formative memory, such as Concordia's own ``[observation]``."""
TIERS: Mapping[str, TierLike] = {FORMATIVE: Tier.PINNED}
"""The tiers of tags, unless others are given."""
_WHOLE = "concordia_text"
"""The name, in a memory's value, of a text that can't be the memory's content."""
_MOST_BYTES = 1 << 20
_MOST_TOKENS = 1 << 40


@final
class SentenceEmbedder:
    """A function from a text to a vector, as Concordia has it, as the embedder of a bank.

    ``name`` names the model. A bank refuses to be opened with an embedder of another name.
    """

    def __init__(
        self,
        function: Callable[[str], ArrayLike] | None,
        name: str = "concordia",
        *,
        dims: int | None = None,
    ) -> None:
        self.function = function
        self.name = name
        self.known: dict[str, Sequence[float]] = {}
        """Vectors of texts that need not be embedded again."""
        self._dims = dims

    @property
    def dims(self) -> int:
        """The length of its vectors: the function is asked once."""
        if self._dims is None:
            self._dims = np.asarray(self._embed("How long is a vector?")).size
        return self._dims

    def embed(self, texts: Sequence[str], /) -> ArrayLike:
        """One row for each text."""
        return np.array(
            [self.known[text] if text in self.known else self._embed(text) for text in texts],
            np.float64,
        )

    def _embed(self, text: str) -> ArrayLike:
        if self.function is None:
            raise EmbedderError("there is no function to embed texts with")
        return self.function(text)


class _Row(NamedTuple):
    """A memory in a state."""

    text: str
    vector: Sequence[float]
    tier: Tier


@final
class AssociativeMemoryBank:
    """The memories of one entity, in place of Concordia's class of the same name.

    ``memories`` are those of an agent of a bank, such as ``bank.agent("alice")``. Then the bank
    embeds and ranks. Without them, the memories are in a bank of their own in this process, which
    ranks by similarity alone, as Concordia does.

    ``tiers`` says which tier a memory has, by a tag that its text contains: by default, formative
    memories are pinned. The first tag that is found counts; without any, the tier is normal.
    """

    __slots__ = (
        "_agent",
        "_allow_duplicates",
        "_known",
        "_memory_bank_lock",
        "_seen",
        "_sentences",
        "_tiers",
    )

    def __init__(
        self,
        sentence_embedder: Callable[[str], ArrayLike] | None = None,
        allow_duplicates: bool = False,
        *,
        memories: AgentMemory | None = None,
        tiers: Mapping[str, TierLike] = TIERS,
    ) -> None:
        self._memory_bank_lock = threading.Lock()
        self._sentences = SentenceEmbedder(sentence_embedder)
        self._allow_duplicates = allow_duplicates
        self._tiers = {tag: parse_tier(tier) for tag, tier in tiers.items()}
        self._agent = memories
        self._known: set[str] = set()
        """The texts of the memories, when :func:`glance` gave ``_seen``."""
        self._seen: Hashable = None

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """The bank by value: Concordia compares components field by field through it."""
        return {
            "_allow_duplicates": self._allow_duplicates,
            "_embedder": self._sentences.function,
            "_tiers": self._tiers,
            **self.get_state(),
        }

    # Storing

    def add(self, text: str) -> None:
        """Store a text, with spaces for its line breaks, unless it is stored already."""
        self.extend([text])

    def extend(self, texts: Iterable[str]) -> None:
        """Store texts as :meth:`add` does, in one commit."""
        with self._memory_bank_lock:
            agent = self._opened("add")
            new = list(map(_one_line, texts))
            with bank_of(agent).transaction():
                if not self._allow_duplicates:
                    new = self._unknown(agent, list(dict.fromkeys(new)))
                    self._known.update(new)
                agent.add_many([self._item(agent, text, self._tier(text)) for text in new])
                self._seen = glance(agent)

    def set_embedder(self, embedder: Callable[[str], ArrayLike]) -> None:
        """Embed with another function from now on; a bank of yours keeps its own embedder."""
        self._sentences.function = embedder

    # Reading

    def __len__(self) -> int:
        """The number of memories."""
        return 0 if self._agent is None else self._agent.count()

    def retrieve_associative(self, query: str, k: int = 1) -> Sequence[str]:
        """The memories that matter for ``query``: pinned ones first, even beyond ``k``."""
        with self._memory_bank_lock:
            agent = self._opened("retrieve_associative")
        hits = agent.search(query, _positive(k), context_tokens=_MOST_TOKENS)
        return [_text(hit.memory) for hit in hits]

    def retrieve_recent(self, k: int = 1) -> Sequence[str]:
        """The newest ``k`` memories, oldest first."""
        return self.get_all_memories_as_text()[-_positive(k) :]

    def scan(self, selector_fn: Callable[[str], bool]) -> Sequence[str]:
        """The memories that the function selects, oldest first."""
        return [text for text in self.get_all_memories_as_text() if selector_fn(text)]

    def get_all_memories_as_text(self) -> Sequence[str]:
        """All memories, oldest first."""
        return [_text(memory) for memory in self._memories()]

    def get_data_frame(self) -> "pd.DataFrame":
        """All memories, oldest first: columns ``text`` and ``embedding``, of length 1."""
        import pandas as pd

        rows = [(row.text, np.array(row.vector)) for row in self._rows()]
        return pd.DataFrame(rows, columns=["text", "embedding"])

    # State

    def get_state(self) -> dict[str, Any]:
        """All memories as JSON, in the form of the original, with a list of tiers added."""
        rows = self._rows()
        frame = {
            "text": {str(place): row.text for place, row in enumerate(rows)},
            "embedding": {str(place): row.vector for place, row in enumerate(rows)},
        }
        return {
            "stored_hashes": sorted({_digest(row.text) for row in rows}),
            "memory_bank": json.dumps(frame, ensure_ascii=False),
            "tiers": [TIER_NAMES[row.tier] for row in rows],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Have the memories of a state and no other, in one commit; states of the original too.

        Memories that are the state's already stay as they are, up to the first that differs.
        """
        rows = _rows_of(state, self._tier)
        with self._memory_bank_lock:
            if self._agent is None and not rows:
                return
            agent = self._opened("set_state", dims=len(rows[0].vector) if rows else 1)
            with bank_of(agent).transaction():
                self._restore(agent, rows)

    def _restore(self, agent: AgentMemory, rows: list[_Row]) -> None:
        have = agent.all()
        same = 0
        while same < min(len(have), len(rows)) and _text(have[same]) == rows[same].text:
            same += 1
        for memory in have[same:]:
            remove(agent, memory)
        for memory, row in zip(have[:same], rows, strict=False):
            if memory.tier is not row.tier:
                agent.set_tier(memory.id, row.tier)
        new = rows[same:]
        embedder = embedder_of(agent)
        if isinstance(embedder, SentenceEmbedder):
            embedder.known = {_content(agent, row.text): row.vector for row in new}
        try:
            agent.add_many([self._item(agent, row.text, row.tier) for row in new])
        finally:
            if isinstance(embedder, SentenceEmbedder):
                embedder.known = {}

    # Inside

    def _opened(self, call: str, *, dims: int | None = None) -> AgentMemory:
        """The agent's memories; a bank is made for them where none were given.

        ``dims`` says that the vectors are known, and how long they are.
        """
        agent, embedder = self._agent, self._sentences
        is_own = agent is None or embedder_of(agent) is embedder
        if is_own and embedder.function is None and dims is None:
            raise InvalidInput(f"Embedder must be set before calling `{call}` method.")
        if agent is None:
            if dims is not None:
                embedder = self._sentences = SentenceEmbedder(embedder.function, dims=dims)
            settings = {"max_content_bytes": _MOST_BYTES}
            bank = MemoryBank.ephemeral(preset="vector", embedder=embedder, memory=settings)
            agent = self._agent = bank.agent("entity")
        return agent

    def _memories(self) -> list[Memory]:
        return [] if self._agent is None else self._agent.all()

    def _rows(self) -> list[_Row]:
        if self._agent is None:
            return []
        memories, vectors = with_vectors(self._agent)
        return [
            _Row(_text(memory), vector, memory.tier)
            for memory, vector in zip(memories, vectors.tolist(), strict=True)
        ]

    def _unknown(self, agent: AgentMemory, texts: list[str]) -> list[str]:
        """Those of these texts that are not stored.

        Other code may have changed the memories, so a text is left out after another look only.
        """
        if glance(agent) != self._seen or not self._known.isdisjoint(texts):
            self._known = set(map(_text, agent.all()))
        return [text for text in texts if text not in self._known]

    def _tier(self, text: str) -> Tier:
        return next((tier for tag, tier in self._tiers.items() if tag in text), Tier.NORMAL)

    def _item(self, agent: AgentMemory, text: str, tier: Tier) -> tuple[object, ...]:
        content = _content(agent, text)
        if content == text:
            return text, tier
        return content, tier, None, {"value": {_WHOLE: text}}


def _one_line(text: object) -> str:
    if not isinstance(text, str):
        raise InvalidInput(f"a memory is a text, not {text!r:.80}")
    return text.replace("\n", " ")


def _content(agent: AgentMemory, text: str) -> str:
    """What a memory has as its content: the text, but for a blank one and a very long one."""
    if not text.strip():
        return "(blank)"
    most = bank_of(agent).settings.memory.max_content_bytes
    data = text.encode(errors="replace")
    return text if len(data) <= most else data[:most].decode(errors="ignore")


def _text(memory: Memory) -> str:
    value = memory.value
    return str(value[_WHOLE]) if isinstance(value, dict) and _WHOLE in value else memory.content


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _positive(k: int) -> int:
    if k <= 0:
        raise InvalidInput("Limit must be positive.")
    return k


def _rows_of(state: Mapping[str, Any], tier_of: Callable[[str], Tier]) -> list[_Row]:
    """The memories of a state, or :class:`InvalidInput`."""
    try:
        frame = json.loads(state["memory_bank"])
        places = sorted(frame["text"], key=int)
        texts = [str(frame["text"][place]) for place in places]
        vectors = np.array([frame["embedding"][place] for place in places], np.float64)
        if texts and (vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all()):
            raise ValueError("a vector is a list of numbers, as long as the others")
        kept = state.get("tiers")  # the original has no tiers
        tiers = list(map(tier_of, texts) if kept is None else map(parse_tier, kept))
        if len(tiers) != len(texts):
            raise ValueError(f"{len(texts)} texts and {len(tiers)} tiers")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"that is not a state of a memory bank: {error!r:.80}") from error
    return list(map(_Row, texts, vectors.tolist(), tiers))
