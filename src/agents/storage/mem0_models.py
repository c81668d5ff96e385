"""mem0's embedders and its LLM extraction."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from agents.config import EmbedderSettings, LlmSettings
from agents.errors import EmbedderError, ExtractionError, InvalidInput
from agents.storage.mem0_store import import_mem0

__all__ = ["Extractor", "Mem0Embedder", "Message", "as_messages"]

Message = Mapping[str, str]


class Mem0Embedder:
    """Any embedder that mem0 has, by its name and config."""

    def __init__(self, settings: EmbedderSettings, dims: int | None) -> None:
        self._settings = settings
        self._dims = dims
        self._model: Any = None

    @property
    def name(self) -> str:
        """Provider and model."""
        return f"mem0/{self._settings.provider}/{self._settings.config.get('model', 'default')}"

    @property
    def dims(self) -> int:
        """The length of its vectors; found out by embedding a word, if the bank doesn't know."""
        if self._dims is None:
            self._dims = len(self.embed(["dimensions"])[0])
        return self._dims

    def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        """One vector per text, in one call where the provider can."""
        try:
            if self._model is None:
                factory = import_mem0("mem0.utils.factory").EmbedderFactory
                config = dict(self._settings.config)
                self._model = factory.create(self._settings.provider, config, None)
            vectors: list[list[float]] = self._model.embed_batch(list(texts), "add")
        except Exception as error:  # each provider has errors of its own
            raise EmbedderError(
                f"mem0's embedder {self._settings.provider} failed: {error}"
            ) from error
        return vectors


def as_messages(messages: object) -> list[dict[str, str]]:
    """Chat messages from what mem0 takes: a text, a message, or a list of messages."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    listed = [messages] if isinstance(messages, Mapping) else messages
    if not isinstance(listed, Sequence):
        raise InvalidInput(f"messages are a text or a list of messages, not {messages!r:.80}")
    result = []
    for message in listed:
        if not (
            isinstance(message, Mapping)
            and isinstance(message.get("role"), str)
            and isinstance(message.get("content"), str)
        ):
            raise InvalidInput(
                f"a message has a role and a content, both text; got {message!r:.80}"
            )
        result.append({key: value for key, value in message.items() if isinstance(value, str)})
    return result


class Extractor:
    """mem0's own extraction of facts from messages, with the bank in the place of its store.

    mem0 sees the agent's nearest memories through ``nearest`` and embeds through ``encode``. What
    it would insert is caught and returned, so that the bank can store it like any other memory.
    """

    def __init__(
        self,
        settings: LlmSettings,
        encode: Callable[[Sequence[str]], list[list[float]]],
        nearest: Callable[[str, str, int], list[tuple[str, dict[str, Any]]]],
    ) -> None:
        if settings.provider is None:
            raise ExtractionError(
                "add_messages(infer=True) needs an LLM and none is configured; set llm.provider "
                "and llm.config (for example openai with openai_base_url and model), or pass "
                "infer=False to store the messages as they are"
            )
        self._memory = _memory(settings, _Model(encode), _Catcher(nearest))

    def extract(self, agent_id: str, messages: Sequence[Message]) -> list[str]:
        """The facts that the LLM finds in ``messages`` and the agent does not know yet."""
        try:
            found = self._memory.add(list(messages), user_id=agent_id, infer=True)
        except Exception as error:  # each provider has errors of its own
            raise ExtractionError(f"mem0's extraction failed: {error}") from error
        return [entry["memory"] for entry in found["results"]]


class _Model:
    """The bank's embedder, in the shape of mem0's."""

    def __init__(self, encode: Callable[[Sequence[str]], list[list[float]]]) -> None:
        self._encode = encode

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self._encode([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str = "add") -> list[list[float]]:
        return self._encode(texts)


class _Catcher:
    """A vector store that searches the bank and keeps nothing."""

    def __init__(
        self, nearest: Callable[[str, str, int], list[tuple[str, dict[str, Any]]]]
    ) -> None:
        self._nearest = nearest

    def search(self, query: str, vectors: object, top_k: int, filters: Mapping[str, str]) -> Any:
        rows = self._nearest(filters["user_id"], query, top_k)
        return [SimpleNamespace(id=i, score=0.0, payload=entry) for i, entry in rows]

    def insert(self, vectors: object, payloads: object = None, ids: object = None) -> None:
        pass


class _NoEntities:
    """mem0 links entities in a store of their own; extraction here does without."""

    def list(self, filters: object = None, top_k: object = None) -> Sequence[Any]:
        return []

    def search_batch(self, queries: Sequence[str], **_: object) -> Sequence[Sequence[Any]]:
        return [[] for _ in queries]

    def insert(self, vectors: object, payloads: object = None, ids: object = None) -> None:
        pass


def _memory(settings: LlmSettings, model: _Model, store: _Catcher) -> Any:
    """A ``mem0.Memory`` with these parts. Its own constructor would open a store and a history."""
    main = import_mem0("mem0.memory.main")
    llm = {"provider": settings.provider, "config": dict(settings.config)}
    try:
        memory = object.__new__(main.Memory)
        memory.config = import_mem0("mem0.configs.base").MemoryConfig(llm=llm)
        memory.llm = import_mem0("mem0.utils.factory").LlmFactory.create(
            settings.provider, dict(settings.config)
        )
    except Exception as error:  # each provider has errors of its own
        raise ExtractionError(f"mem0's LLM {settings.provider} can't be set up: {error}") from error
    memory.db = import_mem0("mem0.memory.storage").SQLiteManager(":memory:")
    memory.embedding_model = model
    memory.vector_store = store
    memory._entity_store = _NoEntities()
    memory.collection_name = "tiermem"
    memory.api_version = memory.config.version
    memory.custom_instructions = None
    memory.reranker = None
    return memory
